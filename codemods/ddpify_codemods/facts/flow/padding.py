"""What a collate function pads samples with, and the code for that where the loader is made."""

from __future__ import annotations

import ast
import copy
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from ..bindings import bindings
from ..loaders import can_be_repeated
from ..script import Script
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


def padded_by(call: ast.Call, codes: Mapping[str, ast.expr], unknown: Iterable[str]) -> Padded | None:
    """What a call of pad_sequence makes of a list; None where that is not said.

    Args: the call; what parameters of the function around it are given; names that have several values there.
    """
    words = {word.arg: word.value for word in call.keywords}
    first = call.args[1] if len(call.args) > 1 else words.get("batch_first", ast.Constant(False))
    value = call.args[2] if len(call.args) > 2 else words.get("padding_value", ast.Constant(0))
    side = words.get("padding_side", ast.Constant("right"))
    if not isinstance(first, ast.Constant) or not isinstance(side, ast.Constant) or side.value != "right":
        return None
    code = in_words_of(value, codes)
    if any(isinstance(each, ast.Name) and each.id in unknown for each in ast.walk(code)):
        return None
    return Padded(1, ast.unparse(code)) if first.value else Padded(0, ast.unparse(code), samples=1)


def in_words_of(node: ast.expr, codes: Mapping[str, ast.expr]) -> ast.expr:
    """An expression with what its names stand for in their place."""
    return _Named(codes).visit(copy.deepcopy(node))  # type: ignore[no-any-return]


class _Named(ast.NodeTransformer):
    def __init__(self, codes: Mapping[str, ast.expr]) -> None:
        self.codes = codes

    def visit_Name(self, node: ast.Name) -> ast.expr:
        return copy.deepcopy(self.codes.get(node.id, node))


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


def code_for(value: str, function: Function, given: ast.expr, script: Script, call: ast.Call) -> str:
    """The code of what a collate function pads with, where a loader is made; "" where it cannot be said there.

    Args: the code in the function's words; the function; what the loader is given for it; the loader's call.
    """
    node = ast.parse(value, mode="eval").body
    codes: dict[str, ast.expr] = {}
    if isinstance(given, ast.Call) and script.qualified(given.func) == "functools.partial":
        codes |= {str(word.arg): word.value for word in given.keywords}
        given = given.args[0]
    parameters = function.node.args
    names = [each.arg for each in (*parameters.posonlyargs, *parameters.args)]
    defaults = dict(zip(names[len(names) - len(parameters.defaults) :], parameters.defaults, strict=True))
    codes = {**defaults, **codes}
    if function.owner is not None and names:
        owner = given.value if isinstance(given, ast.Attribute) and given.attr == function.node.name else given  # type: ignore[union-attr]
        if isinstance(owner, ast.Call):
            node = _of_attributes(node, names[0], owner, function)
        else:
            codes[names[0]] = owner
    node = in_words_of(node, codes)
    return ast.unparse(node) if _is_known(node, function, script, call) else ""


def _of_attributes(node: ast.expr, this: str, made: ast.Call, function: Function) -> ast.expr:
    """An expression with what an object that is made in the loader's call was given, for its attributes."""
    cls = next((each for each in function.script.ancestors(function.node) if isinstance(each, ast.ClassDef)), None)
    methods = [each for each in (cls.body if cls is not None else ()) if isinstance(each, ast.FunctionDef)]
    initial = next((each for each in methods if each.name == "__init__"), None)
    if initial is None:
        return node
    names = [each.arg for each in initial.args.args][1:]
    defaults = initial.args.defaults
    given = dict(zip(names[len(names) - len(defaults) :], defaults, strict=True))
    given |= dict(zip(names, made.args, strict=False)) | {str(word.arg): word.value for word in made.keywords}
    set_to = {
        ast.unparse(each.targets[0]): in_words_of(each.value, given)
        for each in initial.body
        if isinstance(each, ast.Assign) and len(each.targets) == 1
    }

    class Attributes(ast.NodeTransformer):
        def visit_Attribute(self, part: ast.Attribute) -> ast.expr:
            of_this = isinstance(part.value, ast.Name) and part.value.id == this
            return copy.deepcopy(set_to.get(ast.unparse(part), part)) if of_this else self.generic_visit(part)  # type: ignore[return-value]

    return Attributes().visit(copy.deepcopy(node))  # type: ignore[no-any-return]


def _is_known(node: ast.expr, function: Function, script: Script, call: ast.Call) -> bool:
    """Whether an expression is the same where a loader is made as in a function, and may be computed once more."""
    if isinstance(node, ast.Constant):
        return True
    if isinstance(node, ast.UnaryOp):
        return _is_known(node.operand, function, script, call)
    if isinstance(node, ast.Attribute):
        return _is_known(node.value, function, script, call)
    if isinstance(node, ast.Subscript):
        return all(_is_known(each, function, script, call) for each in (node.value, node.slice))
    if isinstance(node, ast.Call):  # vocabulary.token_to_id("[PAD]")
        parts = [node.func, *node.args]
        is_method = isinstance(node.func, ast.Attribute) and not node.keywords
        return is_method and all(_is_known(each, function, script, call) for each in parts)
    if not isinstance(node, ast.Name) or not can_be_repeated(script, node):
        return False
    if function.script is not script:  # the same name of the other file
        return node.id in script.imported and _binder(script, call, node.id) is script.tree
    return _binder(script, call, node.id) is _binder(script, function.node, node.id)


def _binder(script: Script, node: ast.AST, name: str) -> ast.AST:
    """The function whose variable a name is where a node stands, or the file."""
    for parent in (node, *script.ancestors(node)):
        if isinstance(parent, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
            arguments = {each.arg for each in ast.walk(parent.args) if isinstance(each, ast.arg)}
            bound = {} if isinstance(parent, ast.Lambda) else bindings(script, parent)
            if name in arguments or name in bound:
                return parent
    return script.tree
