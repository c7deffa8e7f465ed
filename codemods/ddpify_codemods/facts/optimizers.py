"""What gets trained: every expression that builds an optimizer, and the modules whose parameters it is given."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache

from .bindings import Scope, arguments, attribute_bindings, bindings, names_in
from .optimizer_classes import hands_over_torch_optim, is_optimizer_class
from .origins import origins, sources
from .script import Script
from .updates import update_loops

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
COMPREHENSIONS = (ast.ListComp, ast.GeneratorExp, ast.DictComp, ast.SetComp)
# Modules that hold others and are never called, and how to run over what they hold.
_CONTAINERS = {"torch.nn.ModuleList": "", "torch.nn.ModuleDict": ".values()"}
_MODULE_METHODS = frozenset({"parameters", "named_parameters", "train", "eval", "state_dict", "load_state_dict"})
# Where the result of a call is kept or handed on.
_KEEPS = (ast.Return, ast.keyword, ast.Call, ast.Dict, ast.List, ast.Tuple, ast.AnnAssign)
# What the standard library makes of parameters are parameters.
_STANDARD = frozenset({"itertools.chain", "itertools.chain.from_iterable", "copy.copy", "copy.deepcopy"})
_PARAMETERS = re.compile(r"param", re.IGNORECASE)
_OPTIMIZER_NAME = re.compile(r"optim|^opt", re.IGNORECASE)


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


@dataclass(frozen=True)
class Optimizer:
    """An expression that builds an optimizer, or a loop that updates parameters by hand.

    bases: the modules that it trains. passed_in: whether its parameters come (also) from outside of the function or
    file, so that they cannot be followed here.
    """

    call: ast.Call | ast.For
    bases: tuple[Base, ...]
    passed_in: bool

    @property
    def only_tensors(self) -> bool:
        """Whether it is given tensors that belong to no module (L16)."""
        return not self.bases and not self.passed_in


@lru_cache(maxsize=64)
def optimizers(script: Script) -> tuple[Optimizer, ...]:
    """Every optimizer that a script builds, in the order of its source; without any, the loops that do their work."""
    found = list(_optimizers(script)) or list(_update_loops(script))
    return tuple(sorted(found, key=lambda found: (found.call.lineno, found.call.col_offset)))


def _update_loops(script: Script) -> Iterator[Optimizer]:
    for loop in update_loops(script):
        trained = _Sources(script, loop)
        trained.follow_all([loop.iter])
        handed = [value for value in origins(script, loop.iter) if not isinstance(value, ast.Name)]
        if not trained.bases:
            trained.passed_in = trained.passed_in and not handed
            trained.follow_all(handed)
        yield Optimizer(loop, tuple(dict.fromkeys(trained.bases)), trained.passed_in)


def _optimizers(script: Script) -> Iterator[Optimizer]:
    stepped = _stepped_names(script)
    for call in script.find(ast.Call):
        certain = is_optimizer_class(script, call.func)
        if certain:
            given = _parameter_arguments(call)
        elif hands_over_torch_optim(script, call) or _may_build_optimizer(script, call, stepped):
            given = [*call.args, *(keyword.value for keyword in call.keywords)]
        else:
            continue
        trained = _Sources(script, call)
        trained.follow_all(given)
        if certain or trained.bases:
            yield Optimizer(call, tuple(dict.fromkeys(trained.bases)), trained.passed_in or not given)


def _parameter_arguments(call: ast.Call) -> list[ast.expr]:
    named = [keyword.value for keyword in call.keywords if keyword.arg in ("params", "parameters", None)]
    return call.args[:1] or named


def _may_build_optimizer(script: Script, call: ast.Call, stepped: set[str]) -> bool:
    """Whether the result of a call is kept under a name on which `.step()` or `.zero_grad()` is called, or is what a
    library makes of parameters."""
    if script.qualified(call.func).startswith("torch."):
        return False
    given = _names_parameters(call)
    own = script.qualified(call.func).rpartition(".")[2] in script.defined
    of_library = not own and _root(call.func) in script.imported and script.qualified(call.func) not in _STANDARD
    parent = script.parents[call]
    if not isinstance(parent, ast.Assign):
        return given and of_library and isinstance(parent, _KEEPS)
    names = {_last_name(target) for target in parent.targets}
    is_stepped = bool(names & stepped)
    if not is_stepped and not any(_OPTIMIZER_NAME.search(name) for name in names):
        return given and of_library and _is_handed_on(script, names)
    return given or of_library or (is_stepped and (not own or any(_holds_parameters(script, it) for it in call.args)))


def _is_handed_on(script: Script, names: set[str]) -> bool:
    """Whether a variable is an argument of some call, or is returned: what becomes of it is seen elsewhere."""
    kinds = (ast.Call, ast.keyword, ast.Return)
    uses = (node for node in script.nodes if isinstance(node, (ast.Name, ast.Attribute)) and _last_name(node) in names)
    return any(
        isinstance(parent, kinds) and not (isinstance(parent, ast.Call) and parent.func is use)
        for use in uses
        for parent in (script.parents[use],)
    )


def _holds_parameters(script: Script, node: ast.expr) -> bool:
    return isinstance(node, ast.Name) and any(_names_parameters(value) for value in sources(script, node))


def _names_parameters(node: ast.AST) -> bool:
    return any(
        isinstance(part, ast.Attribute) and part.attr in ("parameters", "named_parameters") for part in ast.walk(node)
    )


def _stepped_names(script: Script) -> set[str]:
    return {
        _last_name(call.func.value)
        for call in script.find(ast.Call)
        if isinstance(call.func, ast.Attribute) and call.func.attr in ("zero_grad", "step")
    } - _names_with_methods(script, {"parameters", "train", "eval"})


def _names_with_methods(script: Script, methods: set[str] | frozenset[str]) -> set[str]:
    return {_last_name(node.value) for node in script.find(ast.Attribute) if node.attr in methods}


def _last_name(node: ast.expr) -> str:
    if isinstance(node, ast.Attribute):
        return node.attr
    return node.id if isinstance(node, ast.Name) else ""


class _Sources:
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
        if isinstance(func, ast.Attribute) and _PARAMETERS.search(func.attr) and not self._is_library(func.value):
            self._add(func.value, loops)
        elif _last_name(func) in _PASSES_ON:
            if _last_name(func) == "map" and inputs and isinstance(inputs[0], ast.Lambda):
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

    def _is_library(self, node: ast.expr) -> bool:
        return _root(node) in _libraries(self._script) and not any(
            isinstance(part, ast.Call) for part in ast.walk(node)
        )

    def _looks_like_module(self, node: ast.expr) -> bool:
        if not isinstance(node, (ast.Name, ast.Attribute)):
            return False
        if _last_name(node) in _names_with_methods(self._script, _MODULE_METHODS):
            return not self._is_library(node)
        return ast.unparse(node) in _called(self._script)

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
        self.passed_in = self.passed_in or node.id in _libraries(self._script)

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
        prefix = _shortest(node.value, _called(self._script))
        if prefix is not None:
            self.bases.append(Base(ast.unparse(prefix), prefix))
        elif not values:
            self.passed_in = self.passed_in or _root(node) != "self" or code not in attribute_bindings(self._script)

    def _arguments_around(self, node: ast.AST) -> set[str]:
        return arguments(self._script.scope(node))

    def _scopes(self, node: ast.AST) -> Iterator[Scope]:
        for parent in self._script.ancestors(node):
            if isinstance(parent, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Module)):
                yield parent

    def _add(self, node: ast.expr, loops: Mapping[str, ast.expr]) -> None:
        """Take a module, or each module of the collection that a loop variable runs over."""
        base = _called_prefix(self._script, node) or node
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

    def _collection(self, node: ast.Name) -> ast.expr | None:
        """What the variable of a comprehension, or of a loop that ends before the optimizer is built, runs over."""
        inside = set(self._script.ancestors(self._call))
        for parent in self._script.ancestors(node):
            parts: Sequence[ast.comprehension | ast.For] = ()
            if isinstance(parent, COMPREHENSIONS):
                parts = parent.generators
            elif isinstance(parent, ast.For) and parent not in inside:
                parts = [parent]
            for part in parts:
                if node.id in names_in(part.target):
                    return _run_over(part.target, part.iter, node.id)
        return None


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
    if _last_name(over.func) == "enumerate" and place == 1 and over.args:
        return over.args[0]
    if _last_name(over.func) == "zip" and 0 <= place < len(over.args):
        return over.args[place]
    return None


def _attribute_of_called(script: Script, over: ast.expr) -> ast.expr | None:
    """`model` in `model.layers`, if it is called: then it is the module, and not each of its layers."""
    while isinstance(over, ast.Call) and _last_name(over.func) in _PASSES_ON and (over.args or _is_method(over)):
        over = over.func.value if isinstance(over.func, ast.Attribute) else over.args[0]
    found = _called_prefix(script, over)
    return None if found is over and ast.unparse(over) not in _called(script) else found


def _is_list(script: Script, node: ast.expr) -> bool:
    values = [
        assign.value
        for assign in script.find(ast.Assign)
        if any(ast.unparse(target) == ast.unparse(node) for target in assign.targets)
    ]
    return bool(values) and all(isinstance(value, (ast.List, ast.ListComp)) for value in values)


def _members(script: Script, node: ast.expr) -> str:
    """How to run over the members of a ModuleList or ModuleDict, which is never called itself; "" for a module."""
    if not isinstance(node, (ast.Name, ast.Attribute)) or ast.unparse(node) in _called(script):
        return ""
    if isinstance(node, ast.Name):
        known = bindings(script, script.scope(node)).get(node.id) or bindings(script, script.tree).get(node.id, [])
    else:
        known = attribute_bindings(script).get(ast.unparse(node), [])
    made = {script.qualified(value.func) for value in known if isinstance(value, ast.Call)}
    if len(made) != 1 or not made & _CONTAINERS.keys():
        return ""
    return ast.unparse(node) + _CONTAINERS[made.pop()]


def _unused(script: Script, name: str) -> str:
    taken = {node.id for node in script.find(ast.Name)}
    return name if name not in taken else _unused(script, f"{name}_")


def _is_method(call: ast.Call) -> bool:
    return isinstance(call.func, ast.Attribute)


def _called_prefix(script: Script, node: ast.expr) -> ast.expr | None:
    """The shortest part of `model.features[0]` that is called as a module, or handed to a function of the program."""
    return _shortest(node, _called(script) | _handed_over(script))


def _shortest(node: ast.expr, names: frozenset[str]) -> ast.expr | None:
    prefixes = [node]
    while isinstance(node, (ast.Attribute, ast.Subscript, ast.Call)):
        if isinstance(node, ast.Call):
            if not isinstance(node.func, ast.Attribute):
                break
            node = node.func  # a method, which is called but no module
        node = node.value
        prefixes.append(node)
    return next((part for part in reversed(prefixes) if ast.unparse(part) in names), None)


@lru_cache(maxsize=64)
def _called(script: Script) -> frozenset[str]:
    """The expressions that are called, other than functions and `self`."""
    kinds = (ast.Name, ast.Attribute, ast.Subscript)
    called = {ast.unparse(call.func) for call in script.find(ast.Call) if isinstance(call.func, kinds)}
    return frozenset(called - _libraries(script) - script.defined - {"self", "super"})


@lru_cache(maxsize=64)
def _handed_over(script: Script) -> frozenset[str]:
    """The names that are arguments of functions of the program."""
    handed = {
        ast.unparse(value)
        for call in script.find(ast.Call)
        if _last_name(call.func) in script.defined
        for value in call.args
        if isinstance(value, (ast.Name, ast.Attribute))
    }
    return frozenset(handed - _libraries(script) - _collections(script) - {"self"})


def _collections(script: Script) -> set[str]:
    """The names of lists, dicts and the like, and of the modules that only hold others."""
    displays = (ast.Dict, ast.List, ast.Tuple, *COMPREHENSIONS)
    calls = {"dict", "list", "tuple", "zip", "argparse.Namespace", *_CONTAINERS}
    return {
        ast.unparse(target)
        for assign in script.find(ast.Assign)
        for target in assign.targets
        if isinstance(assign.value, displays)
        or (
            isinstance(assign.value, ast.Call)
            and (script.qualified(assign.value.func) in calls or _last_name(assign.value.func) == "parse_args")
        )
    }


@lru_cache(maxsize=64)
def _libraries(script: Script) -> frozenset[str]:
    """The imported names that are not given another meaning later (`model = model.Net()`)."""
    assigned = {name.id for name in script.find(ast.Name) if isinstance(name.ctx, ast.Store)}
    return frozenset(set(script.imported) - assigned)


def _root(node: ast.expr) -> str:
    while isinstance(node, (ast.Attribute, ast.Subscript, ast.Call)):
        node = node.func if isinstance(node, ast.Call) else node.value
    return node.id if isinstance(node, ast.Name) else ""
