"""What things are in an eager DDP script: wrapped models, loaders, tensors made on the host, what is moved."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import lru_cache

from .origins import origins
from .script import Script

WRAPPERS = frozenset(
    {
        "torch.nn.parallel.DistributedDataParallel",
        "torch.nn.parallel.distributed.DistributedDataParallel",
    }
)
_MOVES = {"to", "cuda"}
_FACTORIES = frozenset(
    f"torch.{name}"
    for name in (
        "arange",
        "empty",
        "full",
        "linspace",
        "ones",
        "rand",
        "randint",
        "randn",
        "randperm",
        "tensor",
        "zeros",
    )
)


def is_wrapper_call(script: Script, node: ast.AST) -> bool:
    """Whether a node is `DistributedDataParallel(…)`."""
    return isinstance(node, ast.Call) and script.qualified(node.func) in WRAPPERS


def is_wrapped(script: Script, node: ast.expr) -> bool:
    """Whether an expression is a model inside DistributedDataParallel."""
    return any(is_wrapper_call(script, origin) for origin in origins(script, node))


def is_module(script: Script, node: ast.expr) -> bool:
    """Whether an expression is a wrapped model, or the model in it."""
    inner = node.value if isinstance(node, ast.Attribute) and node.attr == "module" else node
    return is_wrapped(script, inner) or ast.unparse(node) in _wrapped_names(script)


@lru_cache(maxsize=64)
def _wrapped_names(script: Script) -> frozenset[str]:
    calls = (call for call in script.find(ast.Call) if is_wrapper_call(script, call))
    return frozenset(ast.unparse(call.args[0]) for call in calls if call.args)


def is_wrapped_later(script: Script, move: ast.Call) -> bool:
    """Whether `….to(…)` moves a model that is given to DistributedDataParallel."""
    assert isinstance(move.func, ast.Attribute)
    if ast.unparse(move.func.value) in _wrapped_names(script):
        return True
    return any(
        origin is move
        for wrapper in script.find(ast.Call)
        if is_wrapper_call(script, wrapper) and wrapper.args
        for origin in origins(script, wrapper.args[0])
    )


def is_loader(script: Script, node: ast.expr) -> bool:
    """Whether an expression is a torch DataLoader."""
    return any(
        isinstance(origin, ast.Call)
        and script.qualified(origin.func) in ("torch.utils.data.DataLoader", "torch.utils.data.dataloader.DataLoader")
        for origin in origins(script, node)
    )


def is_move(node: ast.AST) -> bool:
    """Whether a node is `….to(…)` or `….cuda(…)`."""
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in _MOVES


def is_made_on_host(script: Script, node: ast.AST) -> bool:
    """Whether a node makes a tensor in host memory: `torch.randn(20, 10)`."""
    return (
        isinstance(node, ast.Call)
        and script.qualified(node.func) in _FACTORIES
        and not any(keyword.arg == "device" for keyword in node.keywords)
    )


def is_moved_before(script: Script, node: ast.expr, line: int) -> bool:
    """Whether a module was moved to a device where it is made, or by a statement above a line of its function."""
    for origin in origins(script, node):
        if is_wrapper_call(script, origin) or any(is_move(part) for part in _chain(origin)):
            return True
        if isinstance(origin, (ast.Name, ast.Attribute)) and any(
            ast.unparse(receiver) == ast.unparse(origin)
            and script.scope(receiver) is script.scope(origin)
            and (receiver.lineno < line or script.scope(origin) is not script.scope(node))
            for receiver in _receivers(script)
        ):
            return True
    return False


def _chain(node: ast.expr) -> Iterator[ast.expr]:
    """The calls of `Net().cuda().train()`, the outermost first."""
    while isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        yield node
        node = node.func.value


def _receivers(script: Script) -> Iterator[ast.expr]:
    for call in script.find(ast.Call):
        if is_move(call) and isinstance(call.func, ast.Attribute):
            yield call.func.value
