"""Follows loops: over batches, over whole evaluations, over the samples of one batch."""

from __future__ import annotations

import ast
import builtins
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import TypeGuard

from ..bindings import bindings, names_in
from ..loggers import is_recorded
from ..script import Script
from .by_name import ByName
from .collate_parts import COLUMNS, Keyed, Part
from .concatenated import Concatenated, Offsets
from .drawn_samples import Finder, draws_apart
from .draws import LIBRARIES
from .frames import Frame, Pass, Problem, Site, ancestors
from .held_values import local_entries
from .layout import along
from .one_by_one import OneByOne, is_site
from .operations import element, runs_over_samples
from .own_decisions import is_drawn
from .own_regions import OwnRegions
from .padding import Padded
from .sample_dimensions import dimensions_of_batches
from .state import Context
from .tensor_uses import is_tensor_here
from .turns import counts_to, goes_on, takes_samples
from .values import (
    CONCATENATED,
    DRAWN,
    LOCAL_ROWS,
    NOT_FOLLOWED,
    NUMBERED,
    OFFSETS,
    SAME,
    UNEVEN,
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
    join,
    made_of,
    of,
)


class Loops(OneByOne, ByName, OwnRegions):
    """What loops run over, and what their variables take."""

    @contextmanager
    def looping(self, node: ast.AST, over: Value, frame: Frame) -> Iterator[None]:
        """Be in a loop over a value."""
        loaders = self.loaders_in(over)
        rows = self.rows_in(over)
        if self.is_over_outputs(node, over, frame):
            assert isinstance(node, ast.For) and isinstance(node.iter, ast.Name)
            rows = None
            frame.names[node.iter.id] = Value(things=frozenset(over.only(Items)))
        if loaders:
            self.found.loops.setdefault(node, set()).update(loaders)
            self.found.scripts[node] = frame.script
            self.goes_by(node, loaders, frame)
            for each in loaders:
                self.passed(node, each, frame)
            divided = frozenset(each for each in loaders if self.status.get(each) != "whole")
            if divided:
                self.read_apart(node.iter if isinstance(node, ast.For) else node, Value("batch", divided), frame)
            if divided and divided != loaders:
                self.problem(frame, node, "the loop runs over divided batches and over whole ones", loaders)
            context: Context | None = Context("batches" if divided else "whole", divided, node, frame)
        else:
            several = self.may_run_over_several(node, over, frame)
            drawn = rows is not None and is_drawn(rows)
            context = Context("rows", rows.loaders, node, frame, several, drawn) if rows is not None else None
        if not loaders and isinstance(node, ast.For):
            iterated = {each for call in ast.walk(node.iter) if is_iter(call) for each in call.args}
            self.found.without_loaders |= {each for each in ast.walk(node.iter) if is_site(each)} - iterated
        if context is not None:
            self.contexts.append(context)
            self.began = set(LIBRARIES)
        if any(self.status.get(each) == "training" for each in loaders):
            self.begins(frame)
        sites = {each: list(self.sites(node, each, frame)) for each in loaders}
        before = self.backwards
        try:
            yield
        finally:
            if context is not None:
                self.contexts.pop()
            for each, ways in sites.items():
                self.came(node, each, ways, self.backwards > before, frame)

    def loops_over_batches(self) -> int:
        """How many loops over batches are being followed."""
        return sum(context.how != "rows" for context in self.contexts)

    def goes_by(self, node: ast.AST, loaders: frozenset[Loader], frame: Frame) -> None:
        """Note by which expressions a loop runs over its loaders, also `bar = tqdm(loader)` before it."""
        for each in run_over_by(frame.script, node) if isinstance(node, ast.For) else ():
            if isinstance(each, ast.Name | ast.Attribute | ast.Subscript) and self.value(each, frame).things == loaders:
                self.found.over.setdefault(each, set()).update(loaders)

    def came(self, node: ast.AST, loader: Loader, sites: list[Site], trains: bool, frame: Frame) -> None:
        """Note by which ways a loader came to a loop, and whether the loop trains."""
        for site in sites:
            self.found.sites.setdefault(site.node, set()).add((loader, trains))
        if not trains and self.status.get(loader) == "training":
            self.found.untrained.append((frame.script, node, loader, sites))
        elif not trains and self.status.get(loader) in UNEVEN:
            self.found.measured.append((loader, sites))

    def sites(self, node: ast.AST, loader: Loader, frame: Frame) -> Iterator[Site]:
        """The expressions by which a loader comes to a loop: in it, and as arguments on the way."""
        lengths = {each for call in ast.walk(node.iter) if is_length(call) for each in ast.walk(call)}  # type: ignore[attr-defined]
        candidates: list[ast.AST] = [each for each in ast.walk(node.iter) if each not in lengths]  # type: ignore[attr-defined]
        place: Frame | None = frame
        while place is not None:
            for each in filter(is_site, candidates):
                things = self.value(each, place).things
                if loader in things and all(isinstance(thing, Loader) for thing in things):
                    yield Site(place.script, each)
            candidates = [*place.call.args, *(w.value for w in place.call.keywords)] if is_call(place.call) else []
            place = place.caller

    def given_away(self, node: ast.Call, given: Sequence[Value], frame: Frame) -> None:
        """A call of something that is not known gets loaders, and may run over them."""
        if self.is_undefined(node.func, frame):
            return
        seen: set[Loader] = set()
        for part in (*node.args, *(word.value for word in node.keywords)):
            value = self.value(part, frame) if isinstance(part, ast.Name | ast.Attribute) else SAME
            if part in self.made_loaders:
                value = self.made_loaders[part]
            if value.only(Logger) and not is_recorded(frame.script, part):
                self.problem(frame, node, f"what {ast.unparse(node.func)} does with a logger of rank 0 is not known")
            for loader in value.only(Loader):
                assert isinstance(loader, Loader)
                seen.add(loader)
                if self.status.get(loader) in UNEVEN:
                    reason = f"what {ast.unparse(node.func)} does with it is not known"
                    self.found.problems.append(Problem(frame.script, node, reason, frozenset({loader})))
                self.came(node, loader, [Site(frame.script, part)], False, frame)
        several = len({each.call for each in self.found.loaders}) < len(self.found.loaders)
        if several and name_of(node.func) != "next":
            reason = f"what {ast.unparse(node.func)} does with a loader is not known"
            for loader in self.loaders_within(given) - seen:
                self.found.hidden[loader] = Problem(frame.script, node, reason)

    def loaders_within(self, values: Iterable[Value], depth: int = 4) -> set[Loader]:
        """The loaders in values: in lists and dicts, in what loops run over, in attributes of objects."""
        found: set[Loader] = set()
        for value in values if depth else ():
            found |= self.loaders_in(value)
            for thing in value.things:
                if isinstance(thing, Items | Instance | Loader):
                    inner = thing.all() if isinstance(thing, Items) else thing.attributes.values()
                    found |= self.loaders_within(inner, depth - 1)
        return found

    def is_undefined(self, function: ast.expr, frame: Frame) -> bool:
        """Whether a name has no value in the whole program, so that its call ends the script."""
        if not isinstance(function, ast.Name) or frame.owner(function.id) or self.value(function, frame).things:
            return False
        names = {node.name for node in frame.script.nodes if isinstance(node, ast.FunctionDef | ast.ClassDef)}
        names |= {node.id for node in frame.script.find(ast.Name) if not isinstance(node.ctx, ast.Load)}
        stars = [node for node in frame.script.find(ast.ImportFrom) if node.names[0].name == "*"]
        known = all(self.imported_script(frame.script, node) for node in stars)
        return known and function.id not in names and not hasattr(builtins, function.id)

    def for_evaluation(self, value: Value, node: ast.expr) -> Value:
        """A loader where an evaluation takes its samples by itself: those of training, each once."""
        things = (self.evaluating(thing, node) if isinstance(thing, Loader) else thing for thing in value.things)
        return replace(value, things=frozenset(things))

    def evaluating(self, loader: Loader, node: ast.expr) -> Loader:
        if loader.source is not None:
            return loader
        made = Loader(loader.call, loader.script, (*loader.variant, "evaluation"), loader)
        made = self.known_loaders.setdefault((loader, node), made)
        self.found.loaders.setdefault(made)
        return made

    def passed(self, node: ast.AST, loader: Loader, frame: Frame) -> None:
        """Note a pass over a training loader, and the loop over epochs that it is in."""
        if self.status.get(loader) != "training":
            return
        here = self.named(loader, frame) or self.taken_out(loader, node, frame)
        place: Frame | None = frame
        turns: list[ast.AST] = []
        while place is not None:
            around = ancestors(place.script, place.statement, place.node) if place.statement is not None else ()
            for each in around:
                written = isinstance(each, ast.For) and isinstance(each.iter, ast.List | ast.Tuple)
                if written or each in self.over_phases:
                    turns += [each] if each not in self.over_phases else []
                    continue
                if each is not node and isinstance(each, ast.For | ast.While) and each not in self.found.loops:
                    there = self.named(loader, place)
                    self.found.passes.add(Pass(frame.script, node, loader, here, each, there, place.script))
                    return
            place = place.caller
        by = (*frame.calls, *turns)
        self.found.passes.add(Pass(frame.script, node, loader, here, None, "", frame.script, by))

    def named(self, loader: Loader | Module, frame: Frame) -> str:
        """What a loader or a module is called in a function, by its own names, those of its object, those of the file,
        or a loader as an attribute of what these hold; "" where it has no name."""
        places = [frame]
        while (outer := places[-1].outer) is not None:
            places.append(outer)
        *functions, file = [place.names for place in places]
        own = [thing.attributes for thing in frame.owners if isinstance(thing, Instance)]
        attributes = [{f"self.{name}": value for name, value in each.items()} for each in own]
        visible: dict[str, Value] = {}
        for names in (*functions, *attributes, file):
            visible = visible | {name: value for name, value in names.items() if name not in visible}
        for name, value in visible.items():
            if self.holds(value, loader) and name != "_":
                return name
            for items in value.only(Items):
                assert isinstance(items, Items)
                for key, entry in items.known.items():
                    if self.holds(entry, loader) and isinstance(key, str):
                        return f'{name}["{key}"]'
        of_objects = visible.items() if isinstance(loader, Loader) else ()
        for name, value in of_objects:
            thing, *others = value.things or (None,)
            entries = thing.attributes.items() if isinstance(thing, Instance) and not others else ()
            for attribute, entry in entries:
                if self.holds(entry, loader):
                    return f"{name}.{attribute}"
        return ""

    def taken_out(self, loader: Loader, loop: ast.AST, frame: Frame) -> str:
        """The entry, `loaders["train"]`, that a loop goes through alone, of a dict or list whose keys are not known; ""
        where it is taken otherwise."""
        each = loop.iter if isinstance(loop, ast.For) else None
        while isinstance(each, ast.Call) and len(each.args) > 0 and not isinstance(each.args[0], ast.Starred):
            others = [*each.args[1:], *(word.value for word in each.keywords)]
            if loader in self.loaders_within([self.value(other, frame) for other in others]):
                return ""
            each = each.args[0]
        if not isinstance(each, ast.Subscript) or not isinstance(each.slice, ast.Constant):
            return ""
        held = self.value(each.value, frame) if isinstance(each.value, ast.Name | ast.Attribute) else SAME
        plain = held.things and all(isinstance(thing, Items) for thing in held.things)
        return ast.unparse(each) if plain and self.value(each, frame).things == {loader} else ""

    def holds(self, value: Value, thing: Loader | Module) -> bool:
        """Whether a value is a loader of training or a module, or another one in its place."""
        alike = (
            isinstance(each, Module)
            if isinstance(thing, Module)
            else isinstance(each, Loader) and self.status.get(each) == "training"
            for each in value.things
        )
        return value.things == {thing} or (thing in value.things and all(alike))

    def rows_in(self, over: Value) -> Value | None:
        """What a loop runs over, if its length depends on this rank's samples."""
        if over.is_local:
            return over
        for thing in over.only(Iteration):
            assert isinstance(thing, Iteration)
            for inner in thing.inner:
                if (thing.how in ("pairs", "keys") and inner.kind == "batch") or inner.only(Items):
                    continue
                if (found := self.rows_in(inner)) is not None:
                    return found
        return None

    def is_over_outputs(self, loop: ast.AST, over: Value, frame: Frame) -> bool:
        """Whether a loop runs over what a network gives back, not over samples: a list of outputs is seen, and each is
        compared with what holds all samples, `for out in outputs: loss += criterion(out, y)`."""
        if not isinstance(loop, ast.For) or not isinstance(loop.iter, ast.Name):
            return False
        taken = names_in(loop.target)
        if not over.only(Items) or not over.is_local:
            return False
        for call in (each for part in loop.body for each in ast.walk(part) if isinstance(each, ast.Call)):
            given = {each.id: each for each in call.args if isinstance(each, ast.Name)}
            others = [each for name, each in given.items() if name not in (*taken, ast.unparse(loop.iter))]
            values = [self.value(each, frame) for each in others] if taken & given.keys() else []
            if any(value.kind == "batch" or value.whole for value in values):
                return True
        return False

    def in_rows(self) -> bool:
        return any(context.how == "rows" for context in self.contexts)

    def in_drawn_rows(self) -> bool:
        """Whether no loop goes through samples of this rank, and some through what it has drawn."""
        rows = [context for context in self.contexts if context.how == "rows"]
        return bool(rows) and all(context.drawn for context in rows) and not self.in_forward

    def may_run_over_several(self, node: ast.AST, over: Value, frame: Frame) -> bool:
        """Whether a loop runs over something of a batch that may be one tensor, or several."""
        rows = self.rows_in(over)
        unclear = rows is not None and rows.kind == "batch" and not rows.dimensions
        unclear = unclear and not self.is_over_outputs(node, over, frame)
        return unclear and may_be_several(frame.script, node, over)

    def samples_taken(self) -> list[ast.expr]:
        """What the loops run over that are being followed and take samples one by one."""
        return [each.node.iter for each in self.contexts if each.how == "rows" and takes_each(each.node)]

    def meets_others(self, values: Iterable[Value]) -> bool:
        """Whether a sample that a loop takes is computed with others of its batch: `for z in out: (z - out).norm()`."""
        if not (taken := self.samples_taken()):
            return False
        rows = [value for value in values if value.kind in LOCAL_ROWS or value.sample in taken]
        return (
            any(value.kind in LOCAL_ROWS for value in rows)
            and len({value.sample if value.sample in taken else None for value in rows}) > 1
        )

    def may_be_of_several(self, value: Value) -> bool:
        """Whether a mean through which gradients pass may be one over the batch, in each turn of a loop."""
        return value.kind == "mean" and bool(value.forwards) and any(each.may_be_several for each in self.contexts)

    def row_value(self) -> Value:
        """Something that depends on the samples of the loop that is being followed."""
        return next(Value("rows", context.loaders) for context in self.contexts if context.how == "rows")

    def uneven(self, context: Context) -> bool:
        """Whether the ranks may go through a loop unequally often."""
        return any(self.status.get(each) in UNEVEN for each in context.loaders)

    def by_batches(self, context: Context) -> bool:
        """Whether the ranks go through a loop over every W-th batch each, as one process would."""
        return bool(context.loaders) and all(self.status.get(each) == "batches" for each in context.loaders)

    def counted(self, context: Context) -> Value:
        """A number that counts the turns of a loop over a rank's part of an evaluation."""
        return Value("unknown", context.loaders, reason="it counts the batches of this rank")

    def lengthening_here(self) -> frozenset[Loader]:
        """The loaders by whose samples or batches a rank comes here as often as no other one does."""
        here = (context.loaders for context in self.contexts if context.how == "rows" or self.uneven(context))
        return frozenset().union(*here)

    def comes_to(self, node: ast.AST) -> None:
        """Note that ranks come to a statement, or to what a lambda computes, unequally often."""
        apart = [context.loaders for context in self.contexts if context.how == "rows" or self.uneven(context)]
        if apart or self.own_ways:
            self.found.come_to_apart.setdefault(node, set()).update(*apart)

    def grows(self, value: Value) -> bool:
        """Whether a list gets an entry for each batch."""
        return any(isinstance(thing, Items) and thing.grows for thing in value.things)

    def each_of(self, over: Value, node: ast.expr) -> Value:
        """What a loop variable takes."""
        found: Value | None = None
        for thing in over.things:
            if over.is_local and isinstance(thing, Items) and not thing.all():
                continue  # `[]` in the first turn, `seen = seen + labels` in others
            one = self.each_of_thing(thing, node)
            found = one if found is None else join(found, one)
        loaders = self.loaders_in(over)
        if loaders and any(thing.how == NOT_FOLLOWED for thing in over.only(Iteration) if isinstance(thing, Iteration)):
            return Value("unknown", loaders, reason=NOT_FOLLOWED)
        if found is not None:
            return found
        if over.kind in LOCAL_ROWS:
            one = made_of("rows", [over])
            is_sample = runs_over_samples(over) and one.sample not in self.samples_taken()
            return replace(one, sample=node) if is_sample else one
        return made_of("unknown", [over]) if over.is_local else SAME

    def each_of_thing(self, thing: Thing, node: ast.expr) -> Value:
        if isinstance(thing, Loader):
            if self.status.get(thing) == "whole":
                apart = bool(self.drawn) and self.draws_samples(thing)
                self.found.drawn_evaluations |= {thing} if apart else set()
                return Value("unknown", reason=DRAWN) if apart else SAME
            batch = self.of_layout(self.layouts.get(thing.call, "stacked"), frozenset({thing}))
            return self.with_parts(batch, thing) if thing.call not in self.layouts else batch
        if isinstance(thing, Generated):
            return SAME if thing.given is None else thing.given
        if isinstance(thing, Iteration):
            parts = [self.each_of(inner, node) for inner in thing.inner]
            if thing.how == "enumerate":
                loaders = self.loaders_in(*thing.inner)
                uneven = frozenset(each for each in loaders if self.status.get(each) in UNEVEN)
                number = Value("unknown", uneven, reason="it counts the batches of this rank") if uneven else SAME
                if takes_samples(thing.inner[0]):
                    number = made_of("unknown", [replace(thing.inner[0], reason="")], host=True, reason=NUMBERED)
                return of(Items("tuple", {0: number, 1: parts[0]}))
            if thing.how == "zip":
                if any(part.sample is node for part in parts):
                    parts = [replace(part, sample=node) if part.kind in LOCAL_ROWS else part for part in parts]
                samples = [each for each in thing.inner if takes_samples(each)]
                parts = [
                    made_of("unknown", [replace(samples[0], reason="")], host=True, reason=NUMBERED)
                    if samples and not (inner.is_local or local_entries(inner))
                    else part
                    for inner, part in zip(thing.inner, parts, strict=True)
                ]
                return of(Items("tuple", dict(enumerate(parts))))
            if thing.how == "keys":
                return SAME
            if thing.how == "pairs":
                inner = (
                    element(thing.inner[0], None)
                    if thing.inner[0].only(Items)
                    else made_of(thing.inner[0].kind, [thing.inner[0]])
                )
                return of(Items("tuple", {0: SAME, 1: inner}))
            if thing.how == "entries":
                return element(thing.inner[0], None)
            for place in thing.part:
                parts = [self.part(parts[0], place)]
            return parts[0]
        if isinstance(thing, Items):
            if thing.shape == "dict":
                return SAME
            return element(of(thing), None)
        if isinstance(thing, Parameters):
            return of(thing)
        if isinstance(thing, Module) and thing.contents is not None:
            return element(of(thing.contents), None)
        return SAME

    def draws_samples(self, loader: Loader) -> bool:
        """Whether ranks whose generators are not at the same place get other samples of a loader, or another order."""
        find = Finder(self.method_of, self.named_at_top)
        return draws_apart(loader, self.found.datasets.get(loader.call), find)

    def counts_samples(self, node: ast.Assign | ast.AugAssign) -> bool:
        """Whether a statement makes a number of what it was for the sample before."""
        for context in reversed(self.contexts):
            if context.how != "rows" or not takes_each(context.node):
                return False
            over = self.value(context.node.iter, context.frame)
            counted = counts_to(context.node.iter)
            if counted is not None and self.value(counted, context.frame).kind == "size":
                over = Value("rows")
            if takes_samples(over) and goes_on(context.node, node):
                return True
        return False

    def with_parts(self, batch: Value, loader: Loader) -> Value:
        """A batch as torch collates it, with how many dimensions its tensors have."""
        parts = dimensions_of_batches(loader.call, loader.script, tuple(self.scripts))
        whole = dict(parts).get(None)
        return replace(batch, dimensions=whole) if whole is not None else replace(batch, parts=parts)

    def of_layout(self, part: Part, loaders: frozenset[Loader]) -> Value:
        """What a batch holds, or a part of it, as its collate function lays it out."""
        if isinstance(part, tuple):
            keys = part.keys if isinstance(part, Keyed) else range(len(part))
            known: dict[object, Value] = {
                key: self.of_layout(each, loaders) for key, each in zip(keys, part, strict=True)
            }
            return of(Items("dict" if isinstance(part, Keyed) else "tuple", known))
        if isinstance(part, Padded):
            return Value(along(part.samples), loaders, batches=tuple(loaders))
        if isinstance(part, Concatenated | Offsets):  # some rows for each sample, not as many for each
            return Value("picked", loaders, reason=CONCATENATED if isinstance(part, Concatenated) else OFFSETS)
        if part in COLUMNS:
            return Value("rows", loaders, host=True)
        return Value("batch", loaders, batches=tuple(loaders))


def run_over_by(script: Script, loop: ast.For) -> Iterator[ast.AST]:
    """The parts of what a loop runs over, and of what it is made of before it in the same block, where they are still
    the same: `bar = tqdm(loader)`."""
    yield from ast.walk(loop.iter)
    made = bindings(script, script.scope(loop)).get(loop.iter.id, []) if isinstance(loop.iter, ast.Name) else []
    statement = script.parents[made[0]] if len(made) == 1 and isinstance(made[0], ast.Call) else None
    block = getattr(script.parents[loop], "body", [])
    if not isinstance(statement, ast.Assign) or len(statement.targets) > 1 or not {statement, loop} <= {*block}:
        return
    between = block[block.index(statement) : block.index(loop)]
    stored = [each.id for part in between for each in ast.walk(part) if is_stored(each)]
    if not isinstance(statement.targets[0], ast.Name) or stored.count(statement.targets[0].id) != 1:
        return
    for each in ast.walk(made[0]):  # an entry or attribute may change with any call
        if (len(between) == 1 or isinstance(each, ast.Name)) and not names_in(each) & {*stored}:
            yield each


def is_stored(node: ast.AST) -> TypeGuard[ast.Name]:
    """Whether it is a name that gets a value."""
    return isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load)


def takes_each(node: ast.AST) -> TypeGuard[ast.For | ast.comprehension]:
    """Whether a loop has a variable that takes one thing after the other."""
    return isinstance(node, ast.For | ast.comprehension)


def name_of(function: ast.expr) -> str:
    """The name of a function; "" where it is no name alone."""
    return function.id if isinstance(function, ast.Name) else ""


def is_call(node: ast.AST | None) -> TypeGuard[ast.Call]:
    """Whether a function was called by a call that is written down."""
    return isinstance(node, ast.Call)


def is_iter(node: ast.AST) -> TypeGuard[ast.Call]:
    """Whether it is `iter(…)`."""
    return isinstance(node, ast.Call) and name_of(node.func) == "iter"


def is_length(node: ast.AST) -> bool:
    """Whether it is `len(…)`."""
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "len"


def may_be_several(script: Script, loop: ast.AST, over: Value) -> bool:
    """Whether nothing says that a loop runs over one tensor rather than over several: `for out in outputs`."""
    inner = [each for thing in over.only(Iteration) if isinstance(thing, Iteration) for each in thing.inner]
    names = ast.walk(loop.iter) if isinstance(loop, ast.For) else ()
    return not any(each.kind in LOCAL_ROWS - {"batch"} for each in inner) and not any(
        is_tensor_here(script, name, lambda _, __: False) for name in names if isinstance(name, ast.Name)
    )
