"""Statements that do nothing but compute: they ask no other rank for anything, write no files, and change nothing but
variables."""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterator, Sequence
from functools import lru_cache

from .called_modules import last_name
from .effects import effects, reads
from .script import KEPT, Script

_OTHERS = (
    ast.Assert,
    ast.AsyncFor,
    ast.AsyncWith,
    ast.Await,
    ast.ClassDef,
    ast.Delete,
    ast.FunctionDef,
    ast.AsyncFunctionDef,
    ast.Global,
    ast.Import,
    ast.ImportFrom,
    ast.Nonlocal,
    ast.Raise,
    ast.Yield,
    ast.YieldFrom,
)
# Methods that change a model, train it, or tell something to others, whatever the object is called.
_LOUD = frozenset(
    {"backward", "step", "zero_grad", "train", "eval", "apply", "load_state_dict", "requires_grad_", "set_epoch"}
    | {"add_scalar", "add_scalars", "add_image", "add_figure", "add_text", "add_histogram", "log", "dump", "save"}
    | {"manual_seed", "seed", "set_rng_state", "setattr", "delattr", "exec", "exit", "input", "open", "next", "write"}
    | {"register_buffer", "register_parameter", "register_forward_hook", "register_hook", "add_param_group", "load"}
)
_SEEDS = frozenset({"manual_seed", "seed", "set_rng_state", "setstate", "set_state"})
_NUMBERS = ("torch.", "numpy.", "math.", "random.")
_LOUD_LIBRARIES = (
    *("torch.distributed", "torch.utils", "torch.jit", "torch.nn.init", "torch.nn.utils", "torch.optim", "torch.set_"),
    *("torch.use_", "torch.manual", "torch.random", "os.", "sys.", "shutil.", "subprocess.", "wandb."),
)
_CHANGING = frozenset(
    {"append", "extend", "insert", "add", "update", "pop", "popitem", "remove", "discard", "clear", "sort", "reverse"}
    | {"setdefault", "appendleft", "extendleft", "popleft"}
)
_CHANGING_ARGUMENTS = frozenset(
    {"shuffle", "heappush", "heappop", "insort", "insort_left", "insort_right", "put", "copyto"}
)
_QUIET_BLOCKS = ("torch.no_grad", "torch.inference_mode", "torch.autocast", "torch.cuda.amp", "torch.amp")


def is_quiet(scripts: Sequence[Script], script: Script, node: ast.AST, trains: Collection[ast.Call]) -> bool:
    """Whether a statement, and the functions of the program that it may call, only compute.

    Args:
        scripts: the program. script, node: a statement or an expression of a file. trains: the calls of models that
            are trained.
    """
    return _is_quiet(tuple(scripts), script, node, trains, set())


def _is_quiet(
    scripts: tuple[Script, ...], script: Script, node: ast.AST, trains: Collection[ast.Call], seen: set[ast.AST]
) -> bool:
    if node in seen:
        return True
    seen.add(node)
    body = node.body if isinstance(node, ast.FunctionDef) else [node]
    parts = [part for each in body for part in ast.walk(each)]
    if any(isinstance(part, _OTHERS) for part in parts):
        return False
    if any(isinstance(part, ast.Attribute) and not isinstance(part.ctx, ast.Load) for part in parts):
        return False
    if not all(_computes_only(script, part) for part in parts if isinstance(part, ast.With)):
        return False
    if isinstance(node, ast.FunctionDef) and _changes_others(node):
        return False
    calls = [part for part in parts if isinstance(part, ast.Call)]
    if any(_is_loud(script, call) or call in trains for call in calls):
        return False
    known = _functions(scripts)
    inner = [found for call in calls for found in known.get(last_name(call.func), ())]
    return all(_is_quiet(scripts, there, each, trains, seen) for there, each in inner)


def changed_names(node: ast.AST) -> Iterator[tuple[ast.Name, bool]]:
    """The variables that a statement sets or changes, and whether it changes what they hold: `seen.append(x)`."""
    for part in ast.walk(node):
        if isinstance(part, ast.Name) and not isinstance(part.ctx, ast.Load):
            yield part, False
        changed: ast.AST | None = None
        if isinstance(part, ast.Subscript) and not isinstance(part.ctx, ast.Load):
            changed = part.value
        elif isinstance(part, ast.Call) and last_name(part.func) in _CHANGING_ARGUMENTS and part.args:
            changed = part.args[0]
        elif isinstance(part, ast.Call) and isinstance(part.func, ast.Attribute):
            in_place = part.func.attr.endswith("_") and not part.func.attr.endswith("__")
            changed = part.func.value if part.func.attr in _CHANGING or in_place else None
        while isinstance(changed, ast.Subscript | ast.Attribute | ast.Call):
            changed = changed.func if isinstance(changed, ast.Call) else changed.value
        if isinstance(changed, ast.Name):
            yield changed, True


def _changes_others(function: ast.FunctionDef) -> bool:
    """Whether a function changes what it is given, or what stands outside of it."""
    given = {each.arg for each in ast.walk(function.args) if isinstance(each, ast.arg)}
    changed = [*changed_names(function)]
    own = {name.id for name, in_place in changed if not in_place} - given
    return any(in_place and name.id not in own for name, in_place in changed)


def _computes_only(script: Script, node: ast.With) -> bool:
    calls = [item.context_expr for item in node.items]
    names = [script.qualified(each.func if isinstance(each, ast.Call) else each) for each in calls]
    return all(name.startswith(_QUIET_BLOCKS) for name in names)


def _is_loud(script: Script, call: ast.Call) -> bool:
    name = script.qualified(call.func)
    if name.startswith(_NUMBERS) and not name.startswith(_LOUD_LIBRARIES):
        into = any(word.arg == "out" for word in call.keywords)
        return into or last_name(call.func) in _SEEDS or call in effects(script) or reads(script, call)
    changes_owner = isinstance(call.func, ast.Attribute) and call.func.attr in _CHANGING and _is_kept(call.func.value)
    return (
        changes_owner
        or any(word.arg == "out" for word in call.keywords)
        or (last_name(call.func) in _LOUD and not _is_logarithm(call))
        or name.startswith(_LOUD_LIBRARIES)
        or call in effects(script)
        or reads(script, call)
    )


def _is_logarithm(call: ast.Call) -> bool:
    """Whether it is `x.log()` of a tensor, and not `writer.log(x)`."""
    return last_name(call.func) == "log" and not call.args and not call.keywords


def _is_kept(node: ast.expr) -> bool:
    """Whether something outlasts the function: an attribute of an object."""
    while isinstance(node, ast.Subscript):
        node = node.value
    return isinstance(node, ast.Attribute)


@lru_cache(maxsize=KEPT)
def _functions(scripts: tuple[Script, ...]) -> dict[str, list[tuple[Script, ast.FunctionDef]]]:
    """The functions of a program by their names; what makes an object, by that of its class."""
    found: dict[str, list[tuple[Script, ast.FunctionDef]]] = {}
    for script in scripts:
        for node in script.find(ast.FunctionDef):
            owner = script.parents[node]
            name = owner.name if node.name == "__init__" and isinstance(owner, ast.ClassDef) else node.name
            found.setdefault(name, []).append((script, node))
    return found
