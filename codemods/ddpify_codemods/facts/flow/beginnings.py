"""Numbers that networks begin with: which are drawn while a network is made, so that its wrapper makes them alike."""

from __future__ import annotations

import ast

from .frames import Frame
from .state import State
from .training import loop_over
from .values import Module, Parameters, is_network

_PARAMETER = frozenset({"torch.nn.Parameter", "torch.nn.parameter.Parameter"})
_OF_LAYERS = ("weight", "bias")
_PARAMETERS = frozenset({"parameters", "named_parameters"})
_LAYERS = frozenset({"modules", "named_modules", "children", "named_children"})


class Beginnings(State):
    """What the constructors of networks draw."""

    def begins_with(self, node: ast.Call, frame: Frame) -> bool:
        """Whether a function of torch.nn.init fills a parameter of a network that is being made, which is then noted.

        Its wrapper, made later, sends the numbers of rank 0 to all others. Buffers need not be sent.
        """
        made = made_around(frame)
        if not made or not node.args or not self._is_parameter(node.args[0], frame):
            return False
        self.begins_apart |= made
        return True

    def _is_parameter(self, node: ast.expr, frame: Frame) -> bool:
        things = self.value(node, frame).things
        if things and all(isinstance(each, Parameters) or _is_named(each, _PARAMETER) for each in things):
            return True
        if isinstance(node, ast.Name):
            return self._is_given_by(node, _PARAMETERS, frame)
        if not isinstance(node, ast.Attribute) or not node.attr.startswith(_OF_LAYERS):
            return False
        owners = self.value(node.value, frame).things
        of_torch = [isinstance(each, Module) and each.name.startswith("torch.nn.") for each in owners]
        return all(of_torch) if of_torch else self._is_given_by(node.value, _LAYERS, frame)

    def _is_given_by(self, node: ast.expr, methods: frozenset[str], frame: Frame) -> bool:
        """Whether a name is what a loop takes of a network: `for m in self.modules()`."""
        loop = loop_over(frame.script, node)
        call = loop.iter if loop is not None else None
        if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Attribute) or call.func.attr not in methods:
            return False
        return any(is_network(each) for each in self.value(call.func.value, frame).things)


def _is_named(thing: object, names: frozenset[str]) -> bool:
    return isinstance(thing, Module) and thing.name in names


def made_around(frame: Frame) -> set[Module]:
    """The networks in whose constructors, or in what these call, a frame is."""
    found: set[Module] = set()
    at: Frame | None = frame
    while at is not None:
        if getattr(at.node, "name", "") == "__init__":
            found |= {each for each in at.owners if isinstance(each, Module) and is_network(each)}
        at = at.caller
    return found
