"""Numbers that networks begin with: which are drawn while a network is made, so that its wrapper makes them alike."""

from __future__ import annotations

import ast
from collections.abc import Sequence

from .draws import DRAWING, draws_from
from .frames import Frame, Problem
from .state import State
from .training import loop_over
from .values import DRAWN, Function, Module, Parameters, Thing, Value, functions_in, is_network, root_of

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

    def redraws(self, name: str, owner: Value, given: Sequence[Value], node: ast.Call, frame: Frame) -> None:
        """A method draws new numbers for parameters that a wrapper has made alike: `layer.reset_parameters()`,
        `p.data.normal_()`, `model.apply(init_weights)`."""
        if "torch" not in self.began & self.drawn or made_around(frame):
            return
        if name == "apply" and any(_draws(each) for value in given for each in functions_in(value)):
            self.drawn_anew(owner.only(Module), node, frame)
        elif name in DRAWING or name == "reset_parameters":
            reached: list[Thing] = [*owner.only(Module), *self.parameters_in([owner])]
            of = node.func.value if isinstance(node.func, ast.Attribute) else node
            while isinstance(of, ast.Attribute):
                of = of.value
            own = not owner.is_local or owner.reason == DRAWN
            loop = loop_over(frame.script, of) if own and not reached else None
            taken = loop.iter.func.value if loop is not None and _is_of_network(loop.iter) else None  # type: ignore[attr-defined]
            self.drawn_anew(
                reached or (self.value(taken, frame).only(Module) if taken is not None else []), node, frame
            )

    def drawn_anew(self, modules: Sequence[Thing], node: ast.AST, frame: Frame) -> None:
        """Parts of networks get numbers that each rank draws; a wrapper that is made later makes them alike."""
        for each in modules:
            if isinstance(each, Module) and (made := root_of(each).made) in self.optimizers_of:
                self.redrawn[made] = Problem(frame.script, node, f"parameters of a model are drawn here: {DRAWN}")

    def trains_drawn(self, model: ast.AST) -> None:
        """A model is trained with what parameters it has."""
        if model in self.redrawn:
            self.found.problems.append(self.redrawn[model])

    def _is_parameter(self, node: ast.expr, frame: Frame) -> bool:
        if isinstance(node, ast.Attribute) and node.attr == "data":  # what a parameter holds: `m.weight.data`
            return self._is_parameter(node.value, frame)
        things = self.value(node, frame).things
        if things and all(isinstance(each, Parameters) or _is_named(each, _PARAMETER) for each in things):
            return True
        if isinstance(node, ast.Name):
            return self._is_given_by(node, _PARAMETERS, frame)
        if not isinstance(node, ast.Attribute) or not node.attr.startswith(_OF_LAYERS):
            return False
        owners = self.value(node.value, frame).things
        if isinstance(node.value, ast.Subscript):  # `self.layers[-1].weight`
            return any(is_network(each) for each in self.value(node.value.value, frame).things)
        of_torch = [isinstance(each, Module) and each.name.startswith("torch.nn.") for each in owners]
        return all(of_torch) if of_torch else self._is_given_by(node.value, _LAYERS, frame)

    def _is_given_by(self, node: ast.expr, methods: frozenset[str], frame: Frame) -> bool:
        """Whether a name is what a loop takes of a network: `for m in self.modules()`."""
        loop = loop_over(frame.script, node)
        call = loop.iter if loop is not None else None
        if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Attribute) or call.func.attr not in methods:
            return False
        return any(is_network(each) for each in self.value(call.func.value, frame).things)


def _is_of_network(node: ast.expr) -> bool:
    """`model.modules()`, `model.named_parameters()`."""
    return (
        isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in _PARAMETERS | _LAYERS
    )


def _draws(function: Function) -> bool:
    """Whether a function is seen to draw the numbers of a layer that it gets."""
    calls = (each for each in ast.walk(function.node) if isinstance(each, ast.Call))
    return any(
        draws_from(function.script, each) == "torch" or ast.unparse(each.func).endswith(".reset_parameters")
        for each in calls
    )


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
