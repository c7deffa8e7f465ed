"""Tensors that torch_xla makes while torch's dispatch is intercepted."""

from __future__ import annotations

from typing import Any

from torch import Tensor

from ...torch_internals import functionalized, tree_leaves, tree_map_only


def functional(result: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """What an intercepted call has made, such that writing to a view of it writes to it.

    XLA devices have no memory to share: torch records writes in a wrapper (functionalization) around their tensors.
    Below a `__torch_dispatch__` of Python nothing is wrapped, and new tensors would come out bare, and views of them be
    copies. A call that was given tensors of the device came through the wrapper, which wraps its result.
    """
    if any(_is_on_device(value) for value in tree_leaves((args, kwargs))):
        return result
    return tree_map_only(Tensor, _wrapped, result)


def _is_on_device(value: Any) -> bool:
    return isinstance(value, Tensor) and value.device.type == "xla"


def _wrapped(tensor: Tensor) -> Tensor:
    return functionalized(tensor) if tensor.device.type == "xla" else tensor
