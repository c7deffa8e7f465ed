"""The loops that a run goes on from: the outermost one that trains, and within it the one whose rounds are steps."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property

from ..bindings import Scope
from ..called_modules import last_name
from ..header import main_guard
from ..optimizers import optimizers
from ..origins import origins
from ..script import Script
from .liveness import stored

_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
_LOOPS = (ast.For, ast.While)


@dataclass(frozen=True, eq=False)
class Loop:
    """A loop that trains, in its file and function."""

    script: Script
    node: ast.For | ast.While

    @property
    def parts(self) -> list[ast.AST]:
        """What each round runs: the body, and the test of a `while`."""
        return [*self.node.body, *([self.node.test] if isinstance(self.node, ast.While) else [])]

    @property
    def scope(self) -> Scope:
        """The function around it, or the module."""
        return self.script.scope(self.node)


@dataclass(frozen=True, eq=False)
class ScriptFunction:
    """A function of the program."""

    script: Script
    node: ast.FunctionDef


class CallGraph:
    """How a program comes to its backward passes, by the names of what it calls."""

    def __init__(self, scripts: Iterable[Script]) -> None:
        """scripts: of the program, the one that is started first."""
        self.scripts = tuple(scripts)
        self._trains: dict[ast.AST, bool] = {}

    @cached_property
    def _definitions(self) -> dict[str, list[ScriptFunction]]:
        found: dict[str, list[ScriptFunction]] = {}
        for script in self.scripts:
            for node in script.find(ast.FunctionDef):
                found.setdefault(node.name, []).append(ScriptFunction(script, node))
        return found

    def outermost(self) -> list[Loop]:
        """The loops that train and lie in no other such loop, from where the program begins."""
        entry = self.scripts[0]
        guard = main_guard(entry.tree)
        body = [node for node in entry.tree.body if node is not guard] + (guard.body if guard else [])
        return list(self.loops(entry, body))

    def loops(self, script: Script, body: Iterable[ast.AST], seen: frozenset[ast.AST] = frozenset()) -> Iterator[Loop]:
        """The outermost loops that train, in some statements and in what they call."""
        for node in body:
            if isinstance(node, _LOOPS) and self.trains(script, [node]):
                yield Loop(script, node)
                continue
            if isinstance(node, ast.Call):
                for called in self.called(script, node):
                    if called.node not in seen and self.trains(called.script, called.node.body):
                        yield from self.loops(called.script, called.node.body, seen | {called.node})
            if not isinstance(node, (*_FUNCTIONS, ast.ClassDef, ast.Lambda)):
                yield from self.loops(script, ast.iter_child_nodes(node), seen)

    def trains(self, script: Script, body: Iterable[ast.AST]) -> bool:
        """Whether statements come to a backward pass."""
        return any(self._comes_to_backward(script, node) for node in body)

    def steps(self, loop: Loop) -> bool:
        """Whether a round of the loop is a step: a backward pass, or what applies it, is in no loop within."""
        return self._steps(loop.script, loop.node.body, set())

    def _steps(self, script: Script, body: Iterable[ast.AST], seen: set[ast.AST]) -> bool:
        for node in body:
            if isinstance(node, _LOOPS) or node in seen:
                continue
            if isinstance(node, ast.Call):
                if last_name(node.func) == "backward" or self._steps_optimizer(node):
                    return True
                seen.add(node)
                for called in self.called(script, node):
                    if self._steps(called.script, called.node.body, seen):
                        return True
            if self._steps(script, ast.iter_child_nodes(node), seen):
                return True
        return False

    def _steps_optimizer(self, call: ast.Call) -> bool:
        """Whether a call is the step of what `zero_grad` is called on, or of a scaler that is given it."""
        if not isinstance(call.func, ast.Attribute) or call.func.attr != "step":
            return False
        return bool({last_name(each) for each in (call.func.value, *call.args)} & self._cleared)

    @cached_property
    def _cleared(self) -> set[str]:
        found = (node for script in self.scripts for node in script.find(ast.Attribute) if node.attr == "zero_grad")
        return {last_name(node.value) for node in found}

    def reached(self, script: Script, body: Iterable[ast.AST]) -> list[ScriptFunction]:
        """The functions of the program that statements may call, and those that these call."""
        found: dict[ast.AST, ScriptFunction] = {}
        waiting = [(script, list(body))]
        while waiting:
            where, nodes = waiting.pop()
            for node in nodes:
                for call in ast.walk(node):
                    for function in self.called(where, call) if isinstance(call, ast.Call) else ():
                        if function.node not in found:
                            found[function.node] = function
                            waiting.append((function.script, list(function.node.body)))
        return list(found.values())

    def builds_optimizer(self, script: Script, body: list[ast.stmt]) -> ast.AST | None:
        """Where statements, or what they call, build an optimizer."""
        places = [(script, set(body))]
        places += [(function.script, {function.node}) for function in self.reached(script, body)]
        for where, nodes in places:
            for found in optimizers(where):
                if isinstance(found.call, ast.Call) and nodes & {found.call, *where.ancestors(found.call)}:
                    return found.call
        return None

    def builds_all(self, script: Script, body: list[ast.stmt]) -> bool:
        """Whether statements, or what they call, build optimizers, and the modules that these train too."""
        places = [(script, body), *((each.script, each.node.body) for each in self.reached(script, body))]
        found = [
            (each, inner)
            for where, inner in places
            for each in optimizers(where)
            if isinstance(each.call, ast.Call) and set(inner) & set(where.ancestors(each.call))
        ]
        return bool(found) and all(
            base.code.partition(".")[0].partition("[")[0] in stored(*inner)
            for each, inner in found
            for base in each.bases
        )

    def called(self, script: Script, call: ast.Call) -> list[ScriptFunction]:
        """The functions of the program that a call may mean."""
        name = last_name(call.func)
        if isinstance(call.func, ast.Name):
            if name in self._classes:
                return [each for each in self._definitions.get("__init__", ()) if _owner(each) == name]
            return [each for each in self._definitions.get(name, ()) if not _owner(each)]
        if not isinstance(call.func, ast.Attribute) or name not in self._definitions:
            return []
        return [each for each in self._definitions[name] if self._may_mean(script, call.func, each)]

    @cached_property
    def _classes(self) -> dict[str, ast.ClassDef]:
        return {node.name: node for script in self.scripts for node in script.find(ast.ClassDef)}

    def _may_mean(self, script: Script, called: ast.Attribute, function: ScriptFunction) -> bool:
        owner, base = _owner(function), called.value
        if not owner:  # a function of a module
            return isinstance(base, ast.Name) and base.id in script.imported
        if isinstance(base, ast.Name) and base.id == "self":
            around = [each.name for each in script.ancestors(called) if isinstance(each, ast.ClassDef)]
            return owner in self._with_bases(around)
        made = {last_name(each.func) for each in origins(script, base) if isinstance(each, ast.Call)}
        return owner in self._with_bases(made)

    def _with_bases(self, names: Iterable[str]) -> set[str]:
        found: set[str] = set()
        waiting = [name for name in names if name in self._classes]
        while waiting:
            name = waiting.pop()
            if name not in found:
                found.add(name)
                waiting += [last_name(base) for base in self._classes[name].bases if last_name(base) in self._classes]
        return found

    def _comes_to_backward(self, script: Script, node: ast.AST) -> bool:
        if node not in self._trains:
            self._trains[node] = False  # while it is looked at
            self._trains[node] = any(
                last_name(call.func) == "backward"
                or any(self.trains(each.script, each.node.body) for each in self.called(script, call))
                for call in ast.walk(node)
                if isinstance(call, ast.Call)
            )
        return self._trains[node]


def _owner(function: ScriptFunction) -> str:
    parent = function.script.parents[function.node]
    return parent.name if isinstance(parent, ast.ClassDef) else ""
