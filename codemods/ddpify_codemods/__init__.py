"""Source in, source out: turn a training script for one device into one for many."""

from .engine import ConversionBug, Result, SourceError, convert
from .rule import Change, Finding, Rule
from .rules import RULES
from .targets import TARGETS, Target

__all__ = [
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
]
