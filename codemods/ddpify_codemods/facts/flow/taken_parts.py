"""Parts of networks that are made for them alone: `Net(MobileNet().features)`. Nothing knows the rest any more, so the
part belongs to the network that gets it."""

from __future__ import annotations

import ast

from ..script import Script
from .frames import Frame
from .state import State
from .values import Class, Function, Module, Value


class TakenParts(State):
    """Which parts of networks are taken of what nothing else has."""

    def notes_attribute(self, node: ast.Attribute, owner: Value, found: Value, frame: Frame) -> None:
        """An attribute is read; a part of a network, which may have been made for that alone."""
        parts = {each for each in found.things if isinstance(each, Module) and each.parent in owner.things}
        if parts and isinstance(node.value, ast.Call) and self.makes_alone(self.value(node.value.func, frame)):
            self.taken |= {each for each in parts if each.parent is not None and each.parent.parent is None}

    def makes_alone(self, called: Value) -> bool:
        """Whether a call makes something of a class of the program and gives it back, and nothing else has it."""
        return bool(called.things) and all(
            (isinstance(each, Class) and not _keeps_itself(each))
            or (isinstance(each, Function) and self.gives_what_it_makes(each))
            for each in called.things
        )

    def gives_what_it_makes(self, function: Function) -> bool:
        """`model = SqueezeNet()`, methods of it, `return model`."""
        if not isinstance(function.node, ast.FunctionDef) or function.node.decorator_list:
            return False
        script, inside = function.script, [*ast.walk(function.node)]
        given = {ast.unparse(each.value) for each in inside if isinstance(each, ast.Return) and each.value is not None}
        name = given.pop() if len(given) == 1 else ""
        uses = [each for each in inside if isinstance(each, ast.Name) and each.id == name]
        stores = [script.parents[each] for each in uses if not isinstance(each.ctx, ast.Load)]
        made = stores[0].value if len(stores) == 1 and isinstance(stores[0], ast.Assign) else None
        if not isinstance(made, ast.Call) or any(isinstance(each, ast.Global | ast.Nonlocal) for each in inside):
            return False
        own = {each.id for each in inside if isinstance(each, ast.Name) and not isinstance(each.ctx, ast.Load)}
        own |= {each.arg for each in inside if isinstance(each, ast.arg)}
        if not isinstance(made.func, ast.Name) or made.func.id in own:
            return False
        classes = self.value(made.func, self.module_frame(script)).things
        alone = all(isinstance(each, Class) and not _keeps_itself(each) for each in classes)
        loads = [each for each in uses if isinstance(each.ctx, ast.Load)]
        return bool(classes) and alone and all(_is_used(script, each) for each in loads)


def _is_used(script: Script, name: ast.Name) -> bool:
    """Whether something is only given back, or asked for a part or a method."""
    return isinstance(script.parents[name], ast.Return | ast.Attribute)


def _keeps_itself(cls: Class) -> bool:
    """Whether objects of a class may be given to something as they are made: `MODELS.append(self)`."""
    if any(cls.script.qualified(base) != "torch.nn.Module" for base in cls.node.bases):
        return True
    if cls.node.decorator_list or cls.node.keywords:
        return True
    methods = [each for each in cls.node.body if isinstance(each, ast.FunctionDef | ast.AsyncFunctionDef)]
    firsts = {each.args.args[0].arg for each in methods if each.args.args}
    names = (each for each in ast.walk(cls.node) if isinstance(each, ast.Name) and each.id in firsts)
    return any(_is_given(cls.script, each) for each in names)


def _is_given(script: Script, name: ast.Name) -> bool:
    parent = script.parents[name]
    of_super = isinstance(parent, ast.Call) and ast.unparse(parent.func) == "super"
    return not (of_super or isinstance(parent, ast.Attribute))
