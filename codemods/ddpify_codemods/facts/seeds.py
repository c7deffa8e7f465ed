"""Whether something that differs between processes, such as the time, becomes the seed of a generator."""

from __future__ import annotations

import ast
from functools import lru_cache

from .bindings import attribute_bindings
from .origins import sources
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
