"""Losses that are means over targets of which some count more, or not at all: what a batch has of these (L3).

torch divides the sum of `weight[target] * loss` by the sum of `weight[target]`, without the targets that are
`ignore_index` (torch.nn.functional.cross_entropy), and what `label_smoothing` adds by the same. The ranks have other
sums: each has to divide by that of all.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from ..origins import sources
from ..script import Script
from ..tree import walk

# By place, behind what the functions compute with: the names of what a loss is made with.
_OPTIONS = ("weight", "size_average", "ignore_index", "reduce", "reduction")
_UNKNOWN = frozenset({"size_average", "reduce", None})
_VIEWS = frozenset(
    {"view", "reshape", "flatten", "contiguous", "squeeze", "long", "t", "transpose", "permute", "to", "cuda"}
)

Origin = tuple[Script, ast.expr]


@dataclass(frozen=True)
class Weighed:
    """A call of a loss that has to be divided by what all ranks have: where, what that is, and the loss's making.

    trains: within a model, the code for whether it trains; only then do all ranks call it together. keeps_mean: whether
    the loss stays a mean over what the rank has, and weighs as much as that is beside the mean over ranks. asks: the
    code for whether it is this loss, where it is one of several. also: what else makes losses that
    are called there, and counted so.
    """

    script: Script
    node: ast.Call
    count: str
    made: ast.Call
    trains: str = ""
    keeps_mean: bool = False
    asks: str = ""
    also: frozenset[ast.Call] = frozenset()

    @property
    def makes(self) -> tuple[ast.Call, ...]:
        """All that makes losses which are divided there."""
        return (self.made, *sorted(self.also, key=lambda each: (each.lineno, each.col_offset)))


def weighed(
    script: Script, node: ast.Call, made: ast.Call, ignores: bool, origin: Callable[[ast.expr], Origin]
) -> Weighed | None:
    """How a call of a loss is weighed; None where that cannot be written down in its place.

    Args:
        script, node: the call. made: what makes the loss, the same call for a function. ignores: whether targets that
            torch leaves out without being told may occur. origin: how an argument of what makes the loss is written
            where it comes from, and in which file.
    """
    is_function = made is node
    options = _options(made, 2 if is_function else 0)
    target = target_of(node)
    if options is None or target is None or not is_repeatable(target) or not runs_always(script, node):
        return None
    weight, ignored = options.get("weight"), options.get("ignore_index")
    if weight is not None and not _is_tensor(*origin(weight)):
        return None
    if weight is None and ignored is None and not _is_flat(target):
        return None  # targets may be probabilities, of which torch leaves none out
    left_out = ignores or ignored is not None
    loss = loss_called(node)
    named = ast.unparse(loss)
    if is_function:
        weights = ast.unparse(weight) if weight is not None else ""
        index = ast.unparse(ignored) if ignored is not None else "-100"
        simple = weight is None or isinstance(weight, ast.Name | ast.Attribute)
        if not simple or not (ignored is None or _is_index(ignored)):
            return None
    elif isinstance(loss, ast.Name | ast.Attribute):
        weights, index = f"{named}.weight" if weight is not None else "", f"{named}.ignore_index"
    else:
        return None
    goal = ast.unparse(target)
    kept = f"{goal}[{goal} != {index}]" if left_out else goal
    count = f"{weights}[{kept}].sum()" if weights else f"({goal} != {index}).sum()"
    return Weighed(script, node, count, made)


def loss_called(node: ast.Call) -> ast.expr:
    """The loss that a call calls, `criterion(out, y)`, by its forward, too: `criterion.forward(out, y)`."""
    by_forward = isinstance(node.func, ast.Attribute) and node.func.attr == "forward"
    return node.func.value if by_forward else node.func  # type: ignore[attr-defined]


def _options(made: ast.Call, before: int) -> dict[str, ast.expr] | None:
    """What a loss is made with; None where that is not the mean, or not seen."""
    if any(isinstance(each, ast.Starred) for each in made.args):
        return None
    found = dict(zip(_OPTIONS, made.args[before:], strict=False))
    found |= {str(word.arg): word.value for word in made.keywords}
    if {word.arg for word in made.keywords} & _UNKNOWN or len(made.args) > before + 1:
        return None
    reduction = found.pop("reduction", None)
    if reduction is not None and not (isinstance(reduction, ast.Constant) and reduction.value == "mean"):
        return None
    return {name: value for name, value in found.items() if not _is_none(value)}


def _is_flat(node: ast.expr) -> bool:
    """Whether a tensor has one dimension, as classes have and probabilities of classes have not: `y.view(-1)`."""
    method = node.func if isinstance(node, ast.Call) else None
    if not isinstance(method, ast.Attribute):
        return False
    given = [ast.unparse(each) for each in node.args]  # type: ignore[attr-defined]
    return (method.attr in ("view", "reshape") and given == ["-1"]) or (method.attr == "flatten" and not given)


def _is_none(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and node.value is None


def target_of(node: ast.Call) -> ast.expr | None:
    """What a call of a loss compares with."""
    named = [word.value for word in node.keywords if word.arg == "target"]
    by_place = [] if any(isinstance(each, ast.Starred) for each in node.args) else node.args[1:2]
    return next(iter([*named, *by_place]), None)


def is_repeatable(node: ast.expr) -> bool:
    """Whether an expression may be written twice: a variable, a part of it, or another view of it."""
    if isinstance(node, ast.Name | ast.Constant):
        return True
    if isinstance(node, ast.Attribute):
        return is_repeatable(node.value)
    if isinstance(node, ast.UnaryOp):
        return isinstance(node.op, ast.USub) and is_repeatable(node.operand)
    if isinstance(node, ast.Subscript):
        return is_repeatable(node.value) and is_repeatable(node.slice)
    if isinstance(node, ast.Slice):
        return all(each is None or is_repeatable(each) for each in (node.lower, node.upper, node.step))
    if isinstance(node, ast.Tuple):
        return all(map(is_repeatable, node.elts))
    is_view = isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in _VIEWS
    return is_view and not node.keywords and all(map(is_repeatable, [node.func.value, *node.args]))  # type: ignore[attr-defined]


def _is_index(node: ast.expr) -> bool:
    return isinstance(node, ast.Name | ast.Attribute | ast.Constant | ast.UnaryOp) and is_repeatable(node)


def runs_always(script: Script, node: ast.Call) -> bool:
    """Whether all ranks come to a call together: it is part of a plain statement, and of nothing that may skip it."""
    for parent in script.ancestors(node):
        if isinstance(parent, ast.Lambda | ast.ListComp | ast.GeneratorExp | ast.DictComp | ast.SetComp | ast.BoolOp):
            return False
        if isinstance(parent, ast.Expr):
            called = parent.value.func if isinstance(parent.value, ast.Call) else None
            return isinstance(called, ast.Attribute) and called.attr == "backward"
        if isinstance(parent, ast.stmt):
            return isinstance(parent, ast.Assign | ast.AugAssign | ast.AnnAssign | ast.Return)
    return False


def _is_tensor(script: Script, node: ast.expr, seen: frozenset[str] = frozenset()) -> bool:
    """Whether weights are a tensor of torch, and not None, by all that may be assigned to their name."""
    if isinstance(node, ast.Call):
        if script.qualified(node.func).startswith("torch."):
            return True
        moved = isinstance(node.func, ast.Attribute) and node.func.attr in ("to", "cuda", "cpu", "float", "double")
        if moved:
            return _is_tensor(script, node.func.value, seen)  # type: ignore[attr-defined]
        called = ast.unparse(node.func)
        returned = _always_returned(script, node) if called not in seen else []
        return bool(returned) and all(_is_tensor(script, each, seen | {called}) for each in returned)
    if isinstance(node, ast.BinOp):
        return _is_tensor(script, node.left, seen) or _is_tensor(script, node.right, seen)
    name = ast.unparse(node)
    if not isinstance(node, ast.Name | ast.Attribute) or name in seen:
        return name in seen
    last = _last_given(script, node)
    values = [last] if last is not None else list(_assigned(script, name))
    return bool(values) and all(each is not None and _is_tensor(script, each, seen | {name}) for each in values)


def _always_returned(script: Script, call: ast.Call) -> list[ast.expr]:
    """What a function of the file returns; nothing where it may end without."""
    named = [each for each in script.find(ast.FunctionDef) if each.name == ast.unparse(call.func)]
    if len(named) != 1 or not isinstance(named[0].body[-1], ast.Return):
        return []
    returns = [each for each in walk(named[0]) if isinstance(each, ast.Return)]
    return sources(script, call) if all(each.value is not None for each in returns) else []


def _last_given(script: Script, node: ast.expr) -> ast.expr | None:
    """What a variable is surely given last, above where it is read: `w = config["w"]`, `w = torch.tensor(w)`."""
    name, scope = ast.unparse(node), script.scope(node)
    stored = [each for each in script.find(ast.Name) if each.id == name and isinstance(each.ctx, ast.Store)]
    shared = any(name in each.names for each in script.nodes if isinstance(each, ast.Global | ast.Nonlocal))
    if shared or (isinstance(scope, ast.Module) and any(script.scope(each) is not scope for each in stored)):
        return None
    stored = [each for each in stored if not isinstance(script.parents[each], ast.AugAssign)]
    given = {script.statement(each): each for each in stored if script.scope(each) is scope}
    for around in (each for each in (node, *script.ancestors(node)) if isinstance(each, ast.stmt)):
        if around is scope:
            break
        block = script.block(around)
        before = next((each for each in reversed(block[: block.index(around)]) if each in given), None)
        if before is not None:
            alone = isinstance(before, ast.Assign) and before.targets == [given[before]]
            return before.value if alone and before.lineno == max(each.lineno for each in given) else None  # type: ignore[attr-defined]
    return None


def _assigned(script: Script, name: str) -> Iterator[ast.expr | None]:
    """What a variable of a file is given anywhere; None for what is not seen."""
    for node in script.nodes:
        if isinstance(node, ast.Name | ast.Attribute) and isinstance(node.ctx, ast.Store) and ast.unparse(node) == name:
            parent = script.parents[node]
            if not isinstance(parent, ast.AugAssign):
                yield parent.value if isinstance(parent, ast.Assign) and parent.targets == [node] else None
        elif isinstance(node, ast.arg) and node.arg == name:
            yield None
