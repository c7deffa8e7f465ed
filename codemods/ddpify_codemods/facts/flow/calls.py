"""Follows calls: of functions and classes of the program, of models, losses and the libraries that scripts use."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache

from ..optimizer_classes import is_optimizer_class
from ..script import Script
from .draws import changes, library_of
from .einsum import einsum
from .expressions import Expressions
from .frames import Frame, local_entries
from .layout import axis
from .library_modules import of_library_module
from .operations import FACTORIES, LOSS_CLASSES, LOSSES, PREDICATES, WEIGHTED, combined, loss_of, on_number, on_rows
from .values import (
    ADDITIVE,
    COUPLES,
    DRAWN,
    KEPT,
    LOCAL_ROWS,
    SAME,
    ZERO,
    Class,
    Function,
    Instance,
    Items,
    Iteration,
    Library,
    Loader,
    Method,
    Module,
    Optimizer,
    Parameters,
    Value,
    join,
    made_of,
    of,
    root_of,
)  # fmt: skip

_LOADERS = frozenset({"torch.utils.data.DataLoader", "torch.utils.data.dataloader.DataLoader"})
_BARS = frozenset({"tqdm.tqdm", "tqdm.auto.tqdm", "tqdm.notebook.tqdm", "tqdm.std.tqdm", "tqdm.tqdm_notebook", "tqdm"})
_AS_THEY_ARE = frozenset(
    {"torch.compile", "torch.nn.DataParallel", "torch.jit.script", "torch.optim.swa_utils.AveragedModel"}
)
_HOST = frozenset({"float", "int", "round", "str", "repr", "format", "bool"})
_SHOWN = frozenset(
    {"set_postfix", "set_description", "set_postfix_str", "set_description_str", "update", "refresh", "close"}
)
_MODULE_SELF = frozenset(
    {"to", "cuda", "cpu", "train", "eval", "float", "double", "half", "apply", "requires_grad_", "share_memory"}
)
_PARAMETERS = frozenset({"parameters", "named_parameters"})
_LIST_METHODS = frozenset({"append", "add", "extend", "insert", "appendleft"})


class Calls(Expressions):
    """What calls give back."""

    def call(self, node: ast.Call, frame: Frame, alone: bool = False) -> Value:
        self.count()
        function = self.value(node.func, frame)
        if isinstance(node.func, ast.Attribute) and node.func.attr == "backward":
            return self.backward(node, frame)
        args = [value for each in node.args for value in self.given(each, frame)]
        keywords = {word.arg or "**": self.value(word.value, frame) for word in node.keywords}
        found: Value | None = None
        for thing in function.things:
            one = self.called(thing, node, args, keywords, frame, alone)
            found = one if found is None else join(found, one)
        if found is not None:
            return found
        return self.unknown_call(node, [function, *args, *keywords.values()], frame, alone)

    def given(self, node: ast.expr, frame: Frame) -> list[Value]:
        """The values that an argument stands for: several for `*values`."""
        if not isinstance(node, ast.Starred):
            return [self.value(node, frame)]
        value = self.value(node.value, frame)
        for thing in value.only(Items):
            if isinstance(thing, Items) and thing.shape == "tuple":
                return list(thing.known.values())
        if value.is_local or local_entries(value):
            return [made_of("unknown", [value], reason="how many values there are depends on this rank's batches")]
        return [value]

    def called(
        self, thing: object, node: ast.Call, args: list[Value], keywords: dict[str, Value], frame: Frame, alone: bool
    ) -> Value:
        if isinstance(thing, Function):
            return self.enter(thing, node, args, keywords, frame)
        if isinstance(thing, Class):
            return self.instantiate(thing, node, args, keywords, frame)
        if isinstance(thing, Module):
            return self.forward(thing, node, args, keywords, frame)
        if isinstance(thing, Instance):
            method = self.method_of(thing.cls, "__call__", of(thing))
            if method is not None:
                return self.enter(method, node, args, keywords, frame)
        if isinstance(thing, Method):
            return self.method(thing, node, args, keywords, frame, alone)
        if isinstance(thing, Library):
            return self.library(thing.name, node, args, keywords, frame, alone)
        return self.unknown_call(node, [*args, *keywords.values()], frame, alone)

    def unknown_call(self, node: ast.Call, given: Sequence[Value], frame: Frame, alone: bool) -> Value:
        """A call of something that is not known: what it is given may be shown or written."""
        local = [value for value in given if value.is_local or local_entries(value)]
        if not local:
            return of(Module(node, "", networks=True)) if not alone else SAME
        if alone or self.is_shown(node, frame):
            self.shown(node, frame)
            return SAME
        name = ast.unparse(node.func)
        return made_of("unknown", local, reason=f"what {name} makes of it cannot be added up over ranks")

    # The program's own

    def enter(
        self, function: Function, node: ast.AST, args: list[Value], keywords: dict[str, Value], frame: Frame
    ) -> Value:
        """Follow a call of a function of the program."""
        if self.depth > 12 or [each for each in self.stack if each is function.node][1:]:
            return (
                made_of("unknown", [v for v in args if v.is_local], reason="recursion")
                if any(v.is_local for v in args)
                else SAME
            )
        if isinstance(node, ast.Call):
            self.found.called_with.setdefault(function.node, set()).add((node, frame.script))
        outer = function.closure if isinstance(function.closure, Frame) else self.module_frame(function.script)
        inner = Frame(function.script, function.node, {}, outer, caller=frame)
        self.bind(function, args, keywords, inner, frame)
        self.stack.append(function.node)
        try:
            if isinstance(function.node, ast.Lambda):
                return self.value(function.node.body, inner)
            quiet = any(is_without_gradients(each) for each in function.node.decorator_list)
            self.without_gradients += quiet
            self.block(function.node.body, inner)
            self.without_gradients -= quiet
        finally:
            self.stack.pop()
        result = ZERO
        for place, value in enumerate(inner.returns):
            result = value if place == 0 else join(result, value)
        generates = any(isinstance(part, ast.Yield | ast.YieldFrom) for part in ast.walk(function.node))
        return SAME if generates else result

    def bind(
        self, function: Function, args: list[Value], keywords: dict[str, Value], inner: Frame, frame: Frame
    ) -> None:
        parameters = function.node.args
        names = [each.arg for each in (*parameters.posonlyargs, *parameters.args)]
        given = [function.owner, *args] if function.owner is not None else list(args)
        defaults = dict(zip(names[len(names) - len(parameters.defaults) :], parameters.defaults, strict=True))
        defaults |= {
            each.arg: one for each, one in zip(parameters.kwonlyargs, parameters.kw_defaults, strict=True) if one
        }
        outer = inner.outer or frame
        for name in [*names, *(each.arg for each in parameters.kwonlyargs)]:
            if name in defaults:
                inner.names[name] = self.value(defaults[name], outer)
            else:
                inner.names[name] = SAME
        for name, value in zip(names, [each for each in given if each is not None], strict=False):
            inner.names[name] = value
        rest = given[len(names) :]
        if parameters.vararg:
            inner.names[parameters.vararg.arg] = of(Items("tuple", dict(enumerate(v for v in rest if v is not None))))
        if parameters.kwarg:
            inner.names[parameters.kwarg.arg] = of(Items("dict", {key: value for key, value in keywords.items()}))  # noqa: C416
        for name, value in keywords.items():
            if name != "**":
                inner.names[name] = value
            else:
                for thing in value.only(Items):
                    assert isinstance(thing, Items)
                    inner.names.update({str(key): each for key, each in thing.known.items()})
        if function.owner is not None and names:
            inner.this = function.owner
        for name, value in inner.names.items():
            inner.names[name] = replace(value, pending=None)

    def instantiate(
        self, cls: Class, node: ast.Call, args: list[Value], keywords: dict[str, Value], frame: Frame
    ) -> Value:
        """Make an instance of a class of the program."""
        made: Module | Instance = Module(node, cls=cls) if self.is_module_class(cls) else Instance(cls)
        initial = self.method_of(cls, "__init__", of(made))
        if isinstance(made, Module) and (known := self.modules.get(node)) is not None:
            made = known
            initial = self.method_of(cls, "__init__", of(made))
        elif isinstance(made, Module):
            self.modules[node] = made
        if initial is not None:
            self.enter(initial, node, args, keywords, frame)
        elif isinstance(made, Instance):
            for place, field in enumerate(each for each in cls.node.body if isinstance(each, ast.AnnAssign)):
                if isinstance(field.target, ast.Name):
                    value = args[place] if place < len(args) else keywords.get(field.target.id, SAME)
                    made.attributes[field.target.id] = value
        return of(made)

    # Models and losses

    def forward(
        self, module: Module, node: ast.Call, args: list[Value], keywords: dict[str, Value], frame: Frame
    ) -> Value:
        """Call a module."""
        given = [*args, *keywords.values()]
        local = [value for value in given if value.is_local or local_entries(value)]
        inside = bool(self.in_forward)
        root = root_of(module)
        trained = root.made in self.trained and not inside
        last = module.name.rpartition(".")[2]
        if last in LOSS_CLASSES:
            reduction = self.reduction_of(module.made if isinstance(module.made, ast.Call) else node)
            weighted = last in WEIGHTED and isinstance(module.made, ast.Call) and self.is_weighted(module.made)
            return loss_of([*args, *keywords.values()], reduction, weighted)
        unknown = [value for value in local if value.kind == "unknown" or value.kind in ADDITIVE]
        if unknown and (module.networks or trained):
            result = made_of("unknown", unknown)
            return self.tagged(result, node) if trained else result
        if module.cls:
            own = self.own_forward(module, node, args, keywords, frame, trained)
        else:
            own = of_library_module(module, given) if local else None
        result = made_of("batch" if local else "same", local or [SAME])
        if own is not None and (own.only(Items) or not self.is_vague(own, module, trained)):
            result = own
        if self.in_forward and self.undecided and module.networks and not trained:
            self.found.unused.add(root.made)
        if trained and root is module and self.without_gradients:
            self.found.forwards[node] = (frame.script, module)
            self.evaluated(module, node)
            return result
        if trained and root is module:
            self.found.forwards[node] = (frame.script, module)
            self.evaluated(module, node)
            result = self.tagged(result, node)
        elif trained:
            result = self.tagged(result, None, node)
        return result

    def is_vague(self, value: Value, module: Module, trained: bool) -> bool:
        """Whether nothing is known of what a network gives back, but that it is made of what it was given."""
        vague = value.kind == "same" or (value.kind == "unknown" and value.reason not in (*KEPT, DRAWN))
        return vague and (module.networks or trained)

    def evaluated(self, module: Module, node: ast.Call) -> None:
        """Note a call of a trained module outside of loops over training batches."""
        if not any(context.how == "batches" and not self.uneven(context) for context in self.contexts):
            loop = next((each for each in self.contexts if each.how != "rows"), None)
            name = self.named(module, loop.frame) if loop is not None else ""
            self.found.evaluations.setdefault(node, set()).add((loop.node, loop.frame.script, name) if loop else None)

    def tagged(self, value: Value, forward: ast.Call | None, bypass: ast.AST | None = None) -> Value:
        """The value, and those in it, with what it was made by."""
        for thing in value.only(Items):
            assert isinstance(thing, Items)
            thing.known = {key: self.tagged(each, forward, bypass) for key, each in thing.known.items()}
            thing.rest = None if thing.rest is None else self.tagged(thing.rest, forward, bypass)
        forwards = value.forwards | ({forward} if forward is not None else set())
        bypasses = value.bypasses | ({bypass} if bypass is not None else set())
        return replace(value, forwards=forwards, bypasses=bypasses)

    def own_forward(
        self, module: Module, node: ast.Call, args: list[Value], keywords: dict[str, Value], frame: Frame, trained: bool
    ) -> Value | None:
        assert module.cls is not None
        method = self.method_of(module.cls, "forward", of(module))
        if method is None:
            return None
        self.in_forward.append(module)
        undecided, self.undecided = self.undecided, self.undecided if len(self.in_forward) > 1 else 0
        try:
            result = self.enter(method, node, args, keywords, frame)
        finally:
            self.in_forward.pop()
            self.undecided = undecided
        for name, value in module.attributes.items():
            for part in value.only(Module):
                assert isinstance(part, Module)
                if part.networks and (module, name) not in self.parts:
                    self.found.unused.add(root_of(module).made)
        return self.lenient(result) if module.networks or trained else result

    def lenient(self, value: Value) -> Value:
        """What a network gives back: something for each sample, unless it is seen to be a mean or a sum."""
        for thing in value.only(Items):
            assert isinstance(thing, Items)
            thing.known = {key: self.lenient(each) for key, each in thing.known.items()}
            thing.rest = None if thing.rest is None else self.lenient(thing.rest)
        if value.kind == "unknown" and value.reason in (*KEPT, DRAWN):
            return value
        if value.kind in ("unknown", "rows", "picked", "rows_moved", "rows_last", "shape"):
            return replace(value, kind="batch", reason="")
        return value

    def reduction_of(self, call: ast.Call) -> str:
        """The reduction that a loss is asked for."""
        for word in call.keywords:
            if word.arg == "reduction":
                return str(word.value.value) if isinstance(word.value, ast.Constant) else "?"
            if word.arg in ("size_average", "reduce"):
                off = isinstance(word.value, ast.Constant) and not word.value.value
                return ("sum" if word.arg == "size_average" else "none") if off else "mean"
            if word.arg is None:
                return "?"
        return "mean"

    def is_weighted(self, call: ast.Call) -> bool:
        """Whether a classification loss weighs its classes, or leaves targets out."""
        words = {
            word.arg
            for word in call.keywords
            if not (isinstance(word.value, ast.Constant) and word.value.value is None)
        }
        is_function = (self.name_of(call.func)).rpartition(".")[2] not in LOSS_CLASSES
        left_out = any(-100 in _constants(script) for script in self.scripts)  # the default
        return left_out or bool(words & {"weight", "ignore_index"}) or len(call.args) > (2 if is_function else 0)

    def backward(self, node: ast.Call, frame: Frame) -> Value:
        assert isinstance(node.func, ast.Attribute)
        loss = self.value(node.func.value, frame)
        for thing in loss.only(Method):
            assert isinstance(thing, Method)
            loss = thing.owner
        self.found.scripts[node] = frame.script
        self.found.backwards.setdefault(node, set()).add(loss.kind)
        self.found.training_forwards |= loss.forwards
        self.found.backward_forwards[node] = max(len(loss.forwards), self.found.backward_forwards.get(node, 0))
        self.found.training |= loss.loaders
        if loss.kind not in ("mean", "sum"):
            reason = loss.reason
            if not reason and loss.kind == "same":
                reason = "it is not made of the batches of a DataLoader"
            self.problem(
                frame, node, f"this loss cannot be divided over ranks: {reason or 'it is no mean or sum over samples'}"
            )
        if self.trained and not loss.forwards and loss.kind in ("mean", "sum"):
            self.problem(frame, node, "no call of the trained model is seen that this loss is made by")
        for forward in loss.forwards:
            others = self.found.forward_backwards.setdefault(forward, set())
            others.add(node)
            if len(others) > 1:
                self.problem(
                    frame,
                    node,
                    "two backward passes go through one forward, which DistributedDataParallel counts as one",
                )
        if self.frozen is not None and loss.forwards:
            self.problem(
                frame,
                self.frozen,
                "parameters are frozen or unfrozen after the model was wrapped, which the wrapper does not see",
            )
        for bypass in loss.bypasses:
            self.problem(
                frame,
                bypass,
                "the model is used here other than by calling it, which DistributedDataParallel does not see",
            )
        return SAME

    # Libraries

    def library(
        self, name: str, node: ast.Call, args: list[Value], keywords: dict[str, Value], frame: Frame, alone: bool
    ) -> Value:
        """Call a function or class of a library, or of Python."""
        last = name.rpartition(".")[2]
        given = [*args, *keywords.values()]
        local = [value for value in given if value.is_local or local_entries(value)]
        if name in _LOADERS:
            return self.loader(node, frame)
        if is_optimizer_class(frame.script, node.func) or (name.startswith("torch.optim.") and last[0].isupper()):
            modules = self.parameters_in(given)
            if modules:
                self.found.optimizer_calls[node] = frame.script
                self.wrapped, self.frozen = True, None
                self.found.trained |= set(modules)
                return of(Optimizer(node, modules))
            if is_optimizer_class(frame.script, node.func):
                self.problem(frame, node, "the model whose parameters this optimizer gets cannot be seen")
            return SAME
        passed = self.iteration(name, last, args)
        if passed is not None:
            return passed
        modules = self.parameters_in(given)
        if modules and last in (
            "filter",
            "list",
            "chain",
            "from_iterable",
            "tuple",
            "iter",
            "map",
            "sorted",
            "zip",
            "dict",
            "set",
        ):
            return of(Parameters(modules))
        if name in _AS_THEY_ARE and args:
            return args[0]
        if name == "getattr" and len(args) >= 2 and isinstance(args[1].constant, str):
            return self.attribute_of(args[0], args[1].constant, node, frame)
        if name in ("print", "input"):
            self.shown(node, frame)
            return SAME
        if name == "len":
            return self.length(node, args, frame)
        if (numbers := self.random_numbers(name, node, local, frame)) is not None:
            return numbers
        if last in LOSSES and name.startswith("torch."):
            reduction = self.reduction_of(node)
            return loss_of(given, reduction, last in WEIGHTED and self.is_weighted(node))
        if name.startswith("torch.nn.") and last[:1].isupper() and not name.startswith("torch.nn.functional"):
            return self.library_module(name, node, given)
        if not local:
            return self.of_common(name, last, node, args)
        return self.of_local(name, last, node, args, given, frame, alone)

    def random_numbers(self, name: str, node: ast.Call, local: list[Value], frame: Frame) -> Value | None:
        """Numbers that a generator draws which may be at another place on each rank; None for others."""
        library = library_of(name)
        if not library or any(word.arg == "generator" for word in node.keywords):
            return None
        apart = any(context.how == "rows" or self.uneven(context) for context in self.contexts)
        if apart or (library == "torch" and self.contexts):
            self.drawn.add(library)
        if not self.began or library not in self.drawn or (library == "torch" and local_rows_or_sizes(local)):
            return None
        if changes(name):
            self.problem(frame, node, f"what {ast.unparse(node.func)} does is not the same on all ranks: {DRAWN}")
            return None
        return Value("unknown", reason=DRAWN, host=library != "torch")

    def library_module(self, name: str, node: ast.Call, given: list[Value]) -> Value:
        module = self.modules.setdefault(node, Module(node, name))
        last = name.rpartition(".")[2]
        module.networks = last not in LOSS_CLASSES
        if given:
            module.attributes["layers"] = given[0]
        for value in given:
            for inner in value.only(Module):
                assert isinstance(inner, Module)
                if inner is not module:
                    inner.parent = inner.parent or module
        return of(module)

    def of_common(self, name: str, last: str, node: ast.Call, args: list[Value]) -> Value:
        """What a library makes of values that are the same on all ranks."""
        if last in ("zeros", "zeros_like") or (name in ("float", "int") and not node.args):
            return ZERO
        if name in (
            "list",
            "dict",
            "set",
            "collections.deque",
            "tuple",
            "collections.defaultdict",
            "collections.OrderedDict",
        ):
            shape = "dict" if "dict" in name.lower() else "list"
            if name.endswith("defaultdict"):
                return replace(of(Items("dict")), zero=True)
            things = args[0].only(Items) if args else []
            return Value(things=frozenset(things)) if things else replace(of(Items(shape)), zero=True)  # type: ignore[arg-type]
        if name in ("float", "int", "torch.tensor") and args:
            return replace(args[0], things=frozenset(), constant=None)
        if name in (
            "sum",
            "min",
            "max",
            "range",
            "round",
            "abs",
            "isinstance",
            "str",
            "sorted",
            "open",
            "torch.load",
            "bool",
        ):
            return SAME
        if name in ("torch.device", "torch.manual_seed", "argparse.ArgumentParser"):
            return SAME
        return of(self.modules.setdefault(node, Module(node, name, networks=True)))

    def of_local(
        self, name: str, last: str, node: ast.Call, args: list[Value], given: list[Value], frame: Frame, alone: bool
    ) -> Value:
        """What a library makes of values that differ between the ranks."""
        local = [value for value in given if value.is_local]
        first = args[0] if args else SAME
        if name in ("float", "int") and first.kind in ("mean", "sum", "size"):
            return replace(made_of(first.kind, [first]), host=True)
        if name in ("float", "int") and first.kind in LOCAL_ROWS:
            return made_of(first.kind, [first], host=True)
        if name in ("sum", "numpy.sum", "numpy.mean", "statistics.mean", "math.fsum") and (
            found := self.of_list(name, args)
        ):
            return found
        if last in PREDICATES and first.kind in ("mean", "sum"):
            self.demand(node.args[0], first, frame)
            return SAME
        if name.startswith(
            ("math.", "round", "abs", "min", "max", "numpy.round", "str", "repr", "format")
        ) and not local_rows(given):
            for argument, value in zip(node.args, args, strict=False):
                self.demand(argument.value if isinstance(argument, ast.Starred) else argument, value, frame)
            return replace(SAME, host=True)
        if name in ("torch.autograd.Variable", "torch.tensor", "torch.as_tensor", "torch.Tensor") and first.is_local:
            return made_of(first.kind, [first])
        if (name.startswith(("torch.", "numpy.")) and first.kind in LOCAL_ROWS) or (
            local_rows(given) and name.startswith("torch.")
        ):
            rows = first if first.kind in LOCAL_ROWS else next(v for v in local if v.kind in LOCAL_ROWS)
            others = [value for value in given if value is not rows]
            if last in ("matmul", "mm") and len(args) > 1:
                return combined(ast.MatMult(), args[0], args[1])
            if last == "einsum":
                return einsum(first.constant, args[1:]) or made_of("unknown", local)
            words = {word.arg or "" for word in node.keywords}
            found = on_rows(last, rows, self.dimension(node, 1, frame), others, words)
            if found is not None:
                return found
        if name.startswith("torch.") and last in ("cat", "stack", "concat") and first.only(Items):
            entries = [entry for thing in first.only(Items) if isinstance(thing, Items) for entry in thing.all()]
            kinds = {entry.kind for entry in entries if entry.is_local}
            if kinds <= LOCAL_ROWS:
                return made_of("rows", entries)
            if len(kinds) == 1 and kinds <= {"mean", "sum"}:
                return made_of(next(iter(kinds)), entries)
        if name.startswith("torch.") and last == "randperm":
            return made_of("unknown", local, reason=COUPLES)
        if name.startswith("torch.") and last in FACTORIES and all(value.kind in ("size", "shape") for value in local):
            return made_of("rows", local)
        if name.startswith("torch.") and first.kind in ("mean", "sum") and (found := on_number(last, first, args[1:])):
            return found
        return self.unknown_call(node, given, frame, alone)

    def of_list(self, name: str, args: list[Value]) -> Value | None:
        """The sum, or mean, of a list of numbers or of a generator."""
        entries = [entry for thing in args[0].only(Items) if isinstance(thing, Items) for entry in thing.all()]
        kinds = {entry.kind for entry in entries if entry.is_local or not entry.zero}
        if len(kinds) != 1 or not kinds <= {"mean", "sum", "size"} or args[1:]:
            return None
        kind = kinds.pop()
        return made_of("sum" if kind == "size" else kind, entries, host=True)

    def length(self, node: ast.Call, args: list[Value], frame: Frame) -> Value:
        value = args[0] if args else SAME
        for loader in value.only(Loader):
            assert isinstance(loader, Loader)
            self.found.lengths.append((frame.script, node, loader))
            if self.status.get(loader) == "sharded":
                return Value("unknown", frozenset({loader}), reason="the number of a rank's batches is not that of all")
        if value.kind in LOCAL_ROWS and axis(value.kind) != 0:
            return SAME
        if value.kind in LOCAL_ROWS:
            return made_of("size" if value.kind != "picked" else "sum", [value], host=True)
        if value.kind == "unknown":
            return value
        if local_entries(value) and not any(context.how == "batches" for context in self.contexts):
            return SAME
        return SAME

    def iteration(self, name: str, last: str, args: list[Value]) -> Value | None:
        """What loops run over, if the call makes that."""
        if not args or not (self.loaders_in(*args) or any(v.kind in LOCAL_ROWS or v.only(Items) for v in args)):
            return None
        if name in ("enumerate", "zip", "reversed", "itertools.islice", "islice", "iter"):
            how = name if name in ("enumerate", "zip") else "as_is"
            if name == "iter" and self.loaders_in(*args):
                self.problem_of(args[0], "batches are taken one by one with next(), so that epochs cannot be seen")
            return of(Iteration(how, tuple(args)))
        if name in _BARS or last in ("tqdm", "track", "trange"):
            return of(Iteration("bar", (args[0],)))
        return None

    # Methods of values

    def method(
        self, method: Method, node: ast.Call, args: list[Value], keywords: dict[str, Value], frame: Frame, alone: bool
    ) -> Value:
        owner, name = method.owner, method.name
        given = [*args, *keywords.values()]
        local = [value for value in given if value.is_local or local_entries(value)]
        for thing in owner.things:
            found = self.of_thing(thing, owner, name, node, args, given, frame, alone)
            if found is not None:
                return found
        if owner.kind in ADDITIVE and name.endswith("_") and not name.endswith("__") and name != "requires_grad_":
            self.problem(frame, node, f".{name}() changes a number of this rank in place", owner.loaders)
        if owner.kind in LOCAL_ROWS:
            words = {word.arg or "" for word in node.keywords}
            if name == "item":
                return made_of("rows", [owner], host=True) if self.in_rows() else made_of("unknown", [owner])
            if name == "size":
                return self.size(owner, node, frame)
            if name in ("items", "values", "keys"):
                return of(Iteration("pairs" if name == "items" else "as_is", (owner,)))
            found = on_rows(name, owner, self.dimension(node, 0, frame), given, words)
            return found or made_of(
                "unknown", [owner, *given], reason=f"what .{name}() makes of a batch depends on which samples are in it"
            )
        if owner.kind in ("mean", "sum", "size"):
            found = on_number(name, owner, given)
            return found or made_of("unknown", [owner, *given], reason=f".{name}() of it cannot be added up over ranks")
        if owner.is_local:
            return made_of("unknown", [owner, *given])
        if owner.zero and name in ("to", "cuda", "cpu", "clone", "double", "float", "long"):
            return owner
        if local and name in ("scale",) and len(args) == 1:
            return args[0]
        if local and name == "format":
            self.shown(node, frame)
            return SAME
        if local and name in _SHOWN | {"write"} and self.is_bar(owner):
            return SAME
        if local:
            return self.unknown_call(node, given, frame, alone)
        if not alone and not owner.things:
            return SAME
        return of(Module(node, "", networks=True)) if not alone and not owner.zero else SAME

    def is_bar(self, owner: Value) -> bool:
        return any(isinstance(thing, Iteration) and thing.how == "bar" for thing in owner.things)

    def of_thing(
        self,
        thing: object,
        owner: Value,
        name: str,
        node: ast.Call,
        args: list[Value],
        given: list[Value],
        frame: Frame,
        alone: bool,
    ) -> Value | None:
        """A method of something that is known; None for others."""
        if isinstance(thing, Module):
            if name == "requires_grad_":
                self.freezes(owner, node)
            if name in ("train", "eval"):
                on = args[0].constant if args else name == "train"
                root_of(thing).evaluates = on is False
            if name in _MODULE_SELF:
                return owner
            if name in _PARAMETERS:
                return of(Parameters((thing,)))
            if name in ("children", "modules", "named_children", "named_modules"):
                return SAME
            if not any(value.is_local or local_entries(value) for value in given):
                return SAME
        if isinstance(thing, Items):
            if name in _LIST_METHODS and args:
                for value in args[-1:]:
                    entries = value.only(Items) if name == "extend" else []
                    inner = [each for one in entries if isinstance(one, Items) for each in one.all()]
                    for each in inner or [value]:
                        self.append(owner, each)
                return SAME
            if name in ("items", "values", "keys"):
                return of(
                    Iteration("pairs" if name == "items" else "entries" if name == "values" else "keys", (owner,))
                )
            if name in ("get", "setdefault", "pop"):
                return self.part(owner, args[0].constant if args else None)
            if name == "update" and any(value.is_local or local_entries(value) for value in given):
                self.append(
                    owner, made_of("unknown", [v for v in given if v.is_local] or [SAME], reason=".update() of it")
                )
                return SAME
        if isinstance(thing, Parameters) and name == "requires_grad_":
            self.freezes(owner, node)
        elif isinstance(thing, Parameters) and name.endswith("_"):
            for argument, value in zip(node.args, args, strict=False):
                self.demand(argument, value, frame)
        if isinstance(thing, Loader | Parameters | Optimizer):
            return SAME if isinstance(thing, Loader) else owner if isinstance(thing, Parameters) else SAME
        if isinstance(thing, Iteration) and thing.how == "bar":
            return SAME
        return None

    def append(self, owner: Value, value: Value) -> None:
        """Put a value into a list, dict or set."""
        uneven = [context for context in self.contexts if self.uneven(context)]
        if uneven and not value.is_local and not local_entries(value):
            value = self.counted(uneven[0])
        for thing in owner.only(Items):
            assert isinstance(thing, Items)
            thing.rest = value if thing.rest is None else join(thing.rest, value)
            thing.grows = True

    def size(self, owner: Value, node: ast.Call, frame: Frame) -> Value:
        dimension = self.dimension(node, 0, frame)
        if not node.args and not node.keywords:
            return self.shape_of(owner)
        if owner.kind == "picked":
            return SAME
        return self.size_in(self.shape_of(owner), dimension)

    def dimension(self, node: ast.Call, place: int, frame: Frame) -> object:
        """The dimension that a call names: a number, a tuple of them, None without one, "unknown"."""
        later = (
            "norm",
            "normalize",
            "roll",
            "topk",
            "renorm",
            "kthvalue",
            "quantile",
            "chunk",
            "split",
            "split_with_sizes",
        )
        place += ast.unparse(node.func).rpartition(".")[2] in later
        given = [word.value for word in node.keywords if word.arg in ("dim", "axis")] or node.args[place : place + 1]
        if not given:
            return None
        value = given[0]
        if isinstance(value, ast.Tuple | ast.List):
            parts = [self.value(part, frame).constant for part in value.elts]
            return tuple(parts) if all(isinstance(part, int) for part in parts) else "unknown"
        constant = self.value(value, frame).constant
        return constant if isinstance(constant, int) else "unknown"


@lru_cache(maxsize=64)
def _constants(script: Script) -> frozenset[int]:
    """The negative numbers that are written in a file."""
    return frozenset(
        -node.operand.value
        for node in script.find(ast.UnaryOp)
        if isinstance(node.op, ast.USub)
        and isinstance(node.operand, ast.Constant)
        and isinstance(node.operand.value, int)
    )


def is_without_gradients(node: ast.expr) -> bool:
    """Whether `with` makes computations that are not differentiated."""
    name = ast.unparse(node.func if isinstance(node, ast.Call) else node).rpartition(".")[2]
    return name in ("no_grad", "inference_mode")


def local_rows_or_sizes(values: Sequence[Value]) -> bool:
    """Whether a shape is made of a rank's samples."""
    return any(value.kind in ("size", "shape", *LOCAL_ROWS) for value in values)


def local_rows(values: Sequence[Value]) -> bool:
    """Whether any of the values holds samples."""
    return any(value.kind in LOCAL_ROWS for value in values)
