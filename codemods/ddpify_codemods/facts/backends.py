"""Which backends and devices a hand-written script names, for those who move it to others."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import lru_cache

from ..targets import TARGETS, Target
from .devices import ACCELERATOR, branches_of, indexed_string, is_index
from .distributed import is_rank
from .distribution import joins_process_group
from .origins import origins
from .places import device_place
from .script import KEPT, Script

_QUESTIONS = ("is_available", "device_count", "is_initialized", "manual_seed", "manual_seed_all")


def backends() -> frozenset[str]:
    """Every backend that a target knows."""
    return frozenset(name for each in TARGETS.values() for name in each.backends)


def joins(script: Script) -> Iterator[ast.Call]:
    """The calls of torch's init_process_group."""
    return (call for call in script.find(ast.Call) if joins_process_group(script, call))


def backend_of(call: ast.Call) -> ast.expr | None:
    """What a process group is told of its backend; None where torch takes the one of each device."""
    if call.args:
        return call.args[0]
    return next((word.value for word in call.keywords if word.arg == "backend"), None)


def backend_names(script: Script, given: ast.expr) -> list[ast.Constant]:
    """The strings that a backend may be: where it is written, assigned, handed over or an option's default."""
    found: dict[ast.Constant, None] = {}
    for origin in origins(script, given):
        if isinstance(origin, ast.Constant) and isinstance(origin.value, str):
            found[origin] = None
        elif isinstance(origin, ast.Attribute):
            found |= dict.fromkeys(_defaults(script, origin.attr))
    return list(found)


def _defaults(script: Script, name: str) -> Iterator[ast.Constant]:
    """The defaults of the options of the command line that are kept under a name."""
    for call in options(script, name):
        for word in call.keywords:
            if word.arg == "default" and isinstance(word.value, ast.Constant) and isinstance(word.value.value, str):
                yield word.value


def options(script: Script, name: str) -> Iterator[ast.Call]:
    """The calls of argparse's add_argument for an option that is kept under a name."""
    for call in script.find(ast.Call):
        if isinstance(call.func, ast.Attribute) and call.func.attr == "add_argument":
            words = [str(each.value) for each in call.args if isinstance(each, ast.Constant)]
            given = next((word.value for word in call.keywords if word.arg == "dest"), None)
            kept = [str(given.value)] if isinstance(given, ast.Constant) else words
            if name in (word.lstrip("-").replace("-", "_") for word in kept):
                yield call


def choice_of_target(script: Script, node: ast.AST) -> ast.IfExp | None:
    """The choice around a node that conversions for some target write: MPI where torch has it, else gloo."""
    around = (each for each in script.ancestors(node) if isinstance(each, ast.IfExp))
    return next((each for each in around if any(is_choice_of(target, each) for target in TARGETS.values())), None)


def is_choice_of(target: Target, node: ast.IfExp) -> bool:
    """Whether conversions for a target write this choice of a backend."""
    return bool(target.plain_backend) and ast.unparse(node) == ast.unparse(ast.parse(target.plain_backend))


def known_target(backend: str) -> Target | None:
    """The target of a backend."""
    return next((each for each in TARGETS.values() if backend in each.backends), None)


@lru_cache(maxsize=KEPT)
def decided(script: Script, target: Target) -> frozenset[ast.AST]:
    """What a target never runs, where it knows whether it has an accelerator."""
    dead = branches_of(answered(script), replace(target, module="")).dead
    own = [
        part
        for node in script.find(ast.If, ast.IfExp)
        if target.is_accelerator and _asks(script, node.test)
        for part in (node.orelse if isinstance(node.orelse, list) else [node.orelse])
    ]
    return dead | {inner for part in own for inner in ast.walk(part)}


def _asks(script: Script, test: ast.expr) -> bool:
    """Whether a condition asks for the devices of any target."""
    modules = {f"{each.module}.is_available" for each in TARGETS.values() if each.module}
    return isinstance(test, ast.Call) and script.qualified(test.func) in modules


@lru_cache(maxsize=KEPT)
def answered(script: Script) -> Script:
    """The script, in which a constant condition is what a conversion has made of a question for GPUs; it itself where
    it has none, so that all that is known of it stays known."""
    conditions = (ast.If, ast.IfExp, ast.While, ast.UnaryOp, ast.BoolOp, ast.Assign)
    constants = (each for each in script.find(ast.Constant) if isinstance(each.value, bool))
    if not any(isinstance(script.parents[each], conditions) for each in constants):
        return script
    return replace(script, in_converted=True)


def names_device(script: Script, node: ast.AST, target: Target) -> bool:
    """Whether a node puts something on the devices of an accelerator, in its words: `.cuda()`, "cuda:0"."""
    kind = target.device_type
    if isinstance(node, ast.Call):
        name = script.qualified(node.func)
        if isinstance(node.func, ast.Attribute) and node.func.attr == kind and not name.startswith("torch."):
            return True
        others = name.startswith(f"{target.module}.amp.") or name.rpartition(".")[2] in _QUESTIONS
        return name.startswith(f"{target.module}.") and not others
    if not isinstance(node, ast.expr):
        return False
    if indexed_string(node, kind):
        return True
    branches = branches_of(script, target)
    return isinstance(node, ast.Constant) and node.value == kind and bool(device_place(branches, node))


def spoken(scripts: Sequence[Script]) -> Target | None:
    """The target in whose words a program chooses its devices; None for one that stays on the CPU."""
    for target in TARGETS.values():
        if target.module and any(names_device(script, node, target) for script in scripts for node in script.nodes):
            return target
    cuda = next(each for each in TARGETS.values() if each.has_cuda_words)
    return cuda if any(moves_to_number(script) for script in scripts) else None


def moves_to_number(script: Script) -> bool:
    """Whether a script moves anything to a device by its number alone: `.to(rank)`."""
    return any(is_number(script, place) for call in script.find(ast.Call) for place in device_arguments(call))


def device_arguments(call: ast.Call) -> list[ast.expr]:
    """What stands in a call where a device is asked for: `.to(…)`, `device=…`."""
    found = [word.value for word in call.keywords if word.arg == "device"]
    if isinstance(call.func, ast.Attribute) and call.func.attr == "to":
        found += call.args[:1]
    return found


def is_number(script: Script, node: ast.expr) -> bool:
    """Whether an expression is the number of a GPU: a rank, an integer, the current device."""
    if is_index(node):
        return True
    if is_rank(script, node):
        return not any(_is_text(origin) for origin in origins(script, node))
    made = [each for each in origins(script, node) if not isinstance(each, (ast.Name, ast.Attribute))]
    return bool(made) and all(_is_current(script, each) for each in made)


def _is_text(node: ast.expr) -> bool:
    parts = (part.value for part in ast.walk(node) if isinstance(part, ast.Constant))
    return any(isinstance(part, str) and ACCELERATOR.match(part) for part in parts)


def _is_current(script: Script, node: ast.expr) -> bool:
    if isinstance(node, ast.Constant):
        return type(node.value) is int
    return isinstance(node, ast.Call) and script.qualified(node.func).endswith(".current_device")


def with_backend_of(scripts: Sequence[Script], target: Target) -> Target:
    """The target with the backend of its own that a program joins already."""
    for script in scripts:
        for call in joins(script):
            given = backend_of(call)
            for name in backend_names(script, given) if given is not None else ():
                if name.value in target.backends:
                    return target.with_backend(str(name.value))
    return target
