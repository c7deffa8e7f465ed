"""Tensors that an optimizer gets beside the parameters of modules, whose gradients no wrapper averages (L16)."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from ..called_modules import last_name
from ..script import Script

_ADDS = frozenset({"append", "extend", "insert", "add_param_group"})
_OF_MODULES = frozenset({"parameters", "named_parameters"})
_HOLDS = frozenset({"list", "tuple", "set", "dict", "iter", "sorted", "reversed", "chain", "from_iterable", "filter"})
_DEPTH = 4
TRAINED = frozenset({"params", "parameters"})  # arguments of an optimizer's class


def parameters_given(call: ast.Call) -> list[ast.expr]:
    """What an optimizer's class is given to train."""
    named = [word.value for word in call.keywords if word.arg in (*TRAINED, "param_group", None)]  # None: `**options`
    return [*call.args[:1], *named]


def bare_tensors(script: Script, given: ast.expr, depth: int = _DEPTH) -> Iterator[ast.expr]:
    """The tensors in an expression, or in what its variables are given in the file, that are learned by themselves."""
    for part in _parts(given):
        if isinstance(part, ast.Call) and _is_learned(part) and not _is_of_module(script, part):
            yield part
        elif isinstance(part, ast.Name | ast.Attribute) and depth:
            for value in _given_to(script, ast.unparse(part)):
                yield from bare_tensors(script, value, depth - 1)


def attributes_given(script: Script, given: ast.expr, depth: int = _DEPTH) -> Iterator[ast.Attribute]:
    """The attributes among the tensors in an expression, or in what its variables are given: `[head.kernel]`."""
    if isinstance(given, ast.Attribute):
        yield given
    if isinstance(given, ast.Name | ast.Attribute):
        for value in _given_to(script, ast.unparse(given)) if depth else ():
            yield from attributes_given(script, value, depth - 1)
    for part in _entries(given):
        yield from attributes_given(script, part, depth)


def _entries(given: ast.expr) -> list[ast.expr]:
    """The parts of an expression that may be, or hold, tensors that an optimizer gets with it."""
    if isinstance(given, ast.List | ast.Tuple | ast.Set):
        return given.elts
    if isinstance(given, ast.Starred | ast.Subscript):
        return [given.value]
    if isinstance(given, ast.BinOp):
        return [given.left, given.right]
    if isinstance(given, ast.IfExp):
        return [given.body, given.orelse]
    if isinstance(given, ast.ListComp | ast.SetComp | ast.GeneratorExp):
        targets = {ast.unparse(part.target) for part in given.generators}
        own = ast.unparse(given.elt) in targets
        return [part.iter for part in given.generators] if own else [given.elt]
    if isinstance(given, ast.Dict):
        keyed = zip(given.keys, given.values, strict=True)
        trained = [value for key, value in keyed if isinstance(key, ast.Constant) and key.value == "params"]
        return trained or given.values
    if isinstance(given, ast.Call) and last_name(given.func) in _HOLDS:
        words = {word.arg: word.value for word in given.keywords}
        return [words["params"]] if "params" in words else [*given.args, *words.values()]
    return []


def _parts(given: ast.AST) -> Iterator[ast.AST]:
    """An expression and what is in it, but for the modules whose parameters it takes."""
    yield given
    if isinstance(given, ast.Call) and isinstance(given.func, ast.Attribute) and given.func.attr in _OF_MODULES:
        return
    for part in ast.iter_child_nodes(given):
        yield from _parts(part)


def _is_learned(call: ast.Call) -> bool:
    """Whether a call makes a tensor that gets a gradient: `nn.Parameter(x)`, `x.requires_grad_()`."""
    name = call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")
    constants = (each.value for each in call.keywords if each.arg == "requires_grad")
    learned = any(not (isinstance(each, ast.Constant) and each.value is False) for each in constants)
    return learned or name in ("Parameter", "requires_grad_")


def _is_of_module(script: Script, call: ast.Call) -> bool:
    """Whether what a call makes becomes a module's own: an attribute of `self`, within a class of modules."""
    inside = [each for each in script.ancestors(call) if isinstance(each, ast.ClassDef)]
    return any("Module" in ast.unparse(base) for each in inside for base in each.bases)


def _given_to(script: Script, name: str) -> Iterator[ast.expr]:
    """What a variable is given, or what is added to it."""
    for node in script.find(ast.Assign):
        if any(ast.unparse(each) in (name, f"{name}['params']") for each in node.targets):
            yield node.value
    for typed in script.find(ast.AnnAssign):
        if typed.value is not None and ast.unparse(typed.target) == name:
            yield typed.value
    for added in script.find(ast.AugAssign):
        if ast.unparse(added.target) == name:
            yield added.value
    for call in script.find(ast.Call):
        if isinstance(call.func, ast.Attribute) and call.func.attr in _ADDS and ast.unparse(call.func.value) == name:
            yield from call.args
    for function in script.find(ast.FunctionDef):
        names = [each.arg for each in (*function.args.posonlyargs, *function.args.args)]
        if name in names:
            yield from _passed(script, function, name, names)


def _passed(script: Script, function: ast.FunctionDef, name: str, names: list[str]) -> Iterator[ast.expr]:
    """What the calls of a function give for an argument."""
    for call in script.find(ast.Call):
        if ast.unparse(call.func).rpartition(".")[2] != function.name:
            continue
        taken = [each for each in names if each != "self"]
        yield from (value for key, value in zip(taken, call.args, strict=False) if key == name)
        yield from (each.value for each in call.keywords if each.arg == name)
