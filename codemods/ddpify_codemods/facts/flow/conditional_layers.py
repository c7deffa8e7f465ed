"""Layers that a forward calls in some cases: whether a model has them in others, too, so that a backward pass leaves
out their parameters, or only has them where it calls them: `if self.shortcut is not None: x = self.shortcut(x)`."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from functools import lru_cache

from ..script import KEPT, Script
from .frames import Frame
from .state import State
from .values import Module, Value

_WITHOUT_PARAMETERS = frozenset(
    {"ReLU", "ReLU6", "LeakyReLU", "ELU", "GELU", "SiLU", "Hardswish", "Sigmoid", "Tanh", "Softmax", "LogSoftmax"}
    | {"Identity", "Flatten", "Upsample", "Dropout", "Dropout1d", "Dropout2d", "Dropout3d", "AlphaDropout"}
    | {"Hardtanh", "Hardsigmoid", "Softplus", "Softsign", "Mish", "SELU", "CELU", "GLU", "Softmax2d", "LogSigmoid"}
    | {"Unflatten", "PixelShuffle", "PixelUnshuffle", "UpsamplingNearest2d", "UpsamplingBilinear2d", "ZeroPad2d"}
    | {"ReflectionPad2d", "ReplicationPad2d", "ConstantPad2d", "FeatureAlphaDropout", "Unfold", "Fold"}
)
_SAME = {
    ast.NotEq: "==",
    ast.Eq: "==",
    ast.IsNot: "is",
    ast.Is: "is",
    ast.Gt: ">",
    ast.LtE: ">",
    ast.Lt: "<",
    ast.GtE: "<",
}


class ConditionalLayers(State):
    """Which layers a forward calls in any case."""

    def one_way_of_two(self, before: set[Module], first: set[Module], test: ast.expr | None, frame: Frame) -> None:
        """Note which layers are called in any case, of what was called before, in one way, and now in the other.

        test: what decides the way; None where that is not told.
        """
        there = self.there_where_called(test, frame) if test is not None else set()
        at_times = (each for each in first ^ self.always if not has_no_parameters(each))
        self.at_times |= {each for each in at_times if there.isdisjoint(_with_parents(each))}
        self.always = before | first & self.always

    def there_where_called(self, test: ast.expr, frame: Frame) -> set[Module]:
        """The layers that a model only has where a condition lets it call them."""
        found: set[Module] = set()
        for owner in (each for each in frame.owners if isinstance(each, Module) and each.cls is not None):
            assert owner.cls is not None
            for name, *flags in _decided(owner.cls.script, owner.cls.node, ast.unparse(test)):
                if not any(_is_set_elsewhere(self.scripts, each) for each in (name, *flags)):
                    held = owner.attributes.get(name)
                    found |= _held(held, name, owner.cls.script) if held is not None else set()
        return found


def _held(held: Value, name: str, script: Script) -> set[Module]:
    """The layers of an attribute, and those that the statement itself makes that gives a list of them to it."""
    found = {each for each in held.things if isinstance(each, Module)}
    inner = [
        thing for each in found if each.contents is not None for value in each.contents.all() for thing in value.things
    ]
    for each in (thing for thing in inner if isinstance(thing, Module) and thing.made in script.parents):
        given = script.statement(each.made)
        found |= {each} if isinstance(given, ast.Assign) and _own_target(given) == name else set()
    return found


@lru_cache(maxsize=KEPT)
def _decided(script: Script, cls: ast.ClassDef, test: str) -> tuple[tuple[str, ...], ...]:
    """The attributes of a class that hold layers which it has by a condition: those that this asks for, and those that
    its constructor makes by the very same one, with what that is a condition of."""
    asked = _asked(ast.parse(test, mode="eval").body)
    stored = [each for each in ast.walk(cls) if isinstance(each, ast.Assign) and _own_target(each)]
    flag = _normal(test)
    if flag is None:
        return ((asked,),) if asked else ()
    flags = _ways_to_say(flag, [each.value for each in stored if f"self.{_own_target(each)}" == flag.split()[0]])
    made: dict[str, set[str]] = {}
    for each in stored:
        if _has_layers(each.value):
            made.setdefault(_own_target(each), set()).add(_way(script, each, cls, flags))
    names = [name for name, ways in made.items() if len(ways) == 1 and "" not in ways]
    of = [part.removeprefix("self.") for part in flag.split()]
    return (*(((asked,),) if asked else ()), *((name, *of) for name in names))


def _ways_to_say(flag: str, stored: list[ast.expr]) -> set[str | None]:
    """A condition of an attribute, and the same of what a constructor sets it to: `stride > 1` for `self.stride > 1`
    after `self.stride = stride`, and `stride != 1` for `self.grows` after `self.grows = stride != 1`."""
    found: set[str | None] = {flag}
    if len(stored) == 1 and f"self.{ast.unparse(stored[0])}" == flag.split()[0]:
        found.add(flag.removeprefix("self."))
    if len(stored) == 1 and " " not in flag:
        found.add(_normal(ast.unparse(stored[0])))
    return found - {None} if len(stored) == 1 else set()


def _asked(test: ast.expr) -> str:
    """The attribute of which a condition asks whether there is a layer; "" for another condition."""
    if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        test = test.operand
    if isinstance(test, ast.Compare) and len(test.ops) == 1 and isinstance(test.ops[0], ast.Is | ast.IsNot):
        test = test.left if ast.unparse(test.comparators[0]) == "None" else test
    if isinstance(test, ast.Call) and ast.unparse(test.func) == "hasattr" and len(test.args) == 2:
        of_self = ast.unparse(test.args[0]) == "self" and isinstance(test.args[1], ast.Constant)
        return str(test.args[1].value) if of_self else ""  # type: ignore[attr-defined]
    return test.attr if isinstance(test, ast.Attribute) and _is_own(test) else ""


def _normal(test: str) -> str | None:
    """A condition of one variable or attribute of `self`, compared with a constant or not, whichever way it is asked:
    `not self.wide` and `self.wide` are the same, so are `stride != 1` and `stride == 1`; None for others."""
    node = ast.parse(test, mode="eval").body
    while isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
        node = node.operand
    if isinstance(node, ast.Compare) and len(node.ops) == 1 and type(node.ops[0]) in _SAME:
        of, other = _variable(node.left), node.comparators[0]
        if not isinstance(other, ast.Constant) and not _variable(other):
            return None
        return f"{of} {_SAME[type(node.ops[0])]} {_variable(other) or ast.unparse(other)}" if of else None
    return _variable(node) or None


def _variable(node: ast.expr) -> str:
    if isinstance(node, ast.Name):
        return node.id
    return f"self.{node.attr}" if isinstance(node, ast.Attribute) and _is_own(node) else ""


def _way(script: Script, stored: ast.Assign, cls: ast.ClassDef, flags: set[str | None]) -> str:
    """By which of some conditions a layer is made, and on which side of it; "" where by none of them alone."""
    for way, condition in _conditions(script, stored, cls):
        if _normal(ast.unparse(condition)) in flags:
            return way
    return ""


def _conditions(script: Script, stored: ast.Assign, cls: ast.ClassDef) -> Iterator[tuple[str, ast.expr]]:
    """What decides whether a layer is made, and on which side: `if stride > 1:`, `Linear(3, 3) if last else None`,
    `last and Linear(3, 3) or None`."""
    child: ast.AST = stored
    for each in script.ancestors(stored):
        if each is cls:
            break
        if isinstance(each, ast.If):
            yield "else" if child in each.orelse else "if", each.test
        child = each
    value = stored.value
    if isinstance(value, ast.IfExp) and not (_has_layers(value.body) and _has_layers(value.orelse)):
        yield "if", value.test
    if isinstance(value, ast.BoolOp) and isinstance(value.op, ast.Or) and not any(map(_has_layers, value.values[1:])):
        value = value.values[0]
    if isinstance(value, ast.BoolOp) and isinstance(value.op, ast.And):
        yield "if", value.values[0]


def _own_target(node: ast.Assign) -> str:
    """The attribute of `self` that a statement gives a value; "" for others."""
    target = node.targets[0]
    return target.attr if len(node.targets) == 1 and isinstance(target, ast.Attribute) and _is_own(target) else ""


def _is_own(node: ast.Attribute) -> bool:
    return isinstance(node.value, ast.Name) and node.value.id == "self"


def _is_constructed(script: Script, node: ast.AST) -> bool:
    return getattr(script.scope(node), "name", "") == "__init__"


def _is_set_elsewhere(scripts: Sequence[Script], name: str) -> bool:
    """Whether something other than constructors sets an attribute of that name, or one by a name that is not seen."""
    return any(None in names or name in names for names in map(_set_elsewhere, scripts))


@lru_cache(maxsize=KEPT)
def _set_elsewhere(script: Script) -> frozenset[str | None]:
    """The attributes that something other than constructors sets; None for one by a name that is not seen."""
    found: set[str | None] = set()
    for node in script.find(ast.Attribute):
        if not isinstance(node.ctx, ast.Load) and not _is_constructed(script, node):
            found.add(node.attr)
    for call in script.find(ast.Call):
        if isinstance(call.func, ast.Name) and call.func.id in ("setattr", "delattr"):
            name = call.args[1] if len(call.args) > 1 else None
            found.add(name.value if isinstance(name, ast.Constant) and isinstance(name.value, str) else None)
    return frozenset(found)


def _has_layers(node: ast.expr) -> bool:
    """Whether an expression may make layers with parameters: not `None`, `nn.Identity()`, `nn.Sequential()`."""
    if isinstance(node, ast.Name | ast.Attribute):
        return True
    empty = isinstance(node, ast.Call) and ast.unparse(node.func).endswith(("Identity", "Sequential")) and not node.args
    return any(isinstance(each, ast.Call) for each in ast.walk(node)) and not empty


def has_no_parameters(module: Module) -> bool:
    """Whether a layer has nothing that is trained: an activation, a pooling, a row of them."""
    package, _, name = module.name.rpartition(".")
    if not package.startswith("torch.nn"):
        return False
    if name == "Sequential":
        inner = (
            [thing for each in module.contents.all() for thing in each.things] if module.contents is not None else []
        )
        return bool(inner) and all(isinstance(each, Module) and has_no_parameters(each) for each in inner)
    return name in _WITHOUT_PARAMETERS or "Pool" in name


def _with_parents(module: Module) -> set[Module]:
    """A module, and those that it is a part of."""
    found = {module}
    while module.parent is not None and module.parent not in found:
        module = module.parent
        found.add(module)
    return found
