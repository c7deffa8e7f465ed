"""Pictures that a collate function pads to the largest of them, along several dimensions: it makes a tensor as large as
the largest in each, and writes each picture to its corner, as torchvision's `cat_list` does."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

from ..script import KEPT, Script

_SHAPES = (
    "(len({samples}),) + tuple((max({each}) for {each} in zip(*[{one}.shape for {one} in {samples}])))",
    "[len({samples})] + list((max({each}) for {each} in zip(*[{one}.shape for {one} in {samples}])))",
    "[len({samples})] + [max({each}) for {each} in zip(*[{one}.shape for {one} in {samples}])]",
)


@dataclass(frozen=True)
class Pictures:
    """How pictures are padded: their list, what they are padded with, the dimensions of the batch along which they are,
    what makes the tensor, its sizes before that, and the loop that fills it."""

    samples: str
    value: ast.expr
    dimensions: tuple[int, ...]
    made: ast.Assign
    sizes: tuple[ast.stmt, ...]
    loop: ast.For


@lru_cache(maxsize=KEPT)
def pictures(script: Script, function: ast.AST) -> Pictures | None:
    """How a function pads pictures; None for others."""
    if not isinstance(function, ast.FunctionDef):
        return None
    found = [each for loop in function.body if isinstance(loop, ast.For) for each in _filled_by(function, loop)]
    return found[0] if len(found) == 1 else None


def _filled_by(function: ast.FunctionDef, loop: ast.For) -> Iterator[Pictures]:
    """What a loop does that writes each picture to its corner: `for x, place in zip(xs, padded): …`."""
    over, target = loop.iter, loop.target
    if not isinstance(over, ast.Call) or ast.unparse(over.func) != "zip" or len(over.args) != 2 or over.keywords:
        return
    names = [each.id for each in (*over.args, *getattr(target, "elts", ())) if isinstance(each, ast.Name)]
    if len(names) != 4 or len(set(names)) != 4 or loop.orelse or len(loop.body) != 1:
        return
    samples, padded, one, place = names
    dimensions = _written(loop.body[0], one, place)
    made = _once(function, padded)
    if not dimensions or made is None:
        return
    shape, value = _new(made.value, samples)
    sizes: list[ast.stmt] = []
    if shape is None or value is None or not _is_largest(function, shape, samples, sizes):
        return
    yield Pictures(samples, value, dimensions, made, tuple(sizes), loop)


def _written(node: ast.stmt, one: str, place: str) -> tuple[int, ...]:
    """The dimensions of a batch along which `place[..., : one.shape[-2], : one.shape[-1]].copy_(one)` pads."""
    if not isinstance(node, ast.Expr) or not isinstance(node.value, ast.Call):
        return ()
    call = node.value
    corner = call.func.value if isinstance(call.func, ast.Attribute) and call.func.attr == "copy_" else None
    if not isinstance(corner, ast.Subscript) or [ast.unparse(each) for each in call.args] != [one] or call.keywords:
        return ()
    parts = corner.slice.elts if isinstance(corner.slice, ast.Tuple) else [corner.slice]
    from_behind = isinstance(parts[0], ast.Constant) and parts[0].value is ...
    slices = parts[1:] if from_behind else parts
    places = range(-len(slices), 0) if from_behind else range(len(slices))
    ends = [f":{one}.shape[{at}]" for at in places]
    if ast.unparse(corner.value) != place or [ast.unparse(each) for each in slices] != ends:
        return ()
    return tuple(places) if from_behind else tuple(at + 1 for at in places)


def _new(node: ast.expr, samples: str) -> tuple[ast.expr | None, ast.expr | None]:
    """The sizes of a tensor like the samples, and what it is full of: `xs[0].new(*shape).fill_(value)`."""
    value: ast.expr | None = None
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "fill_":
        value = node.args[0] if len(node.args) == 1 and not node.keywords else None
        if value is None:
            return None, None
        node = node.func.value
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute) or node.keywords:
        return None, None
    if ast.unparse(node.func.value) != f"{samples}[0]":
        return None, None
    name, args = node.func.attr, node.args
    if name == "new_full" and len(args) == 2 and value is None:
        return args[0], args[1]
    if name == "new_zeros" and len(args) == 1 and value is None:
        return args[0], ast.Constant(0)
    if name == "new" and len(args) == 1 and isinstance(args[0], ast.Starred) and value is not None:
        return args[0].value, value
    return None, None


def _is_largest(function: ast.FunctionDef, node: ast.expr, samples: str, sizes: list[ast.stmt]) -> bool:
    """Whether sizes are the number of samples, and the largest of all of them along each dimension; sizes: the
    statements that give these their names."""
    whole = _with_names(function, node, samples, sizes, 3)
    names = [*_taken(whole)]
    if len(names) != 2:
        return False
    texts = [each.format(samples=samples, each=names[0], one=names[1]) for each in _SHAPES]
    return ast.unparse(whole) in texts


def _taken(node: ast.expr) -> Iterator[str]:
    """The names that comprehensions in an expression give to what they run over."""
    for each in ast.walk(node):
        if isinstance(each, ast.comprehension):
            yield from (part.id for part in ast.walk(each.target) if isinstance(part, ast.Name))


def _with_names(function: ast.FunctionDef, node: ast.expr, samples: str, sizes: list[ast.stmt], depth: int) -> ast.expr:
    """An expression with what its names stand for that are given a value once."""
    taken = [*_taken(node)]

    class Named(ast.NodeTransformer):
        def visit_Name(self, name: ast.Name) -> ast.expr:
            made = None if name.id in (*taken, samples) or not depth else _once(function, name.id)
            if made is None:
                return name
            sizes.append(made)
            return _with_names(function, made.value, samples, sizes, depth - 1)

    return Named().visit(ast.parse(ast.unparse(node), mode="eval").body)  # type: ignore[no-any-return]


def _once(function: ast.FunctionDef, name: str) -> ast.Assign | None:
    """The statement that gives a name its only value in a function."""
    stores = [each for each in ast.walk(function) if isinstance(each, ast.Name) and each.id == name]
    made = [
        each
        for each in function.body
        if isinstance(each, ast.Assign) and len(each.targets) == 1 and ast.unparse(each.targets[0]) == name
    ]
    once = len([each for each in stores if not isinstance(each.ctx, ast.Load)]) == 1
    return made[0] if once and len(made) == 1 else None
