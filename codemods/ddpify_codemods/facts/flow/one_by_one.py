"""Follows batches that next() takes: `batches = iter(loader)`, `x, y = next(batches)`."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TypeGuard

from ..called_modules import last_name
from ..loaders import is_false, seen
from ..origins import PASSES_ON
from ..script import Script
from .draws import LIBRARIES
from .frames import Frame, Pass, Problem, Site, ancestors
from .joined import Together
from .state import Context
from .values import DRAWN, UNEVEN, Generated, Iteration, Loader, Value, entries, made_of

BY_NEXT = "batches are taken one by one with next()"


def shuffles(loader: Loader) -> bool:
    """Whether the call that makes a loader may say that it loads in a random order."""
    shown = seen(loader.script, loader.call)
    return shown is None or not is_false(shown.shuffle)


class OneByOne(Together):
    """What iterators of loaders give, and in which loops."""

    def loaders_in(self, *values: Value) -> frozenset[Loader]:
        """The loaders that a loop over some of the values takes batches from."""
        found: set[Loader] = set()
        for value in values:
            for thing in value.things:
                if isinstance(thing, Loader):
                    found.add(thing)
                elif isinstance(thing, Generated):
                    found |= thing.loaders
                elif isinstance(thing, Iteration):
                    found |= self.loaders_in(*thing.inner)
        return frozenset(found)

    def each_of(self, over: Value, node: ast.expr) -> Value:
        raise NotImplementedError

    def named_at_top(self, node: ast.expr, script: Script) -> Value:
        raise NotImplementedError

    def came(self, node: ast.AST, loader: Loader, sites: list[Site], trains: bool, frame: Frame) -> None:
        raise NotImplementedError

    def one_by_one(self, node: ast.Call, over: Value, frame: Frame) -> None:
        """An iterator is made, and not for a loop alone, which takes batches as those of its loader."""
        if is_run_over(frame.script, node):
            return
        site = node.args[0]
        sites = [Site(frame.script, site)] if is_site(site) else []
        for loader in self.loaders_in(over):
            if self.status.get(loader) in UNEVEN:
                self.found.problems.append(Problem(frame.script, node, BY_NEXT, frozenset({loader})))
            trains = site in self.by_next.iterated and self.status.get(loader) == "training"
            self.came(node, loader, sites, trains, frame)
            if trains:  # its workers are seeded here
                self.began = set(LIBRARIES)
                self.begins(frame)
            if trains and (loop := enclosing_loop(node, frame)) is not None and frame.statement is not None:
                here = ast.unparse(site)
                self.found.passes.add(Pass(frame.script, frame.statement, loader, here, loop, "", frame.script))

    def next_batch(self, over: Value, node: ast.expr, frame: Frame) -> Value:
        """What next() takes of an iterator."""
        loaders = self.loaders_in(over)
        loop = enclosing_loop(node, frame)
        if loop is not None and loaders and all(self.status.get(each) == "training" for each in loaders):
            known = self.found.by_next.loops.get(loop, frozenset())
            self.found.by_next.loops[loop] = known | loaders
        found = self.each_of(over, node)
        apart = {each for each in loaders if self.status.get(each) == "whole" and self.is_drawn_apart(each, found)}
        self.found.drawn_batches |= apart
        return made_of("unknown", [found, Value("unknown", reason=DRAWN)]) if apart else found

    def is_drawn_apart(self, loader: Loader, found: Value) -> bool:
        """Whether each rank takes another batch of an evaluation that all go through: its samples, or their order, are
        drawn by a generator that each rank has used for its own samples."""
        own_generator = any(word.arg == "generator" for word in loader.call.keywords)
        ordered = own_generator or not shuffles(loader) or "torch" not in self.began & self.drawn
        return not ordered or any(each.reason == DRAWN for each in entries([found]))

    def begins(self, frame: Frame) -> None:
        """A pass over batches of training begins; on some ways, the first one, or the first since a seed."""
        self.may_have_begun = True
        loops = list(loops_around(frame))
        if frame.statement is not None and (not self.has_begun or (self.seeded_again and self.first_pass not in loops)):
            outside = [each for each in loops if each not in self.making]
            self.first_pass = outside[-1] if outside else (frame.script, frame.statement)
            self.found.first_passes[self.first_pass] = None
            self.has_begun = True
        elif frame.statement is not None and self.first_pass in self.seeded_again:  # in each of its turns
            self.found.first_passes.pop(self.first_pass, None)  # type: ignore[arg-type]
            self.found.first_passes[frame.script, frame.statement] = None
        self.seeded_again = set()

    def trains_by_next(self, loader: Loader) -> bool:
        """Whether a loader whose batches are trained on comes to iter(), and not to a loop."""
        for key, each in self.known_loaders.items():
            node = key[1] if isinstance(key, tuple) else None
            if each is loader and isinstance(node, ast.expr) and self.is_iterated(node):
                self.found.by_next.iterated.add(node)
                return True
        return False

    def is_iterated(self, node: ast.expr) -> bool:
        """Whether an expression is the argument of iter(), from which next() takes batches."""
        script = next((each for each in self.scripts if node in each.parents), None)
        parent = None if script is None else script.parents[node]
        is_iter = isinstance(parent, ast.Call) and isinstance(parent.func, ast.Name) and parent.func.id == "iter"
        return script is not None and parent is not None and is_iter and not is_run_over(script, parent)

    @contextmanager
    def taking(self, node: ast.AST, frame: Frame) -> Iterator[None]:
        """Be in a loop in which next() takes the batches of training."""
        loaders = frozenset(each for each in self.by_next.loops.get(node, ()) if self.status.get(each) == "training")
        if not loaders:
            yield
            return
        self.contexts.append(Context("batches", loaders, node, frame))
        self.began = set(LIBRARIES)
        self.begins(frame)
        try:
            yield
        finally:
            self.contexts.pop()


def loaders_counted(value: Value) -> frozenset[Loader]:
    """The loaders whose batches `len` counts, also by a bar over one, `bar = tqdm(loader)`; what else a bar runs over,
    `tqdm(enumerate(loader), total=n)`, has no length, and it says the one that it is given."""
    bars = [thing for thing in value.only(Iteration) if isinstance(thing, Iteration) and thing.how == "bar"]
    found = {thing for thing in value.things if isinstance(thing, Loader)}
    return frozenset(found).union(*(loaders_counted(inner) for bar in bars for inner in bar.inner))


def is_site(node: ast.AST) -> TypeGuard[ast.Name | ast.Attribute | ast.Subscript]:
    """Whether a loader may come to a loop by an expression: a name, an attribute, an entry under a constant key."""
    return isinstance(node, ast.Name | ast.Attribute) or (
        isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Constant)
    )


def is_run_over(script: Script, node: ast.AST) -> bool:
    """Whether something is made for a loop alone: `for x, y in iter(loader):`, also within `enumerate(…)`."""
    parent = script.parents[node]
    while isinstance(parent, ast.Call) and last_name(parent.func) in PASSES_ON and node in parent.args:
        node, parent = parent, script.parents[parent]
    return isinstance(parent, ast.For | ast.AsyncFor | ast.comprehension) and parent.iter is node


def loops_around(frame: Frame) -> Iterator[tuple[Script, ast.stmt]]:
    """The loops that are being followed, the innermost first."""
    place: Frame | None = frame
    while place is not None:
        if place.statement is not None:
            for each in (place.statement, *ancestors(place.script, place.statement, place.node)):
                if isinstance(each, ast.For | ast.AsyncFor | ast.While):
                    yield place.script, each
        place = place.caller


def enclosing_loop(node: ast.AST, frame: Frame) -> ast.For | ast.While | None:
    """The innermost loop that an expression is in, or a call of the function that it is in."""
    place: Frame | None = frame
    at: ast.AST | None = node
    while place is not None and at is not None:
        for parent in place.script.ancestors(at):
            if isinstance(parent, ast.For | ast.While):
                return parent
            if isinstance(parent, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
                break
        at = place.call
        place = place.caller
    return None
