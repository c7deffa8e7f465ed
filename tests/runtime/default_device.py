"""What `torch.set_default_device("cuda")` does to a program, on a machine without one."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor
from torch.overrides import TorchFunctionMode
from torch.utils._device import _device_constructors


class DefaultDevice(TorchFunctionMode):
    """Tensors that are made without a device count as those of another one, and no generator of the host fills them."""

    def __init__(self) -> None:
        super().__init__()
        self.generator = torch.Generator()  # of the device

    def __torch_function__(
        self, func: Callable[..., Any], types: Sequence[type], args: tuple[Any, ...] = (), kwargs: Any = None
    ) -> Any:
        kwargs = kwargs or {}
        made_there = func in _device_constructors() and kwargs.get("device") is None
        filled_there = func is Tensor.random_ and hasattr(args[0], "of_default_device")
        if (made_there or filled_there) and kwargs.get("generator") not in (None, self.generator):
            raise RuntimeError("Expected a 'cuda' device type for generator but found 'cpu'")
        made = func(*args, **kwargs)
        if made_there:
            made.of_default_device = True
        return made
