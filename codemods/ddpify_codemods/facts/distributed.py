"""Which process this is, as a script knows it: by where a value comes from and how it is used, never by its name.

One vocabulary for hand-written distributed code: the rules that report (DDP5xx), that move it to XLA, and that leave to
its author what he lets one process do.
"""

from __future__ import annotations

import ast
import builtins
import sys
from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache
from typing import Literal, TypeAlias

from ..runtime_names import runtime_name
from .bindings import arguments
from .origins import passed
from .script import KEPT, Script
from .started import handed_over, is_number_of_process
from .tree import walk

# rank: a number that each process has its own of. first, others: a truth that holds on one process only, or on all but
# one. depends: another value that rank decides. unknown: made where this file does not show it. same: anything else.
Origin: TypeAlias = Literal["rank", "first", "others", "depends", "unknown", "same"]

_RANKS = frozenset(
    f"{module}.{name}"
    for module, names in {
        "torch.distributed": ("get_rank", "get_node_local_rank", "get_group_rank"),
        "torch_xla.core.xla_model": ("get_ordinal", "get_local_ordinal"),
        "torch_xla.runtime": ("global_ordinal", "local_ordinal", "process_index"),
        "horovod.torch": ("rank", "local_rank", "cross_rank"),
        "ignite.distributed": ("get_rank", "get_local_rank"),
        "mpi4py.MPI.COMM_WORLD": ("Get_rank", "rank"),
    }.items()
    for name in names
)
_ASKS_FOR_OTHERS = frozenset({"torch.distributed.is_initialized", "torch.distributed.is_available"})
_OF_RUNTIME = frozenset({"get_rank", "get_local_rank"})
_FIRST = frozenset({"torch_xla.core.xla_model.is_master_ordinal"})
_RANK_VARIABLES = frozenset(
    {"RANK", "LOCAL_RANK", "GROUP_RANK", "NODE_RANK", "SLURM_PROCID", "SLURM_LOCALID", "PMI_RANK", "PMIX_RANK"}
    | {"MPI_LOCALRANKID", "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_LOCAL_RANK", "HOROVOD_RANK", "HOROVOD_LOCAL_RANK"}
)
# torch.distributed.launch starts each process with it.
_RANK_OPTIONS = frozenset({"--local_rank", "--local-rank"})
_PASS_ON = frozenset({"int", "float", "str", "bool", "abs", "round", "min", "max"})
_LIBRARIES = frozenset({"torch", "torch_xla", "torchvision", "numpy", "horovod", "ignite", "mpi4py"})
_TEXTS = frozenset({"os.path.join", "pathlib.Path"})
_OF_TEXT = frozenset({"format", "join", "replace"})
_READS = frozenset({"os.environ.get", "os.getenv", "os.environ.pop"})
_RANKISH: frozenset[Origin] = frozenset({"rank", "first", "others", "depends"})
_NEGATED: Mapping[Origin, Origin] = {"rank": "first", "first": "others", "others": "first"}
_Function: TypeAlias = ast.FunctionDef | ast.AsyncFunctionDef
# A value, and which of several that it stands for: the second of `rank, size = setup()`.
_Stored: TypeAlias = tuple[ast.expr, int | None]


def is_rank(script: Script, node: ast.expr) -> bool:
    """Whether an expression is a number of this process: `dist.get_rank()`, and what comes of it."""
    return _origins(script).of(node) == "rank"


def depends_on_rank(script: Script, node: ast.AST) -> bool:
    """Whether a value, for all that this file shows, is another one on each process by its rank."""
    return _origins(script).depends(node)


def may_depend_on_rank(script: Script, node: ast.expr) -> bool:
    """Whether a condition depends on the rank, or on what this file does not show."""
    return depends_on_rank(script, node) or _origins(script).of(node) == "unknown"


def is_one_rank(script: Script, test: ast.expr) -> bool:
    """Whether a condition holds on one process only: `rank == 0`, `not rank`, `is_main()`, `… and rank == 0`."""
    return _origins(script).of(test) == "first"


def is_guarded(script: Script, node: ast.AST) -> bool:
    """Whether something may happen on some ranks only: below a condition on the rank, after a return for the others,
    or in a function that is only called so (or not here)."""
    inner: ast.AST = node
    for parent in script.ancestors(node):
        if isinstance(parent, (ast.If, ast.IfExp)) and may_depend_on_rank(script, parent.test):
            return True
        body = getattr(parent, "body", None)
        if isinstance(body, list) and any(_leaves(script, part) for part in body[: _index(body, inner)]):
            return True
        if isinstance(parent, _Function):
            calls = [call for call in script.find(ast.Call) if _last(call.func) == parent.name]
            calls = [call for call in calls if not script.qualified(call.func).startswith("torch.")]
            return not calls or all(is_guarded(script, call) for call in calls if parent not in script.ancestors(call))
        inner = parent
    return False


def _index(body: list[ast.stmt], node: ast.AST) -> int:
    return next((number for number, part in enumerate(body) if part is node), 0)


def _leaves(script: Script, node: ast.stmt) -> bool:
    ends = (ast.Return, ast.Continue, ast.Raise)
    return isinstance(node, ast.If) and isinstance(node.body[-1], ends) and may_depend_on_rank(script, node.test)


@lru_cache(maxsize=KEPT)
def _origins(script: Script) -> _Origins:
    return _Origins(script)


class _Origins:
    """What is known of each expression of a file; found once, since many rules ask."""

    def __init__(self, script: Script) -> None:
        self._script = script
        self._found: dict[ast.AST, Origin] = {}
        self._depends: dict[ast.AST, bool] = {}
        self._stored = _stores(script)
        self._functions = _functions(script)

    def of(self, node: ast.expr) -> Origin:
        if node not in self._found:
            self._found[node] = "same"  # while it is looked at: what comes of itself adds nothing
            self._found[node] = self._look(node)
        return self._found[node]

    def depends(self, node: ast.AST) -> bool:
        if node not in self._depends:
            self._depends[node] = any(self.of(part) in _RANKISH for part in walk(node) if isinstance(part, ast.expr))
        return self._depends[node]

    def _look(self, node: ast.expr) -> Origin:
        if self._is_rank_itself(node):
            return "rank"
        if isinstance(node, ast.Name):
            return self._of_name(node)
        if isinstance(node, ast.Attribute):
            return self._of_attribute(node)
        if isinstance(node, ast.Call):
            return self._of_call(node)
        if isinstance(node, ast.UnaryOp):
            inner = self.of(node.operand)
            return _NEGATED.get(inner, inner) if isinstance(node.op, ast.Not) else inner
        if isinstance(node, ast.Compare):
            return self._of_compare(node)
        if isinstance(node, ast.BoolOp):
            return self._of_boolean(node)
        if isinstance(node, ast.IfExp):
            return _alternatives([self.of(node.body), self.of(node.orelse)])
        if isinstance(node, ast.BinOp):
            sides = {self.of(node.left), self.of(node.right)}
            return "rank" if "rank" in sides and sides <= {"rank", "same", "unknown"} else _mixed(sides)
        return _mixed(self.of(part) for part in ast.iter_child_nodes(node) if isinstance(part, ast.expr))

    def _is_rank_itself(self, node: ast.expr) -> bool:
        called = node.func if isinstance(node, ast.Call) else node
        seen = self._script.view
        if seen is not None and runtime_name(called, seen.names) in _OF_RUNTIME:
            return isinstance(node, ast.Call)
        if self._script.qualified(called) in _RANKS:
            return isinstance(node, ast.Call) or self._script.qualified(called).endswith(".rank")
        return _variable(self._script, node) in _RANK_VARIABLES

    def _of_name(self, node: ast.Name) -> Origin:
        scope = self._script.scope(node)
        found: list[Origin] = [self._of_value(*value) for value in self._stored.get((scope, node.id), ())]
        if isinstance(scope, _Function) and node.id in arguments(scope):
            found += self._of_parameter(scope, node.id)
        if not found:
            found = [self._of_value(*value) for value in self._stored.get((self._script.tree, node.id), ())]
        if not found and node.id in _neighbours(self._script):
            return "unknown"
        if not found and node.id in self._script.imported:
            return _imported(self._script.imported[node.id])
        if not found and node.id not in vars(builtins) and self._script.star_imports:
            return "unknown"
        return _alternatives(found)

    def _of_parameter(self, function: _Function, name: str) -> Iterator[Origin]:
        if name in ("self", "cls"):
            return
        if is_number_of_process(self._script, function, name):
            yield "rank"
        values = [*passed(self._script, function, name), *handed_over(self._script, function, name)]
        default = _default(function, name)
        yield from map(self.of, [*values, default] if default is not None else values)
        if not values and not is_number_of_process(self._script, function, name):
            yield "unknown"

    def _of_value(self, value: ast.expr, place: int | None) -> Origin:
        function = self._functions.get(_last(value.func)) if isinstance(value, ast.Call) else None
        if place is None or function is None:
            return self.of(value) if place is None else "same"
        returned = [each.value for each in _returns(function)]
        several = [each.elts[place] for each in returned if isinstance(each, ast.Tuple) and place < len(each.elts)]
        return _alternatives(map(self.of, several))

    def _of_attribute(self, node: ast.Attribute) -> Origin:
        name = self._script.qualified(node)
        values = self._stored.get((None, node.attr), ())
        if values:
            return _alternatives([self._of_value(*value) for value in values])
        method = self._functions.get(node.attr)
        if method is not None and any(_last(each) == "property" for each in method.decorator_list):
            return self._of_function(method)
        option = _options(self._script).get(node.attr)
        if option is not None:
            return "rank" if option in _RANK_OPTIONS else "same"
        owner = self.of(node.value)
        if owner in _RANKISH:
            return "depends"
        if isinstance(node.value, ast.Name) and node.value.id in self._script.imported:
            return _imported(name)
        return owner

    def _of_call(self, node: ast.Call) -> Origin:
        name = self._script.qualified(node.func)
        if name in _FIRST:
            return "first"
        function = self._functions.get(_last(node.func))
        if function is not None:
            return self._of_function(function)
        given = [*node.args, *(word.value for word in node.keywords)]
        if name in _PASS_ON:
            return _alternatives(map(self.of, given))
        if name in _TEXTS or (isinstance(node.func, ast.Attribute) and node.func.attr in _OF_TEXT):
            return _mixed(map(self.of, given))
        return "unknown" if not given and self.of(node.func) == "unknown" else "same"

    def _of_function(self, function: _Function) -> Origin:
        """What a function gives back; `if rank == 0: return True` and `return False` are a condition too."""
        found: list[Origin] = []
        for each in _returns(function):
            guards = [parent for parent in self._script.ancestors(each) if isinstance(parent, ast.If)]
            tests = {self.of(guard.test) for guard in guards} & _RANKISH
            value = "same" if each.value is None else self.of(each.value)
            if tests and isinstance(each.value, ast.Constant):
                value = "first" if tests == {"first"} and each.value.value is True else "depends"
            found.append(value)
        return _alternatives(found)

    def _of_compare(self, node: ast.Compare) -> Origin:
        sides = [self.of(node.left), *map(self.of, node.comparators)]
        if len(sides) != 2 or sides.count("rank") != 1 or set(sides) & {"first", "others", "depends"}:
            return _mixed(sides, keeps_unknown=any(map(_is_number, (node.left, *node.comparators))))
        operation, other = type(node.ops[0]), node.comparators[0] if sides[0] == "rank" else node.left
        if isinstance(other, ast.UnaryOp):  # `local_rank == -1`: whether there are several processes
            return "depends"
        limit = other.value if isinstance(other, ast.Constant) and sides[0] == "rank" else None
        if operation in (ast.Eq, ast.Is, ast.In) or (operation, limit) in ((ast.Lt, 1), (ast.LtE, 0)):
            return "first"
        return (
            "others"
            if operation in (ast.NotEq, ast.IsNot, ast.NotIn) or (operation, limit) == (ast.Gt, 0)
            else "depends"
        )

    def _of_boolean(self, node: ast.BoolOp) -> Origin:
        found = [self.of(value) for value in node.values]
        if isinstance(node.op, ast.And) and "first" in found:
            return "first"
        among_others = [value for value, each in zip(found, node.values, strict=True) if not self._is_alone(each)]
        return "first" if set(among_others) == {"first"} else _mixed(found, keeps_unknown=True)

    def _is_alone(self, node: ast.expr) -> bool:
        """Whether a condition is `not dist.is_initialized()`, which no process of several meets."""
        asked = node.operand if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not) else None
        return isinstance(asked, ast.Call) and self._script.qualified(asked.func) in _ASKS_FOR_OTHERS


def _alternatives(found: Iterable[Origin]) -> Origin:
    """What a value is that is one of these."""
    kinds = set(found) - {"same"}
    known = kinds - {"unknown"}
    if len(known) > 1:
        return "depends"
    return next(iter(known or kinds), "same")


def _mixed(found: Iterable[Origin], keeps_unknown: bool = False) -> Origin:
    """What a value is that these are parts of."""
    kinds = set(found)
    if kinds & _RANKISH:
        return "depends"
    return "unknown" if keeps_unknown and "unknown" in kinds else "same"


def _imported(name: str) -> Origin:
    root = name.partition(".")[0]
    return "same" if root in sys.stdlib_module_names or root in _LIBRARIES else "unknown"


@lru_cache(maxsize=KEPT)
def _neighbours(script: Script) -> frozenset[str]:
    """The names that come from modules beside the file: `from .utils import is_main`."""
    relative = (node for node in script.find(ast.ImportFrom) if node.level)
    return frozenset(alias.asname or alias.name for node in relative for alias in node.names)


def _variable(script: Script, node: ast.expr) -> str:
    """The variable of the environment that an expression reads; "" for anything else."""
    if isinstance(node, ast.Subscript) and script.qualified(node.value) == "os.environ":
        named = node.slice
    elif isinstance(node, ast.Call) and script.qualified(node.func) in _READS and node.args:
        named = node.args[0]
    else:
        return ""
    return str(named.value) if isinstance(named, ast.Constant) else ""


def _is_number(node: ast.expr) -> bool:
    parts = node.elts if isinstance(node, (ast.Tuple, ast.List, ast.Set)) else [node]
    parts = [part.operand if isinstance(part, ast.UnaryOp) else part for part in parts]
    return all(isinstance(part, ast.Constant) and type(part.value) is int for part in parts)


def _functions(script: Script) -> Mapping[str, _Function]:
    """The functions and methods of a file whose names no other has."""
    found: dict[str, list[_Function]] = {}
    for node in script.nodes:
        if isinstance(node, _Function):
            found.setdefault(node.name, []).append(node)
    return {name: functions[0] for name, functions in found.items() if len(functions) == 1}


@lru_cache(maxsize=8 * KEPT)
def _returns(function: _Function) -> tuple[ast.Return, ...]:
    return tuple(node for node in walk(function) if isinstance(node, ast.Return))


def _stores(script: Script) -> Mapping[tuple[ast.AST | None, str], list[_Stored]]:
    """What is assigned to each name of a scope, and to attributes of any object by their name (scope None)."""
    found: dict[tuple[ast.AST | None, str], list[_Stored]] = {}
    shared = {(script.scope(node), name) for node in script.find(ast.Global) for name in node.names}
    for node in script.nodes:
        if not isinstance(node, (ast.Assign, ast.AnnAssign, ast.AugAssign, ast.NamedExpr)) or node.value is None:
            continue
        scope = script.scope(node)
        for target, value in _pairs(node):
            if isinstance(target, ast.Attribute):
                found.setdefault((None, target.attr), []).append(value)
            elif isinstance(target, ast.Name):
                owner = script.tree if (scope, target.id) in shared else scope
                found.setdefault((owner, target.id), []).append(value)
    return found


def _pairs(node: ast.Assign | ast.AnnAssign | ast.AugAssign | ast.NamedExpr) -> Iterator[tuple[ast.expr, _Stored]]:
    assert node.value is not None
    for target in node.targets if isinstance(node, ast.Assign) else [node.target]:
        if not isinstance(target, (ast.Tuple, ast.List)):
            yield target, (node.value, None)
        elif isinstance(node.value, (ast.Tuple, ast.List)) and len(node.value.elts) == len(target.elts):
            yield from ((one, (value, None)) for one, value in zip(target.elts, node.value.elts, strict=True))
        else:
            yield from ((one, (node.value, place)) for place, one in enumerate(target.elts))


@lru_cache(maxsize=KEPT)
def _options(script: Script) -> Mapping[str, str]:
    """The attributes that the command line's options become, each with the option."""
    found: dict[str, str] = {}
    for call in script.find(ast.Call):
        if isinstance(call.func, ast.Attribute) and call.func.attr == "add_argument" and call.args:
            words = [str(word.value) for word in call.args if isinstance(word, ast.Constant)]
            long = next((word for word in words if word.startswith("--")), words[0] if words else "")
            named = next((word.value for word in call.keywords if word.arg == "dest"), None)
            name = str(named.value) if isinstance(named, ast.Constant) else long.lstrip("-").replace("-", "_")
            found[name] = long
    return found


def _default(function: _Function, name: str) -> ast.expr | None:
    positional = [*function.args.posonlyargs, *function.args.args]
    with_default = positional[len(positional) - len(function.args.defaults) :]
    pairs = [*zip(with_default, function.args.defaults, strict=True)]
    pairs += [
        (one, value) for one, value in zip(function.args.kwonlyargs, function.args.kw_defaults, strict=True) if value
    ]
    return next((value for argument, value in pairs if argument.arg == name), None)


def _last(func: ast.expr) -> str:
    return func.attr if isinstance(func, ast.Attribute) else getattr(func, "id", "")
