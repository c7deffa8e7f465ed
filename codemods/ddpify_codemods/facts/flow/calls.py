"""Follows calls of the program's own functions and classes."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from dataclasses import replace

from ..called_modules import called_model
from ..optimizer_classes import is_optimizer_class
from ..script import Script
from .asserted import ends_the_run
from .bound_arguments import by_keyword, given_later, is_layer
from .call_arguments import CallArguments
from .draws import library_of
from .factories import maker_of
from .frames import Frame
from .held_values import local_entries, may_differ
from .listed_sizes import listed_sizes
from .meetings import is_of_pairs, lets_meet, may_meet_otherwise, meeting
from .named_tuples import given_to_fields, instance
from .noise import SAMPLING
from .operands import operands
from .operation_names import FACTORIES, LOSSES, NEW
from .own_decisions import as_number
from .own_networks import is_only_read, table_of
from .shown_parameters import given_in_calls
from .signatures import takes
from .values import (
    ADDITIVE,
    COUPLES,
    LOCAL_ROWS,
    NOTHING,
    RECURSION,
    SAME,
    Bound,
    Class,
    Function,
    Instance,
    Items,
    Library,
    Loader,
    Logger,
    Method,
    Module,
    Parameters,
    Thing,
    Value,
    adds_nothing,
    cut,
    differentiated,
    entries,
    is_network,
    join,
    libraries_of,
    made_of,
    of,
    root_of,
)
from .whole_calls import has_only_lists, measures, passes_samples, shows_each

# What they give back is not differentiated.
_WITHOUT_GRADIENTS = frozenset(
    {"detach", "detach_", "item", "tolist", "numpy", "argmax", "argmin", "size", "len", "backward"}
)


def _makes_tensor(name: str) -> bool:
    """Whether a function makes, or draws, as many numbers as it is told: for a rank's samples, not for those of all."""
    return bool(library_of(name)) or (name.startswith(("torch.", "numpy.")) and name.rpartition(".")[2] in FACTORIES)


# They ask a tensor for its kind, not for its samples.
_ASK = frozenset({"type_as", "to", "view_as", "expand_as", "reshape_as", "new_tensor", "append", "zeros_like"})
_METRICS = "torchmetrics."
_OF_SIZES = frozenset({*SAMPLING, *(NEW - {"new_tensor"}), "view", "reshape", "expand", "repeat", "permute"})


def _takes_sizes(function: Value, makes: bool) -> bool:
    """Whether what is given first, or behind a tensor, may be the sizes of a tensor: `torch.zeros([n, 3])`,
    `torch.reshape(x, [n, 3])`.

    makes: whether it is a function that makes tensors; distributions and tensors have methods that do.
    """
    names = {thing.name.rpartition(".")[2] for thing in function.only(Library) if isinstance(thing, Library)}
    methods = {thing.name for thing in function.things if isinstance(thing, Method)}
    laid_out = bool(names) and names <= {"reshape", "permute"}
    return (
        laid_out
        or bool(methods & _OF_SIZES)
        or (makes and names <= {"ones", "zeros", "full", "rand", "randn", "empty"})
    )


class Calls(CallArguments):
    """What calls give back."""

    def call(self, node: ast.Call, frame: Frame, alone: bool = False) -> Value:
        self.count()
        first, _ = self.found.visits.get(node, (self.work, 0))
        self.found.visits[node] = first, self.work
        if self.importing is not None:
            self.found.imported.setdefault(node, self.importing)
        if isinstance(node.func, ast.Attribute) and node.func.attr == "backward":
            return self.backward(node, frame)
        called = called_model(node)
        function = self.of_own_loader(node) or self.value(called, frame)
        if called is not node.func and not (function.things and all(map(is_network, function.things))):
            function = self.value(node.func, frame)
        makes = any(isinstance(thing, Library) and _makes_tensor(thing.name) for thing in function.things)
        self.in_factory += makes
        args = self.all_given(node, function, frame)
        for place in (0, 1) if len(args) == len(node.args) and _takes_sizes(function, makes) else ():
            sizes = listed_sizes(frame.node, node.args[place]) if node.args[place:] else None
            if isinstance(sizes, ast.List):
                args[place] = of(Items("tuple", {at: self.value(each, frame) for at, each in enumerate(sizes.elts)}))
        words = [(word.arg, self.value(word.value, frame)) for word in node.keywords]
        keywords = by_keyword(words)
        self.in_factory -= makes
        if isinstance(node.func, ast.Attribute) and node.func.attr == "__setattr__":
            for owner in (self.value(node.func.value, frame), *args[:1]):
                self.sets_by_name(owner)
        found = self.of_container_class(_last(node.func), node, args, frame) or self.of_loss_class(node, args, frame)
        own = any(isinstance(thing, Function | Class) for thing in function.things)
        if own and alone:
            args, keywords = self.numbers_of_all(node, function, args, keywords, frame)
        if own and any(value.only(Logger) for value in entries([*args, *keywords.values()])):
            self.found.given_loggers.add(node)
        if not own:
            self.may_take([*args, *keywords.values()])
            given = [*zip(node.args, args, strict=False)]
            given += [(word.value, value) for word, (_, value) in zip(node.keywords, words, strict=True)]
            self.found.read_same |= {part for part, value in given if not differs(value)}
            apart = not alone and any(differs(value) for _, value in given)
            self.found.given_parts |= {node} if apart else set()
            is_metric = any(isinstance(each, Module) and each.name.startswith(_METRICS) for each in function.things)
            self.found.given_metrics |= {node} if apart and is_metric else set()
        chosen = not own and not function.only(Library) and is_optimizer_class(frame.script, node.func)
        if chosen:  # getattr(torch.optim, name)
            found = self.library("", node, args, keywords, frame, alone)
        for thing in self.called_things(function, node, frame) if found is None else ():
            one = self.called(thing, node, args, keywords, frame, alone)
            found = one if found is None else join(found, one)
        if any(isinstance(thing, Module) for thing in function.things):
            self.called_as.setdefault(node, set()).update(function.things)
        if found is None:
            found = self.unknown_call(node, [function, *args, *keywords.values()], frame, alone)
            if self.chooses and found.only(Module) and not self.is_of_library(node.func, frame):
                found = SAME  # it may be one of the program's own
        if self.in_forward and not own and found.kind == "unknown" and any(each.only(Bound) for each in args):
            found = replace(found, reason=COUPLES)  # it may call what functools.partial has made
        for word in node.keywords:
            if word.arg == "out" and found.is_local and not own:
                self.assign(word.value, found, frame, node)
        owners = [thing.owner for thing in function.only(Method) if isinstance(thing, Method)]
        computed = [*owners, *args, *keywords.values()]
        meets = not own and found.kind in (*LOCAL_ROWS, *ADDITIVE)
        if meets and (coupled := self.coupled(node, function, computed, frame)):
            found = made_of("unknown", computed, reason=coupled)
        found = self.noted_join(found, node, function, computed)
        quiet = bool(self.without_gradients) or _last(node.func) in _WITHOUT_GRADIENTS
        measured = measures(function, computed, found) if own and not (quiet or self.in_forward) else None
        if measured is not None and self.may_join(made_of("same", computed).loaders):
            self.found.measuring.setdefault(measured.node, set()).add(node)
            self.found.given_lists |= {node} if has_only_lists(computed) else set()
            of_models = self.found.with_gradients.setdefault(node, set())
            of_models.update(place for place, each in enumerate(args) if each.forwards or each.bypasses)
            of_models.update(name for name, each in keywords.items() if each.forwards or each.bypasses)
        elif own and not self.in_forward and passes_samples(computed, found):
            self.found.with_samples.add(node)
        if quiet:
            return cut(found)
        if own:
            self.takes_parameters(node, args, keywords, found)
        if own and found.only(Loader):
            self.made_loaders[node] = found
            self.may_load_otherwise(found, node, frame)
        if own and not self.in_forward and shows_each(function, computed, found) in self.found.read_by_rows:
            self.found.wanted |= {node} if self.may_join(made_of("same", computed).loaders) else set()
        return found if own else differentiated(found, computed)

    def coupled(self, node: ast.Call, function: Value, computed: Sequence[Value], frame: Frame) -> str:
        """Why each two samples meet in an operation, `torch.eq(y[:, None], y)`; "" where they do not."""
        name = _last(node.func)
        if name not in _ASK and self.meets_others(computed):
            return COUPLES
        if is_of_pairs(name, function) and may_meet_otherwise(frame.script, operands(node), computed):
            self.found.may_meet.add(node)
        if lets_meet(name, function):
            return meeting(frame.script, operands(node), computed)
        return meeting(frame.script, operands(node), ()) if name in LOSSES else ""

    def called_things(self, function: Value, node: ast.Call, frame: Frame) -> frozenset[Thing]:
        """What a call calls: of several functions, classes and networks of the program, `models.__dict__[name]()`,
        those that take what it gives. With another network the run ends here: no backward pass comes after."""
        own = {thing for thing in function.things if isinstance(thing, Function | Class | Module)}
        inner = {thing for thing in own if isinstance(thing, Module) and root_of(thing) in own - {thing}}
        if inner and all(self.is_put_around(root_of(each)) for each in inner):
            return function.things - inner
        taking = {thing for thing in own if self.may_be_called(thing, node)}
        if len(own) < 2 or not taking:
            return function.things
        others = {thing for thing in own - taking if isinstance(thing, Module)}
        self.not_taking |= others
        if others and ends_the_run(frame, node):
            self.gradients = self.gradients.awaits({root_of(each).made for each in others})
        return function.things - (own - taking)

    def is_put_around(self, module: Module) -> bool:
        """Whether a network has the name of the one that is put into it, `if deep: model = Deep(model)`: one of them
        has that name then, which is wrapped."""
        script = next((each for each in self.scripts if module.made in each.parents), None)
        stored = script.parents[module.made] if script is not None else None
        if not isinstance(stored, ast.Assign) or not isinstance(module.made, ast.Call):
            return False
        names = {each.id for each in stored.targets if isinstance(each, ast.Name)}
        return any(isinstance(each, ast.Name) and each.id in names for each in module.made.args)

    def is_of_library(self, called: ast.expr, frame: Frame) -> bool:
        """Whether what is called is one of those that a library has, `models.__dict__[name]`, not the program's own."""
        table = table_of(called)
        names = libraries_of(self.value(table, frame)) if table is not None else set()
        return bool(names) and all(is_only_read(self.scripts, name) for name in names)

    def may_be_called(self, thing: Function | Class | Module, node: ast.Call) -> bool:
        """Whether a function, a class or a network may take what a call gives."""
        if isinstance(thing, Module):
            forwards = self.forwards_of(thing) if thing.cls is not None else []
            return not forwards or any(self.may_be_called(each, node) for each in forwards)
        if getattr(thing.node, "decorator_list", ()):
            return True
        if isinstance(thing, Function):
            return takes(thing.node.args, node, is_bound=thing.owner is not None)
        makes = [self.method_of(thing, name, None) for name in ("__new__", "__init__")]
        if thing.node.keywords or makes[0] is not None or makes[1] is None:
            return True
        return takes(makes[1].node.args, node, is_bound=True)

    def called(
        self, thing: object, node: ast.Call, args: list[Value], keywords: dict[str, Value], frame: Frame, alone: bool
    ) -> Value:
        if isinstance(thing, Function):
            return self.enter(thing, node, args, keywords, frame)
        if isinstance(thing, Class):
            return self.instantiate(thing, node, args, keywords, frame)
        if isinstance(thing, Bound):
            given, words = [*thing.args, *args], given_later(dict(thing.keywords), keywords)
            if isinstance(thing.thing, Library) and not is_layer(thing.thing):
                found = self.unknown_call(node, [*given, *words.values()], frame, alone)
                return replace(found, reason=COUPLES) if found.is_local else found
            return self.called(thing.thing, node, given, words, frame, alone)
        if isinstance(thing, Module):
            return self.forward(thing, node, args, keywords, frame)
        if isinstance(thing, Instance):
            method = self.method_of(thing.cls, "__call__", of(thing))
            if method is not None:
                return self.enter(method, node, args, keywords, frame)
        if isinstance(thing, Method):
            made = self.pretrained(thing, node, keywords, frame)
            return made or self.method(thing, node, args, keywords, frame, alone)
        if isinstance(thing, Library):
            found = self.library(thing.name, node, args, keywords, frame, alone)
            return as_number(thing.name, found, [*args, *keywords.values()])
        return self.unknown_call(node, [*args, *keywords.values()], frame, alone)

    def pretrained(self, method: Method, node: ast.Call, keywords: dict[str, Value], frame: Frame) -> Value | None:
        """What makes a model of a class that the program derives from one of transformers: `Tagger.from_pretrained(
        name, config=config, labels=labels)`; None for any other method."""
        if method.name not in ("from_pretrained", "from_config"):
            return None
        found: Value | None = None
        for thing in method.owner.only(Class):
            assert isinstance(thing, Class)
            if self.is_module_class(thing):
                given = {name: value for name, value in keywords.items() if name != "config"}
                one = self.instantiate(thing, node, [keywords.get("config", SAME)], given, frame)
                if method.name == "from_pretrained":
                    self.loaded |= {each for each in one.only(Module) if isinstance(each, Module)}
                found = one if found is None else join(found, one)
        return found

    def notes_networks(self, node: ast.Call, args: list[Value], keywords: dict[str, Value]) -> None:
        """Note which networks a call gives to a function of the program, and as what."""
        if len(args) == len(node.args):
            by_name = ((word.value, keywords.get(word.arg or "", SAME)) for word in node.keywords)
            for given, value in (*zip(node.args, args, strict=True), *by_name):
                if value.things and all(map(is_network, value.things)):
                    self.found.given_networks.setdefault(given, set()).update(value.only(Module))  # type: ignore[arg-type]

    def enter(
        self, function: Function, node: ast.AST, args: list[Value], keywords: dict[str, Value], frame: Frame
    ) -> Value:
        """Follow a call of a function of the program."""
        if self.depth > 12 or [each for each in self.stack if each is function.node][1:]:
            return (
                made_of("unknown", [v for v in args if v.is_local], reason=RECURSION)
                if any(v.is_local for v in args)
                else SAME
            )
        if isinstance(node, ast.Call):
            self.found.called_with.setdefault(function.node, set()).add((node, frame.script))
            self.notes_networks(node, args, keywords)
        outer = function.closure if isinstance(function.closure, Frame) else self.module_frame(function.script)
        inner = Frame(function.script, function.node, {}, outer, caller=frame, call=node)
        if isinstance(node, ast.Call) and isinstance(function.node, ast.FunctionDef):
            args, keywords = self.shown_by(function.script, function.node, node, args, keywords, frame)
        self.bind(function, args, keywords, inner, frame)
        alone = self.is_alone(function.node)
        self.stack.append(function.node)
        if self.in_forward and inner.this is not None:
            self.computing |= {each.cls.node for each in inner.owners if isinstance(each, Module) and each.cls}
        try:
            if isinstance(function.node, ast.Lambda):
                self.comes_to(function.node.body)
                return self.value(function.node.body, inner)
            quiet = any(is_without_gradients(each) for each in function.node.decorator_list)
            self.without_gradients += quiet
            with self.deciding(alone), self.behind_function():
                self.block(function.node.body, inner)
            self.without_gradients -= quiet
        finally:
            self.stack.pop()
        result = NOTHING
        for place, value in enumerate(inner.returns):
            result = value if place == 0 else join(result, value)
        if inner.returns and not ends(function.node.body):
            result = replace(result, is_none=True if result.is_none else None)
        if inner.decides_alone:
            result = self.after_own_decision(result, inner, function.node)
        if alone:
            result = self.drawn_apart(result, inner, function.node)
        return self.generated(inner.yields) if function.node in function.script.generators else result

    def shown_by(
        self,
        script: Script,
        function: ast.FunctionDef,
        call: ast.Call,
        args: list[Value],
        keywords: dict[str, Value],
        frame: Frame,
    ) -> tuple[list[Value], dict[str, Value]]:
        """What a function gets that only shows it: numbers of all ranks, which are brought together in its call."""
        words = [str(word.arg) for word in call.keywords]
        if len(args) != len(call.args) or set(words) != keywords.keys():  # a model is given what it has of it
            return args, keywords
        nodes = [*call.args, *(word.value for word in call.keywords)]
        values = [*args, *(keywords[each] for each in words)]
        for place in given_in_calls(tuple(self.scripts), script, function, call):
            if values[place].kind in ADDITIVE:
                self.demand(nodes[place], values[place], frame)
                values[place] = replace(SAME, host=values[place].host)
        return values[: len(args)], keywords | dict(zip(words, values[len(args) :], strict=True))

    def generated(self, yields: Sequence[Value]) -> Value:
        """What a generator gives to its loop, of which parameters are followed."""
        modules = self.parameters_in(yields)
        return of(Parameters(modules)) if modules else SAME

    def own_method(self, owner: Value, name: str, node: ast.AST, args: list[Value], frame: Frame) -> Value | None:
        """What a method that the program defines gives back; None where no object has it."""
        found: Value | None = None
        for thing in owner.only(Instance):
            assert isinstance(thing, Instance)
            method = self.method_of(thing.cls, name, of(thing))
            if method is not None:
                one = self.enter(method, node, args, {}, frame)
                found = one if found is None else join(found, one)
        return found

    def instantiate(
        self, cls: Class, node: ast.Call, args: list[Value], keywords: dict[str, Value], frame: Frame
    ) -> Value:
        """Make an instance of a class of the program."""
        if (entries_of := instance(cls, args, keywords)) is not None:
            return entries_of
        if (loader := self.own_loader(cls, node, frame)) is not None:
            self.loaders_begun.append(loader)
            if loader.call is node:
                return self.library("torch.utils.data.DataLoader", node, args, keywords, frame, False)
            initial = self.method_of(cls, "__init__", of(loader))
            assert initial is not None
            self.enter(initial, node, args, keywords, frame)
            return of(loader)
        is_module = self.is_module_class(cls)
        maker = maker_of(node, frame, self.made_first) if is_module else node
        made: Module | Instance = Module(maker, cls=cls) if is_module else Instance(cls)
        initial = self.method_of(cls, "__init__", of(made))
        key = maker, cls.node, frame.makers
        if isinstance(made, Module) and (known := self.own_modules.get(key)) is not None:
            made = known
            initial = self.method_of(cls, "__init__", of(made))
        elif isinstance(made, Module):
            self.own_modules[key] = made
        if isinstance(made, Module):
            self.new_modules.add(made)
            made.networks = made.networks or self.is_layer_class(cls)
            self.contains(made)
        if initial is not None:
            self.enter(initial, node, args, keywords, frame)
        elif isinstance(made, Instance):
            fields = self.fields_with_bases(cls)
            in_order = sorted((each for each in fields if each.given != "never"), key=lambda each: each.given)
            names = [each.name for each in in_order]  # those by place first
            told = {each.name: SAME for each in fields} | given_to_fields(names, args, keywords)
            made.attributes |= {each.name: told[each.name] for each in fields if each.is_kept}
            if (then := self.method_of(cls, "__post_init__", of(made))) is not None:
                self.enter(then, node, [told[each.name] for each in fields if not each.is_kept], {}, frame)
            values = [*args, *keywords.values()]
            if any(map(may_differ, values)) and not fields:  # a list, or a dict, of what it is given
                reason = f"what {cls.node.name} keeps of it is not seen"
                return replace(made_of("unknown", values, reason=reason), things=frozenset({made}))
        return of(made)


def is_without_gradients(node: ast.expr) -> bool:
    """Whether `with` makes computations that are not differentiated."""
    name = ast.unparse(node.func if isinstance(node, ast.Call) else node).rpartition(".")[2]
    return name in ("no_grad", "inference_mode")


def ends(body: Sequence[ast.stmt]) -> bool:
    """Whether a function never comes to the end of a block: it returns, or raises, in all cases."""
    last = body[-1] if body else None
    if isinstance(last, ast.If):
        return ends(last.body) and ends(last.orelse)
    if isinstance(last, ast.With | ast.AsyncWith):
        return ends(last.body)
    if isinstance(last, ast.Try):
        return ends(last.finalbody) or all(ends(each) for each in (last.body, *(one.body for one in last.handlers)))
    if isinstance(last, ast.While):
        return isinstance(last.test, ast.Constant) and bool(last.test.value)
    return isinstance(last, ast.Return | ast.Raise)


def differs(value: Value) -> bool:
    """Whether a value may be another one on each rank; nothing is added up in one that is zero."""
    return value.is_local or adds_nothing(value) or bool(local_entries(value))


def _last(func: ast.expr) -> str:
    return func.attr if isinstance(func, ast.Attribute) else getattr(func, "id", "")
