"""Follows what functions of libraries make of values: of what is alike on all ranks, of samples, of sizes."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from dataclasses import replace

from ..batch_norm import LIBRARIES
from ..called_modules import last_name
from .arithmetic import combined, on_number
from .batches import of_batches
from .counted_dimensions import counted, listed_dimensions, made_by
from .dimensions import most, of_dimensions, of_sizes_given
from .draws import changes, library_drawn_from, library_of
from .einops import einops
from .einsum import einsum
from .factories import maker_of
from .frames import Frame
from .held_values import local_entries
from .input_gradients import of_scaled
from .layout import axis, together, unsqueezed
from .looked_up import distances, looked_up, taken
from .named_tuples import named_tuple
from .one_by_one import loaders_counted
from .operands import weighs_by_samples
from .operation_names import COUPLE, FACTORIES, MOVE, NUMPY_FACTORIES, OF_IMAGES, PREDICATES, TAKE_LAST, TENSOR_TYPES
from .operations import for_each_sample, of_numpy, of_sizes, on_rows, one_after_another
from .own_decisions import is_drawn
from .own_networks import LOOKS_UP
from .own_regions import counted_apart
from .own_sizes import written_sizes
from .sample_entries import row_of_each
from .sizes import product
from .state import Context
from .tensor_uses import is_taken_apart
from .unseen_layers import UnseenLayers
from .values import (
    CHOSEN,
    COUPLES,
    DRAWN,
    KEYED,
    LOCAL_ROWS,
    MIXED,
    NUMBERED,
    OWN_SHAPE,
    RECURSION,
    SAME,
    SHUFFLED,
    ZERO,
    Class,
    Items,
    Module,
    Value,
    entries,
    made_of,
    of,
    unnumbered,
)
from .views import regroups, takes_apart

_OVER = frozenset({"sum", "max", "min", "functools.reduce", "itertools.accumulate"})  # what they are given

_OF_NUMBERS = frozenset({"numpy.exp", "numpy.log", "numpy.log2", "numpy.log10", "numpy.sqrt", "numpy.power"})

# They make a tensor of the numbers in a list.
_COPIES = frozenset({"torch.tensor", "torch.as_tensor", "torch.from_numpy", "list", *TENSOR_TYPES})

_OF_LISTS = _COPIES - {"list", "torch.from_numpy"} | {"numpy.array", "numpy.asarray"}

_READ_BY_KEY = frozenset({"items", "keys", "values", "get"})

_SIZED_FIRST = frozenset({"zeros", "ones", "empty", "full"})  # of numpy, with a type behind it

_OF_SIZES = FACTORIES | {"uniform"}
# What these give is no network: numbers, and settings that are read from a file.
_NO_NETWORKS = ("numpy.", "math.", "json.", "yaml.", "tomllib.", "toml.", "configparser.")


class LibraryResults(UnseenLayers):
    """What functions of libraries give, by what they are given."""

    def unknown_call(self, node: ast.Call, given: Sequence[Value], frame: Frame, alone: bool) -> Value:
        """A call of something that is not known: what it is given may be shown or written."""
        name = ast.unparse(node.func)
        local = [value for value in given if value.is_local or local_entries(value)]
        moves = name.startswith("torch.") and last_name(node.func) in MOVE
        if moves and any(each.reason == NUMBERED for each in entries(local)):
            return replace(made_of("unknown", local), reason=COUPLES)
        couples = last_name(node.func) in COUPLE and frame.script.qualified(node.func).startswith("torch.")
        if local and self.in_forward and couples:  # several tensors in a list
            return made_of("unknown", local, reason=COUPLES)
        local = local if self.in_rows() else [unnumbered(value) for value in local]
        self.given_away(node, given, frame)
        self.leaves(given)
        if not local:
            return of(Module(node, "", networks=True)) if not alone and not self.registers else SAME
        if alone or self.is_shown(node, frame):
            self.shown(node, frame, self.may_keep(node, frame))
            return SAME
        recursive = any(each.reason == RECURSION for each in entries(local))
        reason = RECURSION if recursive else f"what {name} makes of it cannot be added up over ranks"
        return made_of("unknown", local, reason=reason)

    def distribution(self, name: str, node: ast.Call, given: Sequence[Value]) -> Value:
        """A distribution for each sample; what kl_divergence makes of two of these."""
        local = [value for value in given if value.is_local]
        kinds = {value.kind for value in local}
        if kinds and not (kinds <= LOCAL_ROWS and all(axis(kind) == 0 for kind in kinds)):
            return made_of("unknown", local)
        return made_of("rows", local) if local else of(Module(node, name))

    def random_numbers(self, name: str, node: ast.Call, local: list[Value], frame: Frame) -> Value | None:
        """Numbers that a generator draws which may be at another place on each rank; None for others."""
        library = library_drawn_from(name, node)
        if library in self.alike:
            self.draws_alike(library, node, local, frame)
            return None
        if not library or not self.draws_apart(library, local):
            return None
        if name.startswith("torch.nn.init.") and self.begins_with(node, frame):
            return None
        if changes(name):
            self.problem(frame, node, f"what {ast.unparse(node.func)} does is not the same on all ranks: {DRAWN}")
            return None
        return replace(made_of("unknown", local, host=library != "torch"), reason=DRAWN)  # `randint(0, len(x))`, too

    def draws_apart(self, library: str, given: Sequence[Value]) -> bool:
        """Note that numbers are drawn; whether they are not for samples, and may be others on each rank."""
        self.found.drawn_first |= {library} - self.found.seeded
        diverges = self.own_ways or any(map(self.goes_apart, self.contexts))
        for_samples = library != "random" and local_rows_or_sizes(entries(given))
        if diverges or for_samples or (self.contexts and library == "torch"):
            self.drawn.add(library)
        return library in self.began & self.drawn and not for_samples

    def draws_alike(self, library: str, node: ast.Call, given: Sequence[Value], frame: Frame) -> None:
        """Numbers are drawn from a generator that is to be at the same place on all ranks, and may not be here."""
        self.found.drawn_first |= {library} - self.found.seeded
        apart = [context for context in self.contexts if self.goes_apart(context)]
        if self.own_ways or apart or local_rows_or_sizes(entries(given)):
            self.problem(frame, node, DRAWN, frozenset().union(*(context.loaders for context in apart)))

    def goes_apart(self, context: Context) -> bool:
        """Whether ranks go through a loop unequally often: over their samples, or their part of an evaluation."""
        return context.how == "rows" or self.uneven(context)

    def of_own_size(self, made: Value, name: str, last: str, node: ast.Call) -> Value:
        """A tensor that a library makes, with the note that it is as long as a batch of all ranks."""
        new = name in TENSOR_TYPES or (name.startswith(("torch.", "numpy.")) and last in _OF_SIZES)
        return replace(made, reason=OWN_SHAPE) if new and not made.things and self.is_of_own_size(node) else made

    def is_of_own_size(self, node: ast.Call) -> bool:
        """Whether a size that a call is given is the batch size that a training loader is made with."""
        sizes = [word.value for word in node.keywords if word.arg == "size"] or node.args
        each_of = sizes[0].elts if sizes and isinstance(sizes[0], ast.Tuple | ast.List) else sizes
        training = (each for each in self.known_loaders.values() if self.status.get(each) == "training")
        known = {ast.unparse(size) for each in training for size, _ in written_sizes(each)}
        return any(not isinstance(each, ast.Constant) and ast.unparse(each) in known for each in each_of)

    def named_tuple(self, node: ast.Call, frame: Frame) -> Class | None:
        """The class that a call makes, the same each time that it is followed."""
        known = self.named_tuples.get(node) or named_tuple(frame.script, node)
        if known is not None:
            self.named_tuples[node] = known
        return known

    def of_common(self, name: str, last: str, node: ast.Call, args: list[Value], frame: Frame) -> Value:
        """What a library makes of values that are the same on all ranks."""
        if name == "collections.namedtuple" and (cls := self.named_tuple(node, frame)) is not None:
            return of(cls)
        if last in ("zeros", "zeros_like") or (name in ("float", "int") and not node.args):
            return ZERO
        if last == "deque" and (len(args) > 1 or any(word.arg == "maxlen" for word in node.keywords)):
            return SAME  # what falls out of it cannot be told: what is put into it is that of all ranks
        if name == "collections.Counter" and not node.args and not node.keywords and _has_entries_alone(frame, node):
            return replace(of(Items("dict", default=ZERO)), zero=True)
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
                if args and (made := self.made_by_default(args[0], node, frame)) is not None:
                    return replace(of(Items("dict", rest=made, default=made)), zero=True)
                numbers = node.args and ast.unparse(node.args[0]) in ("float", "int")
                return replace(of(Items("dict", default=ZERO if numbers else None)), zero=True)
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
        if name in ("torch.device", "torch.manual_seed", "argparse.ArgumentParser", "torch.from_numpy"):
            return SAME
        if name in LOOKS_UP or last == "__subclasses__":
            return SAME
        if name in TENSOR_TYPES or (name.startswith("torch.") and last in FACTORIES):
            sizes = last in ("rand", "randn", "ones", "empty") and not any(
                isinstance(e, ast.Starred) for e in node.args
            )
            return of_dimensions(SAME, of_sizes_given(args) if sizes else None)
        if name == "torch.autograd.Variable" and args:
            return replace(args[0], constant=None)
        if (self.registers and not name.startswith("torch.")) or name.startswith(_NO_NETWORKS):
            return SAME
        if name == f"torch.{last}" and last.islower() and last != "compile" and not any(each.things for each in args):
            return SAME  # torch.sqrt(betas): no network
        maker = maker_of(node, frame, self.made_first) if name.startswith(LIBRARIES) else node
        module = self.modules.setdefault((maker, frame.makers), Module(maker, name, networks=True))
        module.told |= dict(enumerate(args))  # of a data set, others: `Subset(data, indices)`
        if name.startswith("torchvision.datasets."):
            module.told |= {word.arg: self.value(word.value, frame) for word in node.keywords if word.arg}
        return of(module)

    def of_local(
        self, name: str, last: str, node: ast.Call, args: list[Value], given: list[Value], frame: Frame, alone: bool
    ) -> Value:
        """What a library makes of values that differ between the ranks."""
        local = [value for value in given if value.is_local]
        first = args[0] if args else SAME
        if name in ("isinstance", "type", "callable"):
            return SAME
        if (number := product(name, given)) is not None:
            return number
        if first.kind == "shape" and name in ("list", "tuple", "torch.tensor", "torch.as_tensor", "numpy.array"):
            return first
        if last in ("arange", *FACTORIES) or last == "pad_packed_sequence":
            for size in (*node.args, *(word.value for word in node.keywords if word.arg == "total_length")):
                self.asks_longest(size, frame)
        if self.in_forward and name in _OVER and any(each.kind in LOCAL_ROWS and axis(each.kind) == 0 for each in args):
            return made_of("unknown", local, reason=COUPLES)
        if first.kind == "scaled" and not any(value.is_local for value in given[1:]):
            return of_scaled(last, first)
        if name == "int" and self.in_forward and (sides := _divided(node.args[0])) and first.kind == "size":
            return combined(ast.FloorDiv(), *(self.value(each, frame) for each in sides))
        of_parts = first.kind in ("sum", "size") and _makes_parts(node.args[0])
        if name == "int" and (of_parts or first.kind == "mean"):
            self.demand(node.args[0], first, frame)  # rounded down, ranks' parts are less than the whole
            return replace(SAME, host=True)
        if name in ("float", "int") and first.kind in ("mean", "sum", "size"):
            return replace(made_of(first.kind, [first]), host=True, array=False)
        if name in ("float", "int") and first.kind in LOCAL_ROWS:
            return made_of(first.kind, [first], host=True)
        if (
            name.startswith("torchvision.transforms.")
            and last in OF_IMAGES
            and first.kind in LOCAL_ROWS
            and axis(first.kind) == 0
            and len(local) == 1
        ):
            return made_of("rows" if first.kind == "batch" else first.kind, [first])
        if name == "numpy.shape" and first.kind in LOCAL_ROWS:
            return self.shape_of(first)
        if name in ("abs", "round") and first.kind in LOCAL_ROWS:
            return of_dimensions(made_of(first.kind, [first], host=first.host), first.dimensions, first.at_least)
        if name in ("sum", "numpy.sum", "numpy.mean", "statistics.mean", "math.fsum") and (
            found := self.of_list(name, args)
        ):
            return found
        if last in PREDICATES and first.kind in ("mean", "sum"):
            self.demand(node.args[0], first, frame)
            return SAME
        of_numbers = name.startswith(("math.", "round", "abs", "min", "max", "numpy.round", "str", "repr", "format"))
        of_numbers = of_numbers or (name in _OF_NUMBERS and all(value.host for value in local))
        if of_numbers and not local_rows(given):
            if local and all(value.reason == DRAWN for value in local):
                return made_of("unknown", local, host=True)
            for argument, value in zip(node.args, args, strict=False):
                self.demand(argument.value if isinstance(argument, ast.Starred) else argument, value, frame)
            return replace(SAME, host=True)
        if name in _COPIES and any(each.reason == NUMBERED for each in entries([first])):
            return made_of("unknown", [first])
        if name in ("torch.autograd.Variable", "torch.tensor", "torch.as_tensor") and first.is_local:
            copied = of_batches(made_of(first.kind, [first]), first.batches if first.kind in LOCAL_ROWS else ())
            return of_dimensions(copied, first.dimensions, first.at_least)
        if name in _OF_LISTS and (rows := row_of_each(first)) is not None:
            return made_of("rows", [rows])
        if name in TENSOR_TYPES and first.kind in LOCAL_ROWS:
            return of_dimensions(made_of(first.kind, [first]), first.dimensions, first.at_least)
        if (name.startswith(("torch.", "numpy.")) and first.kind in LOCAL_ROWS) or (
            local_rows(given) and name.startswith("torch.")
        ):
            rows = first if first.kind in LOCAL_ROWS else next(v for v in local if v.kind in LOCAL_ROWS)
            place = next(at for at, value in enumerate(given) if value is rows)
            others = [*given[:place], *given[place + 1 :]]
            if last in ("matmul", "mm") and len(args) > 1:
                return combined(ast.MatMult(), args[0], args[1])
            if last == "addmm" and len(args) == 3:
                return combined(ast.Add(), args[0], combined(ast.MatMult(), *args[1:]))
            if last == "gather" and args and not args[0].is_local:
                at = self.dimension(node, 1, frame)
                if at not in (0, -1):  # of each row of what all ranks have, as many as there are samples
                    return made_of("unknown", local, reason=COUPLES)
                if (found := looked_up(args[0], at, given)) is not None:
                    return found
            if (
                last == "index_select"
                and len(args) == 3
                and (found := taken(args[0], self.dimension(node, 1, frame), args[2]))
            ):
                return found
            if last == "cdist" and len(args) == 2 and (found := distances(*args)):
                return found
            if last == "einsum":
                return einsum(first.constant, args[1:]) or made_of("unknown", local)
            if last in ("unfold", "fold") and axis(rows.kind) != 0:
                return made_of("unknown", local, reason=COUPLES)
            if weighs_by_samples(last, args, node):
                return made_of("unknown", local, reason=COUPLES)
            if last == "reshape" and regroups(rows, args[1:], frame.script, node.args[1:]):
                return made_of("unknown", local, reason=COUPLES)
            words = {word.arg or "" for word in node.keywords}
            found = on_rows(last, rows, self.dimension(node, 1, frame), others, words)
            if found is not None and last == "reshape" and takes_apart(rows, args[1:], frame.script, node.args[1:]):
                found = replace(found, kind="rows_second")
            if found is not None and name.startswith("numpy.") and rows.host:
                found = of_numpy(found)
            if found is not None:
                return found
        if name.startswith("einops."):
            lengths = {word.arg or "": value for word, value in zip(node.keywords, given[len(args) :], strict=False)}
            if (found := einops(last, args, lengths)) is not None:
                return found
        joins = last in ("cat", "stack", "concat", "concatenate", "hstack", "vstack")
        if name.startswith(("torch.", "numpy.")) and joins and first.only(Items):
            inner = [entry for thing in first.only(Items) if isinstance(thing, Items) for entry in thing.all()]
            kinds = {entry.kind for entry in inner if entry.is_local}
            lists = [thing for thing in first.only(Items) if isinstance(thing, Items)]
            of_samples = any(each.by_sample or each.may_be_by_sample for each in lists)
            of_samples = of_samples or any(entry.host for entry in inner)
            several = isinstance(node.args[0], ast.List) or not of_samples  # tensors of the batch, not samples
            if kinds and kinds <= LOCAL_ROWS and last == "stack" and several and not self.in_rows():
                at = self.dimension(node, 1, frame)
                each_has = most([each for each in inner if each.is_local])
                stacked = made_of(unsqueezed(together(kinds), at if isinstance(at, int) else 0), inner)
                return of_dimensions(stacked, None if each_has is None else each_has + 1)
            mixes = kinds and any(context.how == "whole" for context in self.contexts)
            if mixes and not all(entry.is_local for entry in self.parts_of(node.args[0], frame) or inner):
                return made_of("unknown", inner, reason=MIXED)
            if kinds <= LOCAL_ROWS and last in ("cat", "concat", "concatenate") and self.is_padded(node, frame):
                return made_of("unknown", inner, reason=COUPLES)
            if kinds <= LOCAL_ROWS:
                counted = len(lists) == 1 and lists[0].rest is None
                parts = self.parts_of(node.args[0], frame) or (inner if counted else [])
                at = self.dimension(node, 1, frame) if "cat" in last and parts else "unknown"
                joined = one_after_another(parts or inner, at)
                return of_numpy(joined) if name.startswith("numpy.") and all(each.array for each in inner) else joined
            if len(kinds) == 1 and kinds <= {"mean", "sum"}:
                return made_of(next(iter(kinds)), inner)
        if name in ("torch.randperm", "numpy.random.permutation") and first.kind == "size" and not self.in_forward:
            self.found.mixes.add(node)
            return made_of("unknown", local, reason=SHUFFLED)
        if name.startswith("torch.") and last == "randperm":
            return made_of("unknown", local, reason=COUPLES)
        if library_of(name) and self.is_drawn_from_samples(name, last, node, args):
            found = made_of("unknown", local, reason=COUPLES if self.in_forward else CHOSEN)
            return replace(found, made_at=frozenset())
        if name in TENSOR_TYPES or (name.startswith("numpy.") and last in NUMPY_FACTORIES):
            sizes = given if name in TENSOR_TYPES or last in ("rand", "randn") else given[-1:]
            made = of_sizes(args[:1] if last in _SIZED_FIRST and args else sizes)
            if made is not None:
                return made
        if name.startswith("torch.") and last in FACTORIES and (made := for_each_sample(given)) is not None:
            starred = any(isinstance(each, ast.Starred) for each in node.args)
            of_sizes_alone = last in ("rand", "randn", "ones", "zeros", "empty") and not starred
            if last == "randint" and node.args and isinstance(node.args[-1], ast.Tuple):
                made = of_dimensions(made, of_sizes_given(args[-1:]))
            for word in (
                each.value for each in node.keywords if each.arg == "size" and isinstance(each.value, ast.Tuple)
            ):
                made = of_dimensions(made, of_sizes_given([self.value(word, frame)]))
            alike = last in ("ones", "zeros")  # with whichever sample it meets
            dimensions = None if alike else of_sizes_given(args)
            return of_dimensions(of_sizes(args) or made, dimensions) if of_sizes_alone else made
        if name.startswith("torch.") and first.kind in ("mean", "sum") and (found := on_number(last, first, args[1:])):
            return found
        found = self.unknown_call(node, given, frame, alone)
        counts = last in ("range", "arange") and all(each.kind == "size" for each in local)
        if counts and self.in_forward:
            return replace(found, couples=False, reason=NUMBERED)  # unless it is an index
        return replace(found, couples=False) if counts else found  # as an index, as a rule

    def is_drawn_from_samples(self, name: str, last: str, node: ast.Call, args: list[Value]) -> bool:
        """Whether a rank's number of samples says which numbers are drawn, not how many: `randint(0, len(x), 5)`."""
        if last not in ("randint", "choice", "normal", "uniform"):
            return name.startswith("random.")
        place = 1 if last == "choice" else len(args) - 1 if name.startswith("torch.") else 2
        bounds = args if any(word.arg == "size" for word in node.keywords) else args[:place]
        return any(value.is_local for value in bounds)

    def is_padded(self, node: ast.Call, frame: Frame) -> bool:
        """Whether rows of the script's own are put to those of a batch: each rank would put all of them to its part."""
        if self.dimension(node, 1, frame) not in (0, None) or not isinstance(node.args[0], ast.List | ast.Tuple):
            return False
        made = (each for each in node.args[0].elts if isinstance(each, ast.Call))
        own = (each for each in made if frame.script.qualified(each.func).rpartition(".")[2] in FACTORIES)
        return any(not self.value(each, frame).is_local for each in own)

    def parts_of(self, joined: ast.expr, frame: Frame) -> list[Value]:
        """What a list or tuple holds that is written down, one by one."""
        written = joined.elts if isinstance(joined, ast.List | ast.Tuple) else []
        one_by_one = not any(isinstance(each, ast.Starred) for each in written)
        return [self.value(each, frame) for each in written] if one_by_one else []

    def of_list(self, name: str, args: list[Value]) -> Value | None:
        """The sum, or mean, of a list of numbers or of a generator."""
        lists = [thing for thing in args[0].only(Items) if isinstance(thing, Items)]
        inner = [entry for thing in lists for entry in thing.all()]
        kinds = {entry.kind for entry in inner if entry.is_local or not entry.zero}
        if (
            name in ("sum", "math.fsum")
            and kinds in ({"rows"}, {"picked"})
            and all(thing.by_sample for thing in lists)
            and not args[1:]
        ):
            return made_of("sum", inner, host=all(entry.host for entry in inner))
        if kinds == {"mean", "same"}:  # a penalty of the weights among losses
            kinds = {"mean"}
        if len(kinds) != 1 or not kinds <= {"mean", "sum", "size"} or args[1:]:
            return None
        kind = kinds.pop()
        host = name not in ("sum", "math.fsum") or all(entry.host for entry in inner)
        return made_of("sum" if kind == "size" else kind, inner, host=host)

    def length(self, node: ast.Call, args: list[Value], frame: Frame) -> Value:
        value = args[0] if args else SAME
        loaders = loaders_counted(value)
        statuses = {self.status.get(each, "") for each in loaders}
        self.found.lengths_of.setdefault(node, set()).update(statuses or {""})
        for loader in loaders:
            self.found.lengths.append((frame.script, node, loader))
            if self.status.get(loader) == "batches":
                self.demand(node, Value("sum", frozenset({loader}), host=True), frame)
            if self.status.get(loader) == "sharded":
                return Value("unknown", frozenset({loader}), reason="the number of a rank's batches is not that of all")
        if value.kind in LOCAL_ROWS and axis(value.kind) != 0:
            return SAME
        if value.kind == "batch" and is_taken_apart(frame.script, node.args[0]):
            return SAME
        if value.kind in LOCAL_ROWS:
            size = made_of("size" if value.kind != "picked" else "sum", [value], host=True)
            return of_batches(size, value.batches if value.kind != "picked" else ())
        if value.kind == "unknown":
            return value
        if is_drawn(apart := counted_apart(value)):
            return apart
        lists = [thing for thing in value.only(Items) if isinstance(thing, Items)]
        by_sample = [thing for thing in lists if thing.by_sample]
        only_samples = all(each.by_sample and (each.in_order or not each.grows) for each in lists if each.all())
        if by_sample and only_samples and not any(e.host for each in by_sample if each.grows for e in each.all()):
            picks = any(entry.kind == "picked" for thing in by_sample for entry in thing.all())
            return made_of("sum" if picks else "size", entries([value]), host=True)
        of_samples = [
            each for each in entries([value]) if each.reason == KEYED or (each.kind in LOCAL_ROWS and each.host)
        ]
        of_samples += [Value("rows", thing.lengthened) for thing in lists if thing.lengthened]
        of_samples += [entry for thing in by_sample for entry in thing.all() if entry.is_local]
        return made_of("unknown", of_samples, reason="it has an entry for each sample") if of_samples else SAME

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
            "nanquantile",
            "vector_norm",
            "matrix_norm",
            "take_along_dim",
            "chunk",
            "split",
            "tensor_split",
            "split_with_sizes",
        )
        place += last_name(node.func) in later
        place += 3 * (last_name(node.func) == "gumbel_softmax")
        names = ("dim", "axis", "dims")
        given = [word.value for word in node.keywords if word.arg in names] or node.args[place : place + 1]
        if not given:
            return -1 if self.runs_along_last(node, frame) else None
        several = last_name(node.func) == "flip" and node.args[place + 1 :]  # x.flip(1, 2)
        value = ast.Tuple(node.args[place:], ast.Load()) if several else given[0]
        if isinstance(value, ast.Tuple | ast.List):
            parts = [self.value(part, frame).constant for part in value.elts]
            return tuple(parts) if all(isinstance(part, int) for part in parts) else "unknown"
        found = self.value(value, frame)
        if isinstance(found.constant, int):
            return found.constant
        if found.is_none:
            return None
        made = made_by(frame.script, value)
        return listed_dimensions(found) or counted(made, node, lambda part: self.value(part, frame))

    def runs_along_last(self, node: ast.Call, frame: Frame) -> bool:
        """Whether a call without a dimension takes the last one, of a variable that has one of classes at least."""
        method = isinstance(node.func, ast.Attribute) and not frame.script.qualified(node.func).startswith("torch.")
        of = node.func.value if method else node.args[0] if node.args else None  # type: ignore[attr-defined]
        while isinstance(of, ast.Attribute | ast.Call) and ast.unparse(of).endswith((".data", ".detach()", ".cpu()")):
            of = of.func.value if isinstance(of, ast.Call) else of.value  # type: ignore[attr-defined]
        last = ast.unparse(node.func).rpartition(".")[2]
        return last in TAKE_LAST and isinstance(of, ast.Name) and (frame.node, of.id) in self.scores


def local_rows_or_sizes(values: Sequence[Value]) -> bool:
    """Whether a shape is made of a rank's samples."""
    return any(value.kind in ("size", "shape", *LOCAL_ROWS) for value in values)


def local_rows(values: Sequence[Value]) -> bool:
    """Whether any of the values holds samples."""
    return any(value.kind in LOCAL_ROWS for value in values)


def _divided(node: ast.expr) -> tuple[ast.expr, ast.expr] | None:
    """Both sides of `len(x) / heads`, whose whole number is that of `len(x) // heads`."""
    return (node.left, node.right) if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Div) else None


def _makes_parts(node: ast.expr) -> bool:
    """Whether what is computed may be no whole number: `0.5 * len(x)`."""
    products = (each for each in ast.walk(node) if isinstance(each, ast.BinOp))
    return any(isinstance(each.op, ast.Mult | ast.Div | ast.Pow) for each in products)


def _has_entries_alone(frame: Frame, made: ast.Call) -> bool:
    """Whether a Counter is only used as a defaultdict is: its `update` and `+` add up."""
    script, statement = frame.script, frame.script.parents[made]
    target = statement.targets[0] if isinstance(statement, ast.Assign) and len(statement.targets) == 1 else None
    if not isinstance(target, ast.Name):
        return False
    uses = [node for node in script.find(ast.Name) if node.id == target.id and isinstance(node.ctx, ast.Load)]
    parents = [(node, script.parents[node]) for node in uses]
    return all(
        (isinstance(each, ast.Subscript) and each.value is node)
        or (isinstance(each, ast.Attribute) and each.attr in _READ_BY_KEY)
        for node, each in parents
    )
