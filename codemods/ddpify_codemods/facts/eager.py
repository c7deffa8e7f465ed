"""What things are in an eager DDP script: wrapped models, loaders, tensors made on the host, what is moved."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import lru_cache

from .called_modules import last_name
from .optimizers import optimizers
from .origins import origins, sources
from .reaching import reaching_origins
from .script import Script

WRAPPERS = frozenset(
    {
        "torch.nn.parallel.DistributedDataParallel",
        "torch.nn.parallel.distributed.DistributedDataParallel",
    }
)
_TYPE = re.compile(r"b?float|double|half|u?int|long|short|bool|complex|dtype")
_COPIES = frozenset({"detach", "contiguous", "clone"})
_FACTORIES = frozenset(
    f"torch.{name}"
    for name in (
        "arange",
        "as_tensor",
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
    """Whether an expression is a wrapped model, the model in it, or one that an optimizer trains."""
    inner = node.value if isinstance(node, ast.Attribute) and node.attr == "module" else node
    return is_wrapped(script, inner) or ast.unparse(node) in _model_names(script)


@lru_cache(maxsize=64)
def _model_names(script: Script) -> frozenset[str]:
    calls = (call for call in script.find(ast.Call) if is_wrapper_call(script, call))
    trained = (base.code for optimizer in optimizers(script) for base in optimizer.bases)
    return frozenset(ast.unparse(call.args[0]) for call in calls if call.args) | frozenset(trained)


def is_loader(script: Script, node: ast.expr) -> bool:
    """Whether an expression is a torch DataLoader."""
    return any(
        isinstance(origin, ast.Call)
        and script.qualified(origin.func) in ("torch.utils.data.DataLoader", "torch.utils.data.dataloader.DataLoader")
        for origin in origins(script, node)
    )


def is_move(node: ast.AST) -> bool:
    """Whether a node is `….to(device)` or `….cuda(…)`; a change of type or of layout is no move."""
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute):
        return False
    if node.func.attr == "cuda":
        return True
    given = [*node.args[:1], *(keyword.value for keyword in node.keywords if keyword.arg == "device")]
    return node.func.attr == "to" and bool(given) and not _is_type(given[0])


def _is_type(node: ast.expr) -> bool:
    """Whether an expression is a type of numbers, or the CPU by name."""
    if isinstance(node, ast.Constant):
        return node.value == "cpu"
    return isinstance(node, ast.Attribute) and bool(_TYPE.match(node.attr))


def is_made_on_host(script: Script, node: ast.AST) -> bool:
    """Whether a node makes a tensor in host memory: `torch.randn(20, 10)`, `torch.as_tensor(x).detach().clone()`."""
    while isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in _COPIES:
        node = node.func.value
    return (
        isinstance(node, ast.Call)
        and script.qualified(node.func) in _FACTORIES
        and not any(keyword.arg == "device" for keyword in node.keywords)
    )


def is_moved_before(script: Script, node: ast.expr, line: int, depth: int = 8) -> bool:
    """Whether a module is on its device when a line is reached: moved where it was made, or by a statement since.

    Args: the file; the module; a 1-based line of its function; how many names to follow.
    """
    if is_wrapper_call(script, node) or any(is_move(part) for part in _chain(node)):
        return True
    scope = script.scope(node)
    moved = (receiver for receiver in _receivers(script) if receiver.lineno < line and script.scope(receiver) is scope)
    if isinstance(node, (ast.Name, ast.Attribute)) and any(ast.unparse(each) == ast.unparse(node) for each in moved):
        return True
    if depth == 0:
        return False
    values = sources(script, node)
    here = [value for value in values if script.scope(value) is scope and value.lineno < line]
    elsewhere = [value for value in values if script.scope(value) is not scope]  # in an order that is not known
    if here:
        return any(is_moved_before(script, value, value.lineno, depth - 1) for value in here)
    return bool(elsewhere) and all(is_moved_before(script, value, value.lineno, depth - 1) for value in elsewhere)


def _chain(node: ast.expr) -> Iterator[ast.expr]:
    """The calls of `Net().cuda().train()`, the outermost first."""
    while isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        yield node
        node = node.func.value


def _receivers(script: Script) -> Iterator[ast.expr]:
    for call in script.find(ast.Call):
        if is_move(call) and isinstance(call.func, ast.Attribute):
            yield call.func.value


def cpu_devices(script: Script) -> dict[ast.expr, None]:
    """What a wrapped model is moved to, where that is the CPU: `device = torch.device("cpu")`."""
    found: dict[ast.expr, None] = {}
    for move in script.find(ast.Call):
        if not is_move(move) or len(move.args) != 1 or not isinstance(move.func, ast.Attribute):
            continue
        made = [each for each in origins(script, move.args[0]) if not isinstance(each, (ast.Name, ast.Attribute))]
        if is_model_moved(script, move) and made and all(_is_cpu(script, each) for each in made):
            found |= dict.fromkeys(made)
    return found


def _is_cpu(script: Script, node: ast.expr) -> bool:
    if isinstance(node, ast.Call) and script.qualified(node.func) == "torch.device" and len(node.args) == 1:
        return _is_cpu(script, node.args[0])
    return isinstance(node, ast.Constant) and node.value == "cpu"


def is_model_moved(script: Script, move: ast.Call) -> bool:
    """Whether `….to(…)` or `….cpu()` moves a model that is given to DistributedDataParallel, and not after that."""
    assert isinstance(move.func, ast.Attribute)
    wrappers = [call for call in script.find(ast.Call) if is_wrapper_call(script, call)]
    if ast.unparse(move.func.value) in _model_names(script):
        return not wrappers or not all(_is_after(script, move, wrapper) for wrapper in wrappers)
    return any(
        origin is move for wrapper in wrappers if wrapper.args for origin in reaching_origins(script, wrapper.args[0])
    )


def _is_after(script: Script, node: ast.Call, before: ast.Call) -> bool:
    """Whether a call stands below another in the same function, or in one that is called there below it only."""
    scope = script.scope(node)
    if scope is script.scope(before):
        return node.lineno > before.lineno
    calls = [call for call in script.find(ast.Call) if last_name(call.func) == getattr(scope, "name", "")]
    here = [call for call in calls if script.scope(call) is script.scope(before)]
    return bool(here) and here == calls and all(call.lineno > before.lineno for call in here)
