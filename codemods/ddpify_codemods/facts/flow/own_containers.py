"""Classes of the program that are derived from nn.Sequential, nn.ModuleList or nn.ModuleDict: the layers that they are
made with, and what they make of a batch where they define no `forward`."""

from __future__ import annotations

import ast
from collections.abc import Sequence

from .containers import CONTAINERS, Containers
from .frames import Frame
from .values import Class, Items, Module, Value


class OwnContainers(Containers):
    """What a class derived from a container of torch holds."""

    def container_of(self, cls: Class, depth: int = 5) -> str:
        """The container of torch that a class is derived from; "" for none."""
        for base in cls.node.bases:
            name = cls.script.qualified(base)
            if name in CONTAINERS:
                return name
            for thing in self.value(base, self.module_frame(cls.script)).only(Class):
                assert isinstance(thing, Class)
                if depth and thing is not cls and (found := self.container_of(thing, depth - 1)):
                    return found
        return ""

    def contains(self, module: Module) -> None:
        """An instance of such a class is made."""
        name = self.container_of(module.cls) if module.cls is not None else ""
        if name and module.contents is None:
            module.name, module.contents = name, Items("dict" if CONTAINERS[name] == "dict" else "list")

    def of_container_class(self, name: str, node: ast.Call, args: Sequence[Value], frame: Frame) -> Value | None:
        """What `super().__init__(*layers)` and `super().forward(x)` do in such a class; None for other calls."""
        owner = node.func.value if isinstance(node.func, ast.Attribute) else None
        asks = isinstance(owner, ast.Call) and isinstance(owner.func, ast.Name) and owner.func.id == "super"
        if not asks or name not in ("__init__", "forward") or frame.this is None or not args:
            return None
        for thing in frame.this.only(Module):
            assert isinstance(thing, Module)
            if thing.contents is None or thing.name not in CONTAINERS:
                continue
            if name == "__init__":
                self.fill(thing, args)
            elif thing.name == "torch.nn.Sequential":
                return self.one_after_the_other(thing, node, args, frame)
        return None

    def one_after_the_other(self, module: Module, node: ast.Call, args: Sequence[Value], frame: Frame) -> Value:
        """What the layers of such a class make of a batch."""
        named = {name: value for name, value in module.attributes.items() if value.only(Module)}
        if named:
            module.layers = []
            self.put(module, named.values())
            self.parts |= {(module, name) for name in named}
        return self.in_turn(module, node, args, frame)
