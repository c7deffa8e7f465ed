"""Follows loops over the program's own generators: `for x, y in logger.log_every(loader, 10):`.

A generator and the loop over it take turns: what stands in the loop runs where the generator yields.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import lru_cache

from ..script import KEPT, Script
from .assignments import Assignments
from .branches import Names
from .endless import Endless, endless
from .frames import Frame, Pass
from .libraries import is_bar
from .one_by_one import BY_NEXT
from .state import Consumer, Context
from .values import (
    NOT_FOLLOWED,
    SAME,
    UNEVEN,
    Function,
    Generated,
    Instance,
    Iteration,
    Library,
    Loader,
    Thing,
    Value,
    of,
)


class Generators(Assignments):
    """What generators of the program give to loops over them."""

    def turn(self, body: Sequence[ast.stmt], frame: Frame, always: bool = False) -> None:
        raise NotImplementedError

    def carried_on(self, node: ast.For, before: Names, frame: Frame) -> None:
        raise NotImplementedError

    def run_over(self, loop: ast.For, frame: Frame) -> tuple[Value, Generated | None]:
        """What a loop runs over, and the generator of the program that it is."""
        call = self.innermost(loop.iter, frame)
        self.awaited.append(call)
        over = self.value(loop.iter, frame)
        self.awaited.pop()
        over = self.of_own_iteration(self.with_iter(over, loop, frame), loop.iter, frame)
        if _is_endless(over):
            self.problem(frame, loop, NOT_FOLLOWED, self.loaders_in(over))
        found = _generators(over)
        return over, found[0] if len(found) == 1 else None

    def innermost(self, node: ast.expr, frame: Frame) -> ast.expr:
        """The call that what a loop runs over begins with: `enumerate(batches(loader))`."""
        while isinstance(node, ast.Call) and node.args:
            libraries = self.value(node.func, frame).only(Library)
            if not any(isinstance(each, Library) and _hands_on(each.name) for each in libraries):
                break
            node = node.args[0]
        return node

    def with_iter(self, over: Value, loop: ast.For, frame: Frame) -> Value:
        """What a loop runs over, with the generators by which objects of the program are run over: `__iter__`."""
        things: set[Thing] = set()
        for thing in over.things:
            made: Thing = thing
            if isinstance(thing, Iteration) and any(map(self.is_generated, thing.inner)):
                made = Iteration(thing.how, tuple(self.with_iter(each, loop, frame) for each in thing.inner))
            elif (method := self.iter_of(thing)) is not None:
                made = Generated(method, loop.iter, (), {}, frame)
            things.add(made)
        return replace(over, things=frozenset(things)) if things != over.things else over

    def iter_of(self, thing: Thing) -> Function | None:
        """The generator by which an object of the program gives what it holds."""
        if not isinstance(thing, Instance) or self.in_forward:
            return None
        method = self.method_of(thing.cls, "__iter__", of(thing))
        return method if method is not None and self.can_be_followed(method, [of(thing)]) else None

    def is_generated(self, value: Value) -> bool:
        """Whether a loop over a value may take turns with a generator of the program."""
        return any(isinstance(thing, Generated) or self.iter_of(thing) is not None for thing in value.things)

    def can_be_followed(self, function: Function, given: Sequence[Value]) -> bool:
        """Whether a generator gets a loader, and yields in loops alone."""
        return yields_in_loops(function.script, function.node) and bool(self.loaders_within(given))

    def enter(
        self, function: Function, node: ast.AST, args: list[Value], keywords: dict[str, Value], frame: Frame
    ) -> Value:
        if self.awaited and node is self.awaited[-1] and not self.in_forward:
            given = [*args, *keywords.values(), *([function.owner] if function.owner is not None else [])]
            if self.can_be_followed(function, given):
                return of(Generated(function, node, tuple(args), keywords, frame))
        again = endless(function.script, function.node) if function.owner is None and not self.in_forward else None
        if again is not None and isinstance(node, ast.Call):
            names = [each.arg for each in (*function.node.args.posonlyargs, *function.node.args.args)]
            value = {**dict(zip(names, args, strict=False)), **keywords}.get(again.loader, SAME)
            if value.things and all(isinstance(thing, Loader) for thing in value.things):
                self.goes_on(function.script, again, value, node, frame)
                return of(Iteration("endless", (value,), again.part))
        result = super().enter(function, node, args, keywords, frame)
        yields = function.node in function.script.generators and not result.things
        loaders = self.loaders_within([*args, *keywords.values()]) if yields else set()
        return of(Iteration(NOT_FOLLOWED, (result,))) if loaders and not self.in_forward else result

    def goes_on(self, script: Script, again: Endless, value: Value, node: ast.Call, frame: Frame) -> None:
        """A generator will give the batches of loaders without end, one by one, to next()."""
        self.found.scripts[again.gives] = script
        self.found.loops.setdefault(again.gives, set()).update(self.loaders_in(value))
        for loader in self.loaders_in(value):
            if self.status.get(loader) in UNEVEN:
                self.problem(frame, node, BY_NEXT, frozenset({loader}))
            if self.status.get(loader) == "training":
                passed = Pass(script, again.gives, loader, again.loader, again.loop, "", script)
                self.found.passes.add(passed)

    def over_generator(self, loop: ast.For, over: Value, generated: Generated, frame: Frame) -> None:
        """Follow a generator, and the loop over it where it yields."""
        self.found.loops.setdefault(loop, set())  # it is none over epochs
        self.found.scripts[loop] = frame.script
        consumer = Consumer(generated, loop, over, frame, len(self.contexts), len(self.stack))
        self.consumers.append(consumer)
        called_in = generated.called_in
        assert isinstance(called_in, Frame)
        super().enter(generated.function, generated.node, [*generated.args], {**generated.keywords}, called_in)
        self.consumers.pop()
        if not self.found.loops[loop]:
            del self.found.loops[loop]

    def yielded(self, consumer: Consumer, value: Value) -> None:
        """Follow the loop that takes what a generator yields."""
        loop, frame, generated = consumer.loop, consumer.frame, consumer.generated
        around = self.contexts[consumer.contexts :]
        generated.given = value
        generated.loaders = generated.loaders.union(*(each.loaders for each in around))
        self.found.loops[loop] |= generated.loaders
        with self.left_waiting(consumer, around):
            before = dict(frame.names)
            self.assign(loop.target, self.each_of(consumer.over, loop.iter), frame)
            with self.keeping(before):
                self.turn(loop.body, frame)
            if consumer.turns or not generated.loaders:  # a loader has a batch
                self.merge(frame, before)
            self.carried_on(loop, before, frame)
        consumer.turns += 1

    @contextmanager
    def left_waiting(self, consumer: Consumer, around: Sequence[Context]) -> Iterator[None]:
        """Leave a generator where it yields, for the loop over it; around: the loops that it is in there."""
        place = self.consumers.index(consumer)
        consumers, self.consumers = self.consumers, self.consumers[:place]
        stack, self.stack = self.stack, self.stack[: consumer.calls]
        contexts = self.contexts
        self.contexts = [*contexts, *(replace(each, node=consumer.loop, frame=consumer.frame) for each in around)]
        try:
            yield
        finally:
            self.consumers, self.stack, self.contexts = consumers, stack, contexts

    def waiting(self) -> list[Frame]:
        """The functions that are in a loop over the generator that is being followed."""
        return [each.frame for each in self.consumers]

    def kinds(self, frame: Frame) -> dict[object, object]:
        """What the variables are that a turn of a loop may change: of its function, and of those that wait."""
        frames = [frame, *self.waiting()]
        return {(id(each), name): (value.kind, value.is_none) for each in frames for name, value in each.names.items()}

    def on_yield(self, node: ast.Yield | ast.YieldFrom, frame: Frame) -> Value:
        consumer = self.consumers[-1] if self.consumers else None
        generated = consumer.generated if consumer is not None else None
        here = (frame.node, frame.call)
        if consumer is None or generated is None or here != (generated.function.node, generated.node):
            return super().on_yield(node, frame)
        self.yielded(consumer, self.value(node.value, frame))
        return SAME

    on_yieldfrom = on_yield


def _hands_on(name: str) -> bool:
    """Whether a function of a library gives to a loop what it runs over itself."""
    return name == "enumerate" or is_bar(name)


def _is_endless(over: Value) -> bool:
    """Whether a loop runs over a generator without end that was made before."""
    iterations = [thing for thing in over.only(Iteration) if isinstance(thing, Iteration)]
    return any(each.how == "endless" or any(map(_is_endless, each.inner)) for each in iterations)


@lru_cache(maxsize=KEPT)
def yields_in_loops(script: Script, function: ast.AST) -> bool:
    """Whether a function is a generator that yields in loops alone, and gets no answer."""
    if not isinstance(function, ast.FunctionDef) or function.decorator_list:
        return False
    yields = [each for each in (*script.find(ast.Yield), *script.find(ast.YieldFrom)) if script.scope(each) is function]
    return bool(yields) and all(_in_loop(script, each, function) for each in yields)


def _in_loop(script: Script, node: ast.AST, function: ast.AST) -> bool:
    """Whether `yield` is a statement of its own, in a loop of a function."""
    if isinstance(node, ast.YieldFrom) or not isinstance(script.parents[node], ast.Expr):
        return False
    for each in script.ancestors(node):
        if isinstance(each, ast.For | ast.While):
            return True
        if each is function:
            break
    return False


def _generators(over: Value) -> list[Generated]:
    """The generators that a loop runs over."""
    found: list[Generated] = []
    for thing in over.things:
        if isinstance(thing, Generated):
            found.append(thing)
        for inner in thing.inner if isinstance(thing, Iteration) else ():
            found += _generators(inner)
    return found
