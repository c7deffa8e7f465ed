"""Parameters that an optimizer is given one by one, or by groups of layers: `[head.kernel]`,
`others.extend(layer.parameters())` in a loop over `model.modules()`."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Mapping, Sequence

from ..script import Script
from .bare_tensors import TRAINED, attributes_given, bare_tensors, parameters_given
from .frames import Frame
from .training import Training
from .values import SAME, Items, Module, Parameters, Value, entries, of, root_of

_OF_LAYER = frozenset({"weight", "bias"})
_PUTS_IN = frozenset({"append", "extend", "insert"})
BARE = "this optimizer gets a tensor that belongs to no module, whose gradient no wrapper averages"
UNSEEN = "the model whose parameters this optimizer gets cannot be seen"


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

    def not_averaged(self, node: ast.Call, modules: Iterable[Module], frame: Frame) -> str:
        """Why no wrapper averages the gradient of something that an optimizer is given: a tensor that belongs to no
        module, also as an attribute of one, or a parameter of a model that is not seen; "" where there is none."""
        trained = {root_of(each) for each in (*modules, *self.found.trained)}
        for given in parameters_given(node):
            if any(True for _ in bare_tensors(frame.script, given)):
                return BARE
            for taken in attributes_given(frame.script, given):
                if reason := self.left_out(taken, trained, frame):
                    return reason
        return ""

    def left_out(self, taken: ast.Attribute, trained: set[Module], frame: Frame) -> str:
        """Why an attribute that an optimizer is given is none of a model that is trained; "" where it is."""
        if taken not in self.attributes:
            return ""
        found, of_program, at = self.attributes[taken]
        if of_program and not found.things:
            return BARE
        if not found.things and is_put_in(frame.script, taken):
            found = self.of_layers(taken, at) or found
            if not found.things:
                return UNSEEN
        return "" if trained.issuperset(map(root_of, self.trained_by([found]))) else UNSEEN

    def notes_attribute(self, node: ast.Attribute, owner: Value, found: Value, frame: Frame) -> None:
        super().notes_attribute(node, owner, found, frame)
        if self.in_forward:
            return
        of_program = any(isinstance(each, Module) and each.cls is not None for each in owner.things)
        self.attributes[node] = found, of_program, frame
        if tensors := found.only(Module):
            owners = {each.parent for each in tensors if isinstance(each, Module) and each.parent is not None}
            self.found.parameters_of.setdefault(node.value, set()).update(owners)

    def on_yield(self, node: ast.Yield | ast.YieldFrom, frame: Frame) -> Value:
        result = super().on_yield(node, frame)
        if node.value is not None and frame.yields:
            frame.yields[-1] = self.tensor_of_layer(node.value, frame.yields[-1], frame)
        return result

    def put_into(self, parameters: Parameters, name: str, node: ast.Call, args: Sequence[Value], frame: Frame) -> None:
        """Others are put into a list of parameters: `params = list(net.parameters()); params.append(head.kernel)`."""
        if name in _PUTS_IN and args:
            added = self.trained_by([self.tensor_of_layer(node.args[-1], args[-1], frame)])
            parameters.modules = tuple(dict.fromkeys([*parameters.modules, *added]))

    def tensor_of_layer(self, node: ast.expr, value: Value, frame: Frame) -> Value:
        """What is put into a list, or yielded: `layer.bias` is a parameter where a loop gives the layers of models."""
        if tensors := [each for each in value.things if isinstance(each, Module) and _is_parameter(each)]:
            return of(Parameters(tuple(tensors)))
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


def _is_parameter(thing: Module) -> bool:
    """Whether what a network has is a parameter, and no layer."""
    is_taken = isinstance(thing.made, ast.Attribute) and thing.made.attr in _OF_LAYER
    return thing.parent is not None and (is_taken or thing.name.rpartition(".")[2] == "Parameter")


def is_put_in(script: Script, node: ast.expr) -> bool:
    """Whether what a call gives is put into a list, or yielded: `others.extend([*layer.parameters()])`."""
    parent = script.parents[node]
    if isinstance(parent, ast.Call) and isinstance(parent.func, ast.Name) and parent.func.id in ("list", "tuple"):
        return is_put_in(script, parent)
    if isinstance(parent, ast.Starred | ast.List | ast.Tuple | ast.ListComp | ast.GeneratorExp):
        return is_put_in(script, parent)
    if isinstance(parent, ast.Call):
        return isinstance(parent.func, ast.Attribute) and parent.func.attr in _PUTS_IN and node in parent.args
    return isinstance(parent, ast.AugAssign | ast.Yield | ast.YieldFrom)
