"""What a training loop adds up where no checkpoint holds it: in classes, functions, modules, optimizers, data sets."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from ..bindings import Scope, arguments, bindings
from ..called_modules import last_name, root
from ..optimizers import optimizers
from ..origins import origins
from ..script import Script
from .liveness import stored
from .obstacle import CannotResume
from .training import CallGraph, Loop

_DEFINITIONS = (ast.ClassDef, ast.FunctionDef)
_APPENDS = frozenset({"append", "extend", "add"})
_KEPT_ELSEWHERE = "keep it in a variable, and assign it at the begin of each round"


def require_kept(training: CallGraph, loop: Loop) -> None:
    """Refuse what a loop, or a function that it calls, adds to and a run that goes on would begin anew.

    Raises:
        CannotResume: the place, and what is added to.
    """
    places = [(loop.script, node) for node in loop.parts]
    places += [(each.script, node) for each in training.reached(loop.script, loop.parts) for node in each.node.body]
    for script, part in places:
        for node, target in _added_to(part):
            holder = _holder(training, script, target)
            if not holder and script is not loop.script and _is_of_module(script, target):
                holder = "another file"
            if holder:
                text = f"{ast.unparse(target)} is added up in {holder}, which a checkpoint does not hold"
                raise CannotResume(script, node, text, _KEPT_ELSEWHERE)


def _added_to(part: ast.AST) -> Iterator[tuple[ast.AST, ast.expr]]:
    """The attributes, and entries of attributes, that get something made of themselves, or that are changed in part;
    and what is appended to.
    """
    for node in ast.walk(part):
        if isinstance(node, ast.Call):
            method = node.func
            if isinstance(method, ast.Attribute) and method.attr in _APPENDS and isinstance(method.value, ast.Name):
                yield node, method.value
        elif isinstance(node, ast.AugAssign):
            if _is_of_attribute(node.target):
                yield node, node.target
        elif isinstance(node, ast.Assign):
            read = {
                ast.unparse(each) for each in ast.walk(node.value) if isinstance(each, (ast.Attribute, ast.Subscript))
            }
            for target in node.targets:
                is_entry = isinstance(target, ast.Subscript)
                if _is_of_attribute(target) and (is_entry or ast.unparse(target) in read):
                    yield node, target


def _is_of_module(script: Script, target: ast.expr) -> bool:
    """Whether a container that functions of a file share is appended to."""
    if not isinstance(target, ast.Name) or target.id in _names(script.scope(target)):
        return False
    made = [node.value for node in script.tree.body if isinstance(node, ast.Assign) and target.id in stored(node)]
    return bool(made) and all(isinstance(each, (ast.List, ast.Dict, ast.Set)) for each in made)


def _names(scope: Scope) -> set[str]:
    """What a function, or a file, assigns; a function's parameters too."""
    parameters = set() if isinstance(scope, ast.Module) else {*arguments(scope)}
    return parameters | stored(*scope.body)


def _is_of_attribute(target: ast.expr) -> bool:
    inner = target.value if isinstance(target, ast.Subscript) else target
    return isinstance(inner, ast.Attribute) and isinstance(inner.value, ast.Name)


def _holder(training: CallGraph, script: Script, target: ast.expr) -> str:
    """What the object is; "" for what restore() is given, or what torch and other libraries keep."""
    name = root(target)
    scope = next((each for each in (script.scope(target), script.tree) if name in _names(each)), None)
    if scope is None:
        files = {each.path.stem for each in training.scripts}
        return "another file" if files & {*script.imported.get(name, "").split(".")} else ""
    made = [each for value in bindings(script, scope).get(name, []) for each in origins(script, value)]
    defined = next((node for node in script.tree.body if isinstance(node, _DEFINITIONS) and node.name == name), None)
    if not made and defined is not None:
        return "a class" if isinstance(defined, ast.ClassDef) else "a function"
    if any(each in {optimizer.call for optimizer in optimizers(script)} for each in made):
        own = isinstance(target, ast.Attribute) and target.attr not in ("param_groups", "state", "defaults")
        return "an optimizer" if own else ""
    return "a data set" if any(_is_dataset(script, each) for each in made) else ""


def _is_dataset(script: Script, made: ast.expr) -> bool:
    if not isinstance(made, ast.Call):
        return False
    bases = [
        script.qualified(base)
        for node in script.find(ast.ClassDef)
        if node.name == last_name(made.func)
        for base in node.bases
    ]
    return any(each.startswith("torch.utils.data.") and each.endswith("Dataset") for each in bases)
