"""The modules whose parameters an optimizer is given, followed through names, attributes, loops and collections."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache

from .bindings import Scope, arguments, attribute_bindings, bindings, names_in
from .called_modules import (
    COMPREHENSIONS,
    CONTAINERS,
    OF_MODULES,
    called,
    called_prefix,
    last_name,
    libraries,
    root,
    shortest,
)
from .optimizer_classes import is_optimizer_class
from .origins import origins
from .script import KEPT, Script

_PLAIN = frozenset({"object", "abc.ABC", "dict", "list", "Exception"})
# Functions and methods whose result holds the same parameters as their arguments.
_PASSES_ON = frozenset(
    {
        "list",
        "tuple",
        "set",
        "dict",
        "filter",
        "map",
        "chain",
        "from_iterable",
        "sorted",
        "reversed",
        "iter",
        "zip",
        "sum",
    }
    | {"enumerate", "items", "values"}
)
_MODULE_METHODS = frozenset({"parameters", "named_parameters", "train", "eval", "state_dict", "load_state_dict"})
_LAYERS = frozenset({"modules", "named_modules"})  # what gives the layers of a module, and itself
_PARAMETERS = re.compile(r"param", re.IGNORECASE)


@dataclass(frozen=True)
class Base:
    """A module whose parameters are trained.

    code: its source ("model", "self.net", "nets[0]"). node: the expression it was found as.
    each_of: the source of the list that a comprehension or an earlier loop runs over, `code` its variable; or of a
    ModuleList or ModuleDict whose members are called, `code` then is a name for them.
    is_list: whether that collection is a list.
    bound_at: the comprehension or function that alone knows the names in `code`, if there is one.
    """

    code: str
    node: ast.expr = field(compare=False)
    each_of: str = ""
    is_list: bool = False
    bound_at: ast.AST | None = None


def names_with_methods(script: Script, methods: set[str] | frozenset[str]) -> set[str]:
    """What has one of some attributes, by its last name."""
    return {last_name(node.value) for node in script.find(ast.Attribute) if node.attr in methods}


@lru_cache(maxsize=KEPT)
def _used_as_optimizers(script: Script) -> frozenset[str]:
    """The last names of what takes a step of its own, has groups of parameters, or is given to a scheduler of torch."""
    found = {last_name(node.value) for node in script.find(ast.Attribute) if node.attr == "param_groups"}
    for call in script.find(ast.Call):
        if isinstance(call.func, ast.Attribute) and call.func.attr == "step" and not call.args:
            found.add(last_name(call.func.value))
        elif script.qualified(call.func).startswith("torch.optim.lr_scheduler."):
            given = [*call.args[:1], *(keyword.value for keyword in call.keywords if keyword.arg == "optimizer")]
            found.update(map(last_name, given))
    return frozenset(found)


@lru_cache(maxsize=KEPT)
def _own_modules(script: Script) -> frozenset[str]:
    """The names of the classes of a file that may be modules, by what they are derived from."""
    classes = {each.name: [script.qualified(base) for base in each.bases] for each in script.find(ast.ClassDef)}
    others = {name for name, bases in classes.items() if not any(map(_may_be_module, bases))}
    for _ in classes:  # classes of classes
        others |= {name for name, bases in classes.items() if bases and others.issuperset(bases)}
    return frozenset(classes) - others


def _may_be_module(base: str) -> bool:
    """Whether a class of this full name may be a module's: no optimizer, no schedule of one, nothing of Python's."""
    last = base.rpartition(".")[2]
    return not (base.startswith("torch.optim.") or last.endswith(("Optimizer", "Scheduler", "LR")) or base in _PLAIN)


def _used_as_modules(script: Script) -> set[str]:
    return names_with_methods(script, OF_MODULES | {"train", "eval"})


class Sources:
    """Follows the parameters of one optimizer back to the modules that they belong to."""

    def __init__(self, script: Script, call: ast.Call | ast.For) -> None:
        self.bases: list[Base] = []
        self.passed_in = False
        self._script = script
        self._call = call
        self._seen: set[tuple[str, ast.AST]] = set()

    def follow_all(self, arguments: Sequence[ast.expr]) -> None:
        """Look for modules in the arguments of the optimizer."""
        loops = {
            name: part.iter
            for parent in self._script.ancestors(self._call)
            if isinstance(parent, COMPREHENSIONS)
            for part in parent.generators
            for name in names_in(part.target)
        }
        for argument in arguments:
            self.follow(argument, loops)
        if not self.bases:
            for argument in filter(self._looks_like_module, arguments):
                self._add(argument, loops)

    def follow(self, node: ast.AST | None, loops: Mapping[str, ast.expr]) -> None:
        """Look for modules in an expression; `loops` are the comprehension variables and what they run over."""
        if isinstance(node, ast.Call):
            self._follow_call(node, loops)
        elif isinstance(node, ast.Name):
            self._follow_name(node, loops)
        elif isinstance(node, ast.Attribute):
            self._follow_attribute(node, loops)
        elif isinstance(node, ast.Dict):
            self._follow_dict(node, loops)
        elif isinstance(node, COMPREHENSIONS):
            inner = {**loops, **{name: part.iter for part in node.generators for name in names_in(part.target)}}
            for value in [node.value] if isinstance(node, ast.DictComp) else [node.elt]:
                self.follow(value, inner)
        elif isinstance(node, (ast.Subscript, ast.Starred, ast.NamedExpr, ast.Await)):
            self.follow(node.value, loops)
        elif isinstance(node, (ast.List, ast.Tuple, ast.Set, ast.BinOp, ast.BoolOp, ast.IfExp)):
            for child in ast.iter_child_nodes(node):
                if not (isinstance(node, ast.IfExp) and child is node.test):
                    self.follow(child, loops)

    def _follow_dict(self, node: ast.Dict, loops: Mapping[str, ast.expr]) -> None:
        keys = [key.value if isinstance(key, ast.Constant) else None for key in node.keys]
        for key, value in zip(keys, node.values, strict=True):
            if key == "params" or "params" not in keys:
                self.follow(value, loops)

    def _follow_call(self, node: ast.Call, loops: Mapping[str, ast.expr]) -> None:
        func = node.func
        inputs = [*node.args, *(keyword.value for keyword in node.keywords)]
        if isinstance(func, ast.Attribute) and self._gives_parameters(func):
            self._add(func.value, loops)
        elif last_name(func) in _PASSES_ON:
            if last_name(func) == "map" and inputs and isinstance(inputs[0], ast.Lambda):
                self.follow(inputs[0].body, loops)
            for value in [*inputs, *([func.value] if isinstance(func, ast.Attribute) else [])]:
                self.follow(value, loops)
        elif isinstance(func, ast.Name) and func.id == "getattr":
            self.passed_in = True
        else:
            known, passed_in = len(self.bases), self.passed_in
            for value in inputs:
                self.follow(value, loops)
            # What a function makes of sizes and the like are tensors of its own, as nn.Parameter(x) does of any x.
            handed_on = any(
                isinstance(value, ast.Name) and value.id in self._arguments_around(node) for value in inputs
            )
            makes_tensor = self._script.qualified(func).startswith("torch.")
            self.passed_in = passed_in or (handed_on and not makes_tensor)
            if len(self.bases) == known:
                for value in inputs:
                    if self._looks_like_module(value):
                        self._add(value, loops)

    def _gives_parameters(self, method: ast.Attribute) -> bool:
        by_name = _PARAMETERS.search(method.attr) is not None and not self._is_library(method.value)
        return by_name or method.attr in OF_MODULES

    def _is_library(self, node: ast.expr) -> bool:
        return root(node) in libraries(self._script) and not any(isinstance(part, ast.Call) for part in ast.walk(node))

    def _looks_like_module(self, node: ast.expr) -> bool:
        if not isinstance(node, (ast.Name, ast.Attribute)) or self._is_optimizer(node):
            return False
        if last_name(node) in names_with_methods(self._script, _MODULE_METHODS):
            return not self._is_library(node)
        return ast.unparse(node) in called(self._script)

    def _is_optimizer(self, node: ast.Name | ast.Attribute) -> bool:
        """Whether a value is an optimizer, by what makes it or what is done with it: `Lookahead(optimizer)` holds the
        parameters that this one has."""
        made = [each for each in origins(self._script, node) if isinstance(each, ast.Call)]
        if any(is_optimizer_class(self._script, each.func) for each in made):
            return True
        used = ast.unparse(node) in called(self._script) or last_name(node) in {"self", *_used_as_modules(self._script)}
        if used or any(last_name(each.func) in _own_modules(self._script) for each in made):
            return False
        assign = self._script.parents[self._call]
        if isinstance(assign, ast.Assign) and ast.unparse(node) in map(ast.unparse, assign.targets):
            return True  # optimizer = Lookahead(optimizer)
        return last_name(node) in _used_as_optimizers(self._script) or any(map(_is_given_parameters, made))

    def _follow_name(self, node: ast.Name, loops: Mapping[str, ast.expr]) -> None:
        if node.id in loops:
            self.follow(loops[node.id], {name: value for name, value in loops.items() if name != node.id})
            return
        for scope in self._scopes(node):
            if (node.id, scope) in self._seen:
                return
            values = list(bindings(self._script, scope).get(node.id, ()))
            if values:
                self._seen.add((node.id, scope))
                for value in values:
                    self.follow(value, {})
                # A parameter with a default or a rebinding may still carry what the caller gave.
                self.passed_in = self.passed_in or node.id in arguments(scope)
                return
            if node.id in arguments(scope):
                self.passed_in = True
                return
        self.passed_in = self.passed_in or node.id in libraries(self._script)

    def _follow_attribute(self, node: ast.Attribute, loops: Mapping[str, ast.expr]) -> None:
        code = ast.unparse(node)
        values = attribute_bindings(self._script).get(code, ())
        if (code, self._script.tree) in self._seen:
            return
        self._seen.add((code, self._script.tree))
        known = len(self.bases)
        for value in values:
            self.follow(value, loops)
        if len(self.bases) > known:
            return
        if (whole := self._whole(node)) is not None:
            self._add(whole, loops)
            return
        prefix = shortest(node.value, called(self._script))
        if prefix is not None:
            self.bases.append(Base(ast.unparse(prefix), prefix))
        elif not values:
            self.passed_in = self.passed_in or root(node) != "self" or code not in attribute_bindings(self._script)

    def _arguments_around(self, node: ast.AST) -> frozenset[str]:
        return arguments(self._script.scope(node))

    def _scopes(self, node: ast.AST) -> Iterator[Scope]:
        for parent in self._script.ancestors(node):
            if isinstance(parent, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Module)):
                yield parent

    def _add(self, node: ast.expr, loops: Mapping[str, ast.expr]) -> None:
        """Take a module, or each module of the collection that a loop variable runs over."""
        node = self._whole(node) or node
        base = called_prefix(self._script, node) or node
        over = self._collection(base) if isinstance(base, ast.Name) else None
        members = _members(self._script, base)
        if isinstance(over, (ast.List, ast.Tuple)):
            for element in over.elts:
                self._add(element, {})
        elif members:
            self.bases.append(Base(_unused(self._script, "module"), base, each_of=members))
        elif over is not None and (whole := _attribute_of_called(self._script, over)) is not None:
            self.bases.append(Base(ast.unparse(whole), whole))
        elif over is not None and _is_list(self._script, over):
            self.bases.append(Base(ast.unparse(base), over, each_of=ast.unparse(over), is_list=True))
        else:
            self.bases.append(Base(ast.unparse(base), base, bound_at=bound_at(self._script, base)))

    def _whole(self, node: ast.expr) -> ast.expr | None:
        """`model` of `layer` and `layer.bias`, if they are of the loop `for layer in model.modules():`."""
        while isinstance(node, ast.Attribute):
            node = node.value
        for parent in self._script.ancestors(node):
            for part in _loops(parent):
                if not isinstance(node, ast.Name) or node.id not in names_in(part.target):
                    continue
                called = part.iter.func if isinstance(part.iter, ast.Call) else None
                return called.value if isinstance(called, ast.Attribute) and called.attr in _LAYERS else None
        return None

    def _collection(self, node: ast.Name) -> ast.expr | None:
        """What the variable of a comprehension, or of a loop that ends before the optimizer is built, runs over."""
        inside = set(self._script.ancestors(self._call))
        for parent in self._script.ancestors(node):
            for part in () if parent in inside and isinstance(parent, ast.For) else _loops(parent):
                if node.id in names_in(part.target):
                    return _run_over(part.target, part.iter, node.id)
        return None


def _is_given_parameters(call: ast.Call) -> bool:
    """Whether it is `build(model.parameters())`."""
    given = (*call.args, *(keyword.value for keyword in call.keywords))
    return any(isinstance(node, ast.Attribute) and node.attr in OF_MODULES for each in given for node in ast.walk(each))


def _loops(node: ast.AST) -> Sequence[ast.comprehension | ast.For]:
    """What binds variables to the members of something, if a node is a loop or a comprehension."""
    if isinstance(node, COMPREHENSIONS):
        return node.generators
    return [node] if isinstance(node, ast.For) else []


def bound_at(script: Script, node: ast.AST) -> ast.AST | None:
    """The comprehension or lambda around an expression that binds one of its names; None if all are known outside."""
    names = names_in(node)
    for parent in script.ancestors(node):
        if isinstance(parent, COMPREHENSIONS) and any(names & names_in(part.target) for part in parent.generators):
            return parent
        if isinstance(parent, ast.Lambda) and names & {part.arg for part in parent.args.args}:
            return parent
        if isinstance(parent, ast.stmt):
            break
    return None


def _run_over(target: ast.expr, over: ast.expr, name: str) -> ast.expr | None:
    """The collection whose members a loop variable takes, one after the other; None for another kind of loop."""
    if isinstance(target, ast.Name):
        return over
    if not isinstance(target, ast.Tuple) or not isinstance(over, ast.Call):
        return None
    place = next(
        (place for place, part in enumerate(target.elts) if isinstance(part, ast.Name) and part.id == name), -1
    )
    if last_name(over.func) == "enumerate" and place == 1 and over.args:
        return over.args[0]
    if last_name(over.func) == "zip" and 0 <= place < len(over.args):
        return over.args[place]
    return None


def _attribute_of_called(script: Script, over: ast.expr) -> ast.expr | None:
    """`model` in `model.layers`, if it is called: then it is the module, and not each of its layers."""
    while isinstance(over, ast.Call) and last_name(over.func) in _PASSES_ON and (over.args or _is_method(over)):
        over = over.func.value if isinstance(over.func, ast.Attribute) else over.args[0]
    found = called_prefix(script, over)
    return None if found is over and ast.unparse(over) not in called(script) else found


def _is_list(script: Script, node: ast.expr) -> bool:
    values = [
        assign.value
        for assign in script.find(ast.Assign)
        if any(ast.unparse(target) == ast.unparse(node) for target in assign.targets)
    ]
    return bool(values) and all(isinstance(value, (ast.List, ast.ListComp)) for value in values)


def _members(script: Script, node: ast.expr) -> str:
    """How to run over the members of a ModuleList or ModuleDict, which is never called itself; "" for a module."""
    if not isinstance(node, (ast.Name, ast.Attribute)) or ast.unparse(node) in called(script):
        return ""
    if isinstance(node, ast.Name):
        known = bindings(script, script.scope(node)).get(node.id) or bindings(script, script.tree).get(node.id, [])
    else:
        known = attribute_bindings(script).get(ast.unparse(node), [])
    made = {script.qualified(value.func) for value in known if isinstance(value, ast.Call)}
    if len(made) != 1 or not made & CONTAINERS.keys():
        return ""
    return ast.unparse(node) + CONTAINERS[made.pop()]


def _unused(script: Script, name: str) -> str:
    taken = {node.id for node in script.find(ast.Name)}
    return name if name not in taken else _unused(script, f"{name}_")


def _is_method(call: ast.Call) -> bool:
    return isinstance(call.func, ast.Attribute)
