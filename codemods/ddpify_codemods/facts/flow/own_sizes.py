"""Where loops over training loaders give tensors the batch size by its name: `torch.ones(batch_size, 1)`."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping, Sequence

from ..keyword_dictionaries import said
from ..script import Script
from .frames import FlowFacts
from .values import Loader

# Every argument is a size, or the first one has them all.
_OF_SIZES = frozenset({"ones", "zeros", "rand", "randn", "empty", "new_zeros", "new_ones", "new_empty"})
_LAYOUTS = frozenset({"view", "reshape", "expand", "repeat", "resize_"})


def batch_sizes(loader: Loader) -> list[ast.expr]:
    """The batch size that a loader is made with."""
    size = said(loader.script, loader.call).get("batch_size")
    return [*loader.call.args[1:2], *([size] if size is not None else [])]


def own_sizes(
    scripts: Sequence[Script], found: FlowFacts, status: Mapping[Loader, str]
) -> dict[ast.expr, tuple[Loader, bool]]:
    """The expressions that may be a rank's part of the batch size where they stand, the loader whose, and whether they
    are: else they are an attribute of an object, `args.batch_size`, and it has to be the loader's.

    Args:
        scripts: the program. found: what is known of its loops. status: how each loader is divided.
    """
    sizes: dict[ast.expr, tuple[Loader, bool]] = {}
    for loop, loaders in found.loops.items():
        script = next((each for each in scripts if loop in each.parents), None)
        if script is None or {status.get(each) for each in loaders} != {"training"}:
            continue
        for loader in loaders:
            for size in batch_sizes(loader):
                if script is loader.script and _has_one_meaning(script, size):
                    code = ast.unparse(size)
                    sizes |= {node: (loader, True) for node in _given_sizes(loop) if ast.unparse(node) == code}
                if isinstance(size, ast.Attribute) and not any(_sets(each, size.attr) for each in scripts):
                    named = (each for each in _given_sizes(loop) if _is_named(each, size.attr))
                    sizes |= {node: (loader, False) for node in named if node not in sizes}
    return sizes


def _is_named(node: ast.expr, attribute: str) -> bool:
    """Whether it is an attribute of that name, by whatever way to the object: `args.batch_size`,
    `self.args.batch_size`."""
    return isinstance(node, ast.Attribute) and node.attr == attribute


def _sets(script: Script, attribute: str) -> bool:
    """Whether a file gives something an attribute of that name."""
    return any(node.attr == attribute and isinstance(node.ctx, ast.Store) for node in script.find(ast.Attribute))


def _given_sizes(loop: ast.AST) -> Iterator[ast.expr]:
    """What tensors are given as sizes in a loop."""
    for call in ast.walk(loop):
        if not isinstance(call, ast.Call):
            continue
        name = call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")
        given = [word.value for word in call.keywords if word.arg == "size"]
        if name in _OF_SIZES | _LAYOUTS:
            given += call.args
        elif name in ("full", "new_full"):
            given += call.args[:1]
        elif name in ("normal", "uniform", "randint"):  # behind two numbers
            given += call.args[2:3] or [each for each in call.args[1:] if isinstance(each, ast.Tuple)]
        elif name.endswith("Tensor"):
            yield from call.args  # a list would be what it holds
        for each in given:
            yield from each.elts if isinstance(each, ast.Tuple | ast.List) else [each]


def _has_one_meaning(script: Script, size: ast.expr) -> bool:
    """Whether a name, or an attribute of one, is bound once in a file."""
    base = size
    while isinstance(base, ast.Attribute):
        base = base.value
    if not isinstance(base, ast.Name):
        return False
    bound = [node for node in script.find(ast.Name) if node.id == base.id and isinstance(node.ctx, ast.Store)]
    given = [node for node in script.find(ast.arg) if node.arg == base.id]
    imported = [each for at in script.imports for each in at.names if (each.asname or each.name) == base.id]
    changed = (node for node in script.find(ast.Attribute) if isinstance(node.ctx, ast.Store))
    code = ast.unparse(size)
    return len([*bound, *given, *imported]) == 1 and all(ast.unparse(each) != code for each in changed)
