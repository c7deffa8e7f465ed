"""What a script that is distributed already does: its wrapped models, loaders, samplers, ranks and collectives."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache

from .bindings import attribute_bindings, bindings
from .script import Script

_WRAPPERS = frozenset(
    {
        "torch.nn.parallel.DistributedDataParallel",
        "torch.nn.parallel.distributed.DistributedDataParallel",
        "apex.parallel.DistributedDataParallel",
    }
)
_SAMPLERS = frozenset({"torch.utils.data.DistributedSampler", "torch.utils.data.distributed.DistributedSampler"})
_LOADERS = frozenset({"torch.utils.data.DataLoader", "torch.utils.data.dataloader.DataLoader"})
# Every rank of the group has to call these; send and recv are between two.
COLLECTIVES = frozenset(
    {"all_reduce", "reduce", "broadcast", "all_gather", "gather", "scatter", "reduce_scatter", "all_to_all", "barrier"}
    | {"all_gather_object", "broadcast_object_list", "gather_object", "scatter_object_list", "monitored_barrier"}
    | {"all_gather_into_tensor", "reduce_scatter_tensor", "all_to_all_single"}
)
_REDUCES = re.compile(r"reduce|gather|synchron|^sync|_sync", re.IGNORECASE)


@dataclass(frozen=True)
class LoaderCall:
    """A call of DataLoader.

    name: what its result is assigned to ("train_loader", "self.loader"), "" for none. keywords: its arguments.
    sampler: the call that makes its DistributedSampler; None if it has none that can be seen.
    """

    call: ast.Call
    name: str
    keywords: Mapping[str, ast.expr]
    sampler: ast.Call | None


@lru_cache(maxsize=64)
def wrap_calls(script: Script) -> tuple[ast.Call, ...]:
    """The calls of torch's DistributedDataParallel."""
    return tuple(call for call in script.find(ast.Call) if script.qualified(call.func) in _WRAPPERS and call.args)


@lru_cache(maxsize=64)
def wrapped_names(script: Script) -> frozenset[str]:
    """What the wrapped models are called."""
    if not wrap_calls(script):
        return frozenset()
    return frozenset(
        ast.unparse(target)
        for statement in script.find(ast.Assign)
        if any(call in wrap_calls(script) for call in ast.walk(statement.value))
        for target in statement.targets
    )


def sampler_calls(script: Script) -> Iterator[ast.Call]:
    """The calls of torch's DistributedSampler."""
    return (call for call in script.find(ast.Call) if script.qualified(call.func) in _SAMPLERS)


@lru_cache(maxsize=64)
def loaders(script: Script) -> tuple[LoaderCall, ...]:
    """The loaders that a script makes."""
    return tuple(_loader(script, call) for call in script.find(ast.Call) if script.qualified(call.func) in _LOADERS)


def _loader(script: Script, call: ast.Call) -> LoaderCall:
    keywords = {keyword.arg or "**": keyword.value for keyword in call.keywords}
    given = keywords.get("sampler")
    made = next(iter(values_of(script, given, _SAMPLERS)), None) if given is not None else None
    return LoaderCall(call, assigned_name(script, call), keywords, made)


def assigned_name(script: Script, call: ast.Call) -> str:
    """What a value is assigned to, if it is assigned as it is."""
    parent = script.parents[call]
    return ast.unparse(parent.targets[0]) if isinstance(parent, ast.Assign) else ""


def values_of(script: Script, node: ast.expr, functions: frozenset[str]) -> list[ast.Call]:
    """The calls of some functions that an expression, or what its name is bound to, contains."""
    values = [node]
    if isinstance(node, ast.Name):
        values += bindings(script, script.scope(node)).get(node.id, ())
        values += bindings(script, script.tree).get(node.id, ())
    elif isinstance(node, ast.Attribute):
        values += attribute_bindings(script).get(ast.unparse(node), ())
    calls = (part for value in values for part in ast.walk(value) if isinstance(part, ast.Call))
    return [call for call in calls if script.qualified(call.func) in functions]


@lru_cache(maxsize=64)
def training_loops(script: Script) -> tuple[ast.For | ast.While, ...]:
    """The innermost loops around each `.backward()`."""
    found: dict[ast.For | ast.While, None] = {}
    for call in backward_calls(script):
        loop = next((parent for parent in script.ancestors(call) if isinstance(parent, (ast.For, ast.While))), None)
        if loop is not None:
            found[loop] = None
    return tuple(found)


def backward_calls(script: Script, inside: ast.AST | None = None) -> list[ast.Call]:
    """The calls of `.backward()`, in the whole script or in one of its statements; in the order of the source."""
    nodes = script.find(ast.Call) if inside is None else ast.walk(inside)
    calls = [node for node in nodes if isinstance(node, ast.Call) and is_method(node, "backward")]
    return sorted(calls, key=lambda call: (call.lineno, call.col_offset))


def is_method(call: ast.Call, name: str) -> bool:
    """Whether a call is `….name(…)`."""
    return isinstance(call.func, ast.Attribute) and call.func.attr == name


def loops_over(script: Script, name: str) -> Iterator[ast.For]:
    """The loops that run over a value: where it has its name, and in the functions that it is given to."""
    if not name:
        return
    for loop in script.find(ast.For):
        if name in _sources(loop.iter):
            yield loop
    for call in script.find(ast.Call):
        function = _function(script, call)
        if function is None or function.args.vararg:
            continue
        names = [argument.arg for argument in function.args.args]
        names = names[1:] if names[:1] == ["self"] else names
        given = [*zip(names, call.args, strict=False), *((word.arg or "", word.value) for word in call.keywords)]
        for parameter, value in given:
            if ast.unparse(value) == name:
                yield from (loop for loop in loops_in(function) if parameter in _sources(loop.iter))


def loops_in(node: ast.AST) -> Iterator[ast.For]:
    """The `for` loops in a part of a script."""
    return (part for part in ast.walk(node) if isinstance(part, ast.For))


def _sources(node: ast.expr) -> set[str]:
    return {ast.unparse(part) for part in ast.walk(node) if isinstance(part, (ast.Name, ast.Attribute))}


def _function(script: Script, call: ast.Call) -> ast.FunctionDef | None:
    last = call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")
    found = [node for node in script.find(ast.FunctionDef) if node.name == last]
    return found[0] if len(found) == 1 else None


def feeds_training(script: Script, loader: LoaderCall) -> bool:
    """Whether a loop over this loader calls `.backward()`."""
    return any(backward_calls(script, loop) for loop in loops_over(script, loader.name))


def feeds_evaluation(script: Script, loader: LoaderCall) -> bool:
    """Whether a loop over this loader computes without gradients."""
    loops = list(loops_over(script, loader.name))
    return bool(loops) and all(not backward_calls(script, loop) and _is_evaluation(script, loop) for loop in loops)


def _is_evaluation(script: Script, loop: ast.For) -> bool:
    code = ("no_grad", "inference_mode", "set_grad_enabled(False)")
    scope = script.scope(loop)
    decorators = [] if isinstance(scope, ast.Module) else scope.decorator_list
    around = [ast.unparse(item.context_expr) for parent in script.ancestors(loop) for item in _with_items(parent)]
    inside = [ast.unparse(item.context_expr) for part in ast.walk(loop) for item in _with_items(part)]
    return any(word in text for word in code for text in [*around, *inside, *map(ast.unparse, decorators)])


def _with_items(node: ast.AST) -> list[ast.withitem]:
    return node.items if isinstance(node, ast.With) else []


@lru_cache(maxsize=64)
def reduces(script: Script) -> bool:
    """Whether numbers of several ranks may be brought together anywhere in a script, by torch or by a helper."""
    if "torchmetrics" in script.text or "xm.mesh_reduce" in script.text:
        return True
    names = {called(call) for call in script.find(ast.Call)} - {"ReduceLROnPlateau"}
    return any(_REDUCES.search(name) for name in names)


def called(call: ast.Call) -> str:
    """The last part of what is called: "all_reduce" for `dist.all_reduce(x)`."""
    return call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")


def is_collective(script: Script, call: ast.Call) -> bool:
    """Whether every rank has to make this call."""
    name = script.qualified(call.func)
    return name.startswith("torch.distributed.") and name.rpartition(".")[2] in COLLECTIVES


def makes_loss(script: Script, loop: ast.AST) -> list[ast.expr]:
    """The expressions in a loop that reach a `.backward()` through assignments."""
    calls = backward_calls(script, loop)
    reached = [call.func.value for call in calls if isinstance(call.func, ast.Attribute)]
    wanted = {name for value in reached for name in _sources(value)}
    statements = [node for node in ast.walk(loop) if isinstance(node, (ast.Assign, ast.AugAssign))]
    for statement in sorted(statements, key=lambda node: -node.lineno):
        targets = statement.targets if isinstance(statement, ast.Assign) else [statement.target]
        if wanted & {name for target in targets for name in _sources(target)}:
            reached.append(statement.value)
            wanted |= _sources(statement.value)
    return reached
