"""Batch sizes of training that are known, or what they are where the command line says nothing else."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Sequence

from ..backends import options
from ..script import Script
from .frames import FlowFacts
from .own_sizes import written_sizes
from .values import Loader


def smallest(found: FlowFacts, scripts: Sequence[Script]) -> tuple[int, str] | None:
    """The smallest batch size of training that is known, and the option of which it is the default, "" for none; but
    for those of one sample, which are refused."""
    loaders = [each for each in found.training if not is_one(each, found)]
    sizes = [each for loader in loaders for each in _known(loader, found, scripts)]
    return min(sizes, default=None)


def is_one(loader: Loader, found: FlowFacts) -> bool:
    """Whether a loader's batches are of one sample, in any case."""
    return found.batch_numbers.get(loader) == {1}


def _known(loader: Loader, found: FlowFacts, scripts: Sequence[Script]) -> Iterable[tuple[int, str]]:
    for number in found.batch_numbers.get(loader, ()):
        if isinstance(number, int) and not isinstance(number, bool):
            yield number, ""
    names = {size.attr for size, _ in written_sizes(loader) if isinstance(size, ast.Attribute)}
    told = [call for name in names for script in scripts for call in options(script, name)]
    for call in [each for each in told if each in found.visits] or told:
        default = next((word.value for word in call.keywords if word.arg == "default"), None)
        if isinstance(default, ast.Constant) and type(default.value) is int:
            yield default.value, str(_named(call))


def _named(option: ast.Call) -> object:
    """The option as it is written on the command line, its long form."""
    words = [each.value for each in option.args if isinstance(each, ast.Constant)]
    return max(words, key=lambda each: len(str(each)))
