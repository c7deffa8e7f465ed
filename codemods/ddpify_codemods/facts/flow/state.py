"""What is known while a program is followed, and the files that it is made of."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from ..inherited import imported_file
from ..script import Script
from .collate_parts import Part
from .factories import Calls
from .frames import ByNext, FlowFacts, Frame, Freeze, Joined, Lengths, Problem
from .gradients import Forms, Gradients
from .handlers import GOES_ON, Trying
from .own_networks import hands_over_networks, has_networks
from .values import (
    Class,
    Function,
    Generated,
    Instance,
    Items,
    Iteration,
    Loader,
    Logger,
    Module,
    Parameters,
    Thing,
    Value,
    of,
)

_LIMIT = 300_000  # nodes that are followed in one pass


class TooLarge(Exception):
    """The program has more ways through it than can be followed."""


@dataclass(frozen=True)
class Context:
    """A loop that is being followed: over "batches" of this rank, over "whole" ones, over the "rows" of one.

    may_be_several: whether those rows may be several tensors instead, each of which holds the samples. drawn: whether
    they are no samples, but numbers that each rank has drawn.
    """

    how: str
    loaders: frozenset[Loader]
    node: ast.AST
    frame: Frame
    may_be_several: bool = False
    drawn: bool = False


@dataclass(eq=False)
class Consumer:
    """A loop over a generator that is being followed. over: all that it runs over. contexts, calls: how many loops and
    calls were being followed when it began. turns: how often it was gone through."""

    generated: Generated
    loop: ast.For
    over: Value
    frame: Frame
    contexts: int
    calls: int
    turns: int = 0


@dataclass(eq=False)
class Suppressed:
    """What goes on after an exception of a training: a `with`, or a handler of a `try`.

    ended_by: the handler, where the exception can end the run in its stead. returns: whether it leaves the function.
    """

    frame: Frame
    node: ast.AST
    ended_by: ast.ExceptHandler | None = None
    returns: bool = False


@dataclass(frozen=True)
class Computed:
    """What the forward of a layer gave back, and the layers that it called, in any case and in some."""

    result: Value | None
    always: frozenset[Module]
    at_times: frozenset[Module]


class State:
    """Where following a program has come to; the base of what follows it."""

    def __init__(
        self,
        scripts: Sequence[Script],
        status: dict[Loader, str],
        trained: set[ast.AST],
        loaders: dict[object, Loader],
        drawn: set[str],
        wrapped_calls: set[ast.Call],
        evaluated: dict[ast.expr, Script],
        of_all: set[ast.expr],
        by_next: ByNext,
        own_sizes: dict[ast.expr, tuple[Loader, bool]],
        joined: Joined,
        aside: set[tuple[ast.Call, ast.AST]],
        lengths: Lengths,
        told: set[ast.Call],
        alone: set[ast.AST] | None,
        alike: frozenset[str] = frozenset(),
        idle: frozenset[ast.Call] = frozenset(),
    ) -> None:
        self.scripts, self.status, self.trained, self.drawn = scripts, status, trained, drawn
        self.chooses, self.registers = has_networks(scripts), hands_over_networks(scripts)
        self.wrapped_calls, self.by_next, self.own_sizes = wrapped_calls, by_next, own_sizes
        self.joined, self.joined_parts = joined, joined.parts()
        self.told = told  # the calls of meters that are given numbers of all ranks
        self.alike = alike  # libraries whose generators are to be at the same place on all ranks
        self.idle = idle  # the optimizers that never take a step
        self.alone = alone  # loops and functions that each rank may leave by what it has drawn; None where none may be
        self.lengths = lengths  # the calls by which ranks agree on the longest sample of all
        self.aside = aside  # backward passes, and models in which no step follows what they leave
        self.latest: dict[ast.expr, Value] = {}  # of what expressions were last, where something is joined
        self.gradients, self.left_early = Gradients(), list[Gradients]()
        self.frozen_when_wrapped: set[ast.AST] = set()
        self.partly_frozen: set[ast.AST] = set()
        self.once_frozen: set[ast.AST] = set()  # models of which parameters were frozen, whether they still are or not
        self.once_frozen_when_wrapped: set[ast.AST] = set()
        self.not_frozen: set[tuple[ast.Call, ast.AST]] = set()  # backward passes, and models
        self.optimizers_of: dict[ast.AST, set[ast.Call]] = {}
        self.evaluation_sites, self.of_all, self.backwards = evaluated, of_all, 0
        self.found = FlowFacts()
        self.contexts: list[Context] = []
        self.trying: list[Trying] = []
        self.ended = 0  # how often a handler was come to that ends the run
        self.untrained: set[ast.Try] = set()  # what was come to, at a time, without a training
        self.suppressed: list[Suppressed] = []  # behind which nothing may train
        self.over_phases: set[ast.For] = set()
        self.awaited: list[ast.expr] = []  # what loops run over, if it is a call of a generator
        self.consumers: list[Consumer] = []  # loops over the generators that are being followed
        self.in_forward: list[Module] = []
        self.stack: list[ast.AST] = []
        self.modules: dict[tuple[ast.AST, frozenset[Thing]], Module] = {}
        self.made_first: dict[ast.AST, Calls] = {}  # how the program came to what makes a model, the first time
        self.own_modules: dict[tuple[ast.AST, ast.ClassDef, frozenset[Thing]], Module] = {}
        self.settings: dict[ast.AST, Instance] = {}
        self.named_tuples: dict[ast.Call, Class] = {}
        self.kept_defaults: dict[ast.expr, Value] = {}  # lists and dicts, the same ones in each call
        self.commands: dict[str, Value] = {}  # functions that argparse chooses by the command that is given
        self.layers_given: dict[tuple[ast.expr, Frame], list[Module]] = {}  # by `model.modules()`
        self.attributes: dict[ast.Attribute, tuple[Value, bool, Frame]] = {}  # and whether a network's of the program
        self.layer_parts: dict[tuple[ast.expr, Module], Module] = {}  # what a loop over these takes of each
        self.new_modules: set[Module] = set()
        self.taken: set[Module] = set()  # parts of networks that nothing else knows
        self.classes: dict[ast.ClassDef, Class] = {}
        self.class_attributes: dict[ast.ClassDef, dict[str, Value]] = {}
        self.frames: dict[Script, Frame] = {}
        self.importing: ast.stmt | None = None  # at the top of the first file
        self.files: dict[Script, Module] = {}
        self.loggers: dict[ast.Call, Logger] = {}
        self.known_loaders = loaders
        self.own_loaders: set[Loader] = set()  # of classes that the program derives from DataLoader
        self.loaders_begun: list[Loader] = []  # those of them that are being made, before `super().__init__(…)`
        self.made_loaders: dict[ast.expr, Value] = {}
        self.scores: set[tuple[ast.AST, str]] = set()  # variables of functions that losses take for scores of classes
        self.layouts: dict[ast.Call, Part] = {}  # of batches whose collate functions do not only stack
        self.variant: tuple[object, ...] = ()
        self.sources: dict[tuple[Module | Instance | Loader, str], set[ast.expr]] = {}
        self.wrapped, self.undecided, self.without_gradients = False, 0, 0
        self.quiet_around, self.in_factory = 0, 0
        self.frozen_since: dict[ast.AST, Freeze] = {}  # and in training
        self.frozen_behind: dict[ast.AST, Freeze] = {}  # where parameters were frozen since an optimizer was made
        self.parts: set[tuple[Module, str]] = set()
        self.called_networks: set[Module] = set()  # networks and layers that are called, not only layers of theirs
        self.last_layers: dict[ast.AST, Module] = {}  # of models: the last layer of torch's that a forward has called
        self.not_in_forward: dict[tuple[Module, str], Module] = {}  # what forwards do not use, by its name
        self.read_in_training: set[tuple[Module, str]] = set()  # what is used of a model beside its forward
        self.kept_names: list[dict[str, Value]] = []  # as they were where a branch, or a turn of a loop, began
        self.set_now: set[tuple[Thing, str]] = set()  # what the forward that is being followed has set so far
        self.read_before: set[tuple[Thing, str]] = set()  # what a forward has read that another one may have set
        self.work = 0
        self.began: set[str] = set()  # libraries whose generators may have been used for samples since they were seeded
        self.moved: set[ast.AST] = set()  # models that were moved to a device
        self.trained_before: set[ast.AST] = set()  # models that a backward pass has gone through
        self.forms: dict[ast.AST, Forms] = {}  # of models: devices and types that they got before that
        self.moved_at_break: set[tuple[ast.AST, ast.Call]] = set()  # what has left the loop has moved these models
        self.moved_at_return: set[tuple[ast.AST, ast.Call]] = set()  # and what has left the function
        self.called_as: dict[ast.Call, set[Thing]] = {}  # what calls of models and losses may call
        self.may_have_begun = False  # a pass over batches of training, by one way or another
        self.has_begun = False  # a pass over batches of training, whichever way was taken
        self.first_pass: tuple[Script, ast.stmt] | None = None  # what that stands in
        self.seeded_again: set[tuple[Script, ast.stmt] | None] = set()  # loops in which a seed was set since then
        self.begins_apart: set[Module] = set()  # layers whose first numbers each rank draws, from where its noise is
        self.redrawn: dict[ast.AST, Problem] = {}  # models of which parameters were drawn by each rank since a wrapper
        self.late_layers: dict[ast.AST, tuple[int, Problem]] = {}  # models that got layers since, and how undecided
        self.late_frozen: dict[ast.AST, tuple[int, Problem]] = {}  # the same of layers that are frozen
        self.copies: dict[tuple[ast.AST, Module], Module] = {}
        self.computing: set[ast.ClassDef] = set()  # classes of networks whose methods models have called
        self.always: set[Module] = set()  # layers that the forward which is being followed calls in any case
        self.at_times: set[Module] = set()  # those that it calls in some cases
        self.called_either_way: tuple[set[Module], set[Module]] | None = None  # in the last two ways
        self.not_taking: set[Module] = set()  # networks that do not take what a call gives, which others do
        self.has_moved = False  # whether samples of a batch lie along another dimension than the first in a forward
        self.own_ways = 0  # how many ways are being followed of which each rank takes its own
        self.computed: dict[object, Computed] = {}  # what forwards of layers have given back
        self.attributes_set = 0  # how often an attribute of a network or of an object got another value
        self.undecided_when_made: dict[Module, int] = {}  # of these, in how many branches that may not be taken
        self.made_parallel: dict[Module, dict[ast.Call, Script]] = {}  # where nn.DataParallel takes models
        self.loaded: set[Module] = set()  # networks that have got the numbers of others
        self.in_training_mode: set[Module] = set()  # networks that were called so
        self.vague_containers: set[Module] = set()  # that have got something which is not seen
        self.making: set[tuple[Script, ast.stmt]] = set()  # loops in which optimizers are made
        self.groups_given: set[Items] = set()  # the dicts that optimizers were given, and keep: groups of parameters
        self.in_steps: dict[Thing, tuple[Value, ...]] = {}  # what steps call, and with what
        self.in_step = False

    @property
    def depth(self) -> int:
        """How many calls of the program's functions are being followed."""
        return len(self.stack)

    def count(self) -> None:
        self.work += 1
        if self.work > _LIMIT:
            raise TooLarge

    # Implemented by what is derived from this

    def value(self, node: ast.expr | None, frame: Frame) -> Value:
        raise NotImplementedError

    def part(self, value: Value, key: object) -> Value:
        raise NotImplementedError

    def gives_chosen(self, node: ast.Subscript, lists: Value, chosen: Value, frame: Frame) -> None:
        raise NotImplementedError

    def place_taken(self, slice_: ast.expr, frame: Frame) -> Value:
        raise NotImplementedError

    def call(self, node: ast.Call, frame: Frame, alone: bool = False) -> Value:
        raise NotImplementedError

    def called(
        self, thing: object, node: ast.Call, args: list[Value], keywords: dict[str, Value], frame: Frame, alone: bool
    ) -> Value:
        raise NotImplementedError

    def block(self, body: Sequence[ast.stmt], frame: Frame) -> None:
        raise NotImplementedError

    def assign(self, target: ast.expr, value: Value, frame: Frame, source: ast.expr | None = None) -> None:
        raise NotImplementedError

    def enter(
        self, function: Function, node: ast.AST, args: list[Value], keywords: dict[str, Value], frame: Frame
    ) -> Value:
        raise NotImplementedError

    def made_by_default(self, value: Value, node: ast.Call, frame: Frame) -> Value | None:
        raise NotImplementedError

    def is_generated(self, value: Value) -> bool:
        raise NotImplementedError

    def method_of(self, cls: Class, name: str, owner: Value | None) -> Function | None:
        raise NotImplementedError

    def listed(self, parts: Sequence[ast.expr], values: Sequence[Value]) -> Value:
        raise NotImplementedError

    def with_samples(self, left: Value, right: Value) -> Value | None:
        raise NotImplementedError

    def demand(self, node: ast.expr, value: Value, frame: Frame, gathers: bool = False) -> None:
        raise NotImplementedError

    # Files

    def module_frame(self, script: Script) -> Frame:
        """The names of a file."""
        return self.frames.setdefault(script, Frame(script, script.tree))

    def executed(self, script: Script) -> Frame:
        """The names of a file that is imported."""
        if script not in self.frames:
            self.found.imported[script.tree] = self.importing
            self.block(script.tree.body, self.module_frame(script))
        return self.frames[script]

    def local_module(self, name: str) -> Script | None:
        parts = tuple(name.split("."))
        for script in self.scripts:
            path = script.path.parent if script.path.name == "__init__.py" else script.path.with_suffix("")
            if path.parts[-len(parts) :] == parts:
                return script
        return None

    def imported_script(self, script: Script, node: ast.ImportFrom, name: str = "") -> Script | None:
        if name:
            node = ast.ImportFrom(f"{node.module}.{name}" if node.module else name, node.names, node.level)
        return imported_file(script, node, self.scripts)

    def file_value(self, script: Script) -> Value:
        self.executed(script)
        return of(self.files.setdefault(script, Module(script.tree, "file")))

    def module_value(self, script: Script, alias: ast.alias) -> Value:
        return self.file_value(script)

    def problem(self, frame: Frame, node: ast.AST, reason: str, loaders: frozenset[Loader] = frozenset()) -> None:
        self.found.problems.append(Problem(frame.script, node, reason, loaders))

    def nothing_may_follow(self, frame: Frame) -> None:
        """A training comes after one whose exceptions are suppressed; but for what a handler has returned from."""
        here, place = [frame], frame
        while place.caller is not None:
            place = place.caller
            here.append(place)
        left = [each for each in self.suppressed if each.returns and any(each.frame is one for one in here)]
        for each in self.suppressed:
            if each not in left:
                self.may_not_follow(each)
        self.suppressed = left

    def may_not_follow(self, suppressed: Suppressed) -> None:
        """A rank would train on after an exception: the run ends there, or is refused."""
        if suppressed.ended_by is None:
            self.problem(suppressed.frame, suppressed.node, GOES_ON)
        else:
            self.found.ended[suppressed.ended_by] = suppressed.frame.script
            self.ended += 1

    def is_changed(self, model: ast.AST, reason: str, node: ast.AST, frame: Frame, frozen: bool = False) -> None:
        """A network is another one than that which an optimizer was made for; frozen: by layers without gradients."""
        at: Frame | None = frame
        while at is not None and not frozen:
            self.found.changing.add(at.node)
            at = at.caller
        if model in self.optimizers_of:
            late = self.late_frozen if frozen else self.late_layers
            undecided = min(self.undecided, late.get(model, (self.undecided,))[0])
            late[model] = undecided, Problem(frame.script, node, reason)

    def unfreezes_late_layers(self, models: Iterable[ast.AST]) -> None:
        """Parameters of models may get gradients again."""
        for each in models:
            if each in self.late_frozen:
                undecided, problem = self.late_frozen.pop(each)
                self.late_layers[each] = min(undecided, self.late_layers.get(each, (undecided,))[0]), problem

    def has_wrapper(self, model: ast.AST) -> None:
        """An optimizer is made for a model with all its layers."""
        for late in (self.late_layers, self.late_frozen):
            if self.undecided <= late.get(model, (-1,))[0]:
                del late[model]

    def name_of(self, node: ast.expr) -> str:
        return ast.unparse(node)

    def parameters_in(self, values: Sequence[Value]) -> tuple[Module, ...]:
        """The modules whose parameters are among the values."""
        found: dict[Module, None] = {}
        waiting = list(values)
        seen: set[int] = set()
        while waiting:
            value = waiting.pop()
            for thing in value.things:
                if isinstance(thing, Parameters):
                    found |= dict.fromkeys(thing.modules)
                elif isinstance(thing, Items) and id(thing) not in seen:
                    seen.add(id(thing))
                    waiting += thing.all()
                elif isinstance(thing, Iteration):
                    waiting += thing.inner
        return tuple(found)
