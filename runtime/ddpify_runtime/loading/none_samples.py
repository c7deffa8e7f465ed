"""Whether a collate function asks if samples are None, to leave them out: `[s for s in samples if s is not None]`."""

from __future__ import annotations

import dis
from functools import partial
from types import CodeType
from typing import Any

# Of Python 3.10 to 3.13: `x is None`, and jumps where it is, or is not.
_TESTS = frozenset(
    {"IS_OP"} | {f"POP_JUMP_{way}IF_{none}" for way in ("", "FORWARD_", "BACKWARD_") for none in ("NONE", "NOT_NONE")}
)


def asks_for_none(function: Any) -> bool:
    """Whether the code of a function, or one within it, compares with `is`, or filters: others get no sample that is
    None, since it might do something else with it that is seen."""
    while isinstance(function, partial):
        function = function.func
    function = function if hasattr(function, "__code__") or not callable(function) else type(function).__call__
    code = getattr(function, "__code__", None)
    return isinstance(code, CodeType) and _asks(code)


def _asks(code: CodeType) -> bool:
    asks = "filter" in code.co_names or any(each.opname in _TESTS for each in dis.get_instructions(code))
    return asks or any(_asks(each) for each in code.co_consts if isinstance(each, CodeType))
