"""Whether a program says that it computes on a GPU: asking whether there is one is not that, nor is `"cpu"`."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable

from .devices import is_gpu_string
from .origins import assigned, origins_beyond, sources
from .script import Script

_CHOOSES = frozenset({"torch.cuda.set_device", "torch.cuda.device"})
_GPU = re.compile(r"(cuda|mps|xpu|xla)(:\d+)?")


def names_gpu(scripts: Iterable[Script]) -> bool:
    """Whether a program names a GPU to compute on: by its name, `torch.device`, `.cuda()` or `.to(…device…)`."""
    found = ((script, node) for script in scripts for node in script.nodes if _names_gpu(script, node))
    return any(not _never_runs(script, node) for script, node in found)


def _names_gpu(script: Script, node: ast.AST) -> bool:
    if is_gpu_string(node) or (isinstance(node, ast.Constant) and _is_text_of_gpu(node.value)):
        return not _is_beside(script, node)
    if isinstance(node, ast.Attribute):  # torch.nn.Module.cuda, torch.cuda.FloatTensor
        name = script.qualified(node)
        is_move = name.startswith("torch.") and name.endswith(".cuda") and name != "torch.cuda"
        return is_move or (name.startswith("torch.cuda.") and name.endswith("Tensor"))
    if not isinstance(node, ast.Call):
        return False
    if script.qualified(node.func) == "torch.device":
        given = node.args[:1]
    elif isinstance(node.func, ast.Attribute) and node.func.attr == "to":
        words = [word.value for word in node.keywords]
        given = [each for each in (*node.args, *words) if "device" in ast.unparse(each).lower()]
    else:
        chosen = script.qualified(node.func) in _CHOOSES and bool(node.args)
        return chosen or (isinstance(node.func, ast.Attribute) and node.func.attr == "cuda")
    return any(not _follows(script, each) and not is_cpu(script, each) for each in given)


def _is_text_of_gpu(value: object) -> bool:
    return isinstance(value, str) and (_GPU.fullmatch(value) is not None or value.startswith("torch.cuda."))


def _is_beside(script: Script, node: ast.AST) -> bool:
    """Whether a device's name is only compared with, or is where a file is loaded to."""
    around = [node, *script.ancestors(node)]
    return any(
        isinstance(each, ast.Compare) or (isinstance(each, ast.keyword) and each.arg == "map_location")
        for each in around[1 : around.index(script.statement(node))]
    )


def _follows(script: Script, node: ast.expr) -> bool:
    """Whether this is the device of something else: of what a layer is given, or of the parameters of a model."""
    if not isinstance(node, ast.Attribute) or node.attr != "device":
        return False
    owner = node.value
    if isinstance(owner, ast.Call):
        return ast.unparse(owner.func) == "next"
    scope = script.scope(node)
    is_layer = isinstance(scope, ast.FunctionDef) and scope.name == "forward"
    return is_layer and isinstance(owner, ast.Name) and owner.id != "self"


def is_cpu(script: Script, node: ast.expr) -> bool:
    """Whether an expression is the CPU wherever it comes from: `device` of `device = torch.device("cpu")`."""

    def named(each: ast.expr) -> list[ast.expr]:
        is_made = isinstance(each, ast.Call) and script.qualified(each.func) == "torch.device" and len(each.args) == 1
        return each.args if is_made else []  # type: ignore[attr-defined]

    ways = [each for each in origins_beyond(script, node, named) if not _never_runs(script, each)]
    ends = [each for each in ways if not sources(script, each) and not named(each)]
    return bool(ends) and all(isinstance(each, ast.Constant) and each.value == "cpu" for each in ends)


def _never_runs(script: Script, node: ast.AST) -> bool:
    """Whether something stands where a constant never leads: `if use_cuda:` where `use_cuda = False`."""
    inner = node
    for around in script.ancestors(node):
        if isinstance(around, ast.If | ast.IfExp) and inner is not around.test:
            taken = _constant(script, around.test)
            body = around.body if isinstance(around.body, list) else [around.body]
            if taken is not None and taken is not (inner in body):
                return True
        inner = around
    return False


def _constant(script: Script, test: ast.expr) -> bool | None:
    """What a condition always is: a name that is only ever given one constant; None where it may be either."""
    if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        inner = _constant(script, test.operand)
        return None if inner is None else not inner
    values = assigned(script, test) if isinstance(test, ast.Name) else [test]
    found = {bool(each.value) if isinstance(each, ast.Constant) else None for each in values}
    return found.pop() if len(found) == 1 else None
