"""What an expression holds on the ranks of a distributed run, and what it is where that is known."""

from __future__ import annotations

import ast
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import Literal, TypeVar

from ..script import Script

Element = TypeVar("Element")

# same: equal on all ranks.  batch: what a loader yields, or a model makes of it, of any structure.
# rows: a tensor that holds something for each sample.  rows_second, rows_last, rows_moved: the same, with the samples
# along its second dimension, its last one, one that is not known.
# picked: some of those, not as many for each sample.
# mean: a mean over the samples of this rank.  sum: a sum over them.  size: their number.
# inverse: a number divided by the number of samples.
# scaled: something for each sample, divided by their number on this rank: a gradient of a mean.
# shape: the sizes of a tensor.  unknown: anything else that depends on this rank's samples.
Kind = Literal[
    "same",
    "batch",
    "rows",
    "rows_second",
    "rows_last",
    "rows_moved",
    "picked",
    "mean",
    "sum",
    "size",
    "inverse",
    "scaled",
    "shape",
    "unknown",
]
OWN_DATA = "a loader would get other samples on each rank: what it loads is made of a rank's batches alone"
READ_SIZE = "this batch size is read from a loader that ranks may divide, which has a rank's part of it"
NOT_STACKED = "its collate function is not seen to stack samples"
NOT_FOLLOWED = "what a generator gives to its loop is not followed"
COUPLES = "it couples samples of a batch with each other"
BROADCAST = (
    "tensors such as `(B, 1)` and `(B,)` meet in it, which makes a number for each two samples; "
    "`.squeeze(1)` is meant as a rule"
)
MIXED = "rows of all ranks and of this one are put together"
OWN_SIZE = "it is computed with the number of this rank's samples, which is not that of the batch"
TAKEN = "only some samples of a batch are taken, which are others on each rank"
OWN_SHAPE = "its first dimension, that of the samples, is given a size of the script's own"
DRAWN = "it is drawn by a generator that each rank has used for its own samples before, as dropout is without eval()"
OWN_BUFFER = f"a buffer is drawn here, which is not sent from rank 0: {DRAWN}"
SHUFFLED = "samples of a batch are put in another order, at random"
CHOSEN = "it is drawn by the number of this rank's samples"
PLACED = "samples are put at places of it that depend on their number"
NUMBERED = "the places of samples in a batch go into it, `arange(len(x))`, which are others on each rank"
ADDED = "it is added up over this rank's batches"
PICKED = "it is a mean over those samples that count, and their number differs from rank to rank"
LONGEST = "it is as long as the longest of a rank's samples, which is another one on each"
CONCATENATED = "its samples are put one behind the other, and those of a rank may be longer than those of another"
OFFSETS = "it tells where each sample begins behind the others"
AS_MANY = "it has as many classes as the largest label of a rank's samples tells"
BY_SAMPLES = "the model decides or computes here by the samples of its batch"
BY_DRAWN = "the model decides or computes here by what each rank draws for itself, as noise without eval()"
RECURSION = "it is made by a function that calls itself, which is not followed to its end"
BY_RECURSION = "the model decides or computes here by what a function gives that calls itself, which is not followed"
SEVERAL = "whether the loop runs over samples, or over several tensors of them, is not seen"
KEYED = "its keys are those of samples"
IN_ONE = frozenset({CONCATENATED, OFFSETS})
KEPT = frozenset({COUPLES, BROADCAST, OWN_SIZE, OWN_SHAPE, PICKED, CHOSEN, LONGEST, NUMBERED}) | IN_ONE
LOCAL_ROWS = frozenset({"batch", "rows", "rows_second", "rows_last", "rows_moved", "picked"})
_BEHIND = frozenset({"rows_second", "rows_last", "rows_moved"})
MOVED = _BEHIND | {"picked"}
ADDITIVE = frozenset({"mean", "sum", "size"})
# Of an evaluation, ranks have every W-th sample, or every W-th batch, and not equally many.
UNEVEN = frozenset({"sharded", "batches"})


@dataclass(eq=False)
class Loader:
    """What a call of DataLoader makes. variant: the constants that it is made for, in a comprehension over phases, and
    the calls of functions by which it is made. source: the loader whose samples a loop that does not train takes, by
    this one of its own. given: its batch size, where the function that makes it is given it. cls: its class where the
    program derives it from DataLoader, which `super().__init__(…)` calls then; attributes: what it holds beside."""

    call: ast.Call
    script: Script
    variant: tuple[object, ...] = ()
    source: Loader | None = None
    given: tuple[ast.expr, Script] | None = None
    cls: Class | None = None
    attributes: dict[str, Value] = field(default_factory=dict)


@dataclass(eq=False)
class Iteration:
    """What loops run over: how it is made (enumerate, zip, bar, endless, as_is; NOT_FOLLOWED for a
    generator), of what, and where what it gives lies in what that gives."""

    how: str
    inner: tuple[Value, ...]
    part: tuple[int, ...] = ()


@dataclass(eq=False)
class Generated:
    """What a generator of the program gives to a loop that follows it: the generator, and what calls it, in a frame.

    loaders: those whose batches it yields; given: what it has yielded last.
    """

    function: Function
    node: ast.AST
    args: tuple[Value, ...]
    keywords: dict[str, Value]
    called_in: object
    loaders: frozenset[Loader] = frozenset()
    given: Value | None = None


@dataclass(eq=False)
class Module:
    """An instance of torch.nn.Module. made: the call that makes it. cls: its class where the program defines it.

    name: the qualified name of its class otherwise. attributes: what has been assigned to it. evaluates: whether eval()
    was called last, not train(). trains_in: the call of a function that has called train(), in any case, and eval()
    not since. layers: those of nn.Sequential, if they are given to it one by one. contents:
    what a container of layers holds. made_of_batch: what a loss is made with, of a batch.
    is_one_of: whether it may be of another class of a library, too. told: what a class of a library is given to make
    it, by place and by name.
    """

    made: ast.AST
    name: str = ""
    cls: Class | None = None
    attributes: dict[str, Value] = field(default_factory=dict)
    networks: bool = False
    parent: Module | None = None
    evaluates: bool = False
    trains_in: object = None
    layers: list[Module] = field(default_factory=list)
    contents: Items | None = None
    made_of_batch: list[Value] = field(default_factory=list)
    is_one_of: bool = False
    told: dict[int | str, Value] = field(default_factory=dict)


def is_network(thing: Thing) -> bool:
    """Whether something is a module of torch, not of Python."""
    return isinstance(thing, Module) and not isinstance(thing.made, ast.Module)


@dataclass(eq=False)
class Instance:
    """An instance of another class that the program defines."""

    cls: Class
    attributes: dict[str, Value] = field(default_factory=dict)


@dataclass(eq=False)
class Class:
    """A class that the program defines, in a file."""

    node: ast.ClassDef
    script: Script


@dataclass(eq=False)
class Super:
    """What `super()` is: an object, and the classes in which its methods are looked for."""

    owner: Value
    bases: tuple[Class, ...]


@dataclass(eq=False)
class Function:
    """A function that the program defines. closure: the frame that it sees. owner: the object of a method."""

    node: ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda
    script: Script
    closure: object = None
    owner: Value | None = None


@dataclass(frozen=True)
class Bound:
    """Something that is called with some of its arguments: what functools.partial makes. Of a function of a library it
    is not known what it does with them."""

    thing: Thing
    args: tuple[Value, ...]
    keywords: tuple[tuple[str, Value], ...]


@dataclass(eq=False)
class Method:
    """A method of a value that the program does not define: `losses.append`."""

    owner: Value
    name: str
    node: ast.expr


@dataclass(eq=False)
class Items:
    """A tuple, list, dict or set: its entries by key, and what the others are. grows: whether entries are appended.
    default: what an entry is that is not there, of a defaultdict. by_sample: whether there is one for each sample;
    may_be_by_sample: whether that is not known. extended: whether it got numbers of samples, one behind the other;
    in_order: whether it began as `[]`, and none went. on_every_rank: whether some were put in by a loop over an
    evaluation that every rank goes through as a whole. lengthened: the loaders by whose samples or batches each rank
    puts in a number of entries of its own; apart: whether it may do so by what it has drawn. mixed: whether it is a
    record of numbers of this rank and of what all ranks have, `[epoch, loss.item()]`. written: the expression that
    writes a list out. of_several: whether it stands for all that a defaultdict has made."""

    shape: Literal["tuple", "list", "dict"]
    known: dict[object, Value] = field(default_factory=dict)
    rest: Value | None = None
    grows: bool = False
    default: Value | None = None
    by_sample: bool = False
    may_be_by_sample: bool = False
    extended: bool = False
    in_order: bool = False
    on_every_rank: bool = False
    lengthened: frozenset[Loader] = frozenset()
    apart: bool = False
    mixed: bool = False
    written: ast.expr | None = None
    of_several: bool = False

    def all(self) -> list[Value]:
        """Every entry."""
        return [*self.known.values(), *([self.rest] if self.rest is not None else [])]


@dataclass(eq=False)
class Parameters:
    """Parameters of modules; groups: in the groups of an optimizer that is made."""

    modules: tuple[Module, ...]
    groups: bool = False


@dataclass(eq=False)
class OptimizerValue:
    """What a call of an optimizer's class makes."""

    call: ast.Call
    modules: tuple[Module, ...]


@dataclass(eq=False)
class Logger:
    """What records the run: what a call of SummaryWriter makes, in a file."""

    made: ast.Call
    script: Script


@dataclass(frozen=True)
class Library:
    """A name of a library: "torch.nn.functional"."""

    name: str


Thing = (
    Loader
    | Iteration
    | Generated
    | Module
    | Instance
    | Class
    | Super
    | Function
    | Bound
    | Method
    | Items
    | Parameters
    | OptimizerValue
    | Logger
    | Library
)


@dataclass(slots=True, unsafe_hash=True)  # frozen, it would take a fifth of a conversion to make them
class Value:
    """What an expression may hold; nobody changes it.

    loaders: those whose batches it is made of. forwards: calls of trained models that it is made by, and which model
    that was; bypasses: uses of their parameters other than that. things: what it may be. zero: it adds nothing (0,
    None, an empty list). host: a number of Python. pending: the loop that has added it up, and the name it has there.
    reason: why it is unknown. is_none: whether it is None; None where it may be. couples: whether a mean, a sum or the
    number of a rank's samples goes into something unknown. made_at: where that began, or where it was computed from the
    batches of all ranks. dimensions: how many a tensor has; at_least: how many at least, where not known. merged:
    whether a sample may have several rows of it, or what seems to be a number of the batch may be one for each sample.
    whole: whether it may have a row for each sample of all ranks. terms: the operations that made something unknown of
    means and sums. calls: those that did of samples, the outermost. part: whether it is one of the things that a batch
    holds. batches: whose samples lie one after another in a tensor, `torch.cat([x, y])`, or are counted by a size;
    empty where not known. parts: how many dimensions the things of a batch have, by place or key, where known. sample:
    what the loop runs over that takes it as one of the samples. front: what lies along the dimensions in front of that
    of the samples, where known: "one" thing, or the "layers" of a recurrent network; "merged" where it is one dimension
    with that of the samples. array: whether it may be one of numpy; unsized: it is one of no dimension. in_parallel:
    whether nn.DataParallel holds it. widened: whether a forward has given it a dimension more, the last it did.
    slopes: the forwards of which it has gradients alone, by autograd.grad, and no outputs.
    """

    kind: Kind = "same"
    loaders: frozenset[Loader] = frozenset()
    forwards: frozenset[tuple[ast.Call, ast.AST]] = frozenset()
    bypasses: frozenset[ast.AST] = frozenset()
    things: frozenset[Thing] = frozenset()
    zero: bool = False
    host: bool = False
    pending: tuple[ast.stmt, str] | None = None
    reason: str = ""
    constant: object = None
    made_at: frozenset[ast.expr] = frozenset()
    dimensions: int | None = None
    at_least: int = 0
    is_none: bool | None = False
    couples: bool = False
    merged: bool = False
    whole: bool = False
    terms: frozenset[ast.expr] = frozenset()
    calls: frozenset[ast.expr] = frozenset()
    part: bool = False
    batches: tuple[Loader, ...] = ()
    parts: tuple[tuple[int | str | None, int], ...] = ()
    sample: ast.expr | None = None
    front: Literal["", "one", "layers", "merged"] = ""
    array: bool = False
    unsized: bool = False
    in_parallel: bool = False
    widened: bool = False
    slopes: frozenset[tuple[ast.Call, ast.AST]] = frozenset()

    @property
    def is_kept(self) -> bool:
        """Whether a model that computes with it gives back something that each rank has another one of."""
        return self.kind == "unknown" and (self.couples or self.reason in (*KEPT, DRAWN))

    @property
    def is_local(self) -> bool:
        """Whether it differs between the ranks."""
        return self.kind != "same"

    @property
    def settled(self) -> Value:
        """The value, however many loops have added it up."""
        return self if self.pending is None else replace(self, pending=None)

    def only(self, kind: type) -> list[Thing]:
        """Those of the things that are of a kind."""
        return [thing for thing in self.things if isinstance(thing, kind)]


SAME = Value()
ZERO = Value(zero=True)
NOTHING = Value(zero=True, is_none=True)  # what a function gives back that gives nothing back


def libraries_of(value: Value) -> set[str]:
    """The names of the libraries that a value is, if it is nothing else and they are not torch's own."""
    names = {thing.name for thing in value.things if isinstance(thing, Library)}
    others = len(names) != len(value.things) or any(f"{name}.".startswith("torch.") for name in names)
    return set() if others else names


def of(thing: Thing) -> Value:
    """The value that is one thing."""
    return Value(things=frozenset({thing}))


def adds_nothing(value: Value) -> bool:
    """Whether something is zero, or a list to which nothing was added."""
    lists = [thing for thing in value.things if isinstance(thing, Items)]
    return value.zero and all(entry.zero for each in lists for entry in each.all())


def functions_in(value: Value) -> list[Function]:
    """The functions of the program that a value may be, also with some of their arguments."""
    things = [thing.thing if isinstance(thing, Bound) else thing for thing in value.things]
    return [thing for thing in things if isinstance(thing, Function)]


def entries(values: Iterable[Value], depth: int = 4) -> list[Value]:
    """The values, and those in the lists, tuples and dicts among them."""
    found: list[Value] = []
    for value in values:
        found.append(value)
        for thing in value.things if depth else ():
            if isinstance(thing, Items):
                found += entries(thing.all(), depth - 1)
    return found


def made_of(kind: Kind, values: Iterable[Value], host: bool = False, reason: str = "") -> Value:
    """A value of a kind that is computed from others."""
    values = entries(values)
    if kind in _BEHIND and any(value.kind == "picked" for value in values):
        kind, reason = "unknown", COUPLES  # not as many on each rank, which nothing along the first dimension shows
    if kind == "unknown":
        reason = next((value.reason for value in values if value.reason in KEPT), reason)
        if {value.reason for value in values if value.is_local} == {DRAWN}:
            reason = DRAWN
    return Value(
        kind,
        _united([value.loaders for value in values]),
        _united([value.forwards for value in values]),
        _united([value.bypasses for value in values]),
        host=host,
        made_at=_united([value.made_at for value in values]),
        reason=reason or next((_passed_on(value.reason) for value in values if value.reason), ""),
        couples=kind == "unknown" and any(value.couples or value.kind in ADDITIVE for value in values),
        merged=any(value.merged for value in values if kind not in ADDITIVE or value.kind not in LOCAL_ROWS),
        whole=any(value.whole for value in values),
        terms=frozenset().union(*(value.terms for value in values)),
        calls=frozenset().union(*(value.calls for value in values)),
        sample=next((value.sample for value in values if value.sample is not None), None),
        front=next((each.front for each in values if each.front not in ("", "one")), "") if kind in _BEHIND else "",
        array=kind not in ("size", "inverse", "shape") and any(value.array for value in values),
        slopes=_slopes(values),
    )


def _slopes(values: list[Value]) -> frozenset[tuple[ast.Call, ast.AST]]:
    """The forwards of which values have gradients alone: what one has outputs of is no such forward."""
    slopes = _united([value.slopes for value in values])
    return slopes.difference(*(value.forwards - value.slopes for value in values)) if slopes else slopes


def _united(sets: list[frozenset[Element]]) -> frozenset[Element]:
    """All that is in some sets, most of which are empty, or one and the same."""
    united: frozenset[Element] = frozenset()
    for each in sets:
        if each and each is not united:
            united = united | each if united else each
    return united


def _passed_on(reason: str) -> str:
    """Why something is not known that is made of what is not: only a permutation itself takes each sample once."""
    return COUPLES if reason == SHUFFLED else reason


def cut(value: Value) -> Value:
    """A value through which no backward pass goes."""
    if not (value.forwards or value.bypasses):
        return value
    return replace(value, forwards=frozenset(), bypasses=frozenset(), slopes=frozenset())


def differentiated(value: Value, given: Iterable[Value]) -> Value:
    """A value that backward passes go through, to what it is made of."""
    values = entries(given)
    forwards = value.forwards.union(*(each.forwards for each in values))
    bypasses = value.bypasses.union(*(each.bypasses for each in values))
    if (forwards, bypasses) == (value.forwards, value.bypasses):
        return value
    of_all = (each.loaders for each in values if not each.is_local and each.forwards)
    loaders, slopes = value.loaders.union(*of_all), _slopes([value, *values])
    return replace(value, forwards=forwards, bypasses=bypasses, loaders=loaders, slopes=slopes)


def unnumbered(value: Value) -> Value:
    """A value that samples are taken by: `h[arange(len(h)), y]` is one thing for each of them."""
    parts = entries([value])
    if all(each.reason != NUMBERED for each in parts):
        return value
    return made_of("unknown", [replace(each, reason="", things=frozenset()) for each in parts if each.is_local])


def set_in_run(value: Value) -> Value:
    """A value that may be another one in the run: a setting that a file or the command line may say otherwise."""
    return replace(value, constant=None, zero=False, is_none=None)


def join(first: Value, second: Value) -> Value:
    """What is one of two values."""
    if first is second or first == second:
        return first
    kind = _joined_kind(first, second)
    flat = (replace(first, things=frozenset()), replace(second, things=frozenset()))
    joined = made_of(kind, flat, host=first.host and second.host)
    if kind == "unknown" and not joined.reason:
        joined = replace(joined, reason="it is not the same kind of number in all cases")
    if first.reason == second.reason == SHUFFLED:
        joined = replace(joined, reason=SHUFFLED)
    return replace(
        joined,
        things=first.things | second.things,
        zero=first.zero and second.zero,
        pending=first.pending or second.pending,
        host=(first.host or first.zero) and (second.host or second.zero),
        dimensions=first.dimensions if first.dimensions == second.dimensions else None,
        at_least=0 if first.dimensions == second.dimensions is not None else min(least(first), least(second)),
        is_none=first.is_none if first.is_none == second.is_none else None,
        part=first.part and second.part,
        unsized=first.unsized and second.unsized,
        batches=first.batches if first.batches == second.batches else (),
        parts=first.parts if first.parts == second.parts else (),
        in_parallel=first.in_parallel or second.in_parallel,
        widened=first.widened or second.widened,
    )


def least(value: Value) -> int:
    """How many dimensions a tensor has at least."""
    return value.at_least if value.dimensions is None else value.dimensions


def are_mixed(first: Value, second: Value) -> bool:
    """Whether rows of all ranks and of this one come together, which are not as many."""
    return any(one.whole and not other.whole and other.kind in LOCAL_ROWS for one, other in _both_ways(first, second))


def _both_ways(first: Value, second: Value) -> tuple[tuple[Value, Value], ...]:
    return (first, second), (second, first)


def _joined_kind(first: Value, second: Value) -> Kind:
    if are_mixed(first, second):
        return "unknown"
    if first.kind == second.kind:
        return first.kind
    kinds = {first.kind, second.kind}
    for one, other in _both_ways(first, second):
        if one.kind == "same" and (one.zero or other.kind in ("mean", "shape", *LOCAL_ROWS)):
            return other.kind
    if kinds == {"sum", "size"}:
        return "sum"
    if kinds <= {"batch", "rows"}:
        return "batch"
    return "rows_moved" if kinds <= {"batch", "rows", *_BEHIND} else "unknown"


def root_of(module: Module) -> Module:
    """The module that a module is a part of."""
    return module if module.parent is None else root_of(module.parent)
