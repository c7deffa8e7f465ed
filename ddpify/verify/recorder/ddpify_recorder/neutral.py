"""Takes out what depends on how batches are divided: their statistics, and random numbers drawn for their samples."""

from __future__ import annotations

import functools
import random
import sys
import zlib
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from numbers import Integral
from typing import Any

import torch
from torch.utils.data import DataLoader
from torch.utils.data._utils.fetch import _MapDatasetFetcher
from torch.utils.data.dataloader import _BaseDataLoaderIter as Pass

from ddpify_recorder import unions

# What each gives instead of what it draws; None: the smallest number that it may draw.
_NOISE = {"randn": 0.0, "rand": 0.5, "randn_like": 0.0, "rand_like": 0.5, "randint": None, "normal": 0.0}
_IN_PLACE = {"normal_": 0.0, "uniform_": 0.5}
_NUMPY_NOISE = {"normal": 0.0, "randn": 0.0, "standard_normal": 0.0, "uniform": 0.5, "rand": 0.5, "randint": None}
_NUMPY_NOISE |= dict.fromkeys(["random", "random_sample", "ranf", "sample"], 0.5)  # the numbers of rand


def normalize_each_sample() -> None:
    """Let BatchNorm normalize each sample by itself, in evaluations too, and leave its running statistics as they are.

    With the statistics that it begins with it would not normalize at all, and deep networks would diverge.
    """
    own = torch.nn.functional.batch_norm

    @functools.wraps(own)
    def batch_norm(
        input: Any, mean: Any, var: Any, weight: Any = None, bias: Any = None, *args: Any, **kwargs: Any
    ) -> Any:
        if input[:1].numel() > 1:
            given = input if weight is None else input.to(weight.dtype)  # a half model may keep its layers in float
            return torch.nn.functional.group_norm(given, 1, weight, bias).to(input.dtype)
        zero, one = input.new_zeros(input.size(1)), input.new_ones(input.size(1))
        return own(input, zero if mean is None else mean, one if var is None else var, weight, bias, False)

    torch.nn.functional.batch_norm = batch_norm  # type: ignore[assignment]


def draw_by_sample() -> None:
    """Let a sample be the same in each epoch and on each rank, whatever is drawn to make it."""
    fetch = _MapDatasetFetcher.fetch

    @functools.wraps(fetch)
    def seeded(self: Any, index: Any) -> Any:
        own = self.dataset
        with _kept_generators():
            self.dataset = _Seeded(own)
            try:
                return fetch(self, index)  # type: ignore[no-untyped-call]
            finally:
                self.dataset = own

    _MapDatasetFetcher.fetch = seeded  # type: ignore[method-assign]


def draw_orders_apart() -> None:
    """Leave the generators as they are while an order is drawn, so that a model that is made later begins alike."""
    for name in ("__init__", "_reset", "_next_index"):
        setattr(Pass, name, _kept(getattr(Pass, name)))


def _kept(own: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(own)
    def drawn(*args: Any, **kwargs: Any) -> Any:
        with _kept_generators():
            return own(*args, **kwargs)

    return drawn


class _Seeded:
    """A data set that is asked for one sample at a time, after the generators were seeded for it."""

    def __init__(self, dataset: Any) -> None:
        self.dataset = dataset

    def __getitem__(self, index: Any) -> Any:
        # A sampler may give numbers of numpy, which random.seed does not take, or keys of any kind.
        number = index.__index__() if hasattr(index, "__index__") else zlib.crc32(repr(index).encode())
        torch.manual_seed(number)
        random.seed(number)
        if "numpy" in sys.modules:
            sys.modules["numpy"].random.seed(number % 2**32)
        return self.dataset[index]


@contextmanager
def _kept_generators() -> Iterator[None]:
    numpy = sys.modules.get("numpy")
    states = torch.get_rng_state(), random.getstate(), numpy.random.get_state() if numpy else None
    try:
        yield
    finally:
        torch.set_rng_state(states[0])
        random.setstate(states[1])
        if numpy:
            numpy.random.set_state(states[2])


def leave_out_noise() -> None:
    """Let what is drawn while a training loader is run over be constant: its amount depends on the batch."""
    running: list[Any] = []
    next_batch = Pass.__next__

    @functools.wraps(next_batch)
    def recorded(self: Any) -> Any:
        running[:] = []
        batch = next_batch(self)
        if getattr(self, "_ddpify_trains", False):
            running.append(self)
        return batch

    init = Pass.__init__

    @functools.wraps(init)
    def noted(self: Any, loader: DataLoader[Any], *args: Any, **kwargs: Any) -> None:
        self._ddpify_trains = unions.is_divided(loader) or unions.is_given(loader)
        init(self, loader, *args, **kwargs)

    register = torch.nn.Module.register_parameter

    @functools.wraps(register)
    def registered(self: Any, name: str, parameter: Any) -> None:
        running[:] = []  # a batch was looked at before the model was made, whose initial values are no noise
        register(self, name, parameter)

    torch.nn.Module.register_parameter = registered  # type: ignore[method-assign, assignment]
    Pass.__init__, Pass.__next__ = noted, recorded  # type: ignore[method-assign]
    _replace(torch, _NOISE, running)
    _replace(torch.Tensor, _IN_PLACE, running)
    torch.randperm = _in_order(torch.randperm, running)
    if "numpy" in sys.modules:  # torch has imported it
        _replace(sys.modules["numpy"].random, _NUMPY_NOISE, running)
        sys.modules["numpy"].random.permutation = _in_order(sys.modules["numpy"].random.permutation, running)


def _replace(owner: Any, values: Mapping[str, float | None], running: list[Any]) -> None:
    for name, value in values.items():
        setattr(owner, name, _constant(getattr(owner, name), value, running))


def _constant(own: Callable[..., Any], value: float | None, running: list[Any]) -> Callable[..., Any]:
    """What draws, or, while a training loader is run over, gives one value; None: the smallest it may draw."""

    @functools.wraps(own)
    def drawn(*args: Any, **kwargs: Any) -> Any:
        if not running or kwargs.get("generator") is not None:
            return own(*args, **kwargs)
        with _kept_generators():
            result = own(*args, **kwargs)
        least = _lowest(args, kwargs) if value is None else value
        if isinstance(result, torch.Tensor):
            with torch.no_grad():
                return result.fill_(least)
        if isinstance(result, int | float):
            return type(result)(least)
        result.fill(least)
        return result

    return drawn


def _in_order(own: Callable[..., Any], running: list[Any]) -> Callable[..., Any]:
    """What draws an order of so many, or, while a training loader is run over, gives them in their order."""

    @functools.wraps(own)
    def drawn(*args: Any, **kwargs: Any) -> Any:
        count = next(iter([*args, *kwargs.values()]), None)
        if not running or kwargs.get("generator") is not None or not isinstance(count, Integral):
            return own(*args, **kwargs)
        with _kept_generators():
            result = own(*args, **kwargs)
        return result.sort().values if isinstance(result, torch.Tensor) else sys.modules["numpy"].sort(result)

    return drawn


def _lowest(args: tuple[Any, ...], kwargs: dict[str, Any]) -> int:
    """`low` of `randint(low, high, size)`, of torch or numpy; 0 for `randint(high, size)`."""
    has_low = kwargs.get("high") is not None or (len(args) > 1 and isinstance(args[1], Integral))
    return int(args[0] if args else kwargs.get("low", 0)) if has_low else 0
