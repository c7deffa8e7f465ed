"""Whether something that differs between processes, such as the time, becomes the seed of a generator."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from itertools import takewhile

from .bindings import attribute_bindings
from .called_modules import last_name
from .header import main_guard
from .origins import origins, sources
from .script import KEPT, Script

_SEEDS = frozenset(
    {"torch.manual_seed", "torch.cuda.manual_seed", "torch.cuda.manual_seed_all", "torch.random.manual_seed"}
    | {"random.seed", "random.Random", "numpy.random.seed", "numpy.random.default_rng", "numpy.random.RandomState"}
    | {"pytorch_lightning.seed_everything", "transformers.set_seed"}
)
_SEEDING_METHODS = frozenset({"seed", "manual_seed"})
_SEED_NAMES = frozenset({"seed", "random_state", "random_seed"})
_ENTROPY = frozenset(
    {"time.time", "time.time_ns", "time.perf_counter", "time.perf_counter_ns", "time.monotonic", "time.process_time"}
    | {"datetime.datetime.now", "datetime.datetime.utcnow", "datetime.datetime.today", "time.localtime", "time.gmtime"}
    | {"os.getpid", "hash", "id"}
)

_CLOCKS = (_ENTROPY - {"hash", "id"}) | {"os.urandom"}
# What begins the names of what gives random numbers, or the seed of a worker.
_DRAWN = ("torch.", "random.", "numpy.random.", "secrets.", "uuid.")
_STATE = "numpy.random.get_state"  # its first word is 2**31 in each worker, which torch seeds by an array of numbers


def makes_a_seed(script: Script, call: ast.Call) -> bool:
    """Whether a call reads a clock, a process id or a hash, and a generator is seeded with what is made of it."""
    name = script.qualified(call.func)
    if name not in _ENTROPY or name in script.defined:
        return False
    return call in _makers_of_seeds(script) or _is_called_seed(script, call)


@lru_cache(maxsize=KEPT)
def _makers_of_seeds(script: Script) -> frozenset[ast.AST]:
    """Everything that a value which seeds a generator was made of, through names and functions."""
    values: list[ast.expr] = []
    for call in script.find(ast.Call):
        method = call.func.attr if isinstance(call.func, ast.Attribute) else ""
        if script.qualified(call.func) in _SEEDS or method in _SEEDING_METHODS:
            values += call.args
        values += [keyword.value for keyword in call.keywords if keyword.arg in _SEED_NAMES]
    found: set[ast.AST] = set()
    while values:
        for node in ast.walk(values.pop()):
            if node not in found:
                found.add(node)
                values += _made_of(script, node)
    return frozenset(found)


def _made_of(script: Script, node: ast.AST) -> list[ast.expr]:
    if not isinstance(node, (ast.Name, ast.Attribute, ast.Call)):
        return []
    # `settings.number` is what its class calls `self.number`
    named = attribute_bindings(script).get(f"self.{node.attr}", []) if isinstance(node, ast.Attribute) else []
    return sources(script, node) + named


def _is_called_seed(script: Script, call: ast.Call) -> bool:
    """Whether a value goes into a seeding call, or under a name that says so."""
    for parent in script.ancestors(call):
        if isinstance(parent, ast.Call) and script.qualified(parent.func) in _SEEDS:
            return True
        if isinstance(parent, ast.keyword) and parent.arg == "seed":
            return True
        if isinstance(parent, ast.Call) and _names_an_option(parent):
            return True
        if isinstance(parent, ast.Assign):
            return any("seed" in ast.unparse(target).lower() for target in parent.targets)
        if isinstance(parent, ast.stmt):
            return False
    return False


def _names_an_option(call: ast.Call) -> bool:
    is_option = isinstance(call.func, ast.Attribute) and call.func.attr == "add_argument"
    return is_option and bool(call.args) and "seed" in ast.unparse(call.args[0]).lower()


def seeds_torch(script: Script, call: ast.Call) -> bool:
    """Whether a call seeds torch: `torch.manual_seed(1)`."""
    return script.qualified(call.func) in ("torch.manual_seed", "torch.random.manual_seed")


def is_surely_seeded(files: Sequence[Script], seeds: Iterable[tuple[Script, ast.Call]]) -> bool:
    """Whether one of the calls that seed is made in any case: below no condition, nor all calls of its function."""
    return any(_is_made(files, script, call, frozenset()) for script, call in seeds)


def _is_made(files: Sequence[Script], script: Script, call: ast.Call, seen: frozenset[ast.AST]) -> bool:
    scope, guard = script.scope(call), main_guard(script.tree)
    above = script.ancestors(call)
    within = takewhile(lambda node: node is not scope, above)
    if any(isinstance(node, (ast.If, ast.IfExp, ast.Try)) and node is not guard for node in within) or scope in seen:
        return False
    if isinstance(scope, ast.Module):
        return True
    calls = [(each, other) for each in files for other in each.find(ast.Call) if last_name(other.func) == scope.name]
    return not calls or any(_is_made(files, each, other, seen | {scope}) for each, other in calls)


def seeds_worker(script: Script, call: ast.Call) -> bool:
    """Whether the call runs once in each worker of a loader: in its `worker_init_fn`."""
    given = _worker_functions(script)
    if not given:
        return False
    scope = script.scope(call)
    named = {value.id for value in given if isinstance(value, ast.Name)}
    in_lambda = any(parent in given for parent in script.ancestors(call))
    return in_lambda or (not isinstance(scope, ast.Module) and scope.name in named)


@lru_cache(maxsize=KEPT)
def _worker_functions(script: Script) -> tuple[ast.expr, ...]:
    return tuple(keyword.value for keyword in script.find(ast.keyword) if keyword.arg == "worker_init_fn")


def fixed_worker_seeds(script: Script) -> Iterator[ast.Call]:
    """The calls that seed the workers of a loader with what every rank has, and not with a number of torch's (S2)."""
    for call in script.find(ast.Call):
        if call.args and _seeds(script, call) and seeds_worker(script, call):
            named = [node for node in ast.walk(call.args[0]) if isinstance(node, ast.Name | ast.Call)]
            made = [call.args[0], *(each for name in named for each in origins(script, name))]
            parts = [node for each in made for node in ast.walk(each)]
            if not any(_differs_by_rank(script, node, call, parts) for node in parts):
                yield call


def _seeds(script: Script, call: ast.Call) -> bool:
    """Whether a call seeds a generator with its first argument: by itself, or as a function of the file does."""
    if script.qualified(call.func) in _SEEDS:
        return True
    name = call.func.id if isinstance(call.func, ast.Name) else ""
    for function in script.tree.body if name else ():
        if isinstance(function, ast.FunctionDef) and function.name == name and function.args.args:
            inner = (each for each in ast.walk(function) if isinstance(each, ast.Call) and each.args)
            given = [each.args[0] for each in inner if script.qualified(each.func) in _SEEDS]
            return any(isinstance(each, ast.Name) and each.id == function.args.args[0].arg for each in given)
    return False


def _differs_by_rank(script: Script, node: ast.AST, seeding: ast.Call, parts: Sequence[ast.AST]) -> bool:
    """Whether a part of what a worker is seeded with is another one in the workers of each rank: drawn there, where
    torch has seeded it, or a clock's."""
    if not isinstance(node, ast.Call):
        return False
    name = script.qualified(node.func)
    if last_name(node.func) == "get_worker_info":  # its `id` is that of the worker on each rank
        read = [each.value for each in parts if isinstance(each, ast.Attribute) and each.attr == "seed"]
        return any(node in origins(script, owner) for owner in read)
    scope = script.scope(node)
    called = {last_name(each.func) for each in parts if isinstance(each, ast.Call)}
    in_worker = scope is script.scope(seeding) or getattr(scope, "name", "") in called
    return name in _CLOCKS or (in_worker and name.startswith(_DRAWN) and name != _STATE)
