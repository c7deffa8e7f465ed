"""Random numbers of a forward as one process draws them: each rank draws those of the whole batch and takes its rows.

So dropout masks and noise are those of the single-process run, and the common random stream, which also orders the
loaders, advances as it does there (HAZARDS S2, S4, E1). This is for trials, for DDPIFY_RANDOM=original, and for a
module that also draws something that all samples share; else a rank draws for its own rows alone (rank_stream.py).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor

from .. import engines
from ..agreement import random_states
from ..launch.environment import draws_original
from ..sharding.collectives import Rows, gather, own_rank, shard
from ..sharding.graphs import AnyDrawn, AnyRows, OwnNumbers, Segment, at
from ..torch_internals import TorchDispatchMode, schema
from .callers import line_of_draw
from .region import Draw, Region

FILL = {"bernoulli", "uniform", "normal", "exponential", "random", "log_normal", "cauchy", "geometric"}
CREATE = {"rand", "randn", "randint"}
LIKE = {"rand_like", "randn_like", "randint_like"}
SAMPLE = {"bernoulli", "multinomial", "normal", "poisson", "binomial"}


# The place of what a kernel draws within itself, such as the dropout of attention on a GPU: this rank's own numbers.
FUSED = "a fused kernel", 0, ""

# Why such a kernel cannot be divided. In float64 other kernels may run, which is no answer.
IN_KERNEL = "it draws in a fused kernel"


_OWN = OwnNumbers()
_UNKNOWN = Rows(-1)
_DIFFERENTLY = "it draws differently for a part of the batch"


class UnknownDraw(RuntimeError):
    """A random operation of which the rows of a share cannot be told.

    draws: what may be drawn for the samples of a part in a size of its own.
    """

    def __init__(self, reason: str, draws: Sequence[Draw] = ()) -> None:
        super().__init__(reason)
        self.draws = draws


class Draws(TorchDispatchMode):
    """Handles every operation that torch marks as random, according to the region's mode."""

    def __init__(self, region: Region) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.region = region
        self.line = ""  # of the program, where it draws

    def __torch_dispatch__(
        self, func: Any, types: Sequence[type], args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        kwargs = kwargs or {}
        return engines.here().intercepted(self._handled(func, args, kwargs), args, kwargs)

    def _handled(self, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        if not _is_random(func, args, kwargs):
            return func(*args, **kwargs)
        if _dropout_argument(func):  # in a trial: a rank's own numbers go round this mode
            self.region.places[FUSED] = Rows()
            if draws_original():
                raise UnknownDraw(f"{IN_KERNEL}, in which the numbers of one process cannot be told")
            if None in self.region.places.values():
                raise UnknownDraw(f"{IN_KERNEL}, and numbers that are the same for every sample")
            return _without_dropout(func, args, kwargs)
        name = func.overloadpacket.__name__.removesuffix("_functional").rstrip("_")
        self.line = line_of_draw()
        if _OWN in self.region.places.values():
            with random_states.kept():
                result = func(*args, **kwargs)
            if self._known(name, _only_tensor(result).dim(), _UNKNOWN) == _OWN:
                return _neutral(name, result, args)
        if self.region.mode == "record":
            result = func(*args, **kwargs)
            drawn = _only_tensor(result)
            if self.region.extreme is not None and self._known(name, drawn.dim(), _UNKNOWN) is None:
                _set_to_extreme(name, drawn, self.region.extreme)
            self.region.draws.append(((name, drawn.dim(), self.line), drawn.clone()))
            return result
        if name in FILL and isinstance(args[0], Tensor) and _fills(func, args, kwargs):
            target: Tensor = args[0]
            drawn = self._drawn(name, target.shape, lambda size: func(_empty_like(target, size), *args[1:], **kwargs))
            return target.copy_(drawn) if schema(func).is_mutable else drawn
        if name in CREATE:
            at = next(i for i, value in enumerate(args) if isinstance(value, (list, tuple)))
            return self._drawn(name, args[at], lambda size: func(*args[:at], list(size), *args[at + 1 :], **kwargs))
        if name in LIKE:
            return self._drawn(name, args[0].shape, lambda size: func(_empty_like(args[0], size), *args[1:], **kwargs))
        if name in SAMPLE:
            return self._sampled(name, func, args, kwargs)
        if name == "native_dropout":  # the fused form on GPUs
            input, probability, training = args
            mask = self._drawn(name, input.shape, lambda size: func(_empty_like(input, size), probability, training)[1])
            return input * mask * (1 / (1 - probability) if probability < 1 else 0.0), mask
        raise UnknownDraw(f"its {name} cannot be divided over processes")

    def _drawn(self, name: str, size: Sequence[int], draw: Callable[[Sequence[int]], Tensor]) -> Tensor:
        """This rank's rows of a draw whose local size is `size`."""
        if self.region.mode == "replay":
            whole = self._recorded(name, size)
        else:
            whole = draw(_whole(size, self.region, self._place(name, len(size))))
        return self._mine(whole, self._place(name, len(size)))

    def _sampled(self, name: str, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Tensor:
        """A draw whose distribution comes from tensors: they are joined first."""
        input = next(value for value in args if isinstance(value, Tensor))
        if self.region.mode == "replay":
            size = [*input.shape[:-1], args[1]] if name == "multinomial" else input.shape
            whole = self._recorded(name, size)
        else:
            rows, total = self._place(name, input.dim()), self.region.total
            gathered = tuple(
                gather(value, total, at(self.region.layout, rows))
                if isinstance(value, Tensor) and rows and value.shape == input.shape
                else value
                for value in args
            )
            whole = func(*gathered, **kwargs)
        return self._mine(whole, self._place(name, input.dim()))

    def _recorded(self, name: str, size: Sequence[int]) -> Tensor:
        """What the whole batch drew here; learns where the samples lie: in the one dim that is not as large."""
        draw = name, len(size), self.line
        if not self.region.draws:
            raise UnknownDraw(_DIFFERENTLY, [draw])
        recorded, whole = self.region.draws.pop(0)
        if recorded != draw:
            raise UnknownDraw(_DIFFERENTLY, [recorded, draw])
        dims = [dim for dim, extent in enumerate(size) if extent != whole.size(dim)]
        rows = _rows_along(dims[0], size, whole, self.region) if dims else None
        of_samples = isinstance(rows, Rows)
        if list(whole.shape) != _whole(size, self.region, rows) or (of_samples and size[dims[0]] % self.region.local):
            raise UnknownDraw(_DIFFERENTLY, [draw])
        if of_samples and size[dims[0]] != self.region.local:
            self.region.several.add(draw)
        if self.region.places.setdefault(draw, rows) != rows:
            raise UnknownDraw(f"it draws with {name} in more than one way", [draw])
        return whole

    def _place(self, name: str, dims: int) -> AnyDrawn | None:
        place = self._known(name, dims, _UNKNOWN)
        if place == _UNKNOWN:
            raise UnknownDraw(f"ddpify: its {name} appeared after the forward had been divided over the processes")
        return place

    def _known(self, name: str, dims: int, default: AnyDrawn) -> AnyDrawn | None:
        """Where the samples lie in what is drawn on this line, or on any one."""
        alike = {
            line: rows for (other, many, line), rows in self.region.places.items() if (other, many) == (name, dims)
        }
        if self.line in alike:
            return alike[self.line]
        if self.region.mode != "shard":
            return default
        # A part of a module may be called by way of the runtime now, or by a line that none of the trials came to.
        ends = [line for line in alike if line.startswith(self.line) or self.line.startswith(line)]
        found = {alike[line] for line in ends or alike}
        return found.pop() if len(found) == 1 else default

    def _mine(self, whole: Tensor, rows: AnyDrawn | None) -> Tensor:
        return whole if rows is None else shard(whole, self.region.total, at(self.region.layout, rows))


def _neutral(name: str, result: Any, args: tuple[Any, ...]) -> Any:
    """In a trial, in place of what is dropped of rows that cannot be told: nothing is, in any part of the batch.

    Other numbers may put what they are drawn for in an order, which equal ones would not show.
    """
    if name == "native_dropout":
        input, probability, _ = args
        return input / (1 - probability) if probability < 1 else input * 0, torch.ones_like(result[1])
    if name != "bernoulli":
        raise UnknownDraw(_DIFFERENTLY)
    return result.fill_(1)


def _set_to_extreme(name: str, drawn: Tensor, extreme: float) -> None:
    """In place of numbers that are drawn between 0 and 1, what ends that range."""
    if name in ("rand", "rand_like", "uniform"):
        drawn.fill_(extreme)
    elif name == "bernoulli":
        drawn.fill_(1 if extreme else 0)


def _is_random(func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
    """Whether a call draws: attention and recurrent kernels carry the mark also where their dropout is 0."""
    if torch.Tag.nondeterministic_seeded not in func.tags:
        return False
    argument = _dropout_argument(func)
    if argument is None:
        return True
    place, name, default = argument
    return bool(args[place] if place < len(args) else kwargs.get(name, default))


def _dropout_argument(func: Any) -> tuple[int, str, Any] | None:
    """Place, name and default of the probability with which a fused kernel drops values."""
    for place, argument in enumerate(schema(func).arguments):
        if argument.name in ("dropout_p", "dropout"):
            return place, argument.name, argument.default_value
    return None


def _without_dropout(func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    argument = _dropout_argument(func)
    assert argument is not None
    place, name, _ = argument
    if place < len(args):
        return func(*args[:place], 0.0, *args[place + 1 :], **kwargs)
    return func(*args, **{**kwargs, name: 0.0})


def _fills(func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
    """Whether a tensor gives a draw its size alone. On XLA devices it is not filled: a new one takes its place."""
    if any(isinstance(value, Tensor) for value in (*args[1:], *kwargs.values())):
        return False
    return func not in (torch.ops.aten.bernoulli.default, torch.ops.aten.normal.Tensor_float)


def _only_tensor(result: Any) -> Tensor:
    """The tensor that carries the randomness: the mask of native_dropout, else the result."""
    tensor: Tensor = result[-1] if isinstance(result, tuple) else result
    return tensor


def _rows_along(dim: int, size: Sequence[int], whole: Tensor, region: Region) -> AnyRows:
    """What lies along a dimension in which a draw of `size` is smaller than that of the whole batch."""
    for number, axis in enumerate(region.layout.axes if region.layout is not None else ()):
        if len(axis) == whole.size(dim) and len(axis.of_rank(own_rank(), axis.owners.device)) == size[dim]:
            return Segment(dim, number)
    return Rows(dim)


def _whole(size: Sequence[int], region: Region, rows: AnyDrawn | None) -> list[int]:
    """The size for the whole batch of something that has `size` for the local samples."""
    whole = list(size)
    if isinstance(rows, Segment):
        assert region.layout is not None
        whole[rows.dim] = len(region.layout.axis(rows.axis))
    elif isinstance(rows, Rows):
        whole[rows.dim] = whole[rows.dim] // region.local * region.total
    return whole


def _empty_like(tensor: Tensor, size: Sequence[int]) -> Tensor:
    """Uninitialised, with the memory order of `tensor`: random fills follow memory order."""
    strides = tensor.stride()
    order = sorted(range(tensor.dim()), key=lambda dim: -strides[dim])
    back = [order.index(dim) for dim in range(tensor.dim())]
    return tensor.new_empty([size[dim] for dim in order]).permute(back)
