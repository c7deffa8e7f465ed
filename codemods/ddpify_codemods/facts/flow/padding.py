"""What a collate function pads samples with, and the code for that where the loader is made."""

from __future__ import annotations

import ast
from collections.abc import Callable
from dataclasses import dataclass, replace

from .said_there import Place, said_at, said_by_default
from .values import Function

_PADS = frozenset({"torch.nn.utils.rnn.pad_sequence"})


@dataclass(frozen=True)
class Padded:
    """Samples that are padded to the longest of them: the dimension that is as long, the code of what is put behind
    them, in the words of the collate function, and the dimension of the samples. also: further dimensions, of
    pictures that are padded to the largest of them."""

    dimension: int
    value: str
    samples: int = 0
    also: tuple[int, ...] = ()

    @property
    def dimensions(self) -> tuple[int, ...]:
        """All along which samples are padded; from behind where they are below zero."""
        return self.dimension, *self.also


def pads(name: str) -> bool:
    """Whether a function of a library pads a list of tensors to the longest of them."""
    return name in _PADS


def padded_by(call: ast.Call, said: Callable[[ast.expr], ast.expr | None]) -> Padded | None:
    """What a call of pad_sequence makes of a list; None where that is not said.

    Args: the call; what gives the code of an expression, in the words of the collate function.
    """
    words = {word.arg: word.value for word in call.keywords}
    first = call.args[1] if len(call.args) > 1 else words.get("batch_first", ast.Constant(False))
    value = call.args[2] if len(call.args) > 2 else words.get("padding_value", ast.Constant(0))
    side = words.get("padding_side", ast.Constant("right"))
    if not isinstance(first, ast.Constant) or not isinstance(side, ast.Constant) or side.value != "right":
        return None
    code = said(value)
    if code is None:
        return None
    return Padded(1, ast.unparse(code)) if first.value else Padded(0, ast.unparse(code), samples=1)


def compared(padded: Padded, other: ast.expr, operator: ast.cmpop) -> Padded | None:
    """A mask of what is not, or is, padded: `tokens != PAD`; None for other comparisons."""
    if ast.unparse(other) != padded.value or not isinstance(operator, ast.Eq | ast.NotEq):
        return None
    return replace(padded, value=str(isinstance(operator, ast.Eq)))


def turned(padded: Padded) -> Padded:
    """The same with its first two dimensions exchanged."""
    both = {0: 1, 1: 0}
    at, samples = both.get(padded.dimension, padded.dimension), both.get(padded.samples, padded.samples)
    return replace(padded, dimension=at, samples=samples)


def code_for(value: str, function: Function, given: ast.expr, place: Place, initial: Function | None) -> str:
    """The code of what a collate function pads with, where a loader is made; "" where it cannot be said there.

    Args: the code in the function's words; the function; what the loader is given for it; the loader's call; what
        initializes the object whose method the function is, if that is made there.
    """
    node: ast.expr = ast.parse(value, mode="eval").body
    codes: dict[str, ast.expr | None] = {}
    if isinstance(given, ast.Call) and place.script.qualified(given.func) == "functools.partial":
        codes |= {str(word.arg): word.value for word in given.keywords}
        given = given.args[0]
    parameters = function.node.args
    names = [each.arg for each in (*parameters.posonlyargs, *parameters.args)]
    codes = {**said_by_default(function, place), **codes}
    if function.owner is not None and names:
        owner = given.value if isinstance(given, ast.Attribute) and given.attr == function.node.name else given  # type: ignore[union-attr]
        if isinstance(owner, ast.Call):
            node = _Attributes(names[0]).visit(node)
            codes |= _of_attributes(names[0], initial, owner, place) if initial is not None else {}
        else:
            codes[names[0]] = owner
    code = said_at(place, node, function, codes)
    return ast.unparse(code) if code is not None and _may_be_repeated(code) else ""


class _Attributes(ast.NodeTransformer):
    """Makes names of the attributes of an object."""

    def __init__(self, this: str) -> None:
        self.this = this

    def visit_Attribute(self, node: ast.Attribute) -> ast.expr:
        of_this = isinstance(node.value, ast.Name) and node.value.id == self.this
        return ast.Name(f"{self.this}.{node.attr}", ast.Load()) if of_this else self.generic_visit(node)  # type: ignore[return-value]


def _of_attributes(this: str, initial: Function, made: ast.Call, place: Place) -> dict[str, ast.expr | None]:
    """What the attributes of an object hold that is made in the loader's call; initial: its __init__."""
    if not isinstance(initial.node, ast.FunctionDef) or any(isinstance(each, ast.Starred) for each in made.args):
        return {}
    names = [each.arg for each in (*initial.node.args.posonlyargs, *initial.node.args.args)]
    given: dict[str, ast.expr | None] = said_by_default(initial, place)
    given |= dict(zip(names[1:], made.args, strict=False)) | {str(word.arg): word.value for word in made.keywords}
    sets = [
        (target.attr, each.value)
        for each in initial.node.body
        if isinstance(each, ast.Assign) and len(each.targets) == 1
        for target in each.targets
        if isinstance(target, ast.Attribute) and ast.unparse(target.value) == names[0]
    ]
    cls = initial.script.parents[initial.node]
    stored = [each.attr for each in ast.walk(cls) if isinstance(each, ast.Attribute) and _is_set(each)]
    others = {name for name in stored if stored.count(name) > [each for each, _ in sets].count(name)}
    codes = {f"{this}.{name}": said_at(place, value, initial, given) for name, value in sets}
    return {name: code for name, code in codes.items() if name.rpartition(".")[2] not in others}


def _is_set(node: ast.Attribute) -> bool:
    return not isinstance(node.ctx, ast.Load)


def _may_be_repeated(node: ast.expr) -> bool:
    """Whether an expression may be computed once more."""
    if isinstance(node, ast.Constant | ast.Name):
        return True
    if isinstance(node, ast.UnaryOp):
        return _may_be_repeated(node.operand)
    if isinstance(node, ast.Attribute):
        return _may_be_repeated(node.value)
    if isinstance(node, ast.Subscript):
        return _may_be_repeated(node.value) and _may_be_repeated(node.slice)
    if isinstance(node, ast.Call):  # vocabulary.token_to_id("[PAD]")
        is_method = isinstance(node.func, ast.Attribute) and not node.keywords
        return is_method and all(map(_may_be_repeated, (node.func, *node.args)))
    return False
