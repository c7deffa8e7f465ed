"""Losses that take the parameters of a model themselves: `sum(p.abs().sum() for p in model.parameters())`."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator

from ..script import Script
from ..without_gradient import runs_without_gradient

_PARAMETERS = frozenset({"parameters", "named_parameters"})
# Of a parameter, what has no gradient, or is no number.
_APART = frozenset(
    {"data", "grad", "requires_grad", "requires_grad_", "numel", "nelement", "size", "shape", "dim", "ndim", "detach"}
    | {"device", "dtype", "is_cuda", "is_leaf", "register_hook", "element_size"}
)
_COMPUTES = frozenset({"norm", "vector_norm", "abs", "pow", "sum", "square", "dist", "mse_loss", "l1_loss"})
# What is read of a tensor, and carries no gradient on.
_READ = frozenset({"item", "tolist", "detach", "data", "numpy"})
_READS = frozenset({"float", "int", "bool", "str", "print"})
_OF_TENSORS = frozenset({"sum", "max", "min", "abs", "list", "tuple"})


def penalizes(scripts: Iterable[Script]) -> bool:
    """Whether a program computes with parameters that it takes out of a network one by one, and with their gradients.

    torch's own optimizers and clip_grad_norm_ take them, too, and are no penalty.
    """
    return any(
        any(_computes(script, *each) for each in _over_parameters(script))
        or any(not _is_only_read(script, each) for each in _computes_at_once(script))
        for script in scripts
    )


def _over_parameters(script: Script) -> Iterator[tuple[ast.expr, list[ast.AST]]]:
    """What takes the parameters one by one, and what is done with each."""
    for loop in script.find(ast.For):
        if _is_parameters(loop.iter):
            yield loop.target, [*loop.body]
    several = [(made.generators[0], made.elt) for made in script.find(ast.GeneratorExp, ast.ListComp, ast.SetComp)]
    several += [(made.generators[0], made.value) for made in script.find(ast.DictComp)]
    for first, done in several:
        if _is_parameters(first.iter):
            yield first.target, [done]


def _computes_at_once(script: Script) -> Iterator[ast.Call]:
    """What takes all parameters: `map(torch.norm, model.parameters())`, `parameters_to_vector(model.parameters())`."""
    for call in script.find(ast.Call):
        if not call.args or not _is_parameters(call.args[-1]):
            continue
        name = script.qualified(call.func)
        function = call.args[0] if name == "map" and len(call.args) == 2 else None
        if isinstance(function, ast.Lambda):
            names = {each.arg for each in function.args.args}
            inside = (each for each in ast.walk(function.body) if isinstance(each, ast.Name) and each.id in names)
            computes = any(_is_computed_with(script, each) for each in inside)
        else:
            computes = function is not None and script.qualified(function).rpartition(".")[2] in _COMPUTES
        if computes or name.endswith(".parameters_to_vector"):
            yield call


def _is_parameters(node: ast.expr) -> bool:
    return any(isinstance(each, ast.Attribute) and each.attr in _PARAMETERS for each in ast.walk(node))


def _computes(script: Script, target: ast.expr, done: list[ast.AST]) -> bool:
    last = target.elts[-1] if isinstance(target, ast.Tuple) else target  # of a name and a parameter
    names = {each.id for each in ast.walk(last) if isinstance(each, ast.Name)}
    uses = [each for part in done for each in ast.walk(part) if isinstance(each, ast.Name) and each.id in names]
    return any(_is_computed_with(script, use) and not _is_only_read(script, use) for use in uses)


def _is_computed_with(script: Script, use: ast.Name) -> bool:
    """Whether a parameter is a number of a formula: `p ** 2`, `p.abs()`, `torch.norm(p)`."""
    parent = script.parents[use]
    if isinstance(parent, ast.Attribute):
        return parent.attr not in _APART and isinstance(script.parents[parent], ast.Call)
    last = ast.unparse(parent.func).rpartition(".")[2] if isinstance(parent, ast.Call) else ""
    return isinstance(parent, ast.BinOp) or last in _COMPUTES


def _is_only_read(script: Script, use: ast.expr) -> bool:
    """Whether what is computed with a parameter is a number in the end, or shown, and no part of a loss:
    `p.norm().item()`, `print(p.abs().max())`."""
    child: ast.AST = use
    for parent in script.ancestors(use):
        if isinstance(parent, ast.Attribute) and parent.attr in _READ:
            return True
        if isinstance(parent, ast.FormattedValue | ast.Compare):
            return True
        if isinstance(parent, ast.Call) and child is not parent.func:
            name = script.qualified(parent.func)
            if name in _READS:
                return True
            if name not in _OF_TENSORS and not name.startswith("torch."):
                break
        elif isinstance(parent, ast.stmt | ast.Lambda | ast.NamedExpr):
            break
        child = parent
    return runs_without_gradient(script, use)
