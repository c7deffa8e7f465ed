"""Where names have their values while a program is followed, and what is found out on the way."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass, field, replace

from ..script import Script
from .held_values import OwnEntry
from .operands import laid_out, operands
from .values import Kind, Loader, Logger, Module, Thing, Value
from .weighing import Weighed


@dataclass(eq=False)
class Frame:
    """The names of a module, or of one call of a function.

    statement: the innermost that is being followed. caller: the frame of the call, and call: the call. left: whether it
    has returned in any case. yields: what a generator gives to its loop. decides_alone: whether each rank may have left
    it, or a turn of a loop, by its own decision.
    """

    script: Script
    node: ast.AST
    names: dict[str, Value] = field(default_factory=dict)
    outer: Frame | None = None
    outside: set[str] = field(default_factory=set)
    returns: list[Value] = field(default_factory=list)
    yields: list[Value] = field(default_factory=list)
    statement: ast.stmt | None = None
    this: Value | None = None
    caller: Frame | None = None
    call: ast.AST | None = None
    left: bool = False
    decides_alone: bool = False

    @property
    def owners(self) -> frozenset[Thing]:
        """The objects of which a method is being followed."""
        return self.this.things if self.this is not None else frozenset()

    @property
    def makers(self) -> frozenset[Thing]:
        """The objects whose methods are being followed, or call what is: parts that a helper makes belong to one."""
        return self.owners or (frozenset() if self.caller is None else self.caller.makers)

    @property
    def calls(self) -> tuple[ast.AST | None, ...]:
        """The calls by which it is reached, the innermost first."""
        return () if self.caller is None else (self.call, *self.caller.calls)

    @property
    def statements(self) -> tuple[ast.stmt, ...]:
        """The statements that are being followed, the innermost first."""
        here = () if self.statement is None else (self.statement,)
        return here if self.caller is None else (*here, *self.caller.statements)

    def owner(self, name: str) -> Frame | None:
        """The frame that a name has its value in."""
        frame: Frame | None = self
        while frame is not None:
            if name in frame.names and name not in frame.outside:
                return frame
            frame = frame.outer
        return None


@dataclass(frozen=True)
class Freeze:
    """Where parameters are frozen or unfrozen behind the optimizers of their models: the file, the statements by which
    the program comes there, what makes the models, and whether parameters may be unfrozen. undecided: how many
    conditions that are not known it stands under."""

    script: Script
    statements: frozenset[ast.stmt]
    models: frozenset[ast.AST]
    thaws: bool
    undecided: int

    def behind(self, models: set[ast.AST], undecided: int) -> Freeze:
        """What is left of it behind optimizers of some models, with which these are wrapped anew."""
        return replace(self, models=self.models - models) if undecided <= self.undecided else self


@dataclass(frozen=True)
class Problem:
    """What cannot be followed: where, why, and the loaders whose batches it is made of."""

    script: Script
    node: ast.AST
    reason: str
    loaders: frozenset[Loader] = frozenset()


def outermost_call(frame: Frame, module: Thing) -> ast.AST | None:
    """The call by which the forward of a module was come to, of the frame of something that it calls."""
    callers = [frame]
    while callers[-1].caller is not None:
        callers.append(callers[-1].caller)
    return next((each.call for each in reversed(callers) if module in each.owners), None)


@dataclass(frozen=True)
class Reduction:
    """A value that is read and has to be brought together from the ranks first."""

    script: Script
    node: ast.expr
    kind: Kind


@dataclass(frozen=True)
class AfterLoop:
    """A variable that a loop adds up, and the statement after which it has to be brought together."""

    script: Script
    at: ast.stmt
    name: str
    kind: Kind
    form: str  # number, list, lists, tuple, arrays, tensors, dict, mixed dict (some entries are the same), defaultdict


@dataclass(frozen=True)
class Pass:
    """A loop over the batches of a training loader. loader_here, loader_there: what it is called at the loop, and at
    the loop over epochs around it; "" where it has no name there. epochs: that loop; None where there is none. by: the
    calls by which the program comes to it, and the loops around these that go through what is written down.
    """

    script: Script
    loop: ast.AST
    loader: Loader
    loader_here: str
    epochs: ast.For | ast.While | None
    loader_there: str
    there: Script
    by: tuple[ast.AST | None, ...] = ()

    @property
    def makes_loader(self) -> bool:
        """Whether each turn of the loop over epochs makes the loader anew."""
        inside = set(ast.walk(self.epochs)) if self.epochs is not None else set()
        return any(each in inside for each in (self.loader.call, *self.loader.variant))


@dataclass(frozen=True)
class Site:
    """A name, attribute or entry by which a loader comes to a loop: where the loop runs over it, or an argument."""

    script: Script
    node: ast.expr


@dataclass
class ByNext:
    """Where batches are trained on that next() takes: the arguments of iter(), and the loops around next()."""

    iterated: set[ast.AST] = field(default_factory=set)
    loops: dict[ast.AST, frozenset[Loader]] = field(default_factory=dict)

    def learn(self, other: ByNext) -> bool:
        """Add what has been found out; whether that is new."""
        before = set(self.iterated), dict(self.loops)
        self.iterated |= other.iterated
        self.loops |= {loop: loaders | self.loops.get(loop, frozenset()) for loop, loaders in other.loops.items()}
        return before != (self.iterated, self.loops)


@dataclass
class Joined:
    """The operations whose operands are brought together: of means and sums (terms), or of samples (calls)."""

    terms: set[ast.expr] = field(default_factory=set)
    calls: set[ast.expr] = field(default_factory=set)

    def learn(self, found: FlowFacts) -> bool:
        """Add what makes a loss that cannot be divided, means and sums first; whether that is new.

        A call need not be added if what it comes to is, on another way: `criterion(out, y)`, a library's loss in it.
        """
        if new := found.terms - self.terms:
            self.terms |= new
        elif new := found.calls - self.calls:
            known = self.calls | found.calls
            self.calls |= {each for each in new if not found.calls_within.get(each, set()) & known} or new
        return bool(new)

    def parts(self) -> dict[ast.expr, ast.expr]:
        """What these operations compute with, each with its operation."""
        return {laid_out(part): node for node in (*self.terms, *self.calls) for part in operands(node)}


@dataclass
class Lengths:
    """The calls by which ranks agree on the longest sample of all, and those that are made where they cannot."""

    asked: set[ast.Call] = field(default_factory=set)
    apart: set[ast.Call] = field(default_factory=set)


@dataclass(eq=False)
class FlowFacts:
    """What is found out while a program is followed.

    called_models: of a call, the trained models that it calls. reached: of a backward pass and a model, the calls
    of the model that it goes through. stepped: those of them whose gradients a step is made with; the others are
    set to zero before. aside: those that go through no model by whose gradients nothing is stepped. late_freezes:
    where parameters are frozen behind the optimizers. freezing: the statements by which the program comes to where
    parameters of trained models are frozen or unfrozen. frozen_at_times: the models of which parameters are frozen or
    unfrozen while they are trained; thawed: those of which some are unfrozen. thawed_first: those that were frozen
    when an optimizer was made, and of which some are unfrozen between that and training. optimizers_of: the calls that
    make the optimizers of a model; moved_first: the models that were moved to a device before. training_statements:
    those by which backward passes are come to, calls of functions among them. not_averaged: those whose gradients
    DistributedDataParallel would leave as they are; of_slopes: those of losses of gradients alone, for some of which it
    would wait. repeated: models that are called again before the backward pass.
    mixes: what draws an order in which a rank's samples are mixed with each other. pads: the collate functions that pad
    to the longest sample. sizes_shown: the sizes of a rank's part of a batch that are printed. may_meet: losses of
    two tensors of which one may have a dimension more.
    shared: parts of a module that are parts of another one, too, and that one. visits: when a call is made,
    the first and the last time; loops are gone through twice. attributes_read: of a class and an attribute, where it is
    read of its objects: the attribute, or the object whose attributes a text shows; None where that is not known, with
    "" for all attributes; drawn_reads: those of numbers that each rank has of a whole evaluation with samples of its
    own; other_reads: those of other ones. texts: the calls of format whose fields are known. parameters_of: the modules
    that an expression is whose parameters are taken; given_networks: those that one is which a function of the program
    is given. training_forwards: the calls of models by whose gradients steps
    are made. seeded: the libraries whose generators are surely seeded; drawn_first: those that are drawn from before.
    unequal_tests: the conditions that ranks come to unequally often.
    pictures: the calls that draw samples; partial: those that can only draw this rank's. sites: the loaders that come
    to loops by an expression, each with whether the loop trains. untrained: the loops over training loaders that do not
    train, and the ways by which the loader comes there, the nearest first. without_loaders: the expressions by which
    something else comes to loops. lengths_of: the calls of len, and what is done with the loaders that they are given,
    "training", "sharded", "batches" or "whole"; "" for anything else.
    measured: the divided loaders that are run over where nothing is trained, and the ways by which they come there.
    wanted: the expressions that make something unknown which is read. differentiated: those that a loss is made by.
    logged: the calls of a method of loggers, and the attributes that are read of one; answers: those whose value
    is used. given_loggers: the calls of the program's own functions and classes that are given a logger. hidden: the
    loaders that something unknown is given in a list or an object, and where. not_stacked: the calls
    that make loaders whose collate functions are not seen to stack samples. padded: of such a call, what of its batches
    is padded to the longest sample: along which dimensions, and with what, as code.
    keys: those of a defaultdict that AfterLoop names; own_keys: those of a mixed dict, by its expression or by what
    AfterLoop names, each with when its entry is a rank's own; None for all that are not known. first_passes: where
    the first pass over batches of training begins, on each way that a run may take: the outermost loop around it in
    which no optimizer is made.
    weighed: the calls of losses that are divided by what the targets of all ranks count for; weighs: what makes the
    losses of training among them; weighed_together: the calls where all ranks are at the same place; weighed_apart:
    those where they are not, as in evaluations; weighed_ways: of those in models, whether each time the targets were of
    all ranks' batches of training, or a rank's own ones, whether gradients were computed, and whether the model
    evaluated; not_weighed: what makes losses that are called in another way, too.
    deferred: where a meter makes a number in a loop that ranks go through unequally often, a problem unless it is
    brought together where it is read. by_batches: where numbers of every W-th batch are brought together, by
    expressions or by what AfterLoop names; a problem where others are, too. needs_sample: the loops that make a tensor
    of a number, by its name, where a rank has a sample of these loaders. of_loaders: where the data set or the
    sampler of loaders is read. labelled: the calls of models that train, and compute their losses themselves as means
    over labels that count, with what a batch has of these. full_batches: where the batch size of a loader is that of a
    rank; size_owners: the objects of which it is an attribute; batch_numbers: what it is, where that is known.
    batch_layouts: the calls that lay out a batch by it. alone: loops and functions that each rank may leave by what it
    has drawn. in_parallel: the models of nn.DataParallel; out_of_parallel: where they are taken out of it again;
    parallel_calls: where they are called with batches; parallel_keys: where their state_dict is made or loaded, and
    whether it is their own; parallel_pickles: where they are written as a whole; parallel_asked: where their class is
    asked for, or what nn.DataParallel alone has; parallel_parts: where their parts or the names of these are.
    only_evaluated: the classes and calls
    whose networks are never trained, and only evaluated; without_buffers: the trained models that are seen to have
    none; of_others: parts of these whose layers cannot be seen; assigned: the models that calls of
    load_state_dict give other parameters; drawn_buffers: where networks register buffers that
    each rank draws. terms, calls: the operations by which
    losses are made that cannot be divided; calls_within: those in the
    functions that such a call runs; asked_whole: those of losses that read a number of their samples.
    joined: what these compute with, brought together from all ranks; given_of_all: the
    calls of models that are given something that is made of it; joined_quietly:
    where nothing is differentiated. apart: where the same is computed of other batches; apart_quietly: without
    gradients. measuring: the calls of functions that make a number of samples of training; given_lists:
    those that get lists of these, and no batch; with_samples: other calls that get or give samples;
    with_gradients: what the former are given that models have made, by place and name. may_be_texts: what is read
    of a batch, and may be a list of texts. agreed: the calls that ask how long the longest sample is, where all ranks
    train; agreed_quietly: where nothing is differentiated; agreed_apart: those that ask it elsewhere. own_decisions:
    the conditions in models that each rank decides for its own samples. told: the calls of meters that keep the last
    numbers they got. of_rank_0: what is decided by numbers that each rank draws for itself, and what makes a number of
    Python of them. drawn_evaluations: the loaders of evaluations that all ranks go through, with samples or in an order
    that each draws; drawn_batches: those of which next() takes a batch that each draws. arrays: what is read that may
    be an array of numpy; unsized: that is a list of those of no dimension. in_use: the optimizers that take steps, or
    that a library gets.
    may_train: of a loop, the loaders of which it is not known whether it trains with them. passed_by: the statements
    that a known condition has passed by; come_to: those that another one, or the same at another time, may lead to.
    changing: the functions in which, or in what they call, a model gets other layers, or numbers of another type.
    over_others: the loops that run over something else than batches of a loader, in one case at least; added_in: those
    behind which something that they add up is brought together.
    by_apex: the calls that let apex.amp change models, and what makes these. ended: the handlers of exceptions that end
    the run in their stead, where other ranks wait. late_moves: what gives models another device or type, which are
    trained again behind it. come_to_apart: the statements, and what lambdas compute, that ranks come to unequally
    often, each with the loaders by whose samples or batches they do.
    """

    problems: list[Problem] = field(default_factory=list)
    reductions: dict[ast.expr, set[Reduction]] = field(default_factory=dict)
    after: set[AfterLoop] = field(default_factory=set)
    backwards: dict[ast.Call, set[Kind]] = field(default_factory=dict)
    training_forwards: set[ast.Call] = field(default_factory=set)
    forwards: dict[ast.Call, tuple[Script, Module]] = field(default_factory=dict)
    called_models: dict[ast.Call, set[ast.AST]] = field(default_factory=dict)
    reached: dict[tuple[ast.Call, ast.AST], set[ast.Call]] = field(default_factory=dict)
    stepped: set[tuple[ast.Call, ast.AST]] = field(default_factory=set)
    not_averaged: dict[tuple[ast.Call, ast.AST], Problem] = field(default_factory=dict)
    of_slopes: dict[tuple[ast.Call, ast.AST], Problem] = field(default_factory=dict)
    repeated: set[ast.AST] = field(default_factory=set)
    mixes: set[ast.Call] = field(default_factory=set)
    pads: set[ast.AST] = field(default_factory=set)
    sizes_shown: set[ast.AST] = field(default_factory=set)
    may_meet: set[ast.AST] = field(default_factory=set)
    shared: set[tuple[Module, Module]] = field(default_factory=set)
    parameters_of: dict[ast.expr, set[Module]] = field(default_factory=dict)
    given_networks: dict[ast.expr, set[Module]] = field(default_factory=dict)
    evaluations: dict[ast.Call, set[tuple[ast.AST, Script, str] | None]] = field(default_factory=dict)
    loops: dict[ast.AST, set[Loader]] = field(default_factory=dict)
    training: set[Loader] = field(default_factory=set)
    loaders: dict[Loader, None] = field(default_factory=dict)
    trained: set[Module] = field(default_factory=set)
    optimizer_calls: dict[ast.Call, Script] = field(default_factory=dict)
    lengths: list[tuple[Script, ast.Call, Loader]] = field(default_factory=list)
    lengths_of: dict[ast.Call, set[str]] = field(default_factory=dict)
    scripts: dict[ast.AST, Script] = field(default_factory=dict)
    called_with: dict[ast.AST, set[tuple[ast.Call, Script]]] = field(default_factory=dict)
    bases: dict[ast.ClassDef, set[ast.ClassDef]] = field(default_factory=dict)
    passes: set[Pass] = field(default_factory=set)
    first_passes: dict[tuple[Script, ast.stmt], None] = field(default_factory=dict)
    unused: set[ast.AST] = field(default_factory=set)
    read_by_rows: set[ast.AST] = field(default_factory=set)
    late_freezes: dict[ast.AST, Freeze] = field(default_factory=dict)
    freezing: set[ast.stmt] = field(default_factory=set)
    frozen_at_times: set[ast.AST] = field(default_factory=set)
    thawed: set[ast.AST] = field(default_factory=set)
    thawed_first: set[ast.AST] = field(default_factory=set)
    optimizers_of: dict[ast.AST, set[ast.Call]] = field(default_factory=dict)
    moved_first: set[ast.AST] = field(default_factory=set)
    training_statements: set[ast.stmt] = field(default_factory=set)
    aside: set[tuple[ast.Call, ast.AST]] = field(default_factory=set)
    visits: dict[ast.Call, tuple[int, int]] = field(default_factory=dict)
    imported: dict[ast.AST, ast.stmt | None] = field(default_factory=dict)
    attributes_read: dict[tuple[ast.AST, str], set[Site | None]] = field(default_factory=dict)
    drawn_reads: set[ast.expr] = field(default_factory=set)
    other_reads: set[ast.expr] = field(default_factory=set)
    texts: set[ast.Call] = field(default_factory=set)
    read_same: set[ast.expr] = field(default_factory=set)
    # Numbers that all ranks have, where they meet one of a rank in arithmetic (None), or by what else they are divided.
    met_same: dict[ast.expr, set[ast.expr | None]] = field(default_factory=dict)
    # Calls of what is not the program's, for what they give back, with samples or numbers of a rank.
    given_parts: set[ast.Call] = field(default_factory=set)
    given_metrics: set[ast.Call] = field(default_factory=set)
    kept_apart: set[ast.expr] = field(default_factory=set)
    forms: dict[ast.expr, str] = field(default_factory=dict)
    arrays: set[object] = field(default_factory=set)
    unsized: set[object] = field(default_factory=set)
    unequal_tests: set[ast.expr] = field(default_factory=set)
    seeded: set[str] = field(default_factory=set)
    drawn_first: set[str] = field(default_factory=set)
    pictures: dict[ast.Call, Script] = field(default_factory=dict)
    partial: set[ast.Call] = field(default_factory=set)
    datasets: dict[ast.Call, Value] = field(default_factory=dict)
    shuffles: dict[Loader, set[object]] = field(default_factory=dict)
    not_stacked: set[ast.Call] = field(default_factory=set)
    padded: dict[ast.Call, dict[str | int | None, tuple[tuple[int, ...], str]]] = field(default_factory=dict)
    by_next: ByNext = field(default_factory=lambda: ByNext())
    sample_gradients: set[ast.Call] = field(default_factory=set)
    other_gradients: set[ast.Call] = field(default_factory=set)
    full_batches: dict[ast.expr, Script] = field(default_factory=dict)
    size_owners: dict[Loader, frozenset[Thing]] = field(default_factory=dict)
    batch_numbers: dict[Loader, set[object]] = field(default_factory=dict)
    batch_layouts: dict[ast.Call, Script] = field(default_factory=dict)
    alone: set[ast.AST] = field(default_factory=set)
    in_parallel: set[Module] = field(default_factory=set)
    out_of_parallel: dict[ast.AST, Script] = field(default_factory=dict)
    parallel_calls: dict[ast.Call, Script] = field(default_factory=dict)
    parallel_keys: dict[ast.Call, tuple[Script, bool]] = field(default_factory=dict)
    parallel_pickles: dict[ast.Call, Script] = field(default_factory=dict)
    parallel_asked: dict[ast.AST, Script] = field(default_factory=dict)
    parallel_parts: dict[ast.expr, Script] = field(default_factory=dict)
    only_evaluated: frozenset[ast.AST] = frozenset()
    without_buffers: set[ast.AST] = field(default_factory=set)
    of_others: set[Module] = field(default_factory=set)
    assigned: dict[ast.Call, set[ast.AST]] = field(default_factory=dict)
    drawn_buffers: dict[Module, Problem] = field(default_factory=dict)
    in_use: set[ast.Call] = field(default_factory=set)
    may_train: dict[ast.AST, dict[Loader, Problem]] = field(default_factory=dict)
    wanted: set[ast.expr] = field(default_factory=set)
    differentiated: set[ast.expr] = field(default_factory=set)
    sites: dict[ast.expr, set[tuple[Loader, bool]]] = field(default_factory=dict)
    over: dict[ast.expr, set[Loader]] = field(default_factory=dict)
    untrained: list[tuple[Script, ast.AST, Loader, list[Site]]] = field(default_factory=list)
    without_loaders: set[ast.AST] = field(default_factory=set)
    measured: list[tuple[Loader, list[Site]]] = field(default_factory=list)
    logged: dict[ast.expr, set[Logger]] = field(default_factory=dict)
    measuring: dict[ast.AST, set[ast.Call]] = field(default_factory=dict)
    given_lists: set[ast.Call] = field(default_factory=set)
    with_samples: set[ast.Call] = field(default_factory=set)
    with_gradients: dict[ast.Call, set[int | str]] = field(default_factory=dict)
    answers: dict[ast.expr, Script] = field(default_factory=dict)
    given_loggers: set[ast.Call] = field(default_factory=set)
    hidden: dict[Loader, Problem] = field(default_factory=dict)
    keys: dict[tuple[Script, ast.stmt, str], tuple[object, ...]] = field(default_factory=dict)
    own_keys: dict[object, dict[object, OwnEntry]] = field(default_factory=dict)
    weighed: dict[ast.Call, Weighed] = field(default_factory=dict)
    weighs: set[ast.Call] = field(default_factory=set)
    weighed_together: set[ast.Call] = field(default_factory=set)
    weighed_apart: dict[ast.Call, set[Problem]] = field(default_factory=dict)
    weighed_ways: dict[ast.Call, set[tuple[str, bool, bool]]] = field(default_factory=dict)
    not_weighed: set[ast.Call] = field(default_factory=set)
    deferred: dict[ast.expr, set[Problem]] = field(default_factory=dict)
    by_batches: dict[object, set[Problem]] = field(default_factory=dict)
    needs_sample: dict[tuple[Script, ast.AST, str], set[Loader]] = field(default_factory=dict)
    of_loaders: dict[ast.Attribute, set[Loader]] = field(default_factory=dict)
    labelled: dict[ast.Call, tuple[Script, str]] = field(default_factory=dict)
    terms: set[ast.expr] = field(default_factory=set)
    calls: set[ast.expr] = field(default_factory=set)
    calls_within: dict[ast.expr, set[ast.expr]] = field(default_factory=dict)
    asked_whole: set[ast.AST | None] = field(default_factory=set)
    joined: dict[ast.expr, set[Reduction]] = field(default_factory=dict)
    given_of_all: set[ast.Call] = field(default_factory=set)
    joined_quietly: set[ast.expr] = field(default_factory=set)
    apart: dict[ast.expr, Problem] = field(default_factory=dict)
    apart_quietly: set[ast.expr] = field(default_factory=set)
    may_be_texts: set[ast.expr] = field(default_factory=set)
    agreed: dict[ast.Call, Script] = field(default_factory=dict)
    agreed_quietly: set[ast.Call] = field(default_factory=set)
    agreed_apart: set[ast.Call] = field(default_factory=set)
    own_decisions: dict[ast.expr, Script] = field(default_factory=dict)
    told: set[ast.Call] = field(default_factory=set)
    of_rank_0: dict[ast.expr, tuple[Script, str]] = field(default_factory=dict)
    drawn_evaluations: set[Loader] = field(default_factory=set)
    drawn_batches: set[Loader] = field(default_factory=set)
    passed_by: set[ast.stmt] = field(default_factory=set)
    come_to: set[ast.stmt] = field(default_factory=set)
    changing: set[ast.AST] = field(default_factory=set)
    over_others: set[ast.AST] = field(default_factory=set)
    added_in: dict[ast.AST, Problem] = field(default_factory=dict)
    by_apex: dict[ast.Call, set[ast.AST]] = field(default_factory=dict)
    ended: dict[ast.ExceptHandler, Script] = field(default_factory=dict)
    late_moves: set[ast.Call] = field(default_factory=set)
    come_to_apart: dict[ast.AST, set[Loader]] = field(default_factory=dict)


def ancestors(script: Script, node: ast.AST, until: ast.AST) -> Iterator[ast.stmt]:
    """A statement and those around it, up to the function or module that they are in."""
    if isinstance(node, ast.stmt):
        yield node
    for parent in script.ancestors(node):
        if parent is until:
            return
        if isinstance(parent, ast.stmt):
            yield parent
