"""Layers in nn.ModuleList, nn.ModuleDict and nn.Sequential, and copies of layers: what a model computes with them is
followed as what it computes itself, since a layer of the program's own may couple samples or draw noise."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Sequence
from dataclasses import replace

from .conditional_layers import ConditionalLayers
from .frames import Frame
from .operations import element
from .seen_layers import of_modules
from .values import Items, Iteration, Module, Value, is_network, join, of, root_of

CONTAINERS = {"torch.nn.ModuleList": "list", "torch.nn.ModuleDict": "dict", "torch.nn.Sequential": "list"}
_COPIES = frozenset({"copy.deepcopy", "copy.copy"})
_PUTS = frozenset({"append", "extend", "insert", "add_module", "register_module", "update", "__setitem__"})
# What every network of torch has, and containers.
OF_MODULES = frozenset(
    {"training", "train", "eval", "apply", "to", "cuda", "cpu", "double", "float", "half", "bfloat16", "type", "xpu"}
    | {"forward", "parameters", "named_parameters", "buffers", "named_buffers", "children", "named_children", "modules"}
    | {"named_modules", "state_dict", "load_state_dict", "zero_grad", "requires_grad_", "share_memory", "extra_repr"}
    | {"register_buffer", "register_parameter", "register_module", "register_forward_hook", "get_submodule", "compile"}
    | {"register_forward_pre_hook", "register_full_backward_hook", "get_parameter", "get_buffer", "to_empty", "pop"}
    | {"append", "extend", "insert", "add_module", "update", "items", "values", "keys", "clear", "module"}
)
_VIEWS = {"items": "pairs", "values": "entries", "keys": "keys"}


class Containers(ConditionalLayers):
    """What holds layers."""

    def fill(self, module: Module, given: Sequence[Value]) -> None:
        """A container is made of layers, one by one or in a list or dict."""
        shape = CONTAINERS.get(module.name)
        if shape is None:
            return
        if module.contents is None:
            module.contents = Items("dict" if shape == "dict" else "list")
        given = [replace(value, things=value.things - {module}) for value in given]  # of the same class, made before
        several = [each for value in given for each in _parts(value)]
        if shape == "list" and several and all(len(each.only(Module)) == 1 for each in several):
            in_order = given and not any(_is_endless(value) for value in given)
            module.layers = [each for value in several for each in _modules([value])] if in_order else []
        self.put(module, given)

    def put(self, module: Module, given: Iterable[Value]) -> None:
        """Something is put into a container."""
        contents = module.contents
        assert contents is not None
        given = [*given]
        self.vague_containers |= {module} if not of_modules(given) else set()
        for value in given:
            for thing in value.only(Items):
                assert isinstance(thing, Items)
                keys = thing.known if contents.shape == "dict" else {}
                contents.known |= {key: each for key, each in keys.items() if each.only(Module)}
                rest = [each for key, each in [*thing.known.items(), (None, thing.rest)] if key not in keys]
                self._also(contents, (each for each in rest if each is not None))
            self._also(contents, [value])
            for each in _modules([value, *_parts(value)]):
                if each is not module and each.parent is not module:
                    self.belongs(each, module)

    def put_by_name(self, owner: Value, layer: Value) -> None:
        """Networks get a layer by a name that only the run knows: `setattr(self, f"layer{i}", Linear(4, 4))`."""
        for each in _modules([owner]) if layer.only(Module) else ():
            if is_network(each):
                each.contents = each.contents or Items("dict")
                self.put(each, [layer])

    def _also(self, contents: Items, values: Iterable[Value]) -> None:
        for value in values:
            if value.only(Module):
                contents.rest = value if contents.rest is None else join(contents.rest, value)

    def layers_in(self, module: Module) -> Value | None:
        """The layers of a network of the program, one after the other, as its forward takes them: `self.children()`."""
        if module.cls is None:
            return None
        named = {name: value for name, value in module.attributes.items() if value.only(Module)}
        self.parts |= {(module, name) for name in named}
        several = [*named.values(), *(module.contents.all() if module.contents is not None else [])]
        return of(Items("list", dict(enumerate(several)))) if several else None

    def belongs(self, part: Module, module: Module) -> None:
        raise NotImplementedError

    def held(self, value: Value, key: object) -> Value | None:
        """What a container has under a key, or as one of several; None where a value is no container with layers."""
        holders = [each for each in value.things if isinstance(each, Module) and each.contents is not None]
        if not holders or len(holders) < len(value.things):
            return None
        if isinstance(key, slice):
            return value
        found: Value | None = None
        for each in holders:
            if each.contents is not None and each.contents.all():
                one = element(of(each.contents), key)
                found = one if found is None else join(found, one)
        return found

    def layer_named(self, module: Module, name: str) -> Value | None:
        """A layer that a container has as an attribute, `self.blocks.last`: by the name that add_module gave it."""
        contents = module.contents
        if contents is None or name in OF_MODULES or not contents.all():
            return None
        return element(of(contents), name)

    def of_container(self, module: Module, name: str, given: Sequence[Value]) -> Value | None:
        """What a method of a container gives; None for others."""
        if module.contents is None or (module.cls is not None and module.name not in CONTAINERS):
            return None
        if name in _PUTS and given:
            module.layers = []  # which of them comes first is not told
            self.put(module, given)
            return of(module)
        return of(Iteration(_VIEWS[name], (of(module.contents),))) if name in _VIEWS else None

    def in_turn(self, module: Module, node: ast.Call, given: Sequence[Value], frame: Frame) -> Value:
        """What layers make of a batch, one after the other."""
        value = given[0]
        layers = module.layers
        if not layers and module.contents is not None:
            layers = sorted(_modules(module.contents.all()), key=lambda each: getattr(each.made, "lineno", 0))
        for layer in layers:
            value = self.forward(layer, node, [value], {}, frame)
        return value

    def forward(
        self, module: Module, node: ast.Call, args: list[Value], keywords: dict[str, Value], frame: Frame
    ) -> Value:
        raise NotImplementedError

    def copied(self, name: str, node: ast.Call, args: Sequence[Value]) -> Value | None:
        """Copies of networks, which compute what these do; None for other copies."""
        things = args[0].things if name in _COPIES and args else frozenset()
        originals = [each for each in things if isinstance(each, Module) and (each.cls is not None or each.contents)]
        if not originals or len(originals) < len(things):
            return None
        copies: list[Module] = []
        for each in originals:
            fresh = replace(each, made=node, parent=None, attributes=dict(each.attributes))
            copies.append(self.copies.setdefault((node, each), fresh))
            root = root_of(each)
            alike = root.made in self.optimizers_of or not any(root_of(one) is root for one in self.begins_apart)
            self.begins_apart |= set() if alike else {copies[-1]}  # the original is not wrapped yet
        self.new_modules |= set(copies)
        return Value(things=frozenset(copies))


def has_layers(value: Value) -> bool:
    """Whether a value is a container of layers."""
    return any(
        isinstance(each, Module) and each.contents is not None and (not each.cls or each.name in CONTAINERS)
        for each in value.things
    )


def _parts(value: Value) -> list[Value]:
    """What is in a list or dict; the value itself for anything else."""
    inner = [each for thing in value.only(Items) if isinstance(thing, Items) for each in thing.all()]
    return inner or [value]


def _is_endless(value: Value) -> bool:
    """Whether there may be any number of what a list holds."""
    return any(isinstance(thing, Items) and thing.rest is not None for thing in value.things)


def _modules(values: Iterable[Value]) -> list[Module]:
    return [each for value in values for each in value.things if isinstance(each, Module)]
