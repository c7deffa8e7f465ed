"""Follows calls of functions of libraries, and of Python."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from dataclasses import replace
from typing import Literal

from ..batch_norm import LIBRARIES as NETWORKS
from ..data_parallel import CLASSES as DATA_PARALLEL
from ..data_parallel import COPIES, called_in_parallel
from ..loggers import loggers
from ..optimizer_classes import is_optimizer_class
from .apex import INITIALIZE, models_given, of_apex
from .bags import bags, of_each_sample
from .bound_arguments import bound
from .by_name import is_filled
from .class_tests import is_of_class
from .commands import COMMANDS, from_command_line, functions_of
from .containers import has_layers
from .draws import LIBRARIES, LOADERS, SEED_ALL, SEEDS
from .extended import zipped_rows
from .frames import Frame
from .given_parameters import UNSEEN, to_train
from .held_values import local_entries, local_runs, may_differ
from .input_gradients import gradients_of
from .library_results import LibraryResults
from .modes import sets_reductions
from .modules import scored
from .one_by_one import loops_around, shuffles
from .one_for_each import one_for_each
from .operation_names import (
    LOSSES,
    PICTURES,
    WEIGHTED,
)
from .operations import runs_over_samples, values_of
from .packed import is_named, is_packed, packed, padded_again, pads_again
from .parallel_states import ParallelStates
from .reductions import reduction_of
from .told import Told
from .training import read_by
from .truth import truth
from .values import (
    COUPLES,
    DRAWN,
    LOCAL_ROWS,
    SAME,
    TAKEN,
    UNEVEN,
    Bound,
    Function,
    Instance,
    Items,
    Iteration,
    Library,
    Logger,
    Method,
    Module,
    OptimizerValue,
    Parameters,
    Thing,
    Value,
    entries,
    join,
    libraries_of,
    made_of,
    of,
    root_of,
    set_in_run,
)

_BARS = frozenset({"tqdm.tqdm", "tqdm.auto.tqdm", "tqdm.notebook.tqdm", "tqdm.std.tqdm", "tqdm.tqdm_notebook", "tqdm"})

# What is looked up in a library by a name that is not known, `getattr(torch.optim, name)`.
_BASES: dict[Thing, Thing] = {
    Library("torch.optim"): Library("torch.optim.Optimizer"),
    Library("torch.optim.lr_scheduler"): Library("torch.optim.lr_scheduler.LRScheduler"),
}
_AS_THEY_ARE = frozenset(
    {
        "torch.compile",
        "torch.jit.script",
        "torch.optim.swa_utils.AveragedModel",
        "torch.nn.SyncBatchNorm.convert_sync_batchnorm",
        "apex.parallel.convert_syncbn_model",
    }
)


# They run over no loader that they are given, or give it to a loop.
_LOOK = frozenset(
    {"print", "len", "isinstance", "type", "str", "repr", "id", "hasattr", "getattr", "setattr", "dict", "enumerate"}
    | {"zip", "iter", "reversed", "itertools.islice", "islice", "super"}
)

_HOOKS_OF_ALL = frozenset({"register_optimizer_step_pre_hook", "register_optimizer_step_post_hook"})
_NOT_ALL = "which batches are taken, and what with, would be others in a rank's part of an evaluation"


class Libraries(LibraryResults, Told, ParallelStates):
    """What libraries make of values."""

    def library(
        self, name: str, node: ast.Call, args: list[Value], keywords: dict[str, Value], frame: Frame, alone: bool
    ) -> Value:
        """Call a function or class of a library, or of Python."""
        last = name.rpartition(".")[2]
        if (number := self.own_number(name, args, node, frame)) is not None:
            return number
        self.given_to_run_over(name, args, node, frame)
        given = [*args, *keywords.values()]
        local = [value for value in given if value.is_local or local_entries(value)]
        if name not in _LOOK and not is_bar(name):
            self.given_away(node, given, frame)
            self.leaves(given)
        self.pickles(name, given, node, frame)
        if name in LOADERS:
            return self.loader(node, frame)
        if name in ("isinstance", "type") and args:
            self.asks_for_parallel(name, args[0], node, frame)
        if name in ("isinstance", "hasattr", "type"):
            self.asks_for_class(node, args, frame)
            if name == "isinstance" and args and (decided := is_of_class(node, args[0])) is not None:
                return replace(SAME, constant=decided)
        if name == "bool" and len(node.args) == 1 and (holds := truth(node.args[0], args[0])) is not None:
            return Value(constant=holds, host=True)
        if name == "functools.partial" and args and (made := bound(args, keywords)) is not None:
            return made
        if any(node in calls for calls in loggers(frame.script).values()):
            return of(self.loggers.setdefault(node, Logger(node, frame.script)))
        is_certain = is_optimizer_class(frame.script, node.func)
        if is_certain or (name.startswith("torch.optim.") and last[0].isupper()):
            modules = self.trained_by(to_train(args, keywords)) if is_certain else self.parameters_in(given)
            if node in self.idle:
                return of(OptimizerValue(node, ()))
            self.is_told(node, [*args, *keywords.values()], frame)
            if is_certain:
                self.keeps_groups([*args[:1], keywords.get("params", SAME)])
            else:
                self.keeps_functions(node, [*args, *keywords.values()], (), frame)
            if modules:
                if reason := self.not_averaged(node, modules, frame):
                    self.problem(frame, node, reason)
                self.found.optimizer_calls[node] = frame.script
                self.makes_optimizer(node, modules)
                self.making |= set(loops_around(frame))
                self.found.trained |= set(modules)
                return of(OptimizerValue(node, modules))
            if is_certain:
                self.problem(frame, node, UNSEEN)
            return SAME
        if last in _HOOKS_OF_ALL and name.startswith("torch."):
            self.keeps_functions(node, given, (SAME, SAME, SAME), frame)
        if name in ("importlib.import_module", "__import__") and (files := self.imported_by_name(node, frame)):
            return files
        if name == "eval" and len(node.args) == 1 and (models := self.class_by_name(node.args[0], frame)):
            return models
        if name == "super" and (inherited := self.super_of(node, frame)) is not None:
            return inherited
        if name in ("str", "repr", "format") and args and args[0].only(Instance):
            self.strings(args[0], node.args[0], frame)
            return SAME
        if name == "next" and self.loaders_in(*args[:1]):
            return self.next_batch(args[0], node, frame)
        if name == "next" and args and runs_over_samples(args[0]):
            return made_of("unknown", [self.each_of(args[0], node)], reason=TAKEN)
        if name == "next" and len(args) == 2:
            return join(self.library(name, node, args[:1], keywords, frame, alone), args[1])
        passed = self.iteration(name, last, args, node, frame)
        if passed is not None:
            return passed
        if name == "map" and any(map(sets_reductions, args[:1])):
            self.reduces_otherwise(self.modules.values())
        if name == "map" and (mapped := self.mapped(node, args, frame)) is not None:
            return mapped
        if name == "map" and args and not any(value.is_local for value in args):
            self.maps_numbers(args, node, frame)
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
        if (
            last == "checkpoint"
            and args
            and (called := [each for kind in (Function, Bound, Module) for each in args[0].only(kind)])
        ):
            return self.called(called[0], node, args[1:], {}, frame, alone)
        if self.in_forward and called_in_parallel(frame.script, node):
            words = dict(zip(("module", "inputs"), args, strict=False)) | keywords
            inputs = words["inputs"]
            several = [thing for thing in inputs.only(Items) if isinstance(thing, Items) and thing.shape == "tuple"]
            if called_so := words["module"].only(Module):
                return self.called(called_so[0], node, several[0].all() if several else [inputs], {}, frame, alone)
        if name in COMMANDS:
            of_file = (
                [self.on_name(each, frame) for each in functions_of(frame.script)] if not (args or keywords) else []
            )
            for value in entries([*args[:1], *of_file]):
                for function in value.only(Function):
                    assert isinstance(function, Function)
                    self.enter(function, node, [], from_command_line(function), frame)
            return SAME
        if name in COPIES and args:
            self.copies_to_devices(args[0], node, frame)
        if name in DATA_PARALLEL and (args or "module" in keywords):
            return self.in_parallel(args[0] if args else keywords["module"], node, frame)
        if name in _AS_THEY_ARE and args:
            return args[0]
        if name in ("dict", "collections.OrderedDict") and (entries_of := self.entries(node, keywords, frame)):
            return entries_of
        if (by_apex := of_apex(name, args, keywords)) is not None:
            if name in INITIALIZE:
                changed = {root_of(each).made for value in given[:1] for each in models_given(value)}
                self.found.by_apex.setdefault(node, set()).update(changed)
                self.found.scripts[node] = frame.script
            return by_apex
        if name in ("torch.autograd.grad", "torch.grad"):
            return self.gradients_of(node, args, keywords)
        if (copies := self.copied(name, node, args)) is not None:
            return copies
        if name == "torch.vmap" and self.in_forward and (reason := self.maps_samples(node, args, frame)):
            self.problem(frame, node, reason)
        if name in ("functools.reduce", "itertools.accumulate") and self.in_forward and any(map(by_sample, given)):
            return made_of("unknown", entries(given), reason=COUPLES)
        if name in ("torch.is_tensor", "torch.is_complex") or (name == "numpy.iscomplexobj" and not local):
            return SAME
        if name.startswith("torch.distributions."):
            return self.distribution(name, node, given)
        if name == "getattr" and args and args[0].only(Logger):
            return of(Method(args[0], "", node))
        by_name = name == "getattr" and len(args) >= 2 and not isinstance(args[1].constant, str)
        if by_name and (layers := self.held(args[0], None)) is not None:
            return layers
        if name == "getattr" and len(args) >= 2 and isinstance(args[1].constant, str):
            found = self.attribute_of(args[0], args[1].constant, node, frame)
            return replace(found, is_none=None) if any(each.is_none is not False for each in args[2:]) else found
        if by_name and (bases := [_BASES[each] for each in args[0].only(Library) if each in _BASES]):
            return of(bases[0])
        if by_name and (libraries := libraries_of(args[0])) and all(each.startswith(NETWORKS) for each in libraries):
            return SAME  # getattr(models, name), as models.__dict__[name] is
        self.changes_layers(name, args, keywords, node, frame)
        if name == "setattr" and len(node.args) == 3:
            if args[1].constant is None:
                self.gets_layers(args[0], args[2:], node, frame)
            return self.sets_attribute(node, args, frame)
        if name == "vars" and args and is_filled(frame.script, node):
            self.sets_by_name(args[0])
        if name == "globals" and is_filled(frame.script, node):
            names = self.module_frame(frame.script).names
            names |= {each: set_in_run(value) for each, value in names.items()}
        if name in ("getattr", "vars") and args and (file := self.file_in(args[0])) is not None:
            return self.one_of(file) if name == "getattr" else self.contents(file)
        if name in PICTURES and local:
            self.pictured(node, frame)
            return SAME
        if name in ("print", "input"):
            self.shown(node, frame)
            return SAME
        if name == "len":
            return self.length(node, args, frame)
        if name in ("tuple", "list") and len(args) == 1 and args[0].only(Items) and not args[0].is_local:
            # tuple(part.to(device) for part in batch)
            lists = [each for each in args[0].things if isinstance(each, Items)]
            as_tuple = name == "tuple" and all(each.shape == "list" for each in lists)
            return Value(things=frozenset(replace(each, shape="tuple") if as_tuple else each for each in lists))
        if (
            name == "torch.repeat_interleave"
            and node.args
            and (made := one_for_each(self.scripts, node.args[0], args[0], args[1:], keywords))
        ):
            return made
        if (sequences := packed(name, given) or bags(name, [*given[:1], *given[2:]])) is not None:
            return sequences
        if pads_again(name, node):
            asks = is_named(node) and (is_packed(args[0]) or not local)
            agreed = asks and self.agree(node, given, frame)
            said = keywords.get("batch_first", args[1] if args[1:] else Value(constant=False))
            return padded_again(given, said.constant, agreed) if local else SAME
        if name in ("itertools.cycle", "itertools.chain") and self.drawn and any(map(shuffles, self.loaders_in(*args))):
            # Each rank would go through all of it, in an order of its own.
            self.problem(frame, node, f"what {name} gives of a loader that shuffles is not followed")
        if (numbers := self.random_numbers(name, node, local, frame)) is not None:
            return numbers
        if (name in SEEDS or name in SEED_ALL) and not self.contexts and not self.undecided:
            perhaps = any(isinstance(each, ast.BoolOp) for each in frame.script.ancestors(node))
            self.found.seeded |= set() if perhaps else {SEEDS[name]} if name in SEEDS else LIBRARIES
        if name in SEEDS and given and not local and not self.contexts and not self.undecided:
            calls = any(isinstance(part, ast.Call) for each in node.args for part in ast.walk(each))
            if self.has_begun and not calls and SEEDS[name] in self.drawn:
                self.seeded_again |= {None, *loops_around(frame)}
            self.began -= set() if calls else {SEEDS[name]}  # a clock may be called
        if last in LOSSES and name.startswith("torch."):
            reduction = reduction_of(last, node, lambda part: self.value(part, frame).constant)
            self.scores |= scored(node, frame) if last in WEIGHTED else set()
            if last in WEIGHTED and self.is_weighted(node):
                return self.weighed_loss(node, node, given, reduction, frame)
            return self.loss(last, node, of_each_sample(last, given), reduction, frame)
        if name.startswith("torch.nn.") and last[:1].isupper() and not name.startswith("torch.nn.functional"):
            return self.library_module(name, node, args, keywords, frame)
        if name == "sum" and len(args) == 1 and (values := values_of(args[0])) is not None:
            args = given = [values]  # sum(losses.values())
            local = [value for value in given if value.is_local or local_entries(value)]
        if name in ("list", "tuple") and (pairs := zipped_rows(args)) is not None:
            return pairs
        if over := [inner for value in given for inner in local_runs(value)]:
            return made_of("unknown", over, reason=f"{ast.unparse(node.func)} runs over numbers of this rank")
        if not local:
            return self.of_own_size(self.of_common(name, last, node, args, frame), name, last, node)
        return self.of_local(name, last, node, args, given, frame, alone)

    def mapped(self, node: ast.Call, args: list[Value], frame: Frame) -> Value | None:
        """What a function makes of each of several tensors, `x, y = map(Variable, (x, y))`, or of what a batch holds,
        `x, y = map(to_device, batch)`; None for other uses."""
        function = next(iter(args[0].things)) if len(args) == 2 and len(args[0].things) == 1 else None
        variable = isinstance(function, Library) and function.name == "torch.autograd.Variable"
        own = function if isinstance(function, Function | Bound) else None
        if args[0].is_local or not (variable or own):
            return None
        if self.in_forward and args[1].kind in LOCAL_ROWS and self.reads_others(args[0], frame):
            return made_of("unknown", args[1:], reason=COUPLES)
        parts = self.unpacked(node, args[1], frame)
        if parts is None or (
            isinstance(function, Function) and len(function.node.args.args) != 1 + bool(function.owner)
        ):
            return None
        shape, known, rest = parts
        if own is not None:
            known = {key: self.called(own, node, [value], {}, frame, False) for key, value in known.items()}
            rest = None if rest is None else self.called(own, node, [rest], {}, frame, False)
        return of(Items(shape, known, rest))

    def maps_numbers(self, args: Sequence[Value], node: ast.Call, frame: Frame) -> None:
        """Follow a function that is called for each of something, and reads numbers of this rank beside it:
        `map(lambda group: group.update(lr=loss.item()), optimizer.param_groups)`."""
        for thing in args[0].only(Function):
            assert isinstance(thing, Function)
            if any(may_differ(value) for _, value in read_by(of(thing))):
                self.called(thing, node, [self.each_of(each, node) for each in args[1:]], {}, frame, False)

    def maps_samples(self, node: ast.Call, args: list[Value], frame: Frame) -> str:
        """Why torch.vmap() may not be for each sample; "" where it is."""
        words = [word.value for word in node.keywords if word.arg in ("in_dims", "out_dims")]
        dimensions = [self.value(each, frame).constant for each in (*node.args[1:3], *words)]
        along = all(each == 0 and not isinstance(each, bool) for each in dimensions)
        return COUPLES if not along or (args and self.reads_others(args[0], frame)) else ""

    def reads_others(self, function: Value, frame: Frame) -> bool:
        """Whether a function that gets one sample after the other reads what holds all, too: `lambda row: row / h`."""
        if function.only(Bound):  # it may be given them
            return True
        for thing in function.only(Function):
            assert isinstance(thing, Function)
            own = {each.arg for each in ast.walk(thing.node.args) if isinstance(each, ast.arg)}
            names = (each for each in ast.walk(thing.node) if isinstance(each, ast.Name))
            if any(
                each.id not in own and (at := frame.owner(each.id)) and at.names[each.id].is_local for each in names
            ):
                return True
        return False

    def unpacked(
        self, node: ast.Call, value: Value, frame: Frame
    ) -> tuple[Literal["tuple", "list"], dict[object, Value], Value | None] | None:
        """What map() takes one by one of several tensors, or of a batch that is unpacked at once; None where it is not
        seen that they are several."""
        if value.kind == "batch" and not value.things and not value.dimensions:
            statement = frame.script.parents[node]
            target = statement.targets[0] if isinstance(statement, ast.Assign) and len(statement.targets) == 1 else None
            names = target.elts if isinstance(target, ast.Tuple | ast.List) else []
            if len(names) < 2 or any(isinstance(each, ast.Starred) for each in names):
                return None
            return "tuple", {place: self.part(value, place) for place in range(len(names))}, None
        items = next(iter(value.things)) if len(value.things) == 1 and not value.is_local else None
        if not isinstance(items, Items) or items.shape == "dict" or any(each.things for each in items.all()):
            return None
        return ("list" if items.shape == "list" else "tuple"), items.known, items.rest

    def gradients_of(self, node: ast.Call, args: list[Value], keywords: dict[str, Value]) -> Value:
        """Gradients that are taken by themselves: of samples, or of anything else."""
        names = ("outputs", "inputs", "grad_outputs")
        given = {**dict(zip(names, args, strict=False)), **keywords}
        outputs, inputs = given.get("outputs", SAME), given.get("inputs", SAME)
        graph = keywords.get("create_graph", SAME).constant is True or len(args) > 4
        found = gradients_of(outputs, inputs, given.get("grad_outputs"), graph)
        local = [value for value in entries(given.values()) if value.is_local]
        if any(value.loaders and not value.is_local for value in entries([outputs])):
            self.found.other_gradients.add(node)  # W times too large
        if not local:
            return SAME
        if all(value.reason == DRAWN for value in local) and not entries_with_parameters([inputs]):
            self.found.sample_gradients.add(node)  # of samples with noise, in a whole evaluation
            return made_of("unknown", local, reason=DRAWN)
        (self.found.other_gradients if found is None else self.found.sample_gradients).add(node)
        reason = "what autograd.grad gives for it cannot be added up over ranks"
        return found or (made_of("unknown", local, reason=reason) if local else SAME)

    def entries(self, node: ast.Call, keywords: dict[str, Value], frame: Frame) -> Value | None:
        """`dict(loss=loss)`, `OrderedDict([("loss", loss)])`; None for another dict."""
        if keywords and not node.args and "**" not in keywords:
            return of(Items("dict", {key: value for key, value in keywords.items()}))  # noqa: C416
        pairs = node.args[0] if len(node.args) == 1 and not keywords else None
        if not isinstance(pairs, ast.List | ast.Tuple) or not pairs.elts:
            return None
        known: dict[object, Value] = {}
        for pair in pairs.elts:
            if not isinstance(pair, ast.Tuple | ast.List) or len(pair.elts) != 2:
                return None
            key = self.value(pair.elts[0], frame).constant
            if not isinstance(key, str | int):
                return None
            known[key] = self.value(pair.elts[1], frame)
        return of(Items("dict", known))

    def iteration(self, name: str, last: str, args: list[Value], node: ast.Call, frame: Frame) -> Value | None:
        """What loops run over, if the call makes that."""
        of_parts = any(v.kind in LOCAL_ROWS or v.only(Items) or v.only(Iteration) or has_layers(v) for v in args)
        if not args or not (of_parts or self.loaders_in(*args) or any(map(self.is_generated, args))):
            return None
        if name in ("enumerate", "zip", "reversed", "itertools.islice", "islice", "iter"):
            how = name if name in ("enumerate", "zip") else "as_is"
            if name == "iter":
                self.one_by_one(node, args[0], frame)
            if name not in ("iter", "enumerate"):
                for loader in self.loaders_in(*args):
                    if self.status.get(loader) in UNEVEN:
                        self.problem(frame, node, _NOT_ALL, frozenset({loader}))
            return of(Iteration(how, tuple(args)))
        if is_bar(name):
            return of(Iteration("bar", (args[0],)))
        return None


def is_bar(name: str) -> bool:
    """Whether a function of a library shows how far a loop over what it is given has come."""
    return name in _BARS or name.rpartition(".")[2] in ("tqdm", "track", "trange")


def entries_with_parameters(values: Sequence[Value]) -> bool:
    """Whether parameters, or a part of a model, are among the values."""
    return any(value.only(Parameters) or value.only(Module) for value in entries(values))


def by_sample(value: Value) -> bool:
    """Whether a list has an entry for each sample."""
    return any(isinstance(thing, Items) and thing.by_sample for thing in value.things)
