"""Every use of a model that is going to be wrapped: the calls that take the wrapper, and what may not see it."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass, field

from .origins import origins
from .script import Script
from .without_gradient import runs_without_gradient

_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
# What only looks at a model's parameters and parts, or moves or switches them.
_LOOKS = frozenset(
    {
        *("parameters", "named_parameters", "state_dict", "load_state_dict", "zero_grad", "requires_grad_", "apply"),
        *("train", "eval", "training", "cuda", "cpu", "to", "half", "float", "double", "share_memory"),
        *("buffers", "named_buffers", "modules", "named_modules", "children", "named_children"),
    }
)
# Where a part of a model ends and its numbers begin: `model.fc.weight.norm()`.
_NUMBERS = frozenset({"weight", "bias", "grad", "data", "requires_grad", "shape", "device", "dtype"})
_SHARED = frozenset({"train", "eval", "training", "zero_grad", "parameters", "requires_grad_"})
_PARSES = ("parse_args", "parse_known_args")
_QUIET = frozenset({"print", "len", "str", "repr", "type", "id", "isinstance", "hasattr", "torch.save"})


@dataclass(eq=False)
class ModelCalls:
    """The uses of a model. wrapped: expressions that become the wrapper. modules: uses of a parameter which holds the
    wrapper then, that need the model in it. problems: what would go past the wrapper, and why. taking: the parameters
    of functions that are given the wrapper.
    """

    wrapped: set[ast.expr] = field(default_factory=set)
    modules: set[ast.expr] = field(default_factory=set)
    problems: list[tuple[ast.AST, str]] = field(default_factory=list)
    taking: set[tuple[ast.AST, str]] = field(default_factory=set)


def model_calls(script: Script, model: ast.expr, at: ast.stmt) -> ModelCalls:
    """Follow a model through one file.

    Args: the file; the model where it is wrapped, a name or an attribute of `self`; the statement that wraps it.
    """
    found = ModelCalls()
    for use in _uses(script, model, found):
        _use(script, use, found, at)
    for function, name in found.taking:
        if any(node in found.modules for node in ast.walk(function)):
            _same_everywhere(script, function, name, found)
    return found


def _uses(script: Script, model: ast.expr, found: ModelCalls) -> Iterator[ast.expr]:
    if isinstance(model, ast.Name):
        binder = binder_of(script, model)
        same = (node for node in script.find(ast.Name) if node.id == model.id and binder_of(script, node) is binder)
        if isinstance(binder, _FUNCTIONS) and model.id in parameters(binder):
            backwards = (node for node in script.find(ast.Attribute) if node.attr == "backward")
            if any(binder not in script.ancestors(node) for node in backwards):
                found.problems.append((model, "gradients are computed outside of the function that is given the model"))
        yield from same
        return
    assert isinstance(model, ast.Attribute)
    others = script.program.scripts if script.program else ()
    for node in (each for other in others if other.path != script.path for each in other.find(ast.Attribute)):
        if node.attr == model.attr:
            found.problems.append((model, f"another file has a `.{model.attr}` too, which may be this model"))
            break
    owner = _class_of(script, model)
    code = ast.unparse(model)
    for node in script.find(ast.Attribute):
        if ast.unparse(node) == code and _class_of(script, node) is owner:
            yield node
        elif node.attr == model.attr and _is_used(script, node):
            found.problems.append((node, f"`{ast.unparse(node)}` may be the model as well"))


def _is_used(script: Script, node: ast.Attribute) -> bool:
    """Whether an attribute of another object is more than looked into, and no option of the command line."""
    parent = script.parents[node]
    if isinstance(parent, ast.Attribute) or not isinstance(node.ctx, ast.Load):
        return False
    calls = (each.func for each in origins(script, node.value) if isinstance(each, ast.Call))
    return not any(isinstance(func, ast.Attribute) and func.attr in _PARSES for func in calls)


def _use(script: Script, node: ast.expr, found: ModelCalls, at: ast.stmt) -> None:
    parent = script.parents[node]
    if not isinstance(getattr(node, "ctx", None), ast.Load):
        if script.scope(node) is script.scope(at) and _is_after(script, node, at):
            found.problems.append((node, f"`{ast.unparse(node)}` is given another value after it is wrapped"))
    elif isinstance(parent, ast.Attribute):
        _attribute(script, node, parent, found, at)
    elif isinstance(parent, ast.Call) and parent.func is node:
        if _is_after(script, node, at) and not runs_without_gradient(script, node):
            found.wrapped.add(node)
    else:
        _given(script, node, parent, found, at)


def _is_after(script: Script, node: ast.expr, at: ast.stmt) -> bool:
    """Whether a node may be reached after a statement: in its function the lines below it, in others all."""
    return node.lineno > (at.end_lineno or at.lineno) or script.scope(node) is not script.scope(at)


def _attribute(script: Script, node: ast.expr, parent: ast.Attribute, found: ModelCalls, at: ast.stmt) -> None:
    around = script.parents[parent]
    moves = parent.attr in ("cuda", "to", "cpu", "half", "double", "float")
    if moves and script.scope(node) is script.scope(at) and _is_after(script, node, at):
        found.problems.append((node, "the model is moved after it is wrapped"))
    last: ast.AST = parent
    names = [parent.attr]
    while isinstance(around, ast.Attribute) or (isinstance(around, ast.Subscript) and around.value is last):
        names += [around.attr] if isinstance(around, ast.Attribute) else []
        last, around = around, script.parents[around]
    kept = isinstance(
        around, ast.Call | ast.keyword | ast.Assign | ast.Return | ast.List | ast.Tuple | ast.Dict | ast.For
    )
    if kept and isinstance(getattr(last, "ctx", None), ast.Load) and not {*names} & (_LOOKS | _NUMBERS):
        found.problems.append((node, f"`{ast.unparse(last)}` may go past the wrapper"))


def _given(script: Script, node: ast.expr, parent: ast.AST, found: ModelCalls, at: ast.stmt) -> None:
    """A model that is handed on: to a function of the file, which may call it, or to one that does not."""
    call = script.parents[parent] if isinstance(parent, ast.keyword) else parent
    if isinstance(parent, ast.Assign) and [ast.unparse(each) for each in parent.targets] == [ast.unparse(node)]:
        return
    if isinstance(parent, ast.Compare):
        return
    if not isinstance(call, ast.Call):
        found.problems.append((node, "the model gets another name, or is kept, here"))
        return
    name = script.qualified(call.func)
    if name in _QUIET or name.startswith("horovod."):
        return
    if not _is_after(script, node, at):
        if not _is_done_with(script, node, call, name):
            found.problems.append((node, f"`{ast.unparse(call.func)}` may keep the model, and call it in training"))
        return
    functions = [each for each in script.nodes if isinstance(each, _FUNCTIONS) and each.name == name]
    parameter = _parameter(functions[0], call, node) if len(functions) == 1 else ""
    if not parameter:
        found.problems.append((node, f"the model is given to `{ast.unparse(call.func)}`, which may call it"))
        return
    found.wrapped.add(node)
    _inside(script, functions[0], parameter, found, at)


def _is_done_with(script: Script, node: ast.expr, call: ast.Call, name: str) -> bool:
    """Whether a call before there is a wrapper has done with the model when it returns, or makes the model of it."""
    parent = script.parents[call]
    if isinstance(parent, ast.Expr) or name.startswith("torch."):
        return True
    functions = [each for each in script.nodes if isinstance(each, _FUNCTIONS) and each.name == name]
    parameter = _parameter(functions[0], call, node) if len(functions) == 1 else ""
    if parameter:
        uses = [each for each in ast.walk(functions[0]) if isinstance(each, ast.Name) and each.id == parameter]
        around = [script.parents[use] for use in uses]
        return all(isinstance(each, ast.Attribute) and each.attr in _LOOKS for each in around)
    return isinstance(parent, ast.Assign) and ast.unparse(node) in map(ast.unparse, parent.targets)


def _parameter(function: ast.AST, call: ast.Call, value: ast.expr) -> str:
    """The parameter that takes an argument; "" where that cannot be seen."""
    assert isinstance(function, _FUNCTIONS)
    for word in call.keywords:
        if word.value is value:
            return word.arg or ""
    names = [each.arg for each in (*function.args.posonlyargs, *function.args.args)]
    place = next((place for place, each in enumerate(call.args) if each is value), len(names))
    starred = any(isinstance(each, ast.Starred) for each in call.args)
    return names[place] if place < len(names) and not starred else ""


def _inside(script: Script, function: ast.AST, name: str, found: ModelCalls, at: ast.stmt) -> None:
    """The uses of a parameter that is given the wrapper."""
    if (function, name) in found.taking:
        return
    found.taking.add((function, name))
    for node in ast.walk(function):
        if not isinstance(node, ast.Name) or node.id != name:
            continue
        parent = script.parents[node]
        if not isinstance(node.ctx, ast.Load):
            found.problems.append((node, f"`{name}`, which is the wrapper, is given another value"))
        elif isinstance(parent, ast.Attribute) and parent.attr not in _SHARED:
            _attribute(script, node, parent, found, at)
            found.modules.add(node)
        elif (isinstance(parent, ast.Call) and parent.func is not node) or isinstance(parent, ast.keyword):
            before = len(found.problems)
            _given(script, node, parent, found, at)
            found.wrapped.discard(node)
            if len(found.problems) == before and _last(script, node) in _QUIET:
                found.modules.add(node)
        elif not isinstance(parent, ast.Attribute | ast.Call | ast.Compare):
            found.problems.append((node, "the model gets another name, or is kept, here"))


def _last(script: Script, node: ast.expr) -> str:
    parent = script.parents[node]
    call = script.parents[parent] if isinstance(parent, ast.keyword) else parent
    return script.qualified(call.func) if isinstance(call, ast.Call) else ""


def _same_everywhere(script: Script, function: ast.AST, name: str, found: ModelCalls) -> None:
    """A function that takes the model out of its wrapper may not be given another model elsewhere."""
    assert isinstance(function, _FUNCTIONS)
    for call in script.find(ast.Call):
        if script.qualified(call.func) == function.name:
            values = [*call.args, *(word.value for word in call.keywords)]
            mine = [value for value in values if _parameter(function, call, value) == name]
            if not mine:
                found.problems.append((call, f"what this call gives for `{name}` cannot be seen"))
            elif isinstance(mine[0], ast.Name) and (binder_of(script, mine[0]), mine[0].id) in found.taking:
                continue
            elif mine[0] not in found.wrapped:
                found.problems.append((call, f"`{name}` is the wrapper in one call, and another model here"))


def _class_of(script: Script, node: ast.AST) -> ast.AST | None:
    return next((parent for parent in script.ancestors(node) if isinstance(parent, ast.ClassDef)), None)


def parameters(function: ast.AST) -> set[str]:
    """The names of a function's parameters."""
    assert isinstance(function, _FUNCTIONS)
    taken = function.args
    return {each.arg for each in (*taken.posonlyargs, *taken.args, *taken.kwonlyargs)}


def binder_of(script: Script, name: ast.Name) -> ast.AST:
    """The function whose variable a name is, or the module."""
    for parent in script.ancestors(name):
        if not isinstance(parent, _FUNCTIONS):
            continue
        if any(isinstance(part, ast.Global) and name.id in part.names for part in ast.walk(parent)):
            continue
        stores = (part for part in ast.walk(parent) if isinstance(part, ast.Name) and part.id == name.id)
        own = (part for part in stores if isinstance(part.ctx, ast.Store) and script.scope(part) is parent)
        if name.id in parameters(parent) or next(own, None) is not None:
            return parent
    return script.tree
