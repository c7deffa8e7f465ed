"""BatchNorm behind a pooling to 1x1, which needs two samples: `Sequential(AdaptiveAvgPool2d(1), …, BatchNorm2d(4))`."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from .called_modules import last_name
from .script import Script

_POOLS = frozenset(f"Adaptive{kind}Pool{n}d" for kind in ("Avg", "Max") for n in (1, 2, 3))


def pooled_norms(script: Script) -> Iterator[tuple[ast.Call, bool]]:
    """The calls that make such a layer of BatchNorm, and whether the pooling is seen to leave one value per channel.

    Where its size is a number of the run, as in a pyramid (`for size in (1, 2, 3, 6)`), it may.
    """
    for layers in script.find(ast.Call):
        if last_name(layers.func) != "Sequential":
            continue
        sure: bool | None = None
        for each in (one for one in layers.args if isinstance(one, ast.Call)):
            if last_name(each.func) in _POOLS:
                sure = _leaves_one(each)
            elif "BatchNorm" in last_name(each.func) and sure is not None:
                yield each, sure


def _leaves_one(pool: ast.Call) -> bool | None:
    """Whether a pooling gives one value per channel; None where it gives more."""
    given = [*pool.args[:1], *(word.value for word in pool.keywords if word.arg == "output_size")]
    sizes = [part for each in given for part in (each.elts if isinstance(each, ast.Tuple | ast.List) else [each])]
    known = [each.value for each in sizes if isinstance(each, ast.Constant)]
    if not sizes or any(each != 1 for each in known):
        return None
    return len(known) == len(sizes)
