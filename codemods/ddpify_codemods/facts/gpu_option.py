"""The option without which a script stays on the CPU: `--cuda`, `--accel`, `--device cuda`."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

_OPTION = re.compile(r"--?(use[-_])?(cuda|gpu)")
_DEVICE = re.compile(r"(torch\.)?cuda\b")
_TAKES_DEVICE = frozenset({"device", "to", "set_default_device", "set_default_tensor_type"})
# What lies between the name of a device and what takes it: `"cuda:{}".format(n) if asked else "cpu"`.
_BETWEEN = (ast.IfExp, ast.BinOp, ast.JoinedStr)


@dataclass(frozen=True)
class _Option:
    """An option of a command line. name: as it is given. attribute: where its value goes. given: what is added to a
    start line; "" for nothing."""

    name: str
    attribute: str
    given: str


def gpu_option(texts: Sequence[str], device: str) -> str:
    """What a script's command line has to contain, or else it stays on the CPU; "" for nothing.

    Args:
        texts: the sources of a program's files, which are valid, its entry first. device: what the target's devices are
            called.
    """
    asking = next((text for text in texts if "add_argument" in text), "")
    if not asking:
        return ""
    tree = ast.parse(asking)
    options = [found for call in ast.walk(tree) if isinstance(call, ast.Call) and (found := _option(call, device))]
    tree.body += ast.parse(texts[0]).body if asking != texts[0] else []
    decides = (each.given for each in options if _OPTION.fullmatch(each.name) or _decides(tree, each))
    return next(decides, "")


def _option(call: ast.Call, device: str) -> _Option | None:
    """An option that is a switch which is off, or whose default is the CPU."""
    if not isinstance(call.func, ast.Attribute) or call.func.attr != "add_argument":
        return None
    named = [each.value for each in call.args if isinstance(each, ast.Constant) and isinstance(each.value, str)]
    words = {word.arg: word.value.value for word in call.keywords if isinstance(word.value, ast.Constant)}
    has_default = any(word.arg == "default" for word in call.keywords)
    long = [name for name in named if name.startswith("--")] or [name for name in named if name.startswith("-")]
    if not long:
        return None
    name = next((each for each in named if _OPTION.fullmatch(each)), long[0])
    attribute = str(words.get("dest", long[0].lstrip("-").replace("-", "_")))
    if words.get("action") == "store_true" and (not has_default or words.get("default", True) in (False, None)):
        return _Option(name, attribute, name)
    if words.get("default") == "cpu" and "action" not in words:
        return _Option(name, attribute, f"{name} {device}")
    return None


def _decides(tree: ast.Module, option: _Option) -> bool:
    """Whether an option decides whether the device is a GPU: by its name, or since nothing is put on one without it."""
    parents = {child: node for node in ast.walk(tree) for child in ast.iter_child_nodes(node)}
    places = [place for place in ast.walk(tree) if _puts_on_gpu(place, parents)]
    asks = _names_of(tree, option.attribute)
    if option.given == option.name:
        return bool(places) and all(_is_asked_for(place, parents, asks) for place in places)
    read = (each for each in ast.walk(tree) if isinstance(each, ast.Attribute) and each.attr == option.attribute)
    return any(_is_taken(each, parents) for each in read) and all(
        any(_last_name(each) in asks for _, test, _, _ in _branches_around(place, parents) for each in ast.walk(test))
        for place in places
    )


def _names_of(tree: ast.Module, attribute: str) -> set[str]:
    """The names and attributes that are true only where the option is given: `use_accel = args.accel and …`."""
    assigned = [each for each in ast.walk(tree) if isinstance(each, ast.Assign) and len(each.targets) == 1]
    found = {attribute}
    for each in assigned:
        name = _last_name(each.targets[0])
        if name and name not in found and _is_true_with(each.value, found):
            found.add(name)
    return found


def _last_name(node: ast.AST) -> str:
    """`cuda` of `cuda` and of `args.cuda`."""
    return node.id if isinstance(node, ast.Name) else node.attr if isinstance(node, ast.Attribute) else ""


def _is_true_with(test: ast.expr, asks: set[str]) -> bool:
    """Whether an expression is true only where the option is given."""
    if isinstance(test, ast.BoolOp) and isinstance(test.op, ast.And):
        return any(_is_true_with(each, asks) for each in test.values)
    return _last_name(test) in asks


def _is_false_without(test: ast.expr, asks: set[str]) -> bool:
    """Whether an expression is false only where the option is given."""
    return isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not) and _is_true_with(test.operand, asks)


def _puts_on_gpu(node: ast.AST, parents: dict[ast.AST, ast.AST]) -> bool:
    """Whether something is put on a GPU, or its device is named: `x.cuda()`, `torch.device("cuda")`."""
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        return node.func.attr in ("cuda", "current_accelerator")
    if isinstance(node, ast.Attribute):
        return node.attr.endswith("Tensor") and _last_name(node.value) == "cuda"
    return isinstance(node, ast.Constant) and bool(_DEVICE.match(str(node.value))) and _is_taken(node, parents)


def _is_taken(node: ast.AST, parents: dict[ast.AST, ast.AST]) -> bool:
    """Whether a value is where a device is taken, or is what a name stands for."""
    child, parent = node, parents[node]
    while isinstance(parent, _BETWEEN) and not (isinstance(parent, ast.IfExp) and parent.test is child):
        child, parent = parent, parents[parent]
    if isinstance(parent, ast.Attribute) and parent.attr == "format":
        return _is_taken(parents[parent], parents)
    if isinstance(parent, ast.Call):
        return _last_name(parent.func) in _TAKES_DEVICE
    if isinstance(parent, ast.keyword):
        return parent.arg == "device"
    return isinstance(parent, ast.Assign | ast.Return)


def _is_asked_for(place: ast.AST, parents: dict[ast.AST, ast.AST], asks: set[str]) -> bool:
    return any(
        (_is_true_with(test, asks) and child in chosen) or (_is_false_without(test, asks) and child in otherwise)
        for child, test, chosen, otherwise in _branches_around(place, parents)
    )


def _branches_around(
    place: ast.AST, parents: dict[ast.AST, ast.AST]
) -> Iterator[tuple[ast.AST, ast.expr, Sequence[ast.AST], Sequence[ast.AST]]]:
    """The conditions that something stands under: in what, the condition, and what is done if it is true and if not."""
    child = place
    while child in parents:
        parent = parents[child]
        if isinstance(parent, ast.If):
            yield child, parent.test, parent.body, parent.orelse
        elif isinstance(parent, ast.IfExp):
            yield child, parent.test, [parent.body], [parent.orelse]
        child = parent
