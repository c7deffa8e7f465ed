"""Layers of trained models that no call is seen of: those in lists that are not followed, and those that take the place
of others, `setattr(model, name, Separable(child))`."""

from __future__ import annotations

import ast

from .frames import Frame, Problem
from .modules import Modules, script_of
from .values import Class, Library, Module, Value, entries, root_of

_ALL_LAYERS = frozenset({"children", "named_children", "_modules"})
_FINDS_ATTRIBUTES = frozenset({"getattr", "vars", "eval", "exec", "attrgetter", "methodcaller"})
_ALL_ATTRIBUTES = frozenset(
    {"__dict__", "modules", "named_modules", "get_submodule", "__getattr__", "__getattribute__"}
    | {"attrgetter", "methodcaller"}
)
_LAST = frozenset({"fc", "_fc", "classifier", "head", "heads", "last_linear"})  # of libraries' networks
_UNSEEN = "what this layer computes is not seen: the model calls it in a way that is not followed"


class UnseenLayers(Modules):
    """What layers compute that no call is seen of."""

    def end_layers(self) -> None:
        """Note layers of trained models of which it is not seen what they compute: they may couple samples."""
        unseen: list[Module] = []
        for module in [*self.own_modules.values()]:
            cls = module.cls
            root = root_of(module)
            if cls is None or root is module or root.made not in self.trained:
                continue
            if module not in self.called_networks and any(part is module for part, _ in self.parts):
                self.leaves_layers(module)  # its forward never runs: layers of it are called one by one
            if cls.node in self.computing:
                continue
            if root in self.not_taking and root.cls is not None and root.cls.node not in self.computing:
                continue
            if any(part is module for part, _ in self.parts):  # whose layers are called one by one
                continue
            if self.method_of(cls, "forward", None) is not None and self.is_left_out(module):
                self.found.unused.add(root.made)
            elif self.method_of(cls, "forward", None) is not None:
                unseen.append(module)
        for module in self.modules.values():
            if module not in self.called_networks and self.leaves_last(module):
                self.found.unused.add(root_of(module).made)
        apart = [each for each in unseen if self.leaves_samples_apart(each)]
        for module in unseen:
            self.found.unused.add(root_of(module).made)
            if module not in apart or self.has_moved:  # after all of them were followed
                self.found.problems.append(Problem(script_of(self.scripts, module.made), module.made, _UNSEEN))

    def leaves_last(self, module: Module) -> bool:
        """Whether a network of a library, of which layers are called one by one, may have a last one that is not:
        `self.backbone.layer1(self.backbone.conv1(x))`."""
        if module.name.startswith("torch.nn.") or not module.networks or root_of(module).made not in self.trained:
            return False
        named = {name for part, name in self.parts if part is module}
        return bool(named) and _LAST.isdisjoint(named | module.attributes.keys())

    def leaves_samples_apart(self, layer: Module) -> bool:
        """Whether a layer is seen to compute each sample by itself, of whatever batch it is given."""
        forwards = self.forwards_of(layer)
        training = frozenset(each for each in self.found.loaders if self.status.get(each) == "training")
        if not forwards or len(forwards) > 1 or not training or not isinstance(layer.made, ast.Call):
            return False
        batch = Value("batch", training, is_none=None)
        parameters = forwards[0].node.args
        if parameters.vararg or parameters.kwarg:
            return False
        names = [each.arg for each in (*parameters.posonlyargs, *parameters.args)][1:]
        words = {each.arg: batch for each in parameters.kwonlyargs}
        problems = len(self.found.problems)
        frame = Frame(forwards[0].script, forwards[0].script.tree, outer=self.module_frame(forwards[0].script))
        self.in_forward.append(root_of(layer))
        try:
            result = self.own_forward(layer, layer.made, [batch] * len(names), words, frame, trained=False)
        finally:
            self.in_forward.pop()
        found = self.found.problems[problems:]
        del self.found.problems[problems:]
        return not found and result is not None and not any(each.is_kept for each in entries([result]))

    def is_left_out(self, layer: Module) -> bool:
        """Whether all that names a layer stands where conditions that are known never lead: `if condition is not None:`
        of a parameter that no call gives; or nothing names it."""
        if layer.parent is not None and layer.parent.parent is not None and self.is_left_out(layer.parent):
            return True
        owners = [each for each in self.own_modules.values() if each is layer.parent]
        names = {name for each in owners for name, value in each.attributes.items() if layer in value.things}
        nodes = [(each, node) for each in self.scripts for node in each.find(ast.Attribute)]
        loads = [(each, node) for each, node in nodes if node.attr in names and isinstance(node.ctx, ast.Load)]
        by_other_ways = any(node.attr in _ALL_LAYERS for _, node in nodes)
        left_out = all(not self.found.passed_by.isdisjoint(each.ancestors(node)) for each, node in loads)
        return len(names) == 1 and left_out and not by_other_ways and (bool(loads) or self.is_never_named(layer))

    def is_never_named(self, layer: Module) -> bool:
        """Whether a layer is made for an attribute alone, which is nowhere read, also not by a name that is a text, nor
        by a library's class that the network is derived from."""
        given = script_of(self.scripts, layer.made).parents.get(layer.made)
        alone = isinstance(given, ast.Assign) and given.value is layer.made and len(given.targets) == 1
        if not alone or not isinstance(given.targets[0], ast.Attribute):  # type: ignore[union-attr]
            return False
        if layer.parent is None or layer.parent.cls is None or not self.is_of_program(layer.parent.cls):
            return False
        called = {node.id for script in self.scripts for node in script.find(ast.Name)}
        named = {node.attr for script in self.scripts for node in script.find(ast.Attribute)}
        return called.isdisjoint(_FINDS_ATTRIBUTES) and named.isdisjoint(_ALL_ATTRIBUTES)

    def is_of_program(self, cls: Class) -> bool:
        """Whether a class of networks is derived from no other class of a library than torch.nn.Module."""
        bases = [self.value(base, self.module_frame(cls.script)) for base in cls.node.bases]
        own = all(self.is_of_program(thing) for base in bases for thing in base.things if isinstance(thing, Class))
        others = [thing for base in bases for thing in base.things if not isinstance(thing, Class)]
        known = all(isinstance(thing, Library) and thing.name == "torch.nn.Module" for thing in others)
        return own and known and all(base.things for base in bases)
