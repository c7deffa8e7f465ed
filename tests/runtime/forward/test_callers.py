"""By which line of a program something is known."""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F
from ddpify_runtime.forward.callers import line_of_draw
from torch import Tensor, nn
from torch.utils._python_dispatch import TorchDispatchMode


class Lines(TorchDispatchMode):
    """The line of each draw."""

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.seen: list[str] = []

    def __torch_dispatch__(self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Any = None) -> Any:
        if torch.Tag.nondeterministic_seeded in func.tags:
            self.seen.append(line_of_draw())
        return func(*args, **(kwargs or {}))


def drops(layer: nn.Module, x: Tensor) -> Tensor:
    return layer(x) + layer(x)  # type: ignore[no-any-return]


def test_each_draw_of_a_line_is_another_one_and_the_same_the_next_time() -> None:
    layer, x = nn.Dropout(0.5), torch.ones(3)
    with Lines() as lines:
        for _ in range(2):
            drops(layer, x)
        F.dropout(x, 0.5)
    assert len(lines.seen) == 5 and len(set(lines.seen)) == 3
    assert lines.seen[:2] == lines.seen[2:4] and all("test_callers.py" in line for line in lines.seen)
    assert "dropout.py" not in lines.seen[0]
