"""Tensor types of XLA devices: `FloatTensor` makes tensors there, as `torch.cuda.FloatTensor` does on a GPU.

torch has no such types, though it names them: `tensor.type()` is "torch.xla.FloatTensor". These can be called, asked
by `isinstance`, given to `.type(...)` and `torch.set_default_tensor_type(...)`, as objects or by that name.
"""

from __future__ import annotations

from typing import Any

import torch
import torch_xla
from torch import Tensor

_of_tensor: Any = Tensor.type
_set_default: Any = torch.set_default_tensor_type


class TensorType(type):
    """The kind of such a type: calling it makes a tensor, and its instances are tensors of its dtype on XLA."""

    dtype: torch.dtype

    def __call__(cls, *arguments: Any, device: Any = None) -> Tensor:
        """Make a tensor of sizes, of a sequence or an array, or of nothing; as `torch.FloatTensor` on the host."""
        place = torch_xla.device() if device is None else device
        sizes = tuple(arguments[0]) if len(arguments) == 1 and isinstance(arguments[0], torch.Size) else arguments
        if all(type(size) is int for size in sizes):
            return torch.empty(sizes or (0,), dtype=cls.dtype, device=place)
        if isinstance(sizes[0], Tensor):
            if sizes[0].dtype is not cls.dtype:
                raise TypeError(f"expected {cls.dtype} (got {sizes[0].dtype})")
            return sizes[0].to(place)
        return getattr(torch, cls.__name__)(*arguments).to(place)  # type: ignore[no-any-return]

    def __instancecheck__(cls, tensor: object) -> bool:
        return isinstance(tensor, Tensor) and tensor.device.type == "xla" and tensor.dtype is cls.dtype

    def __str__(cls) -> str:
        return f"torch.xla.{cls.__name__}"


TYPES = {
    name: TensorType(name, (), {"dtype": getattr(torch, name).dtype})
    for name in (
        "FloatTensor",
        "DoubleTensor",
        "HalfTensor",
        "BFloat16Tensor",
        "ByteTensor",
        "CharTensor",
        "ShortTensor",
        "IntTensor",
        "LongTensor",
        "BoolTensor",
    )
}
_NAMED = {str(kind): kind for kind in TYPES.values()}


def _type(self: Tensor, dtype: Any = None, non_blocking: bool = False, **others: Any) -> Any:
    kind = _NAMED.get(dtype, dtype) if isinstance(dtype, str) else dtype
    if not isinstance(kind, TensorType):
        return _of_tensor(self, dtype, non_blocking, **others)
    return self.to(torch_xla.device(), kind.dtype, non_blocking=non_blocking)


def _set_default_tensor_type(kind: Any) -> None:
    kind = _NAMED.get(kind, kind) if isinstance(kind, str) else kind
    torch.set_default_device(torch_xla.device() if isinstance(kind, TensorType) else None)
    if isinstance(kind, TensorType):
        torch.set_default_dtype(kind.dtype)
    else:
        _set_default(kind)


Tensor.type = _type  # type: ignore[assignment, method-assign]
torch.set_default_tensor_type = _set_default_tensor_type
