"""What rank 0 tells the others, through the store of the process group: it waits for nobody, they wait for it."""

from __future__ import annotations

import datetime
import decimal
import enum
import fractions
import pathlib
import pickle
import sys
import uuid
from collections import Counter
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import torch
import torch.distributed as dist
from torch.distributed import PrefixStore  # type: ignore[attr-defined]

from ..sharding import pickled
from ..torch_internals import default_store

LIMIT = timedelta(minutes=30)  # how long rank 0 may take to come to what another rank waits for

_DATA = (
    *(type(None), bool, int, float, complex, str, bytes, bytearray, range, slice, type(...)),
    *(datetime.date, datetime.time, datetime.timedelta, datetime.tzinfo, decimal.Decimal, fractions.Fraction),
    *(uuid.UUID, pathlib.PurePath, enum.Enum, torch.Tensor, torch.Size, torch.dtype, torch.device),
    torch.nn.Module,
)

_uses: Counter[str] = Counter()


def is_data(value: Any) -> bool:
    """Whether a value can be copied to other ranks, where it is then as good as here; a live object can not."""
    numpy = sys.modules.get("numpy")
    kind = type(value)
    if kind is dict:
        return all(map(is_data, value)) and all(map(is_data, value.values()))
    if kind in (list, set, frozenset) or issubclass(kind, tuple):
        return all(map(is_data, value))
    return issubclass(kind, _DATA) or (numpy is not None and issubclass(kind, (numpy.ndarray, numpy.generic)))


def next_key(name: str) -> str:
    """The name of the next value under this name: every rank counts for itself."""
    _uses[name] += 1
    return f"{name} {_uses[name]}"


def send(key: str, value: Any) -> None:
    """On rank 0: leave a value for the others."""
    store: Any = _store()  # whose stubs know texts only
    store.set(key, pickle.dumps(value))


def receive(key: str) -> Any:
    """On the other ranks: the value that rank 0 leaves under this key.

    Raises:
        RuntimeError: rank 0 does not come there.
    """
    store, readers = _store(), dist.get_world_size() - 1
    try:
        store.wait([key], LIMIT)
    except RuntimeError as error:
        raise RuntimeError(
            f"ddpify: rank {dist.get_rank()} waits for {key.rpartition(' ')[0]!r} of an object that lives on rank 0, "
            f"which did not come there: it is read on some ranks only ({error})"
        ) from None
    value = store.get(key)
    if store.add(f"{key}/read", 1) == readers:
        store.delete_key(key)
        store.delete_key(f"{key}/read")
    return pickled.loads(value)


def from_rank_zero(key: str, here: bool, function: Callable[[], tuple[Any, Any]]) -> Any:
    """What a function gives on rank 0, or the exception that it raises, on every rank.

    Args:
        key: of this value. here: whether this is rank 0. function: gives the value for rank 0 and that for the others.
    """
    if not here:
        value, error = receive(key)
        if error is not None:
            raise error
        return value
    try:
        value, sent = function()
    except Exception as error:
        send(key, (None, travelling(error)))
        raise
    send(key, (sent, None))
    return value


def travelling(error: Exception) -> Exception:
    """The exception itself if it can be pickled, otherwise one that says the same."""
    try:
        pickle.loads(pickle.dumps(error))
    except Exception:  # noqa: BLE001  anything can go wrong in someone's __reduce__
        return RuntimeError(repr(error))
    return error


def _store() -> PrefixStore:
    return PrefixStore("ddpify_remote", default_store())
