"""Classes of the program that are derived from DataLoader: the call that makes a loader of them,
`super().__init__(dataset, batch_size=8)`, and what they hold beside it."""

from __future__ import annotations

import ast
from collections.abc import Sequence

from ..script import Script
from .draws import LOADERS
from .frames import Frame
from .state import State
from .values import Class, Instance, Library, Loader, Value, of

# What DataLoader gives its objects, whatever they held under these names before.
_GIVEN = frozenset(
    {"dataset", "batch_size", "sampler", "batch_sampler", "drop_last", "collate_fn", "generator", "worker_init_fn"}
    | {"num_workers", "prefetch_factor", "pin_memory", "pin_memory_device", "timeout", "persistent_workers"}
    | {"multiprocessing_context", "in_order"}
)
_METHODS = frozenset({"_get_iterator", "_auto_collation", "_index_sampler", "check_worker_number_rationality"})
_SPECIAL = frozenset({"__init__", "__str__", "__repr__"})
# By these, an object gets attributes that are not seen.
_HIDING = frozenset({"__setattr__", "__dict__", "__class__", "vars"})


class OwnLoaders(State):
    """What objects of such classes are."""

    def bases_of(self, cls: Class) -> list[Class]:
        raise NotImplementedError

    def own_loader(self, cls: Class, node: ast.Call, frame: Frame) -> Loader | None:
        """The loader that a call of a class makes; None where the class is no such one, or the call of DataLoader in it
        is not seen."""
        made = self.made_by(cls, node, frame)
        if made is None:
            return None
        call, script = made
        variant = (*self.variant, cls.node, node, *frame.calls)
        loader = self.known_loaders.setdefault((call, variant), Loader(call, script, variant, cls=cls))
        if loader not in self.own_loaders:
            self.own_loaders.add(loader)
            loader.attributes.clear()  # of the round before
        return loader

    def made_by(self, cls: Class, node: ast.Call, frame: Frame, depth: int = 5) -> tuple[ast.Call, Script] | None:
        """The call that gives DataLoader its arguments, where a call makes an object of a class, and its file."""
        if not self.is_loader_class(cls):
            return None
        bases, base = self.bases_of(cls), cls.node.bases[0] if len(cls.node.bases) == 1 else None
        if base is None or cls.node.keywords or cls.node.decorator_list or not _is_plain(cls.node):
            return None
        initial = [each for each in cls.node.body if isinstance(each, ast.FunctionDef) and each.name == "__init__"]
        calls = _super_calls(initial[0]) if initial else [node]
        script = cls.script if initial else frame.script
        if len(calls) != 1:
            return None
        if cls.script.qualified(base) in LOADERS:
            return calls[0], script
        return self.made_by(bases[0], calls[0], frame, depth - 1) if len(bases) == 1 and depth else None

    def of_own_loader(self, node: ast.Call) -> Value | None:
        """What `super().__init__` is, where it makes the loader that is being made; None for other calls."""
        makes = any(each.call is node for each in self.loaders_begun)
        return of(Library("torch.utils.data.DataLoader")) if makes and _is_super(node) else None

    def begun(self, node: ast.Call) -> Loader | None:
        """The loader of such a class that a call of DataLoader makes; None for other calls."""
        return next((each for each in reversed(self.loaders_begun) if each.call is node), None)

    def ends(self, loader: Loader) -> None:
        """A loader has got from DataLoader what it holds under these names from now on."""
        if loader in self.loaders_begun:
            self.loaders_begun.remove(loader)
            for name in _GIVEN & loader.attributes.keys():
                del loader.attributes[name]

    def may_load_otherwise(self, found: Value, node: ast.Call, frame: Frame) -> None:
        """A call makes a loader that is followed, or an object of another class of loaders: of which is not known."""
        others = [
            each for each in found.only(Instance) if isinstance(each, Instance) and self.is_loader_class(each.cls)
        ]
        for each in others if found.only(Loader) else ():
            self.problem(frame, node, f"{each.cls.node.name}, which this may make, loads in a way of its own")

    def is_loader_class(self, cls: Class, depth: int = 5) -> bool:
        """Whether a class is derived from DataLoader, in whatever way."""
        if any(cls.script.qualified(base) in LOADERS for base in cls.node.bases):
            return True
        return depth > 0 and any(self.is_loader_class(base, depth - 1) for base in self.bases_of(cls))

    def asks_for_class(self, node: ast.Call, given: Sequence[Value], frame: Frame) -> None:
        """What kind of loader something is, or what it has, is asked: an evaluation of the samples of training gets one
        of torch's own class instead."""
        for loader in given[0].only(Loader) if given else ():
            assert isinstance(loader, Loader)
            if loader.source is not None and loader.source.cls is not None:
                self.problem(frame, node, "this asks for more than a loader of torch, which stands here instead")


def _super_calls(function: ast.FunctionDef) -> list[ast.Call]:
    """The calls of `super().__init__` in a function, if it makes them in any case and once."""
    calls = [each for each in ast.walk(function) if isinstance(each, ast.Call) and _is_super(each)]
    at_once = {each.value for each in function.body if isinstance(each, ast.Expr)}
    return calls if at_once.issuperset(calls) else []


def _is_super(call: ast.Call) -> bool:
    function = call.func
    owner = function.value if isinstance(function, ast.Attribute) and function.attr == "__init__" else None
    return isinstance(owner, ast.Call) and isinstance(owner.func, ast.Name) and owner.func.id == "super"


def _is_plain(node: ast.ClassDef) -> bool:
    """Whether a class leaves it to DataLoader what is loaded, and how."""
    names = _class_names(node)
    used = {each.attr for each in ast.walk(node) if isinstance(each, ast.Attribute)}
    used |= {each.id for each in ast.walk(node) if isinstance(each, ast.Name)}
    special = {name for name in names if name.startswith("__")} - _SPECIAL
    return not special and not used & _HIDING and not names & (_GIVEN | _METHODS)


def _class_names(node: ast.ClassDef) -> set[str]:
    """The names that a class gives its objects."""
    names = {each.name for each in node.body if isinstance(each, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef)}
    bodies = [each for each in node.body if isinstance(each, ast.Assign | ast.AnnAssign)]
    return names | {
        each.id
        for statement in bodies
        for each in ast.walk(statement)
        if isinstance(each, ast.Name) and isinstance(each.ctx, ast.Store)
    }
