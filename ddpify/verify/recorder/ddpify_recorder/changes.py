"""What may be changed for a run: plain gradient descent for every optimizer, dropouts that do nothing."""

from __future__ import annotations

import functools
import types
from collections.abc import Callable
from typing import Any

import torch
from torch.optim import Optimizer

DROPOUTS = ("dropout", "dropout1d", "dropout2d", "dropout3d", "alpha_dropout", "feature_alpha_dropout")


def switch_off_dropout() -> None:
    """Make the dropouts of torch.nn.functional return what they get."""
    for name in DROPOUTS:
        setattr(torch.nn.functional, name, lambda input, *args, **kwargs: input)
    attention = torch.nn.functional.scaled_dot_product_attention

    @functools.wraps(attention)
    def attend(
        query: Any, key: Any, value: Any, attn_mask: Any = None, dropout_p: float = 0.0, *args: Any, **kwargs: Any
    ) -> Any:
        return attention(query, key, value, attn_mask, 0.0, *args, **kwargs)

    torch.nn.functional.scaled_dot_product_attention = attend
    init = torch.nn.RNNBase.__init__

    @functools.wraps(init)
    def without_dropout(self: torch.nn.RNNBase, *args: Any, **kwargs: Any) -> None:
        init(self, *args, **kwargs)
        self.dropout = 0.0

    torch.nn.RNNBase.__init__ = without_dropout  # type: ignore[method-assign]


def descend_plainly() -> None:
    """Give every optimizer that is made from now on the step of plain gradient descent."""
    plain, original = Optimizer.profile_hook_step(_plain_step), Optimizer.__init__

    @functools.wraps(original)
    def init(self: Optimizer, *args: Any, **kwargs: Any) -> None:
        original(self, *args, **kwargs)
        self.step = types.MethodType(plain, self)  # type: ignore[method-assign]

    Optimizer.__init__ = init  # type: ignore[method-assign]


def _plain_step(self: Optimizer, closure: Callable[[], Any] | None = None) -> Any:
    """One step of gradient descent: no momentum, no decay, nothing that amplifies rounding."""
    with torch.enable_grad():
        loss = None if closure is None else closure()
    with torch.no_grad():
        for group in self.param_groups:
            for parameter in group["params"]:
                if parameter.grad is not None:
                    parameter.add_(parameter.grad, alpha=-float(group.get("lr", 0.01)))
    return loss
