"""Batch sizes of training that are known, or what they are where the command line says nothing else."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Sequence
from itertools import permutations

from ..backends import options
from ..origins import origins
from ..script import Script
from .frames import FlowFacts
from .own_sizes import written_sizes
from .values import Loader


def smallest(found: FlowFacts, scripts: Sequence[Script]) -> tuple[int, str, str] | None:
    """The smallest batch size of training that is known, and the option of which it is the default, "" for none; and
    what it is written as where that is so many for each of a list, `4 * len(args.gpu_ids)`. But for those of one
    sample, which are refused."""
    loaders = [each for each in found.training if not is_one(each, found)]
    sizes = [each for loader in loaders for each in _known(loader, found, scripts)]
    return min(sizes, default=None)


def is_one(loader: Loader, found: FlowFacts) -> bool:
    """Whether a loader's batches are of one sample, in any case."""
    return found.batch_numbers.get(loader) == {1}


def _known(loader: Loader, found: FlowFacts, scripts: Sequence[Script]) -> Iterable[tuple[int, str, str]]:
    for number in found.batch_numbers.get(loader, ()):
        if isinstance(number, int) and not isinstance(number, bool):
            yield number, "", ""
    sizes = (each for size, there in written_sizes(loader) for each in origins(there, size))
    names = {size.attr for size in sizes if isinstance(size, ast.Attribute)}
    told = [call for name in names for script in scripts for call in options(script, name)]
    told = [each for each in told if each in found.visits] or told
    defaults = [next((word.value for word in call.keywords if word.arg == "default"), None) for call in told]
    for call, default in zip(told, defaults, strict=True):
        if isinstance(default, ast.Constant) and type(default.value) is int:
            yield default.value, str(_named(call)), ""
    unset = [call for call, default in zip(told, defaults, strict=True) if default is None or _is_none(default)]
    for name in names if unset or not told else ():
        option = str(_named(unset[0])) if unset else ""
        yield from ((each, option, code) for script in scripts for each, code in _where_not_given(script, name))


def _is_none(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and node.value is None


def _where_not_given(script: Script, name: str) -> Iterable[tuple[int, str]]:
    """What a setting becomes that was not given, and what that is written as: `if args.batch_size is None: …`."""
    for node in script.find(ast.Assign):
        target, block = node.targets[0], script.parents[node]
        if not isinstance(target, ast.Attribute) or target.attr != name or not isinstance(block, ast.If):
            continue
        code = ast.unparse(target)
        if node not in block.body or ast.unparse(block.test) not in (f"{code} is None", f"not {code}"):
            continue
        if isinstance(node.value, ast.Constant) and type(node.value.value) is int:
            yield node.value.value, ""
        elif isinstance(node.value, ast.BinOp) and isinstance(node.value.op, ast.Mult):
            for number, count in permutations((node.value.left, node.value.right)):
                counts = isinstance(count, ast.Call) and script.qualified(count.func) == "len"
                if counts and isinstance(number, ast.Constant) and type(number.value) is int:
                    yield number.value, ast.unparse(node.value)


def _named(option: ast.Call) -> object:
    """The option as it is written on the command line, its long form."""
    words = [each.value for each in option.args if isinstance(each, ast.Constant)]
    return max(words, key=lambda each: len(str(each)))
