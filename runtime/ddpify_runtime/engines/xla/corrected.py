"""What torch_xla 2.9 computes wrongly without a word, or refuses where other devices do not.

Found by holding 230 layers, losses and operations against the CPU, with their gradients; a hundred are a test
(`tests/xla/scripts/operations.py`).
"""

from __future__ import annotations

import warnings
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from ... import torch_internals, torch_xla_internals
from ...forward.batch_norm import statistics, track, weight_of_batch

# torch_xla puts a GRU of its own in its place, which knows no packed sequences, no directions and no projections, and
# gives other gradients when its batch comes first.
nn.GRU = torch_xla_internals.gru()  # type: ignore[misc]

_normalised = torch_internals.BatchNorm.forward
_kernels: dict[str, Any] = {}


def _with_unbiased_variance(self: torch_internals.BatchNorm, input: Tensor) -> Tensor:
    """It puts the biased variance of a batch into `running_var`; all other devices do not (X10)."""
    if input.device.type != "xla" or not (self.training and self.track_running_stats):
        return _normalised(self, input)
    torch_internals.check_dims(self, input)
    momentum = weight_of_batch(self)
    with torch.no_grad():
        mean, variance = statistics(input)
        values = input.numel() / input.size(1)
        track(self.running_mean, self.running_var, mean, variance * (values / (values - 1)), momentum)
    return F.batch_norm(input, None, None, self.weight, self.bias, training=True, eps=self.eps)


def _slice_copy(keys: Any, input: Tensor, dim: int = 0, start: Any = None, end: Any = None, step: int = 1) -> Any:
    start, end = _within(input, dim, start), _within(input, dim, end)
    return _kernels["slice_copy.Tensor"].call_boxed(keys, input, dim, start, end, step)


def _slice_scatter(
    keys: Any, input: Tensor, src: Tensor, dim: int = 0, start: Any = None, end: Any = None, step: int = 1
) -> Any:
    start, end = _within(input, dim, start), _within(input, dim, end)
    return _kernels["slice_scatter"].call_boxed(keys, input, src, dim, start, end, step)


def _within(input: Tensor, dim: int, place: int | None) -> int | None:
    """A slice may begin before its tensor does: `x[:, -16:]` of four columns is all of them."""
    return place if place is None else max(place, -input.size(dim))


def _nearest(keys: Any, input: Tensor, size: Any, height: float | None = None, width: float | None = None) -> Any:
    places = _nearest_places(input.shape, size, height, width)
    if places is None:
        return _kernels["upsample_nearest2d"].call_boxed(keys, input, size, height, width)
    rows, columns = (each.to(input.device) for each in places)
    return input.index_select(2, rows).index_select(3, columns)


def _nearest_backward(
    keys: Any, gradient: Tensor, size: Any, given: Any, height: float | None = None, width: float | None = None
) -> Any:
    places = _nearest_places(given, size, height, width)
    if places is None:
        return _kernels["upsample_nearest2d_backward"].call_boxed(keys, gradient, size, given, height, width)
    rows, columns = (each.to(gradient.device) for each in places)
    narrow = gradient.new_zeros(*gradient.shape[:3], given[3]).index_add(3, columns, gradient)
    return narrow.new_zeros(tuple(given)).index_add(2, rows, narrow)


def _nearest_places(given: Any, size: Any, *scales: float | None) -> list[Tensor] | None:
    """The row and the column that each one comes from; None where torch_xla has the same.

    It goes by the sizes, where others go by a scale that was asked for: 1.7 times 8 is 13, not 13.6.
    """
    sides = list(zip(scales, given[2:], size, strict=True))
    if all(scale is None or scale * before == after for scale, before, after in sides):
        return None
    return [
        (places * (before / after if scale is None else 1.0 / scale)).long().clamp(max=before - 1)
        for scale, before, after in sides
        for places in [torch.arange(after, device="cpu")]
    ]


def _replace(name: str, function: Any) -> None:
    _kernels[name] = torch.library.get_kernel(f"aten::{name}", "XLA")
    _library.impl(name, function, "XLA", with_keyset=True)


torch_internals.BatchNorm.forward = _with_unbiased_variance  # type: ignore[method-assign]
_library = torch.library.Library("aten", "IMPL")
with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # that there is another kernel
    # Its own is wrong for negative inputs of elu, selu and celu, by 20 % and more.
    _library.impl("elu_backward", torch_internals.elu_backward(), "XLA")
    _replace("slice_copy.Tensor", _slice_copy)
    _replace("slice_scatter", _slice_scatter)
    _replace("upsample_nearest2d", _nearest)
    _replace("upsample_nearest2d_backward", _nearest_backward)
