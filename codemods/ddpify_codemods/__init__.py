"""Source in, source out: turn a training script for one device into one for many."""

from typing import Any

from .engine import convert, converted_for
from .options import LOCAL_BATCH_NORM, ONE_DEVICE
from .reading import SourceError
from .result import ConversionBug, Result
from .rule import Change, Finding, Rule
from .targets import TARGETS, Target

RULES: tuple[Rule, ...]
__all__ = [
    "LOCAL_BATCH_NORM",
    "ONE_DEVICE",
    "RULES",
    "TARGETS",
    "Change",
    "ConversionBug",
    "Finding",
    "Result",
    "Rule",
    "SourceError",
    "Target",
    "convert",
    "converted_for",
]


def __getattr__(name: str) -> Any:
    if name == "RULES":  # a file without work needs none of them
        from .rules import all_rules

        return all_rules()
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
