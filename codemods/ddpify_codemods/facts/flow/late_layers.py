"""Layers, and types of numbers, that a model gets after its wrapper was made, which leaves the gradients of such
parameters as each rank has them."""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence

from ..called_modules import last_name
from .beginnings import made_around
from .conditional_layers import has_no_parameters
from .frames import Frame
from .state import State
from .values import Class, Module, Value, entries, root_of

LATE = (
    "the model gets other layers here after its optimizer was made, and none is made before it trains on: "
    "DistributedDataParallel would leave their gradients as each rank has them"
)
_PARAMETERS = frozenset({"weight", "bias"})  # of layers: `model.fc.bias = None`
_PARAMETERS = frozenset({"weight", "bias"})  # of layers: `model.fc.bias = None`
_TYPES = frozenset({"double", "half", "bfloat16"})
_TYPE_NAMES = frozenset({*_TYPES, "float64", "float16"})
# They put layers into the networks that they are given, or other parameters into their layers.
_CHANGE = (
    "torch.nn.utils.weight_norm",
    "torch.nn.utils.spectral_norm",
    "torch.nn.utils.parametrizations.",
    "torch.nn.utils.parametrize.register_parametrization",
    "torch.quantization.prepare_qat",
    "torch.ao.quantization.prepare_qat",
    "peft.get_peft_model",
    "peft.inject_adapter_in_model",
)
_LAYERS = ("torch.nn.", "torchvision.models.")
_LOADS = ("torch.hub.", "torch.load", "torch.jit.")
_PLAIN = frozenset({"super", "__init__", "register_buffer"})
_IN_PLACE = ("torch.quantization.", "torch.ao.quantization.")


class LateLayers(State):
    """What models get after their wrappers."""

    def gets_layers(self, owner: Value, given: Sequence[Value], node: ast.AST, frame: Frame) -> None:
        """Networks get something as a part: where that is a layer, or None for a parameter, only a wrapper that is made
        later knows it."""
        if self.in_forward:
            return
        modules = [each for value in entries(given) for each in value.only(Module)]
        leaves = isinstance(node, ast.Attribute) and node.attr in _PARAMETERS and any(each.is_none for each in given)
        making = made_around(frame)
        for each in owner.only(Module):
            assert isinstance(each, Module)
            root = root_of(each)
            new = [layer for layer in modules if isinstance(layer, Module) and _learns(layer, root)]
            if (new or leaves) and not making & {each, root}:
                frozen = not leaves and all(self.gradients.frozen.get(layer.made) is True for layer in new)
                self.is_changed(root.made, LATE, node, frame, frozen)

    def changes_layers(
        self, name: str, given: Sequence[Value], words: Mapping[str, Value], node: ast.AST, frame: Frame
    ) -> None:
        """A function of a library changes the layers of a network that it is given, and no copy of them."""
        in_place = name.startswith(_IN_PLACE) and "inplace" in words and words["inplace"].constant is True
        if (in_place or name.startswith(_CHANGE)) and not self.in_forward:
            for each in (each for value in given[:1] for each in value.only(Module)):
                assert isinstance(each, Module)
                self.is_changed(root_of(each).made, LATE, node, frame)

    def trains_late_layers(self, model: ast.AST) -> None:
        """A model is trained with what layers it has."""
        if model in self.late_layers:
            self.found.problems.append(self.late_layers[model][1])


def _learns(module: Module, root: Module) -> bool:
    """Whether a module may have parameters that are trained, and a network not yet; what an unknown call makes may be
    anything, and counts as none."""
    if root_of(module) is root or isinstance(module.made, ast.Module):
        return False
    held = [*(module.contents.all() if module.contents is not None else ()), *module.attributes.values()]
    inside = (each for value in held for each in value.only(Module))
    if any(isinstance(each, Module) and each is not module and _learns(each, root) for each in inside):
        return True
    if module.cls is not None:
        return not _makes_none(module.cls)
    if module.contents is not None and (module.name != "torch.nn.Sequential" or module.layers):
        return False  # it has what it holds
    return module.name.startswith(_LAYERS) and not has_no_parameters(module) and not module.name.endswith("Loss")


def _makes_none(cls: Class) -> bool:
    """Whether all that a network of the program's own makes is seen: buffers, and what is known of torch."""
    if [cls.script.qualified(base) for base in cls.node.bases] != ["torch.nn.Module"]:
        return False
    making = [each for each in cls.node.body if isinstance(each, ast.FunctionDef) and each.name == "__init__"]
    calls = [part for each in making for part in ast.walk(each) if isinstance(part, ast.Call)]
    names = [cls.script.qualified(call.func) for call in calls if last_name(call.func) not in _PLAIN]
    return all(name.startswith("torch.") and not name.startswith(_LOADS) for name in names)
