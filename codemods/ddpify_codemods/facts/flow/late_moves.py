"""Models that get their parameters on another device, or of another type, between two steps of a training.

`torch.save(model.cpu().state_dict(), path); model.to(device)`: torch then makes new what it adds gradients up with, to
which DistributedDataParallel has hung what averages them. From then on each rank trains alone, without a word.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from contextlib import contextmanager

from ..origins import origins
from ..script import Script
from .frames import Frame
from .gradients import Forms
from .state import State
from .values import Module, Value, root_of

LATE_TYPE = (
    "the model gets numbers of another type here after its optimizer was made: DistributedDataParallel would leave "
    "their gradients as each rank has them"
)
_HOST, _DEVICE = "the CPU", "a device"
_FIRST = "float32"  # what the numbers of a model are at first
_TYPES = {"float": _FIRST, "half": "float16", "double": "float64"}
_TENSORS = frozenset({"Parameter", "Buffer", "UninitializedParameter"})
_METHODS = frozenset({"bfloat16", *_TYPES})


class LateMoves(State):
    """What moves models that are trained again afterwards."""

    def may_move(self, owner: Value, node: ast.Call, frame: Frame) -> None:
        """A method may give a model another device, or its numbers another type."""
        moved = (each for each in owner.only(Module) if isinstance(each, Module))
        self._moves([each for each in moved if _is_moved(each, frame.script, node)], node, frame)

    def may_retype(self, target: ast.Attribute, source: ast.expr | None, frame: Frame) -> None:
        """Parameters of a model may get such numbers: `p.data = p.data.half()`."""
        if target.attr == "data" and isinstance(source, ast.Call):
            self._moves(self.parameters_in([self.value(target.value, frame)]), source, frame)

    def _moves(self, modules: Iterable[Module], node: ast.Call, frame: Frame) -> None:
        place, type_ = given_by_move(frame.script, node)
        given = (*node.args, *(word.value for word in node.keywords))
        written = {ast.unparse(each) for each in given} - {"True", "False"}
        for module in modules if place or type_ else ():
            root = root_of(module)
            known = self.forms.setdefault(root.made, Forms())
            if root.made not in self.trained_before:
                if type_ and (known.types or {_FIRST}) != {type_}:
                    self._changes_type(root, node, frame)
                known.places |= written if place else set()
                known.types |= {type_} - {""} | (set() if module is root else {_FIRST})
                continue
            to_host = place == _HOST and not (written and written <= known.places)
            if to_host or (type_ and (known.types or {_FIRST}) != {type_}):
                self.gradients = self.gradients.moves(root.made, node)

    def _changes_type(self, root: Module, node: ast.Call, frame: Frame) -> None:
        """A network gets numbers of another type before it is trained: where that is in another function than its
        optimizer is made in, and none that keeps it in an object, its wrapper is not made behind it."""
        scope, calls = frame.script.scope(node), self.optimizers_of.get(root.made, ())
        if getattr(scope, "name", "") == "__init__" or any(
            self.found.optimizer_calls[each].scope(each) is scope for each in calls
        ):
            return
        self.is_changed(root.made, LATE_TYPE, node, frame)

    def trains_moved(self, model: ast.AST) -> None:
        """A backward pass goes through a model, with what its wrapper knew of it before it was moved."""
        self.trained_before.add(model)
        self.found.late_moves |= {node for moved, node in self.gradients.moved if moved is model}

    def leaves_with_moves(self) -> frozenset[tuple[ast.AST, ast.Call]]:
        """The way that is followed ends here: nothing that comes behind it in the text comes after what it has moved.
        What it has moved."""
        moved = self.gradients.moved
        self.gradients = self.gradients.without_moves()
        return moved

    @contextmanager
    def behind_loop(self) -> Iterator[None]:
        """Follow a loop: behind it comes what has left it."""
        around, self.moved_at_break = self.moved_at_break, set()
        yield
        self.gradients = self.gradients.also_moved(self.moved_at_break)
        self.moved_at_break = around

    @contextmanager
    def behind_function(self) -> Iterator[None]:
        """Follow a function: behind its call comes what has returned."""
        around, self.moved_at_return = self.moved_at_return, set()
        yield
        self.gradients = self.gradients.also_moved(self.moved_at_return)
        self.moved_at_return = around


def _is_moved(module: Module, script: Script, node: ast.Call) -> bool:
    """Whether a method moves a network itself: of a parameter it gives a copy, `model.scale.cpu()`, and a part that is
    not seen, `model.fc.weight.cpu()`, may be one, but where nothing or only a network can be made of what it gives."""
    if module.name.rpartition(".")[2] in _TENSORS:
        return False
    parent = script.parents.get(node)
    taken = isinstance(parent, ast.Attribute) and parent.attr in ("eval", "state_dict", "train")
    named = isinstance(parent, ast.Assign) and ast.unparse(parent.targets[0]) == ast.unparse(node.func.value)  # type: ignore[attr-defined]
    return module.cls is not None or bool(module.name) or isinstance(parent, ast.Expr) or taken or named


def given_by_move(script: Script, node: ast.Call) -> tuple[str, str]:
    """The kind of device, and the type of numbers, that a call gives to what it is a method of; "" for neither."""
    name = node.func.attr if isinstance(node.func, ast.Attribute) else ""
    if name in _METHODS:
        return "", _TYPES.get(name, name)
    if name in ("cpu", "cuda"):
        return (_HOST if name == "cpu" else _DEVICE), ""
    if name == "type" and len(node.args) == 1:
        return "", _type_of(node.args[0])
    if name != "to":
        return "", ""
    words = {word.arg: word.value for word in node.keywords}
    given = [*node.args[:2], *(words[each] for each in ("device", "dtype") if each in words)]
    types = [each for each in given if _is_type(each)]
    places = [each for each in given if each not in types and not isinstance(each, ast.Starred)]
    place = "" if not places else _HOST if _is_host(script, places[0]) else _DEVICE
    return place, _type_of(types[0]) if types else ""


def _is_type(node: ast.expr) -> bool:
    text = ast.unparse(node)
    return text.startswith("torch.") and "(" not in text and any(each in text for each in ("float", *_METHODS, "dtype"))


def _type_of(node: ast.expr) -> str:
    text = ast.unparse(node).removeprefix("torch.")
    return _TYPES.get(text, text)


def _is_host(script: Script, node: ast.expr) -> bool:
    """Whether an expression is the CPU in all cases."""
    made = [each for each in origins(script, node) if not isinstance(each, ast.Name | ast.Attribute)]
    return bool(made) and all(map(_names_host, _devices(script, made)))


def _devices(script: Script, made: Iterable[ast.expr]) -> Iterator[ast.expr]:
    """What devices are named by: `"cpu"` of `torch.device("cpu")`."""
    for each in made:
        is_device = isinstance(each, ast.Call) and script.qualified(each.func) == "torch.device" and len(each.args) == 1
        yield each.args[0] if is_device and isinstance(each, ast.Call) else each


def _names_host(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and node.value == "cpu"
