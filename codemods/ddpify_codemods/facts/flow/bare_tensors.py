"""Tensors that an optimizer gets beside the parameters of modules, whose gradients no wrapper averages (L16)."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator, Mapping
from functools import lru_cache

from ..called_modules import last_name
from ..script import KEPT, Script

_ADDS = frozenset({"append", "extend", "insert", "add_param_group"})
_OF_MODULES = frozenset({"parameters", "named_parameters"})
_HOLDS = frozenset({"list", "tuple", "set", "dict", "iter", "sorted", "reversed", "chain", "from_iterable", "filter"})
_DEPTH = 4
TRAINED = frozenset({"params", "parameters"})  # arguments of an optimizer's class


def parameters_given(call: ast.Call) -> list[ast.expr]:
    """What an optimizer's class is given to train."""
    named = [word.value for word in call.keywords if word.arg in (*TRAINED, "param_group", None)]  # None: `**options`
    return [*call.args[:1], *named]


def bare_tensors(script: Script, given: ast.expr) -> Iterator[ast.expr]:
    """The tensors in an expression, or in what its variables are given in the file, that are learned by themselves."""
    for part in _reached(script, given, _parts):
        if isinstance(part, ast.Call) and _is_learned(part) and not _is_of_module(script, part):
            yield part


def attributes_given(script: Script, given: ast.expr) -> Iterator[ast.Attribute]:
    """The attributes among the tensors in an expression, or in what its variables are given: `[head.kernel]`."""
    for part in _reached(script, given, _held):
        if isinstance(part, ast.Attribute):
            yield part


def _reached(script: Script, given: ast.expr, parts_of: Callable[[ast.expr], Iterator[ast.AST]]) -> Iterator[ast.AST]:
    """The parts of an expression, and of what its variables are given in the file, each of which is looked up once."""
    waiting, seen = [given], set[str]()
    for _ in range(_DEPTH + 1):
        names: dict[str, None] = {}
        for part in (part for each in waiting for part in parts_of(each)):
            yield part
            if isinstance(part, ast.Name | ast.Attribute):
                names[ast.unparse(part)] = None
        waiting = [value for name in names if name not in seen for value in _given_to(script, name)]
        seen.update(names)


def _held(given: ast.expr) -> Iterator[ast.expr]:
    """An expression, and what it may be made of, or hold."""
    yield given
    for part in _entries(given):
        yield from _held(part)


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


def _given_to(script: Script, name: str) -> tuple[ast.expr, ...]:
    """What a variable is given, or what is added to it."""
    return _all_given(script).get(name, ())


@lru_cache(maxsize=KEPT)
def _all_given(script: Script) -> Mapping[str, tuple[ast.expr, ...]]:
    """What each variable of a file is given, or what is added to it."""
    found: dict[str, dict[ast.expr, None]] = {}
    calls: dict[str, list[ast.Call]] = {}
    for call in script.find(ast.Call):
        calls.setdefault(last_name(call.func), []).append(call)
    for name, value in _writes(script):
        found.setdefault(name, {})[value] = None
    for function in script.find(ast.FunctionDef):
        names = [each.arg for each in (*function.args.posonlyargs, *function.args.args)]
        for call in calls.get(function.name, ()):
            taken = [each for each in names if each != "self"]
            words = [(each.arg, each.value) for each in call.keywords if each.arg in names]
            for name, value in (*zip(taken, call.args, strict=False), *words):
                found.setdefault(str(name), {})[value] = None
    return {name: tuple(values) for name, values in found.items()}


def _writes(script: Script) -> Iterator[tuple[str, ast.expr]]:
    """The variables that statements of a file write, or add to, and what."""
    for node in script.find(ast.Assign):
        for target in map(ast.unparse, node.targets):
            yield target.removesuffix("['params']"), node.value
    for typed in script.find(ast.AnnAssign):
        if typed.value is not None:
            yield ast.unparse(typed.target), typed.value
    for added in script.find(ast.AugAssign):
        yield ast.unparse(added.target), added.value
    for call in script.find(ast.Call):
        if isinstance(call.func, ast.Attribute) and call.func.attr in _ADDS:
            yield from ((ast.unparse(call.func.value), each) for each in call.args)
