"""A list with a text for each sample of a global batch, of which this rank holds those of its rows only."""

from __future__ import annotations

import dis
import json
import sys
from collections.abc import Sequence
from types import FrameType
from typing import Any

from ..forward import region
from ..sharding.collectives import gather_objects


class Entries(Sequence[Any]):
    """A list or tuple of texts, such as file names, one for each sample; joined when it is looked into.

    What else there is one of for each sample is joined at once: torch takes no list that only looks like one.
    """

    def __init__(self, rows: Sequence[Any], total: int) -> None:
        self._rows, self._total = rows, total
        self._whole: Any = None

    @property  # type: ignore[misc]
    def __class__(self) -> type:  # what isinstance() asks for
        return type(self._rows)

    def __getattr__(self, name: str) -> Any:  # append(), sort()
        return getattr(self.whole(), name)

    def whole(self) -> Any:
        """The whole list; a collective the first time."""
        if self._whole is None:
            region.require_all_ranks("the texts of a batch")
            gathered = gather_objects(self._rows)
            whole: list[Any] = [None] * self._total
            for rank, entries in enumerate(gathered):
                whole[rank :: len(gathered)] = entries
            kind: Any = type(self._rows)
            self._whole = kind(whole)
        return self._whole

    def __len__(self) -> int:
        return self._total if self._whole is None else len(self._whole)

    def __getitem__(self, index: Any) -> Any:
        return self.whole()[index]

    def __setitem__(self, index: Any, value: Any) -> None:
        self.whole()[index] = value

    def __iter__(self) -> Any:
        return iter(self.whole())

    def __add__(self, other: Any) -> Any:
        return self.whole() + (other.whole() if type(other) is Entries else other)

    def __radd__(self, other: Any) -> Any:
        if isinstance(other, list) and _adds_in_place(sys._getframe(1)):
            return NotImplemented  # asked before the list itself, which takes whatever it can iterate over
        return other + self.whole()

    def __mul__(self, times: Any) -> Any:
        return self.whole() * times

    __rmul__ = __mul__

    def __eq__(self, other: object) -> bool:
        return bool(self.whole() == (other.whole() if type(other) is Entries else other))

    def __hash__(self) -> int:
        return hash(self.whole())

    def __repr__(self) -> str:
        return repr(self.whole())

    def __reduce__(self) -> Any:
        return self.__class__, (list(self.whole()),)


_OPERATION, _IN_PLACE = dis.opmap.get("BINARY_OP"), 13  # `+=`, since Python 3.11


def _adds_in_place(frame: FrameType) -> bool:
    """Whether a frame is at `names += …`, which tells it by its code alone."""
    code, at = frame.f_code.co_code, frame.f_lasti
    if _OPERATION is None:
        return dis.opname[code[at]] == "INPLACE_ADD"
    return code[at] == _OPERATION and code[at + 1] == _IN_PLACE


def _as_json(encoder: json.JSONEncoder, value: Any) -> Any:
    return value.whole() if type(value) is Entries else _default(encoder, value)


# The encoder is written in C and takes no list that only looks like one.
_default = json.JSONEncoder.default
setattr(json.JSONEncoder, "default", _as_json)  # noqa: B010
