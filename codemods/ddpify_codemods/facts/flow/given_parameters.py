"""Parameters that an optimizer is given one by one, or by groups of layers: `[head.kernel]`,
`others.extend(layer.parameters())` in a loop over `model.modules()`."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping, Sequence

from ..script import Script
from .bare_tensors import TRAINED, bare_tensors, parameters_given
from .frames import Frame
from .training import Training
from .values import SAME, Items, Module, Parameters, Value, entries, of

_OF_LAYER = frozenset({"weight", "bias"})
_PUTS_IN = frozenset({"append", "extend"})


class GivenParameters(Training):
    """Which modules parameters belong to that are taken one by one, or layer by layer."""

    def trained_by(self, values: Sequence[Value]) -> tuple[Module, ...]:
        """The modules whose parameters an optimizer is given, all of them or some."""
        tensors = (each for value in entries(values) for each in value.only(Module))
        owners = (each.parent for each in tensors if isinstance(each, Module) and each.parent is not None)
        return tuple(dict.fromkeys([*self.parameters_in(values), *owners]))

    def takes_parameters(
        self, node: ast.Call, args: Sequence[Value], keywords: Mapping[str, Value], found: Value
    ) -> None:
        """A function of the program gives back parameters of models that it gets: `decayed, others = groups(model)`."""
        if self.parameters_in([found]):
            words = [(word.value, keywords.get(word.arg or "**", SAME)) for word in node.keywords]
            for given, value in (*zip(node.args, args, strict=False), *words):
                models = (each for each in value.things if isinstance(each, Module))
                self.found.parameters_of.setdefault(given, set()).update(models)

    def gets_bare_tensor(self, node: ast.Call, frame: Frame) -> bool:
        """Whether an optimizer is given a tensor that belongs to no module, also as an attribute of one."""
        for given in parameters_given(node):
            if any(True for _ in bare_tensors(frame.script, given)):
                return True
            for taken in _attributes(given):
                owner = self.value(taken.value, frame)
                of_program = any(isinstance(each, Module) and each.cls is not None for each in owner.things)
                if of_program and not self.value(taken, frame).things:
                    return True
        return False

    def on_attribute(self, node: ast.Attribute, frame: Frame) -> Value:
        found = super().on_attribute(node, frame)
        if not self.in_forward and (tensors := found.only(Module)):
            owners = {each.parent for each in tensors if isinstance(each, Module) and each.parent is not None}
            self.found.parameters_of.setdefault(node.value, set()).update(owners)
        return found

    def on_yield(self, node: ast.Yield | ast.YieldFrom, frame: Frame) -> Value:
        result = super().on_yield(node, frame)
        if node.value is not None and frame.yields:
            frame.yields[-1] = self.tensor_of_layer(node.value, frame.yields[-1], frame)
        return result

    def tensor_of_layer(self, node: ast.expr, value: Value, frame: Frame) -> Value:
        """What is put into a list, or yielded: `layer.bias` is a parameter where a loop gives the layers of models."""
        if value != SAME or not isinstance(node, ast.Attribute) or node.attr not in _OF_LAYER:
            return value
        return self.of_layers(node, frame) or value

    def of_layers(self, node: ast.Attribute, frame: Frame) -> Value | None:
        """Parameters of one of the layers that a loop gives, `layer.bias`, `layer.parameters`; None of other things."""
        models = dict.fromkeys(self.layers_of(node.value, frame))
        parts = tuple(
            self.layer_parts.setdefault((node, each), Module(node, "", networks=True, parent=each)) for each in models
        )
        return of(Parameters(parts)) if parts else None


def to_train(args: Sequence[Value], keywords: Mapping[str, Value]) -> list[Value]:
    """What an optimizer's class is given to train, also in `**options`."""
    several = keywords.get("**", SAME)
    found = [*args[:1], *(value for name, value in keywords.items() if name in TRAINED)]
    dicts = [thing for thing in several.things if isinstance(thing, Items)]
    for each in dicts:
        found += [value for name, value in each.known.items() if name in TRAINED] or each.all()
    return found if dicts else [*found, several]


def _attributes(given: ast.expr) -> Iterator[ast.Attribute]:
    """The attributes among the tensors of an expression: `[{"params": [head.kernel]}]`."""
    if isinstance(given, ast.Attribute):
        yield given
    elif isinstance(given, ast.Dict):
        for key, value in zip(given.keys, given.values, strict=True):
            if isinstance(key, ast.Constant) and key.value == "params":
                yield from _attributes(value)
    elif isinstance(given, ast.List | ast.Tuple):
        for each in given.elts:
            yield from _attributes(each)
    elif isinstance(given, ast.BinOp):
        yield from _attributes(given.left)
        yield from _attributes(given.right)


def is_put_in(script: Script, node: ast.expr) -> bool:
    """Whether what a call gives is put into a list, or yielded: `others.extend([*layer.parameters()])`."""
    parent = script.parents[node]
    if isinstance(parent, ast.Call) and isinstance(parent.func, ast.Name) and parent.func.id in ("list", "tuple"):
        return is_put_in(script, parent)
    if isinstance(parent, ast.Starred | ast.List | ast.Tuple):
        return is_put_in(script, parent)
    if isinstance(parent, ast.Call):
        return isinstance(parent.func, ast.Attribute) and parent.func.attr in _PUTS_IN and node in parent.args
    return isinstance(parent, ast.AugAssign | ast.Yield | ast.YieldFrom)
