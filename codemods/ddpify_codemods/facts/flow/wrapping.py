"""Where the model is wrapped, which names then hold the wrapper, and what becomes of their other uses."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass, field

from ..bindings import bindings
from ..optimizers import Optimizer, optimizers
from ..script import Script
from ..trained_modules import Base
from .frames import Problem
from .program import Program
from .values import root_of

_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
# What the wrapper does as the model does.
_SHARED = frozenset({"train", "eval", "parameters", "zero_grad", "training", "requires_grad_"})


@dataclass(eq=False)
class Wrapping:
    """What is wrapped. model, name: the model's code, and the wrapper's. at: the statements before which that is
    done. calls: what is called in training, and its code afterwards. modules: uses of the wrapper that need the model.
    """

    model: str = ""
    name: str = ""
    at: list[tuple[Script, ast.stmt]] = field(default_factory=list)
    calls: dict[ast.expr, tuple[Script, str]] = field(default_factory=dict)
    modules: dict[ast.expr, Script] = field(default_factory=dict)
    problems: list[Problem] = field(default_factory=list)
    parameters: set[tuple[ast.AST, str]] = field(default_factory=set)


def wrapping(program: Program) -> Wrapping:
    """Decide where the trained model of a program is wrapped."""
    found = program.followed.found
    result = Wrapping()
    roots = {root_of(module).made for module in found.trained}
    bases = list(_bases(program))
    if len(roots) != 1 or not bases:
        what = "no model is seen that is trained"
        if roots:
            what = f"{len(roots)} models are trained" if len(roots) > 1 else "the trained model is not seen by its name"
        script, node = next(
            iter((s, c) for c, s in found.optimizer_calls.items()), (program.scripts[0], program.scripts[0].tree)
        )
        result.problems.append(Problem(script, node, f"{what}: which forwards belong to which backward cannot be told"))
        return result
    script, optimizer, base = bases[0]
    codes = {base.code for _, _, base in bases}
    if len(codes) > 1 or len({s for s, _, _ in bases}) > 1 or base.each_of or base.bound_at or not _is_plain(base.node):
        result.problems.append(
            Problem(script, optimizer.call, f"the model goes by several names: {', '.join(sorted(codes))}")
        )
        return result
    result.model, result.name = base.code, _free(script, base.code)
    for _, each, one in bases:
        result.at.append((script, place(script, each.call, one)))
    for call in sorted(found.training_forwards, key=lambda node: node.lineno):
        if call in found.forwards:
            _call(program, result, found.forwards[call][0], call.func, script, base)
    for function, name in sorted(result.parameters, key=lambda each: (each[0].lineno, each[1])):  # type: ignore[attr-defined]
        _uses(program, result, function, name)
    return result


def _is_plain(node: ast.expr) -> bool:
    return isinstance(node, ast.Name) or (isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name))


def _bases(program: Program) -> Iterator[tuple[Script, Optimizer, Base]]:
    calls = _making(program)
    for script in program.scripts:
        for optimizer in optimizers(script):
            if optimizer.call in calls:
                for base in optimizer.bases:
                    yield script, optimizer, base


def _making(program: Program) -> set[ast.AST]:
    """The calls that make the optimizers, and those of the functions around them: one may hand over the parameters."""
    found = program.followed.found
    calls: set[ast.AST] = set()
    waiting = [*found.optimizer_calls.items()]
    while waiting:
        call, script = waiting.pop()
        if call not in calls:
            calls.add(call)
            waiting += found.called_with.get(script.scope(call), ())
    return calls


def _free(script: Script, code: str) -> str:
    owner, dot, last = code.rpartition(".")
    taken = {node.id for node in script.find(ast.Name)} | {node.attr for node in script.find(ast.Attribute)}
    name = f"ddp_{last}"
    while name in taken:
        name += "_"
    return f"{owner}{dot}{name}"


def _call(program: Program, result: Wrapping, script: Script, node: ast.expr, at: Script, base: Base) -> None:
    """Let an expression that is the model be the wrapper."""
    if node in result.calls:
        return
    code = ast.unparse(node)
    if isinstance(base.node, ast.Attribute) or "." in base.code:
        same_class = _class_of(script, node) is _class_of(at, base.node)
        if script is at and code == base.code and same_class:
            result.calls[node] = (script, result.name)
            return
    if isinstance(node, ast.Name):
        binder = _binder(script, node)
        same = isinstance(base.node, ast.Name) and binder is _binder(at, base.node)
        given = isinstance(binder, _FUNCTIONS) and node.id in _parameters(binder)
        if script is at and code == base.code and same and (not given or _binds_here(result, binder)):
            result.calls[node] = (script, result.name)
            return
        if given:
            _parameter(program, result, binder, node.id, at, base)
            return
    reason = f"`{code}` is called in training, and it cannot be followed to `{base.code}`, whose parameters are trained"
    result.problems.append(Problem(script, node, reason))


def _binds_here(result: Wrapping, function: ast.AST) -> bool:
    """Whether the wrapper is made in a function."""
    return any(function in script.ancestors(at) for script, at in result.at)


def _class_of(script: Script, node: ast.AST) -> ast.AST | None:
    return next((parent for parent in script.ancestors(node) if isinstance(parent, ast.ClassDef)), None)


def _binder(script: Script, name: ast.Name) -> ast.AST:
    """The function, or the module, whose variable a name is."""
    for parent in script.ancestors(name):
        if isinstance(parent, _FUNCTIONS):
            declared = any(isinstance(part, ast.Global) and name.id in part.names for part in ast.walk(parent))
            if not declared and (name.id in _parameters(parent) or name.id in bindings(script, parent)):
                return parent
    return script.tree


def _parameters(function: ast.AST) -> set[str]:
    assert isinstance(function, _FUNCTIONS)
    given = function.args
    return {each.arg for each in (*given.posonlyargs, *given.args, *given.kwonlyargs)}


def _parameter(program: Program, result: Wrapping, function: ast.AST, name: str, at: Script, base: Base) -> None:
    """Let a parameter of a function take the wrapper, in all of its calls."""
    if (function, name) in result.parameters:
        return
    result.parameters.add((function, name))
    calls = program.followed.found.called_with.get(function, set())
    if not calls:
        result.problems.append(Problem(at, function, f"the calls that give `{name}` to this function cannot be seen"))
    for call, script in sorted(calls, key=lambda each: each[0].lineno):
        given = argument(function, name, call, script)
        if given is None:
            result.problems.append(Problem(script, call, f"what this call gives for `{name}` cannot be seen"))
        else:
            _call(program, result, script, given, at, base)


def argument(function: ast.AST, name: str, call: ast.Call, script: Script) -> ast.expr | None:
    """What a call gives for a parameter."""
    assert isinstance(function, _FUNCTIONS)
    for word in call.keywords:
        if word.arg == name:
            return word.value
    if any(isinstance(each, ast.Starred) for each in call.args):
        return None
    names = [each.arg for each in (*function.args.posonlyargs, *function.args.args)]
    if names[:1] in (["self"], ["cls"]):
        names = names[1:]
    return call.args[names.index(name)] if name in names and names.index(name) < len(call.args) else None


def _uses(program: Program, result: Wrapping, function: ast.AST, name: str) -> None:
    """The uses of a parameter that holds the wrapper."""
    script = next(each for each in program.scripts if function in each.parents)
    for node in ast.walk(function):
        if not isinstance(node, ast.Name) or node.id != name or node in result.calls:
            continue
        parent = script.parents[node]
        if not isinstance(node.ctx, ast.Load):
            result.problems.append(Problem(script, node, f"`{name}` is given another value here, in training"))
        elif (
            (isinstance(parent, ast.Attribute) and parent.attr in _SHARED)
            or (
                isinstance(parent, ast.Call)
                and parent.func is node
                and parent in program.followed.found.training_forwards
            )
            or _is_handed_on(program, result, script, node, parent)
        ):
            continue
        else:
            result.modules[node] = script


def _is_handed_on(program: Program, result: Wrapping, script: Script, node: ast.Name, parent: ast.AST) -> bool:
    """Whether the wrapper is given to a parameter that takes it."""
    call = script.parents[parent] if isinstance(parent, ast.keyword) else parent
    if not isinstance(call, ast.Call) or call.func is node:
        return False
    for function, name in result.parameters:
        calls = program.followed.found.called_with.get(function, set())
        if (call, script) in calls and argument(function, name, call, script) is node:
            return True
    return False


_BRANCHES = (ast.If, ast.Try, ast.With)


def place(script: Script, call: ast.AST, base: Base) -> ast.stmt:
    """The statement before which a model is wrapped: that of its optimizer, or the branches around it."""
    best = at = script.statement(call)
    for parent in script.ancestors(at):
        if not isinstance(parent, _BRANCHES) or _assigns(parent, base.code):
            break
        if isinstance(parent, ast.If | ast.Try):
            best = parent
    return best


def _assigns(node: ast.AST, code: str) -> bool:
    stores = (part for part in ast.walk(node) if isinstance(part, ast.Name | ast.Attribute))
    return any(isinstance(part.ctx, ast.Store) and ast.unparse(part) == code for part in stores)
