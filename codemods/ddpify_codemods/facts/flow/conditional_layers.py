"""Layers that a forward calls in some cases: whether a model has them in others, too, so that a backward pass leaves
out their parameters, or only has them where it calls them: `if self.shortcut is not None: x = self.shortcut(x)`."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import lru_cache

from ..script import KEPT, Script
from .frames import Frame
from .state import State
from .values import Class, Module

_WITHOUT_PARAMETERS = frozenset(
    {"ReLU", "ReLU6", "LeakyReLU", "ELU", "GELU", "SiLU", "Hardswish", "Sigmoid", "Tanh", "Softmax", "LogSoftmax"}
    | {"Identity", "Flatten", "Upsample", "Dropout", "Dropout1d", "Dropout2d", "Dropout3d", "AlphaDropout"}
)


class ConditionalLayers(State):
    """Which layers a forward calls in any case."""

    def one_way_of_two(self, before: set[Module], first: set[Module], test: ast.expr | None, frame: Frame) -> None:
        """Note which layers are called in any case, of what was called before, in one way, and now in the other.

        test: what decides the way; None where that is not told.
        """
        there = self.there_where_called(test, frame) if test is not None else set()
        at_times = (each for each in first ^ self.always if not _has_no_parameters(each))
        self.at_times |= {each for each in at_times if there.isdisjoint(_with_parents(each))}
        self.always = before | first & self.always

    def there_where_called(self, test: ast.expr, frame: Frame) -> set[Module]:
        """The layers that a model only has where a condition lets it call them."""
        if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
            test = test.operand
        asked = test
        if isinstance(test, ast.Compare) and isinstance(test.ops[0], ast.Is | ast.IsNot) and len(test.ops) == 1:
            asked = test.left if ast.unparse(test.comparators[0]) == "None" else test
        if isinstance(test, ast.Call) and ast.unparse(test.func) == "hasattr" and len(test.args) == 2:
            name = test.args[1].value if isinstance(test.args[1], ast.Constant) else ""
            asked = ast.copy_location(ast.Attribute(test.args[0], str(name), ast.Load()), test)
        things = self.value(asked, frame).things if isinstance(asked, ast.Attribute) else ()
        found = {each for each in things if isinstance(each, Module)}
        for owner in (each for each in frame.owners if isinstance(each, Module) and each.cls is not None):
            for name in _made_by(owner.cls, ast.unparse(test)) if owner.cls is not None else ():
                held = owner.attributes.get(name)
                found |= {each for each in held.things if isinstance(each, Module)} if held is not None else set()
        return found


def _made_by(cls: Class, test: str) -> frozenset[str]:
    """The attributes of a class that hold layers which it makes by a condition of the same things as another one: where
    `self.stride == 1` decides in the forward, those that `if stride == 1` decides in the constructor."""
    return _decided(cls.script, cls.node, test)


@lru_cache(maxsize=KEPT)
def _decided(script: Script, cls: ast.ClassDef, test: str) -> frozenset[str]:
    of_self = {each.attr for each in ast.walk(ast.parse(test)) if isinstance(each, ast.Attribute) and _is_own(each)}
    stored = [each for each in ast.walk(cls) if isinstance(each, ast.Assign) and _own_target(each)]
    things = of_self.union(*(_names(each.value) for each in stored if _own_target(each) in of_self))
    found: dict[str, bool] = {}
    for each in stored:
        if _has_layers(each.value):
            by_these = any(things & _names(condition) for condition in _conditions(script, each, cls))
            found[_own_target(each)] = found.get(_own_target(each), True) and by_these
    return frozenset(name for name, by_these in found.items() if by_these)


def _conditions(script: Script, stored: ast.Assign, cls: ast.ClassDef) -> Iterator[ast.expr]:
    """What decides whether a layer is made: `if stride > 1:`, `Linear(3, 3) if last else None`, `last and Linear(3)`"""
    for each in script.ancestors(stored):
        if each is cls:
            break
        if isinstance(each, ast.If):
            yield each.test
    if isinstance(stored.value, ast.IfExp):
        yield stored.value.test
    if isinstance(stored.value, ast.BoolOp):
        yield stored.value


def _own_target(node: ast.Assign) -> str:
    """The attribute of `self` that a statement gives a value; "" for others."""
    target = node.targets[0]
    return target.attr if len(node.targets) == 1 and _is_own(target) else ""  # type: ignore[attr-defined]


def _is_own(node: ast.AST) -> bool:
    return isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "self"


def _names(node: ast.expr) -> set[str]:
    """The variables that an expression is made of, and attributes of `self`."""
    parts = [*ast.walk(node)]
    return {each.id for each in parts if isinstance(each, ast.Name) and each.id != "self"} | {
        each.attr for each in parts if isinstance(each, ast.Attribute) and _is_own(each)
    }


def _has_layers(node: ast.expr) -> bool:
    """Whether an expression may make layers with parameters: not `None`, `nn.Identity()`, `nn.Sequential()`."""
    empty = isinstance(node, ast.Call) and ast.unparse(node.func).endswith(("Identity", "Sequential")) and not node.args
    return any(isinstance(each, ast.Call) for each in ast.walk(node)) and not empty


def _has_no_parameters(module: Module) -> bool:
    package, _, name = module.name.rpartition(".")
    return package.startswith("torch.nn") and (name in _WITHOUT_PARAMETERS or "Pool" in name)


def _with_parents(module: Module) -> set[Module]:
    """A module, and those that it is a part of."""
    found = {module}
    while module.parent is not None and module.parent not in found:
        module = module.parent
        found.add(module)
    return found
