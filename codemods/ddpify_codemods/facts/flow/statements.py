"""Follows the statements of a program, in the order in which they run."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from dataclasses import replace
from functools import partial

from ..no_group import never_run
from .after_loops import is_of_last_turn
from .apex import scaled_for
from .branches import Names, asks_training, leaves
from .calls import is_without_gradients
from .exhaustive import may_leave
from .frames import Frame
from .generators import Generators
from .handlers import (
    GOES_ON,
    Trying,
    can_end,
    enters_suppressing,
    goes_on,
    is_of_memory,
    is_repeated,
    leaves_loop,
    stops,
    suppresses,
)
from .held_values import additive
from .kept_between_turns import kept_between_turns
from .operations import runs_over_samples
from .own_changes import changes_alone
from .phases import has_loader, phases, written_down
from .raised import raised_by, read_files
from .state import Suppressed
from .truth import truth
from .values import (
    COUPLES,
    LOCAL_ROWS,
    NOTHING,
    SAME,
    SEVERAL,
    TAKEN,
    UNEVEN,
    Function,
    Generated,
    Instance,
    Items,
    Library,
    Parameters,
    Value,
    made_of,
    of,
    root_of,
)

_ENDS_EARLY = "a loop over a rank's part of an evaluation ends before its end"
_TURNS = 8  # of a loop that go on handing on numbers of the ranks: `before = last; last = loss.item()`


class Follower(Generators):
    """Follows a program once; what it finds out is in `found`."""

    def run(self) -> None:
        """Follow the program from its first line."""
        entry = self.scripts[0]
        frame = self.module_frame(entry)
        self.block(entry.tree.body, frame)
        self.end_gradients()
        self.end_weighing()
        self.end_layers()
        self.end_datasets()
        self.end_parts()
        self.end_untrained()

    def block(self, body: Sequence[ast.stmt], frame: Frame) -> None:
        dead = never_run(frame.script)
        ways = self.called_either_way
        for place, statement in enumerate(body):
            if frame.left:
                break
            if statement in dead:
                continue
            before, frame.statement = frame.statement, statement
            self.count()
            self.comes_to(statement)
            self.called_either_way = None
            self.statement(statement, frame)
            frame.statement = before
            here, rest = self.called_either_way, body[place + 1 :]
            ways = here or ways
            if here and self.in_forward and rest and may_leave(statement) and not asks_training(statement):
                self.at_times_only(here, statement, frame, partial(self.block, rest, frame))
                break
        self.called_either_way = ways

    def statement(self, node: ast.stmt, frame: Frame) -> None:
        method = getattr(self, f"do_{type(node).__name__.lower()}", None)
        if isinstance(node, ast.Import | ast.ImportFrom) and frame.node is self.scripts[0].tree:
            self.importing = node
        if method is not None:
            method(node, frame)
        if self.importing is node:
            self.importing = None

    # Definitions and imports

    def do_functiondef(self, node: ast.FunctionDef, frame: Frame) -> None:
        value = of(Function(node, frame.script, frame))
        for decorator in reversed(node.decorator_list):
            for thing in self.value(decorator, frame).only(Function):
                assert isinstance(thing, Function)
                decorated = self.enter(thing, decorator, [value], {}, frame)
                value = decorated if decorated.only(Function) else value
        frame.names[node.name] = value

    def do_asyncfunctiondef(self, node: ast.AsyncFunctionDef, frame: Frame) -> None:
        frame.names[node.name] = of(Function(node, frame.script, frame))

    def do_classdef(self, node: ast.ClassDef, frame: Frame) -> None:
        frame.names[node.name] = of(self.class_of(node, frame.script))
        own = Frame(frame.script, node, {}, frame)
        self.block([part for part in node.body if isinstance(part, ast.Assign | ast.AnnAssign)], own)
        self.class_attributes[node] = own.names

    def do_import(self, node: ast.Import, frame: Frame) -> None:
        for alias in node.names:
            other = self.local_module(alias.name)
            name = alias.asname or alias.name.split(".")[0]
            if other is not None:
                frame.names[name] = self.module_value(other, alias)
            else:
                frame.names[name] = of(Library(alias.name if alias.asname else name))

    def do_importfrom(self, node: ast.ImportFrom, frame: Frame) -> None:
        other = self.imported_script(frame.script, node)
        for alias in node.names:
            name = alias.asname or alias.name
            if other is not None and alias.name == "*":
                frame.names.update(self.executed(other).names)
            elif other is not None and alias.name in self.executed(other).names:
                frame.names[name] = self.executed(other).names[alias.name]
            elif (inner := self.imported_script(frame.script, node, alias.name)) is not None:
                frame.names[name] = self.file_value(inner)
            elif other is None and not node.level:
                frame.names[name] = of(Library(f"{node.module}.{alias.name}"))

    def do_global(self, node: ast.Global | ast.Nonlocal, frame: Frame) -> None:
        frame.outside.update(node.names)

    do_nonlocal = do_global

    # Assignments

    # Control

    def do_expr(self, node: ast.Expr, frame: Frame) -> None:
        if isinstance(node.value, ast.Call) and node.value not in self.of_all:
            self.call(node.value, frame, alone=True)
        else:
            self.value(node.value, frame)

    def do_break(self, node: ast.Break, frame: Frame) -> None:
        loop = next((each for each in frame.script.ancestors(node) if isinstance(each, ast.For | ast.While)), None)
        for context in self.contexts:
            if context.node is loop and self.uneven(context):
                self.problem(frame, node, _ENDS_EARLY, context.loaders)
        self.moved_at_break |= self.leaves_with_moves()
        self.left_early.append(self.gradients)

    def do_return(self, node: ast.Return, frame: Frame) -> None:
        for context in self.contexts:
            if context.frame is frame and self.uneven(context):
                self.problem(frame, node, _ENDS_EARLY, context.loaders)
        frame.returns.append(self.value(node.value, frame) if node.value else NOTHING)
        self.moved_at_return |= self.leaves_with_moves()

    def do_for(self, node: ast.For, frame: Frame) -> None:
        over, generated = self.run_over(node, frame)
        own = self.turns(node.iter, over, frame) or self.is_alone(node)
        with self.deciding(own), self.behind_loop():
            self.go_through(node, over, generated, frame)
        if own:
            self.left_own(node, frame)
        self.block(node.orelse, frame)

    do_asyncfor = do_for

    def go_through(self, node: ast.For, over: Value, generated: Generated | None, frame: Frame) -> None:
        """Follow the turns of a loop."""
        if generated is not None:
            self.over_generator(node, over, generated, frame)
            self.mark(node, over, frame)
            return
        written = written_down(frame.script, node.iter)
        given = [self.value(each, frame) for each in written if len(written) <= 4]
        if not all(
            isinstance(part, ast.Constant) or has_loader(each) for part, each in zip(written, given, strict=False)
        ):
            given = []
        if turns := given or phases(over):
            self.over_phases.add(node)
            for value in (*turns, *turns):  # each phase for itself, and once more
                self.assign(node.target, value, frame)
                self.block(node.body, frame)
            return
        if self.changes_samples(node, frame):
            return
        first = dict(frame.names)
        with self.looping(node, over, frame), self.taking(node, frame):
            known: dict[object, object] = {}
            for count in range(_TURNS):
                before = dict(frame.names)
                if count >= 2 and self.kinds(frame) == known:
                    break
                known = self.kinds(frame)
                self.assign(node.target, self.each_of(over, node.iter), frame)
                with self.keeping(before):
                    self.turn(node.body, frame, always=bool(over.only(Parameters)))
                if self.in_forward and self.in_rows():
                    self.carried(before, frame)
                if count or not self.loaders_in(over):  # a loader has a batch
                    self.merge(frame, before)
                self.carried_on(node, before, frame)
        if runs_over_samples(over) and not self.in_forward:
            self.of_samples(node, first, frame)
        elif self.may_run_over_several(node, over, frame) and not self.loaders_in(over):
            self.of_several(node, first, frame)
        self.mark(node, over, frame)

    def changes_samples(self, loop: ast.For, frame: Frame) -> bool:
        """Whether a loop only changes each sample of a batch by itself, which leaves something for each of them."""
        found = None if self.in_forward else changes_alone(frame.script, loop)
        if found is None or found.inner & frame.outside:
            return False
        if self.value(loop.iter.args[0], frame).kind != "size":  # type: ignore[attr-defined]
            return False
        tensors = {name: self.value(node, frame) for name, node in found.taken.items()}
        alone = all(
            each.kind == "rows" or (each.kind == "batch" and name in found.tensors) for name, each in tensors.items()
        )
        others = [self.value(each, frame) for each in found.others]
        if not alone or any(each.merged or each.whole or len(each.batches) > 1 for each in tensors.values()):
            return False
        if any(each.is_local or each.things or each.pending for each in others):
            return False
        self.found.drawn_first |= found.draws - self.found.seeded
        self.drawn |= found.draws
        for name, node in found.changed.items():
            made = made_of("rows", tensors.values(), host=tensors[name].host)
            self.assign(
                node, replace(made, dimensions=tensors[name].dimensions, at_least=tensors[name].at_least), frame
            )
        for name in found.inner:
            frame.names[name] = made_of("unknown", tensors.values(), reason=TAKEN)
        return True

    def of_samples(self, loop: ast.For, before: Names, frame: Frame) -> None:
        """A loop over the samples of a batch leaves what it has made of the last of them, or added up over them."""
        for name, value in frame.names.items():
            if value.things or not value.is_local or value == before.get(name):
                continue
            if is_of_last_turn(frame.script, loop, name):
                frame.names[name] = made_of("unknown", [value], reason=TAKEN)
            elif value.kind == "mean":
                frame.names[name] = replace(value, kind="sum")

    def of_several(self, loop: ast.For, before: Names, frame: Frame) -> None:
        """A loop over samples, or over several tensors of them, leaves a sum or a mean."""
        for name, value in frame.names.items():
            adds = value.kind == "mean" and value.forwards and value != before.get(name)
            if adds and not is_of_last_turn(frame.script, loop, name):
                frame.names[name] = made_of("unknown", [value], reason=SEVERAL)

    def carried(self, before: Names, frame: Frame) -> None:
        """A loop over the samples of a batch, in a model, hands something from one of them to the next."""
        for name, value in frame.names.items():
            if name in before and not before[name].is_local and value.is_local and not value.things:
                frame.names[name] = made_of("unknown", [value], reason=COUPLES)

    def carried_on(self, node: ast.For, before: Names, frame: Frame) -> None:
        """A loop over a rank's part of an evaluation hands numbers from one batch to the next."""
        if self.contexts and self.contexts[-1].node is node and self.by_batches(self.contexts[-1]):
            if kept := kept_between_turns(node):
                reason = f"`{kept}` goes on from one batch to the next"
                self.problem(frame, node.iter, reason, self.contexts[-1].loaders)
            for name, value in frame.names.items():
                if name in before and not before[name].is_local:
                    frame.names[name] = self.added_up(value)

    def mark(self, node: ast.For | ast.While, over: Value, frame: Frame) -> None:
        """Note what a loop over batches has added up."""
        if not self.loaders_in(over) and not self.by_next.loops.get(node):
            self.found.over_others.add(node)
            return
        waiting = self.waiting()
        for owner in self.visible(frame):
            for name, value in owner.names.items() if owner not in waiting else ():
                if value.pending is None and additive(value) is not None and not value.only(Instance):
                    owner.names[name] = replace(value, pending=(node, name))
                elif self.is_left(value, name, node, owner):
                    owner.names[name] = made_of("unknown", [value], reason="it is of the last batch alone")

    def is_left(self, value: Value, name: str, loop: ast.For | ast.While, frame: Frame) -> bool:
        """Whether a name stands for samples of the last batch of an evaluation, of which ranks have different ones."""
        uneven = value.kind in LOCAL_ROWS and any(self.status.get(each) in UNEVEN for each in value.loaders)
        return uneven and not value.things and is_of_last_turn(frame.script, loop, name)

    def visible(self, frame: Frame) -> list[Frame]:
        """A frame and those around it."""
        return [frame, *(self.visible(frame.outer) if frame.outer is not None else [])]

    def do_while(self, node: ast.While, frame: Frame) -> None:
        with self.taking(node, frame), self.behind_loop():
            known: dict[object, object] = {}
            for count in range(_TURNS):
                if count >= 2 and self.kinds(frame) == known:
                    break
                own = self.decided(node.test, self.value(node.test, frame), frame) or self.is_alone(node)
                before, known = dict(frame.names), self.kinds(frame)
                with self.keeping(before), self.deciding(own):
                    self.turn(node.body, frame)
                self.merge(frame, before)
                if own:
                    self.left_own(node, frame)
        self.mark(node, SAME, frame)
        self.block(node.orelse, frame)

    def turn(self, body: Sequence[ast.stmt], frame: Frame, always: bool = False) -> None:
        """Go through a loop once, or not at all; always: whether that cannot be."""
        before, around, self.left_early = self.gradients, self.left_early, []
        self.block(body, frame)
        before = before.without_turns(self.gradients)
        for each in (*self.left_early, *([] if always else [before])):
            self.gradients = self.gradients.or_else(each)
        self.left_early = around

    def do_continue(self, node: ast.Continue, frame: Frame) -> None:
        self.left_early.append(self.gradients)

    def do_with(self, node: ast.With, frame: Frame) -> None:
        quiet = any(self.is_without_gradients(item.context_expr, frame) for item in node.items)
        self.without_gradients += quiet
        values = []
        for item in node.items:
            value = self.value(item.context_expr, frame)
            values.append(value)
            entered = self.own_method(value, "__enter__", item.context_expr, [], frame)
            if item.optional_vars is not None:
                self.assign(item.optional_vars, value if entered is None else entered, frame)
        steps = self.backwards
        self.block(node.body, frame)
        if self.backwards > steps and self.takes_exceptions(node, values, frame):
            self.suppressed.append(Suppressed(frame, node))
            if is_repeated(frame.script, node) or self.is_called_again(frame):
                self.nothing_may_follow(frame)
        for value in values:
            self.own_method(value, "__exit__", node, [SAME] * 3, frame)
        for item in node.items:
            self.unscales(item.context_expr, frame)
        self.without_gradients -= quiet

    do_asyncwith = do_with

    def takes_exceptions(self, node: ast.With, managers: Sequence[Value], frame: Frame) -> bool:
        """Whether `with` goes on after an exception in it."""
        script = frame.script
        if enters_suppressing(script, node) or any(suppresses(script, item.context_expr) for item in node.items):
            return True
        calls = [item.context_expr for item in node.items if isinstance(item.context_expr, ast.Call)]
        made = [each for call in calls for each in self.value(call.func, frame).only(Function)]
        instances = (each for value in managers for each in value.only(Instance) if isinstance(each, Instance))
        exits = (self.method_of(each.cls, "__exit__", None) for each in instances)
        return any(isinstance(each, Function) and goes_on(each.script, each.node) for each in (*made, *exits))

    def unscales(self, node: ast.expr, frame: Frame) -> None:
        """`with amp.scale_loss(loss, optimizer)` ends: apex looks at gradients, and skips a step by what it sees."""
        if isinstance(node, ast.Call):
            given = [self.value(each, frame) for each in (*node.args[1:2], *(w.value for w in node.keywords))]
            optimizers = scaled_for(self.value(node.func, frame), given)
            self.takes({root_of(module).made for each in optimizers for module in each.modules})

    def is_without_gradients(self, node: ast.expr, frame: Frame) -> bool:
        """Whether `with` makes computations that are not differentiated: `set_grad_enabled(phase == "train")`,
        `torch.enable_grad() if trains else torch.no_grad()`."""
        if isinstance(node, ast.Call) and ast.unparse(node.func).endswith("set_grad_enabled") and len(node.args) == 1:
            return truth(node.args[0], self.value(node.args[0], frame)) is False
        if isinstance(node, ast.IfExp) and (holds := truth(node.test, self.value(node.test, frame))) is not None:
            return is_without_gradients(node.body if holds else node.orelse)
        return is_without_gradients(node)

    def do_try(self, node: ast.Try, frame: Frame) -> None:
        before, gradients, steps = dict(frame.names), self.gradients, self.backwards
        body, since, ended = Trying(self.loops_over_batches()), self.work, self.ended
        self.suppressed = [each for each in self.suppressed if each.node is not node or each.frame is not frame]
        self.trying.append(body)
        with self.keeping(before):
            self.block(node.body, frame)
        self.trying.pop()
        trained, raised_again = self.backwards > steps, self.ended > ended
        calls = [call for call, (_, last) in self.found.visits.items() if last > since]
        body.raises |= raised_by(calls)
        self.untrained |= set() if trained else {node}
        body.reads = read_files(calls) or node in self.untrained
        for handler in node.handlers:
            steps = self.backwards
            first, left = frame.names, self.gradients
            frame.names = {**before, **{name: value for name, value in first.items() if name not in before}}
            self.gradients = left.or_else(gradients)
            self.block(handler.body, frame)
            again = self.backwards > steps or raised_again or self.is_tried_again(node, handler, frame)
            ends_other = handler in self.found.ended and not trained and not is_of_memory(frame.script, handler)
            if ends_other:
                self.problem(frame, node, GOES_ON)
            elif trained and not stops(frame.script, handler):
                ends = can_end(frame.script, handler, node, body, self.scripts)
                taken = Suppressed(frame, node, handler if ends else None, isinstance(handler.body[-1], ast.Return))
                if again:
                    self.may_not_follow(taken)
                elif handler not in self.found.ended:
                    self.suppressed.append(taken)
            self.gradients = self.gradients.or_else(left)
            self.merge(frame, first, ends=leaves(node.body), other_ends=leaves(handler.body))
        self.block(node.orelse, frame)
        self.block(node.finalbody, frame)

    do_trystar = do_try

    def is_tried_again(self, node: ast.Try, handler: ast.ExceptHandler, frame: Frame) -> bool:
        """Whether a loop comes to a `try` again after an exception, or a backward pass stands in it itself."""
        if is_repeated(frame.script, node) and not leaves_loop(frame.script, handler):
            return True
        here = (each for part in node.body for each in ast.walk(part))
        return any(each in self.found.backwards for each in here) or self.is_called_again(frame)

    def is_called_again(self, frame: Frame) -> bool:
        """Whether a loop runs over one of the calls by which the program came to a function."""
        place = frame
        while place.caller is not None and place.call is not None:
            if place.call in place.caller.script.parents and is_repeated(place.caller.script, place.call):
                return True
            place = place.caller
        return False

    def raises(self, name: str) -> None:
        """The program raises an exception itself, which a `try` around may take."""
        for each in self.trying:
            each.raises.add(name)

    def do_raise(self, node: ast.Raise, frame: Frame) -> None:
        """What the run ends with is computed before: `raise SystemExit(main())`."""
        if node.exc is not None:
            error = node.exc.func if isinstance(node.exc, ast.Call) else node.exc
            name = frame.script.qualified(error)
            self.raises("" if name in frame.script.defined else name)
        if isinstance(node.exc, ast.Call) and ast.unparse(node.exc.func) == "SystemExit":
            self.value(node.exc, frame)

    def do_assert(self, node: ast.Assert, frame: Frame) -> None:
        self.raises("AssertionError")
        self.asserts(node.test, False, frame, node)

    def do_delete(self, node: ast.Delete, frame: Frame) -> None:
        for target in node.targets:
            if isinstance(target, ast.Name):
                frame.names.pop(target.id, None)
            for thing in self.value(target.value, frame).things if isinstance(target, ast.Subscript) else ():
                if isinstance(thing, Items):
                    thing.in_order = False
