"""Whether a program that names a GPU may train on the CPU where there is one: `"cpu" if args.no_cuda else "cuda"`.

The usual choice, `"cuda" if torch.cuda.is_available() else "cpu"`, comes to a GPU wherever there is one.
"""

from __future__ import annotations

import ast
import operator
import re
from collections.abc import Callable, Iterable, Iterator, Sequence

from .bindings import attribute_bindings
from .called_modules import last_name
from .devices import asks_for_accelerator, dotted
from .origins import assigned, sources
from .script import Script

_SETTINGS = re.compile(
    r"(.*_)?(args?|argv|opts?|options?|cfg|config\w*|conf|hparams?|hps?|params|settings?|flags)", re.I
)
_SWITCH = re.compile("cuda|cpu|gpu|device|accel", re.IGNORECASE)
_LOOKUPS = frozenset({"get", "getattr", "getenv", "pop"})
_DEPTH = 6  # names on the way to what a condition is
_COMPARED: dict[type[ast.cmpop], Callable[[float, float], bool]] = {
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
}


def may_stay_on_host(scripts: Sequence[Script]) -> bool:
    """Whether a device that something is put on may be the CPU on a machine with GPUs, and a GPU as well."""
    options = frozenset(each for script in scripts for each in _options(script))
    places = ((script, place) for script in scripts for place in _places(script))
    return any(map(_is_moved_by_choice, scripts)) or any(_is_chosen(scripts, options, *each) for each in places)


def _is_chosen(scripts: Sequence[Script], options: frozenset[str], script: Script, place: ast.expr) -> bool:
    ways = [*_ends(scripts, options, script, place)]
    ends = [(there, each) for there, each in ways if not _never_runs(there, each)]
    on_host = [each for there, each in ends if _is_text(each, "cpu") and not _is_set_anew(there, each)]
    return any(_is_setting(each, options) for _, each in ends) or 0 < len(on_host) < len(ways)


def _places(script: Script) -> Iterator[ast.expr]:
    """The expressions that name devices: what is given to `torch.device`, `.to(device)`."""
    for call in script.find(ast.Call):
        if script.qualified(call.func) == "torch.device":
            yield from call.args[:1]
        elif isinstance(call.func, ast.Attribute) and call.func.attr == "to":
            given = [*call.args, *(word.value for word in call.keywords if word.arg == "device")]
            yield from (each for each in given if "device" in ast.unparse(each).lower())


def _ends(
    scripts: Sequence[Script], options: frozenset[str], script: Script, place: ast.expr
) -> Iterator[tuple[Script, ast.expr]]:
    """What a device may come to: constants, what is not known, and what never runs; with their files."""
    waiting, seen = [(script, place)], set[ast.expr]()
    while waiting:
        there, each = waiting.pop()
        if each in seen:
            continue
        seen.add(each)
        made = isinstance(each, ast.Call) and there.qualified(each.func) in ("torch.device", "str")
        inner = each.args[:1] if made else sources(there, each)  # type: ignore[attr-defined]
        behind = [(there, value) for value in inner] or [*_stored(scripts, each)]
        waiting += behind
        if not behind or _never_runs(there, each) or (isinstance(each, ast.Attribute) and each.attr in options):
            yield there, each


def _stored(scripts: Sequence[Script], node: ast.expr) -> Iterator[tuple[Script, ast.expr]]:
    """What is kept under the name of an attribute or a key: `settings["device"] = "cpu"`, `{"device": "cpu"}`."""
    name, key = node.attr if isinstance(node, ast.Attribute) else "", _key(node)
    for script in scripts if name or key else ():
        yield from ((script, value) for value in (_fields(script, name) if name else _entries(script, str(key))))


def _fields(script: Script, name: str) -> Iterator[ast.expr]:
    for code, values in attribute_bindings(script).items():
        yield from values if code.endswith(f".{name}") else ()
    for each in (part for cls in script.find(ast.ClassDef) for part in cls.body):
        if isinstance(each, ast.Assign | ast.AnnAssign) and each.value and _name_of(each) == name:
            yield each.value


def _entries(script: Script, key: str) -> Iterator[ast.expr]:
    for table in script.find(ast.Dict):
        yield from (value for name, value in zip(table.keys, table.values, strict=True) if _is_text(name, key))
    for each in script.find(ast.Assign):
        if isinstance(each.targets[0], ast.Subscript) and _is_text(each.targets[0].slice, key):
            yield each.value


def _name_of(node: ast.Assign | ast.AnnAssign) -> str:
    return dotted(node.target if isinstance(node, ast.AnnAssign) else node.targets[0])


def _key(node: ast.expr) -> str | None:
    """What a setting is looked up by: `settings["device"]`, `settings.get("device", "cpu")`."""
    given = [node.slice] if isinstance(node, ast.Subscript) else []
    if isinstance(node, ast.Call) and last_name(node.func) in _LOOKUPS:
        given = node.args[:2]
    keys = [each.value for each in given if isinstance(each, ast.Constant) and isinstance(each.value, str)]
    return keys[0] if keys else None


def _is_text(node: ast.expr | None, text: str) -> bool:
    return isinstance(node, ast.Constant) and node.value == text


def _options(script: Script) -> Iterator[str]:
    """The attributes that the options of a command line get."""
    for call in script.find(ast.Call):
        if last_name(call.func) == "add_argument":
            named = [*call.args, *(word.value for word in call.keywords if word.arg == "dest")]
            texts = (str(each.value) for each in named if isinstance(each, ast.Constant))
            yield from (each.lstrip("-").replace("-", "_") for each in texts)


def _is_setting(node: ast.expr, options: frozenset[str]) -> bool:
    """Whether a device is what whoever starts the program, or a file, calls it."""
    if isinstance(node, ast.Attribute):
        is_owned = _SETTINGS.fullmatch(dotted(node.value).rpartition(".")[2]) is not None
        return is_owned and (node.attr in options or _SWITCH.search(node.attr) is not None)
    key = _key(node)
    return key is not None and _SWITCH.search(key) is not None


def _is_set_anew(script: Script, node: ast.expr) -> bool:
    """Whether a device is another one where there is a GPU: `device = "cpu"`, then `if torch.cuda.is_available():`."""
    first = script.statement(node)
    if not isinstance(first, ast.Assign):
        return False
    name, block = _name_of(first), script.block(first)
    return any(
        isinstance(each, ast.If)
        and truth_with_gpu(script, each.test)
        and any(_stores(part, name) for part in each.body)
        for each in block[block.index(first) :]
    )


def _stores(node: ast.stmt, name: str) -> bool:
    return isinstance(node, ast.Assign) and name in map(dotted, node.targets)


def _is_moved_by_choice(script: Script) -> bool:
    """Whether something goes to a GPU if a switch says so: `if args.cuda: model.cuda()`."""
    for call in script.find(ast.Call):
        moves = isinstance(call.func, ast.Attribute) and call.func.attr == "cuda" and not call.args
        if moves and not script.qualified(call.func).startswith("torch.") and not _never_runs(script, call):
            around = (each for each in script.ancestors(call) if isinstance(each, ast.If | ast.IfExp))
            if any(_is_switch(script, each.test) for each in around) and not _is_in_network(script, call):
                return True
    return False


def _is_in_network(script: Script, call: ast.Call) -> bool:
    """Whether a network, or a loss, moves what it computes with."""
    classes = (each for each in script.ancestors(call) if isinstance(each, ast.ClassDef))
    return any(script.qualified(base) == "torch.nn.Module" for each in classes for base in each.bases)


def _is_switch(script: Script, test: ast.expr) -> bool:
    named = [dotted(each) for each in ast.walk(test) if isinstance(each, ast.Name | ast.Attribute)]
    return any(map(_SWITCH.search, named)) and truth_with_gpu(script, test) is None


def _never_runs(script: Script, node: ast.AST) -> bool:
    """Whether something stands where no program comes to that finds a GPU."""
    inner = node
    for around in script.ancestors(node):
        if isinstance(around, ast.If | ast.IfExp) and inner is not around.test:
            taken = truth_with_gpu(script, around.test)
            body: Iterable[ast.AST] = around.body if isinstance(around.body, list) else [around.body]
            if taken is not None and taken is not (inner in body):
                return True
        inner = around
    return False


def truth_with_gpu(script: Script, test: ast.expr) -> bool | None:
    """What a condition comes to on a machine with GPUs; None where that is not known."""
    value = _value(script, test, _DEPTH)
    return None if value is None else bool(value)


def _value(script: Script, node: ast.expr, depth: int) -> float | None:
    """A number or an answer, as it is on a machine with GPUs; None where it is not known."""
    if isinstance(node, ast.Constant):
        return node.value if isinstance(node.value, int | float) else None
    if isinstance(node, ast.Call):
        counts = script.qualified(node.func) == "torch.cuda.device_count"
        return 1 if counts or (asks_for_accelerator(script, node) and "mps" not in ast.unparse(node)) else None
    if isinstance(node, ast.Attribute) and node.attr == "is_cuda":
        return 1
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
        inner = _value(script, node.operand, depth)
        return None if inner is None else not inner
    if isinstance(node, ast.BoolOp):
        return _of_several(node, [_value(script, each, depth) for each in node.values])
    if isinstance(node, ast.Compare):
        return _compared(script, node, depth)
    if isinstance(node, ast.IfExp) and (test := _value(script, node.test, depth)) is not None:
        return _value(script, node.body if test else node.orelse, depth)
    found = {_value(script, each, depth - 1) for each in _values(script, node)} if depth else set()
    return found.pop() if len(found) == 1 else None


def _values(script: Script, node: ast.expr) -> list[ast.expr]:
    """All that a name or an attribute is set to."""
    if isinstance(node, ast.Attribute):
        return list(attribute_bindings(script).get(ast.unparse(node), []))
    if not isinstance(node, ast.Name):
        return []
    return assigned(script, node) or sources(script, node)


def _of_several(node: ast.BoolOp, values: list[float | None]) -> bool | None:
    decides = isinstance(node.op, ast.Or)
    known = {None if each is None else bool(each) for each in values}
    if decides in known:
        return decides
    return None if None in known else not decides


def _compared(script: Script, node: ast.Compare, depth: int) -> bool | None:
    compare = _COMPARED.get(type(node.ops[0])) if len(node.ops) == 1 else None
    left, right = _value(script, node.left, depth), _value(script, node.comparators[0], depth)
    return None if compare is None or left is None or right is None else compare(left, right)
