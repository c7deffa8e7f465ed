"""Follows attributes and classes of a program."""

from __future__ import annotations

import ast
from collections.abc import Iterable
from dataclasses import replace

from ..keyword_dictionaries import may_say
from ..known_sampler import draws_each_once, is_alike
from ..script import Script
from .batches import of_batches, sure_size
from .by_name import is_filled
from .collate import collated, is_apart, paddings, stacks
from .collate_expressions import with_helpers
from .collate_parts import DEFAULTS, Part
from .containers import OF_MODULES
from .dimensions import of_dimensions
from .encodings import TOKENS, keeps_masks, pads_to_longest
from .frames import Frame, Problem, Site
from .given import given_to
from .held_values import local_entries
from .layout import axis, mirrored
from .library_modules import told_to
from .loops import Loops
from .modes import trains
from .one_by_one import loaders_counted
from .operation_names import LOSS_CLASSES, SHAPE_ATTRIBUTES
from .operations import element
from .own_containers import OwnContainers
from .own_decisions import is_drawn
from .own_loaders import OwnLoaders
from .own_sizes import batch_sizes
from .packed import is_packed, steps_of
from .padding import code_for
from .parallel_states import ParallelStates
from .said_there import Place
from .transformers_models import collates, is_model_class, pads
from .values import (
    LOCAL_ROWS,
    NOT_STACKED,
    OWN_DATA,
    PICKED,
    READ_SIZE,
    SAME,
    UNEVEN,
    Class,
    Function,
    Instance,
    Items,
    Iteration,
    Kind,
    Library,
    Loader,
    Logger,
    Method,
    Module,
    OptimizerValue,
    Parameters,
    Super,
    Thing,
    Value,
    cut,
    entries,
    join,
    made_of,
    of,
    root_of,
    set_in_run,
)

_GRADIENT_OF_ALL = "the gradient of a tensor that is no parameter is that of this rank's samples"
# They take a function, which torch calls from then on.
_HOOKS = frozenset(
    {"register_hook", "register_backward_hook", "register_full_backward_hook", "register_full_backward_pre_hook"}
    | {"register_post_accumulate_grad_hook", "register_forward_hook", "register_forward_pre_hook"}
    | {"register_step_pre_hook", "register_step_post_hook"}
)
_REGISTERED = "which function `{}` registers where it is not called by this name, as a decorator, is not followed"


class Objects(Loops, OwnContainers, OwnLoaders, ParallelStates):
    """What attributes, classes and loaders are."""

    def attribute_of(self, owner: Value, name: str, node: ast.expr, frame: Frame) -> Value:
        found: Value | None = None
        self.asks_for_parallel(name, owner, node, frame)
        if name in _HOOKS and not called_here(node, frame) and not owner.only(Instance):
            self.problem(frame, node, _REGISTERED.format(name))
        unseen = (isinstance(thing, Module) and thing.cls is None for thing in owner.things)
        if owner.things and owner.is_local and all(unseen):
            owner = replace(owner, things=frozenset())  # one model gives back a tensor, another what is not known
        for thing in owner.things:
            one = self.attribute_of_thing(thing, name, node, frame)
            if one is not None:
                found = one if found is None else join(found, one)
        if found is not None:
            return found
        if called_here(node, frame):
            return of(Method(owner, name, node))
        if owner.kind in LOCAL_ROWS:
            if name in SHAPE_ATTRIBUTES:
                return SAME
            if name == "shape":
                return self.shape_of(owner)
            if name == "size":  # of an array: how many numbers it has
                return made_of("size" if owner.kind != "picked" else "sum", [owner], host=True)
            if name in ("T", "mT"):
                return of_dimensions(made_of(mirrored(name, owner), [owner]), owner.dimensions, owner.at_least)
            if name == "grad":
                return cut(made_of("scaled", [owner]))
            found = of_batches(made_of(owner.kind, [owner]), owner.batches)
            if name in ("values", "indices"):  # of `x.max(1)`
                return of_dimensions(found, dict(owner.parts).get(name))
            return of_dimensions(cut(found), owner.dimensions, owner.at_least) if name == "data" else found
        if name == "grad" and owner.zero and not owner.things and self.backwards:
            return Value("unknown", reason=_GRADIENT_OF_ALL)
        if name == "data" and is_packed(owner):
            return steps_of(owner)
        if owner.is_local:
            if name == "data":
                return cut(owner)
            return made_of("unknown", [owner]) if name not in SHAPE_ATTRIBUTES else SAME
        return replace(SAME, reason=owner.reason) if name == "data" else SAME

    def submodule(self, package: Module, name: str) -> Value | None:
        """A file of a package that something has imported before; None where there is none of that name."""
        init = next((each for each in self.scripts if each.tree is package.made), None)
        if init is None or init.path.name != "__init__.py":
            return None
        meant = (init.path.parent / f"{name}.py", init.path.parent / name / "__init__.py")
        found = next((each for each in self.frames if each.path in meant), None)
        return self.file_value(found) if found is not None else None

    def attribute_of_thing(self, thing: Thing, name: str, node: ast.expr, frame: Frame) -> Value | None:
        if isinstance(thing, Library):
            return of(Library(f"{thing.name}.{name}"))
        if isinstance(thing, Module) and isinstance(thing.made, ast.Module):
            names = self.names_of(thing)
            return self.contents(thing) if name == "__dict__" else names.get(name) or self.submodule(thing, name)
        if name == "__dict__" and is_filled(frame.script, node):
            self.sets_by_name(of(thing))
        if isinstance(thing, Module | Instance):
            if name in thing.attributes:
                in_training = any(context.how == "batches" for context in self.contexts) and not self.without_gradients
                if isinstance(thing, Module) and not self.in_forward and in_training:
                    self.read_in_training.add((thing, name))
                if isinstance(thing, Module) and self.in_forward:
                    self.parts.add((thing, name))
                    self.read_before |= {(thing, name)} - self.set_now
                if isinstance(thing, Instance) and not isinstance(getattr(node, "ctx", None), ast.Store):
                    self.reads_attribute(thing, name, node, frame)
                return thing.attributes[name]
            cls = thing.cls
            if cls is None and self.in_forward and isinstance(thing, Module) and name not in OF_MODULES:
                self.parts.add((thing, name))
            if cls is not None:
                method = self.method_of(cls, name, of(thing))
                if method is not None and self.is_property(method):
                    return self.enter(method, node, [], {}, frame)
                if method is not None:
                    return of(method)
                if name in self.class_attributes.get(cls.node, {}):
                    return self.class_attributes[cls.node][name]
            called = called_here(node, frame)
            if isinstance(thing, Module) and (layer := self.layer_named(thing, name)) is not None:
                return layer
            if name == "training" and self.without_gradients and isinstance(thing, Module) and root_of(thing).evaluates:
                return Value(constant=False, host=True)
            if name == "training" and isinstance(thing, Module) and not self.without_gradients and trains(thing, frame):
                return Value(constant=True, host=True)
            if isinstance(thing, Module) and not called and name == "module":
                if thing in self.found.in_parallel:
                    self.found.out_of_parallel[node] = frame.script
                return of(thing)  # of nn.DataParallel
            if isinstance(thing, Module) and (told := told_to(thing, name)) is not None:
                return Value(constant=told, host=True)
            if isinstance(thing, Module) and not called:
                return of(Module(node, "", networks=True, parent=thing)) if not thing.name.endswith("Loss") else SAME
            delegates = cls is not None and self.method_of(cls, "__getattr__", of(thing))
            if delegates and isinstance(thing, Instance) and not name.startswith("__"):
                found = self.enter(delegates, node, [Value(constant=name, host=True)], {}, frame)
                return found if found.things else None
            return None
        if isinstance(thing, Items) and thing.shape == "tuple" and name in thing.known:
            return thing.known[name]  # outputs.loss
        if isinstance(thing, Items) and thing.shape == "tuple" and thing.rest is not None:
            return None if called_here(node, frame) else thing.rest  # outputs.last_hidden_state
        if isinstance(thing, OptimizerValue) and name == "param_groups":
            return of(Parameters(thing.modules, groups=True))
        if isinstance(thing, Logger) and not called_here(node, frame):
            self.logs(thing, node, frame)
            return SAME
        if isinstance(thing, Iteration) and thing.how == "bar" and name in ("total", "n"):
            uneven = frozenset(each for each in loaders_counted(of(thing)) if self.status.get(each) in UNEVEN)
            return Value("unknown", uneven, reason="it counts the batches of this rank") if uneven else None
        if isinstance(thing, Loader):
            return self.attribute_of_loader(thing, name, node, frame)
        if isinstance(thing, Super):
            methods = (self.method_of(base, name, thing.owner) for base in thing.bases)
            inherited = next((each for each in methods if each is not None), None)
            return of(inherited) if inherited is not None else None
        if isinstance(thing, Class):
            method = self.method_of(thing, name, of(thing))
            if method is not None:
                return of(method)
            return self.class_attributes.get(thing.node, {}).get(name)
        return None

    def attribute_of_loader(self, loader: Loader, name: str, node: ast.expr, frame: Frame) -> Value | None:
        """The size of the batches of a loader, its data set or its sampler, and what a class of the program adds to it;
        None for anything else."""
        if (own := self.added_to_loader(loader, name, node, frame)) is not None:
            return own
        if isinstance(node, ast.Attribute) and name in ("dataset", "sampler"):
            self.found.of_loaders.setdefault(node, set()).add(loader)
            self.found.scripts[node] = frame.script
            if name == "sampler" and is_alike(frame.script, node) and draws_each_once(loader.script, loader.call):
                return SAME  # DDP636
        if self.status.get(loader) not in ("training", *UNEVEN):
            return None
        if name == "batch_size" and self.status[loader] == "training":
            return Value("size", frozenset({loader}), host=True, batches=sure_size(loader))
        shared = any(each.call is loader.call and self.status[each] == "training" for each in self.status)
        if name == "batch_size" and shared and loader.source is None:
            reason = "the call that makes this loader makes one of training, too, whose batches are a rank's"
            return Value("unknown", frozenset({loader}), reason=reason)
        if name in ("sampler", "batch_sampler"):
            return Value("unknown", frozenset({loader}), reason="the sampler of this loader is another one here")
        return None

    def added_to_loader(self, loader: Loader, name: str, node: ast.expr, frame: Frame) -> Value | None:
        """What a class of the program that is derived from DataLoader adds to a loader; None for anything else."""
        cls = loader.cls or (loader.source.cls if loader.source is not None else None)
        if cls is None:
            return None
        owner = loader if loader.cls is not None else loader.source
        assert owner is not None
        found = owner.attributes.get(name) or self.class_attributes.get(cls.node, {}).get(name)
        method = self.method_of(cls, name, of(owner)) if found is None else None
        if method is not None:
            found = self.enter(method, node, [], {}, frame) if self.is_property(method) else of(method)
        if found is not None and loader is not owner:
            reason = f"a loader of torch, which stands here for the samples of training, has no `{name}`"
            self.problem(frame, node, reason)
        return found

    def reads_attribute(self, thing: Instance, name: str, node: ast.expr, frame: Frame) -> None:
        """Note where an attribute is read: in the attribute itself, or in the object that a text shows."""
        diverges = any(context.how == "rows" or self.uneven(context) for context in self.contexts)
        is_seen = not diverges and isinstance(node, ast.Attribute | ast.Name)
        reads = self.found.attributes_read.setdefault((thing.cls.node, name), set())
        reads.add(Site(frame.script, node) if is_seen else None)
        value = thing.attributes[name]
        if is_drawn(value):
            self.found.drawn_reads.add(node)
        elif value.constant is None:  # what it begins with, or numbers that are brought together
            self.found.other_reads.add(node)

    def leaves(self, values: Iterable[Value]) -> None:
        """Objects are given to what is not followed."""
        values = [*values]
        self.forgets(values)
        for value in values:
            for thing in value.things:
                if isinstance(thing, Instance):
                    self.found.attributes_read.setdefault((thing.cls.node, ""), set()).add(None)
                elif isinstance(thing, Module) and isinstance(thing.made, ast.Call):
                    self.found.not_weighed.add(thing.made)
                elif isinstance(thing, Items):
                    self.leaves(entry for entry in thing.all() if entry is not value)

    def sets_by_name(self, owner: Value) -> None:
        """Any attribute of objects may be set by a name that only the run knows: `self.__dict__.update(settings)`."""
        self.forgets([owner])
        for thing in owner.things:
            if isinstance(thing, Instance):
                known: dict[str, Value] = {}
                for cls in reversed([thing.cls, *self.bases_of(thing.cls)]):
                    known |= self.class_attributes.get(cls.node, {})
                known |= thing.attributes
                thing.attributes |= {name: set_in_run(value) for name, value in known.items() if not value.things}
            elif isinstance(thing, Module):
                self.reduces_otherwise([thing])

    def reduces_otherwise(self, modules: Iterable[Module]) -> None:
        """Losses of torch may get another reduction than the one they were made with."""
        for each in modules:
            if each.cls is None and "reduction" in each.attributes:
                each.attributes["reduction"] = set_in_run(each.attributes["reduction"])

    def forgets(self, values: Iterable[Value], depth: int = 8) -> None:
        """Objects of libraries may get other settings where it is not followed: `cfg.merge_from_file(path)`."""
        things = [thing for value in values for thing in value.only(Module)] if depth else []
        for thing in things:
            if isinstance(thing, Module) and thing.cls is None and not f"{thing.name}.".startswith("torch."):
                self.forgets(thing.attributes.values(), depth - 1)
                for name, value in thing.attributes.items() if isinstance(thing.made, ast.Call) else ():
                    is_none = value.is_none if value.things else None
                    thing.attributes[name] = replace(set_in_run(value), is_none=is_none)

    def names_of(self, file: Module) -> dict[str, Value]:
        """The names of a file that is imported as a module."""
        return self.frames[next(script for script, module in self.files.items() if module is file)].names

    def named_at_top(self, node: ast.expr, script: Script) -> Value:
        """What a name at the top of a file holds, or one of a file that is imported there: `utils.flipped`."""
        if isinstance(node, ast.Name):
            return self.module_frame(script).names.get(node.id, SAME)
        file = self.file_in(self.named_at_top(node.value, script)) if isinstance(node, ast.Attribute) else None
        return SAME if file is None else self.names_of(file).get(node.attr, SAME)  # type: ignore[attr-defined]

    def file_in(self, value: Value) -> Module | None:
        """The file that a value is, imported as a module."""
        things = [thing for thing in value.things if isinstance(thing, Module) and isinstance(thing.made, ast.Module)]
        return things[0] if len(things) == 1 else None

    def contents(self, file: Module) -> Value:
        """The functions and classes of a file as a dict: `vars(models)`."""
        items = Items("dict")
        for name, value in self.names_of(file).items():
            if value.only(Class) or value.only(Function):
                items.known[name] = value
        return of(items)

    def one_of(self, file: Module) -> Value:
        """Some function or class of a file: `getattr(models, name)`."""
        return element(self.contents(file), None)

    def logs(self, logger: Logger, node: ast.expr, frame: Frame, alone: bool = False) -> None:
        """A method of a logger is called, or an attribute of it is read; alone: whether nobody takes the answer."""
        self.found.logged.setdefault(node, set()).add(logger)
        if alone:
            return
        divergent = [context for context in self.contexts if context.how == "rows" or self.uneven(context)]
        if divergent:
            loaders = frozenset().union(*(context.loaders for context in divergent))
            self.problem(frame, node, "what a logger of rank 0 answers is used where the ranks are apart", loaders)
        self.found.answers[node] = frame.script

    def is_property(self, method: Function) -> bool:
        decorators = getattr(method.node, "decorator_list", [])
        return any(ast.unparse(each).split(".")[-1] in ("property", "cached_property") for each in decorators)

    def method_of(self, cls: Class, name: str, owner: Value | None) -> Function | None:
        """A method of a class of the program, or of one that it is derived from; owner: the object that it is asked of,
        or the class."""
        for part in cls.node.body:
            if isinstance(part, ast.FunctionDef) and part.name == name:
                return Function(part, cls.script, self.frames.get(cls.script), _bound(part, owner))
        inherited = (self.method_of(base, name, owner) for base in self.bases_of(cls))
        return next((method for method in inherited if method is not None), None)

    def bases_of(self, cls: Class) -> list[Class]:
        """The classes of the program that one is derived from."""
        found = []
        for base in cls.node.bases:
            for thing in self.value(base, self.module_frame(cls.script)).only(Class):
                if isinstance(thing, Class) and thing is not cls:
                    found.append(thing)
        self.found.bases[cls.node] = {base.node for base in found}
        return found

    def super_of(self, node: ast.Call, frame: Frame) -> Value | None:
        """What `super()` is, where a class of the program has the method that is asked for; None for others."""
        asked = frame.script.parents.get(node)
        around = next((each for each in frame.script.ancestors(node) if isinstance(each, ast.ClassDef)), None)
        if around is None or frame.this is None or not isinstance(asked, ast.Attribute):
            return None
        bases = tuple(self.bases_of(self.class_of(around, frame.script)))
        found = any(self.method_of(base, asked.attr, frame.this) for base in bases)
        return of(Super(frame.this, bases)) if found else None

    def class_of(self, node: ast.ClassDef, script: Script) -> Class:
        return self.classes.setdefault(node, Class(node, script))

    def is_module_class(self, cls: Class, depth: int = 5) -> bool:
        """Whether a class is derived from torch.nn.Module."""
        for base in cls.node.bases:
            name = cls.script.qualified(base)
            if name.startswith(("torch.nn.", "torchvision.models")) or is_model_class(name):
                return True
        return depth > 0 and any(self.is_module_class(base, depth - 1) for base in self.bases_of(cls))

    def is_layer_class(self, cls: Class, depth: int = 5) -> bool:
        """Whether a class is derived from a layer of torch.nn: `class Binary(nn.Linear)`."""
        for base in cls.node.bases:
            name = cls.script.qualified(base)
            if name.startswith("torch.nn."):
                return name.rpartition(".")[2] not in {"Module", *LOSS_CLASSES}
        return depth > 0 and any(self.is_layer_class(base, depth - 1) for base in self.bases_of(cls))

    def shape_of(self, owner: Value) -> Value:
        """The sizes of a tensor; their constant is the dimension of the samples."""
        reason = PICKED if owner.kind == "picked" else ""
        shape = replace(cut(made_of("shape", [owner])), constant=axis(owner.kind), reason=reason)
        shape = of_dimensions(shape, owner.dimensions)
        return of_batches(shape, owner.batches if owner.kind != "picked" else ())

    def size_in(self, shape: Value, key: object) -> Value:
        """One of the sizes of a tensor."""
        if shape.constant is None or not isinstance(key, int):
            return SAME
        kind: Kind = "sum" if shape.reason == PICKED else "size"
        size = of_batches(made_of(kind, [replace(shape, reason="")], host=True), shape.batches)
        at, known = shape.constant, shape.dimensions
        same = known is not None and isinstance(at, int) and key % known == at % known
        return size if key == at or same else SAME

    def loader(self, node: ast.Call, frame: Frame) -> Value:
        """A DataLoader is made."""
        variant = (*self.variant, *frame.calls)
        found = self.begun(node) or self.known_loaders.setdefault((node, variant), Loader(node, frame.script, variant))
        self.found.loaders.setdefault(found)
        named = [word.value for word in node.keywords if word.arg == "dataset"]
        shuffles = [word.value for word in node.keywords if word.arg == "shuffle"]
        sizes = [*node.args[1:2], *(word.value for word in node.keywords if word.arg == "batch_size")]
        for part in (*node.args, *(word.value for word in node.keywords)):
            value = self.value(part, frame)
            if part in (*node.args[:1], *named):
                old = self.found.datasets.get(node)
                self.found.datasets[node] = value if old is None else join(old, value)
            if value.is_local or local_entries(value):
                reason = READ_SIZE if part in sizes and value.kind == "size" else OWN_DATA
                self.problem(frame, part, reason, frozenset().union(*(each.loaders for each in entries([value]))))
            if part in (*node.args[2:3], *shuffles):
                self.found.shuffles.setdefault(found, set()).add(value.constant)
        for size in batch_sizes(found):
            size, there = given_to(size, frame)
            found.given = size, there.script
            self.found.batch_numbers.setdefault(found, set()).add(self.value(size, there).constant)
            if isinstance(size, ast.Attribute | ast.Subscript):
                self.found.size_owners[found] = self.value(size.value, there).things
        collates = [word.value for word in node.keywords if word.arg == "collate_fn"]
        hidden = not collates and may_say(frame.script, node, "collate_fn")
        if hidden or not all(self.stacks(each, frame) for each in collates):
            unseen = hidden or len(collates) > 1 or found.cls is not None  # DDP638 has a class of its own
            laid_out = None if unseen else self.laid_out(node, collates[0], frame)
            if laid_out is None:
                self.found.not_stacked.add(node)
            else:
                self.layouts[node] = laid_out
            if self.status.get(found) == "sharded" and (laid_out is None or paddings(laid_out)):
                self.problem(frame, node, NOT_STACKED, frozenset({found}))
        self.ends(found)
        return of(found)

    def end_datasets(self) -> None:
        """Note data sets of the program's own that keep something of a rank's batches."""
        for node, value in self.found.datasets.items():
            kept = [each for thing in value.only(Instance) for each in thing.attributes.values()]  # type: ignore[union-attr]
            local = [each for each in entries(kept) if each.is_local]
            if local:
                script = next((each for each in self.scripts if node in each.parents), self.scripts[0])
                loaders = frozenset().union(*(each.loaders for each in local))
                self.found.problems.append(Problem(script, node, OWN_DATA, loaders))

    def laid_out(self, call: ast.Call, collate: ast.expr, frame: Frame) -> Part | None:
        """What a collate function makes of its samples, other than stack them; None where that is not known, or what it
        pads with cannot be said where the loader is made."""
        functions = self.collate_functions(collate, frame) or []
        parts = [collated(each) for each in functions]
        if len(functions) != 1 or parts[0] is None or not is_apart(parts[0]) or not self.mask_padding(functions):
            return None
        place, initial = Place(frame.script, call, self.scripts), self.initial_of(functions[0].owner, collate, frame)
        codes = {
            key: (padded.dimensions, code_for(padded.value, functions[0], collate, place, initial))
            for key, padded in paddings(parts[0]).items()
        }
        if not all(code for _, code in codes.values()) or any(len(at) > 1 for at, _ in [codes.get(None, ((), ""))]):
            return None
        self.found.padded[call] = codes
        return parts[0]

    def stacks(self, node: ast.expr, frame: Frame) -> bool:
        """Whether the collate function that a loader is given stacks its samples."""
        if (isinstance(node, ast.Constant) and node.value is None) or self.collates(frame.script, node):
            return True
        functions = self.collate_functions(node, frame)
        if functions is None:
            return False
        return all(map(stacks, functions)) and self.mask_padding(functions)

    def mask_padding(self, functions: Iterable[Function]) -> bool:
        """Whether what collate functions pad by a tokenizer is left out where it is used."""
        called = ((each.script, node) for each in functions for node in with_helpers(each.script, each.node))
        padding = [node for script, node in called if pads_to_longest(script, node)]
        return all(map(self.leaves_out_padding, padding))

    def initial_of(self, owner: Value | None, given: ast.expr, frame: Frame) -> Function | None:
        """What initializes the object of a collate function that a loader's call makes; None where it is not seen."""
        if isinstance(given, ast.Call) and frame.script.qualified(given.func) == "functools.partial":
            given = given.args[0]
        made = given.value if isinstance(given, ast.Attribute) else given
        things = owner.things if owner is not None else ()
        classes = {cls for each in things if isinstance(cls := getattr(each, "cls", None), Class)}
        name = ast.unparse(made.func).rpartition(".")[2] if isinstance(made, ast.Call) else ""
        own = [cls for cls in classes if cls.node.name == name]  # no function that makes one, of what it is given
        return self.method_of(own[0], "__init__", None) if len(own) == len(classes) == 1 else None

    def collate_functions(self, node: ast.expr, frame: Frame) -> list[Function] | None:
        """The functions of the program that a loader may be given to collate its samples; None where it may be another
        one."""
        if isinstance(node, ast.Call) and frame.script.qualified(node.func) == "functools.partial":
            if len(node.args) != 1 or any(word.arg is None for word in node.keywords):
                return None
            node = node.args[0]
        things, functions = self.value(node, frame).things, []
        for thing in things:
            if isinstance(thing, Library) and thing.name in DEFAULTS:
                continue
            made = thing.made if isinstance(thing, Module) else None
            if isinstance(made, ast.Call) and any(
                self.collates(each, made) for each in self.scripts if made in each.parents
            ):
                continue
            called = self.method_of(thing.cls, "__call__", of(thing)) if isinstance(thing, Instance) else thing
            if not isinstance(called, Function):
                return None
            functions.append(called)
        return functions if things else None

    def collates(self, script: Script, node: ast.expr) -> bool:
        """Whether an expression is a collate function of transformers that stacks samples."""
        return collates(script, node) and (not pads(script, node) or self.leaves_out_padding(node))

    def leaves_out_padding(self, node: ast.AST) -> bool:
        """Whether all files that take tokens out of batches take their masks, too: what is padded, and how far, depends
        on a rank's samples."""
        self.found.pads.add(node)
        return all(keeps_masks(each.nodes, TOKENS) for each in self.scripts)


def _bound(method: ast.FunctionDef, owner: Value | None) -> Value | None:
    """What a method gets first, where it is asked of an object or of a class; None where it gets nothing."""
    decorators = {ast.unparse(each) for each in method.decorator_list}
    if owner is None or "staticmethod" in decorators:
        return None
    if "classmethod" not in decorators:
        return None if owner.only(Class) else owner
    classes = [thing if isinstance(thing, Class) else getattr(thing, "cls", None) for thing in owner.things]
    return Value(things=frozenset(each for each in classes if each is not None))


def called_here(node: ast.expr, frame: Frame) -> bool:
    """Whether an expression is what a call calls."""
    parent = frame.script.parents.get(node)
    return isinstance(parent, ast.Call) and parent.func is node
