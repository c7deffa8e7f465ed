"""Follows the statements of a program, in the order in which they run."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from dataclasses import replace

from ..no_group import never_run
from .after_loops import begins_in, is_of_last_turn, mentions
from .branches import Branches, Names, leaves
from .calls import is_without_gradients
from .frames import Frame, additive, local_entries
from .operations import combined, runs_over_samples
from .values import (
    ADDED,
    ADDITIVE,
    COUPLES,
    DRAWN,
    KEYED,
    LOCAL_ROWS,
    MIXED,
    NOTHING,
    PLACED,
    SAME,
    TAKEN,
    UNEVEN,
    Class,
    Function,
    Instance,
    Items,
    Library,
    Loader,
    Module,
    Parameters,
    Value,
    are_mixed,
    join,
    made_of,
    of,
)

_ENDS_EARLY = "a loop over a rank's part of an evaluation ends before its end"
_TURNS = 8  # of a loop that go on handing on numbers of the ranks: `before = last; last = loss.item()`


class Follower(Branches):
    """Follows a program once; what it finds out is in `found`."""

    def run(self) -> None:
        """Follow the program from its first line."""
        entry = self.scripts[0]
        frame = self.module_frame(entry)
        self.block(entry.tree.body, frame)
        self.end_gradients()
        self.end_weighing()

    def block(self, body: Sequence[ast.stmt], frame: Frame) -> None:
        dead = never_run(frame.script)
        for statement in body:
            if frame.left:
                return
            if statement in dead:
                continue
            before, frame.statement = frame.statement, statement
            self.count()
            self.statement(statement, frame)
            frame.statement = before

    def statement(self, node: ast.stmt, frame: Frame) -> None:
        method = getattr(self, f"do_{type(node).__name__.lower()}", None)
        if method is not None:
            method(node, frame)

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

    def do_assign(self, node: ast.Assign, frame: Frame) -> None:
        value = self.value(node.value, frame)
        for target in node.targets:
            self.assign(target, self.of_last_turn(value, target, node.value), frame, node.value)

    def of_last_turn(self, value: Value, target: ast.expr, source: ast.expr) -> Value:
        """The value that an object or a dict gets in each turn of a loop, where it does not go on from the last one."""
        if not isinstance(target, ast.Attribute | ast.Subscript) or value.kind not in ("sum", "size"):
            return value
        if mentions(source, target) or not any(self.status.get(each) in UNEVEN for each in value.loaders):
            return value
        return made_of("unknown", [value], reason="it is a number of the last batch alone")

    def do_annassign(self, node: ast.AnnAssign, frame: Frame) -> None:
        if node.value is not None:
            self.assign(node.target, self.value(node.value, frame), frame, node.value)

    def do_augassign(self, node: ast.AugAssign, frame: Frame) -> None:
        item = node.target.value if isinstance(node.target, ast.Subscript) else None
        into_tensor = item is not None and not self.value(item, frame).only(Items)
        before = self.value(item if into_tensor and item is not None else node.target, frame)
        added = self.value(node.value, frame)
        if any(isinstance(thing, Items) for thing in before.things):  # losses += [loss.item()]
            for thing in added.only(Items):
                assert isinstance(thing, Items)
                for entry in thing.all():
                    self.append(before, entry)
            if not added.only(Items):
                self.append(before, self.keyed(added) if isinstance(node.op, ast.BitOr) else added)
            return
        uneven = [context for context in self.contexts if self.uneven(context)]
        by_batches = len(uneven) == 1 and self.by_batches(uneven[0])
        if by_batches and begins_in(uneven[0].node, node):
            uneven, by_batches = [], False
        if uneven and not self.in_forward and not self.in_rows():
            if by_batches and isinstance(node.op, ast.Add | ast.Sub):
                added = self.of_each_batch(added, uneven[0].loaders)
            elif not added.is_local:
                added = self.counted(uneven[0])
        rows = any(context.how == "rows" for context in self.contexts)
        if rows and isinstance(node.op, ast.Add | ast.Sub) and added.kind in ("same", "mean", *LOCAL_ROWS):
            added = made_of("sum", [added, self.row_value()], host=added.host)
        if into_tensor and isinstance(item, ast.Name | ast.Attribute) and isinstance(node.target, ast.Subscript):
            index = self.value(node.target.slice, frame)
            result = combined(node.op, before, added) if added.is_local else before
            if index.is_local and not rows:
                result = made_of("unknown", [index, added, before])
            self.assign(item, result, frame)
            return
        result = combined(node.op, before, added)
        self.assign(node.target, self.added_up(result) if by_batches else result, frame, node.value)

    def of_each_batch(self, value: Value, loaders: frozenset[Loader]) -> Value:
        """What is added for each of a rank's batches, which are those of one process: whatever it is, a sum of all."""
        if not value.is_local:
            return Value("sum", loaders, host=value.host)
        return replace(value, kind="sum") if value.kind == "mean" and value.host and not value.reason else value

    def added_up(self, value: Value) -> Value:
        """The value, with the note that it is no batch's own."""
        return replace(value, reason=value.reason or ADDED) if value.kind in ADDITIVE else value

    def assign(self, target: ast.expr, value: Value, frame: Frame, source: ast.expr | None = None) -> None:
        """Give a target a value; source: the expression that is written to it, where that is one."""
        if isinstance(target, ast.Name):
            owner = frame
            if target.id in frame.outside:
                owner = (frame.outer or frame).owner(target.id) or self.module_frame(frame.script)
                if self.undecided and target.id in owner.names:  # branches are joined in their own function
                    value = join(owner.names[target.id], value)
            owner.names[target.id] = value.settled
        elif isinstance(target, ast.Tuple | ast.List):
            for place, part in enumerate(target.elts):
                inner = part.value if isinstance(part, ast.Starred) else part
                self.assign(inner, self.part(value, place), frame)
        elif isinstance(target, ast.Attribute):
            self.assign_attribute(self.value(target.value, frame), target, value, frame, source)
        elif isinstance(target, ast.Subscript):
            self.assign_item(target, value, frame, source)

    def written(self, value: Value, frame: Frame, target: ast.expr, source: ast.expr | None) -> None:
        """A value goes where it is not followed any more."""
        if value.is_local or local_entries(value):
            if source is None:
                self.problem(frame, target, f"`{ast.unparse(target)}` gets a number of this rank", value.loaders)
            else:
                self.demand(source, self.value(source, frame), frame)

    def assign_attribute(
        self, owner: Value, target: ast.Attribute, value: Value, frame: Frame, source: ast.expr | None
    ) -> None:
        value = value.settled
        kept = [thing for thing in owner.only(Instance) if thing not in self.settings.values()]
        known = kept or (owner.only(Module) and self.in_forward)
        if not known:
            self.written(value, frame, target, source)
            value = SAME if value.is_local else value
        elif value.is_local and any((thing, target.attr) in self.read_before for thing in owner.only(Module)):
            self.problem(frame, target, "the model keeps a statistic of its batches, another one on each rank")
        if self.in_forward and not self.undecided:
            self.set_now |= {(thing, target.attr) for thing in owner.things}
        if target.attr == "collate_fn" and owner.only(Loader):
            reason = "a loader gets another collate function, by which ranks may weigh samples differently (L3)"
            self.problem(frame, target, reason)
        if target.attr == "__class__" and owner.only(Module):
            self.problem(frame, target, "a model gets another class, which is not followed")
        if target.attr == "requires_grad":
            self.freezes(owner, target, value.constant, frame)
        if owner.only(Module) or owner.only(Class):
            self.written_in(owner, target.attr, value)
        for thing in owner.things:
            if isinstance(thing, Module | Instance):
                if isinstance(thing, Module):
                    for inner in value.only(Module):
                        assert isinstance(inner, Module)
                        if inner is not thing:
                            self.belongs(inner, thing)
                        thing.networks = thing.networks or inner.networks
                if value.is_local and source is not None:
                    self.sources.setdefault((thing, target.attr), set()).add(source)
                old = thing.attributes.get(target.attr)
                if old is not None and any(map(self.by_batches, self.contexts)):
                    value = self.added_up(value)
                anew = self.in_forward and not self.undecided  # by each call of the model
                if thing in self.settings.values():  # by the parser, too
                    value = replace(value, constant=None, is_none=None)
                thing.attributes[target.attr] = value if old is None or anew else join(old, value)

    def written_in(self, owner: Value, name: str, value: Value) -> None:
        """A name of a class, or of a file, is given a value, beside those that stand there."""
        for thing in owner.things:
            if isinstance(thing, Class):
                names = self.class_attributes.setdefault(thing.node, {})
            elif isinstance(thing, Module) and isinstance(thing.made, ast.Module):
                names = self.names_of(thing)
            else:
                continue
            names[name] = join(names[name], value) if name in names else value

    def assign_item(self, target: ast.Subscript, value: Value, frame: Frame, source: ast.expr | None = None) -> None:
        owner, key = self.value(target.value, frame), self.key(target.slice, frame)
        rows = [context for context in self.contexts if context.how == "rows"]
        index = self.value(target.slice, frame)
        if rows and index.is_local and owner.only(Items) and not self.in_forward:
            value = made_of("unknown", [index, value], reason=KEYED)  # counts[y] = …
        unknown = owner.whole and any(each.kind == "unknown" for each in (value, index))
        if unknown or are_mixed(owner, value) or are_mixed(owner, index):
            self.problem(frame, target, MIXED)
        if (drawn := self.drawn_in(target.slice, frame)) and isinstance(target.value, ast.Name | ast.Attribute):
            value = made_of("unknown", [owner, value, *drawn], reason=DRAWN)
            if not owner.only(Items):
                self.assign(target.value, value, frame)
                return
        known = False
        for thing in owner.only(Items):
            assert isinstance(thing, Items)
            known = True
            if isinstance(key, str | int) and key is not None:
                old = thing.known.get(key)
                anew = old is None or not (rows or self.contexts or self.undecided)
                if old is None and thing.default is not None and self.undecided:
                    thing.rest = value
                thing.known[key] = value if old is None or anew else join(old, value)
            elif isinstance(key, slice) or key is None:
                thing.rest = value if thing.rest is None else join(thing.rest, value)
        adds = owner.zero or owner.is_local
        if owner.kind in ("batch", "rows") and not rows and self.is_fixed(target.slice, owner, value, frame):
            self.assign(target.value, made_of("unknown", [owner, value], reason=COUPLES), frame)
            return
        if not known and adds and isinstance(target.value, ast.Name | ast.Attribute):
            first = target.slice.elts[0] if isinstance(target.slice, ast.Tuple) else target.slice
            is_place = value.kind in LOCAL_ROWS and rows and not isinstance(first, ast.Name)  # a place in a picture
            unseen = is_place or (index.is_local and not rows)
            kind = made_of("unknown", [value], reason=PLACED if is_place else "") if unseen else value
            joined = owner if owner.kind == kind.kind else kind if owner.zero else join(owner, kind)
            self.assign(target.value, replace(joined, zero=False), frame)
        elif not known:
            self.written(value, frame, target, source)

    def is_fixed(self, index: ast.expr, owner: Value, value: Value, frame: Frame) -> bool:
        """Whether samples are changed that have a place in the batch: `x[0] = 0`, not `batch[0] = batch[0].cuda()`."""
        place = index.elts[0] if isinstance(index, ast.Tuple) else index
        if isinstance(place, ast.Slice):
            return place.lower is not None or place.upper is not None
        is_tensor = owner.kind == "rows" or place is not index or isinstance(value.constant, int | float)
        constant = self.value(place, frame).constant
        return is_tensor and isinstance(constant, int) and not isinstance(constant, bool)

    # Control

    def do_expr(self, node: ast.Expr, frame: Frame) -> None:
        if isinstance(node.value, ast.Call):
            self.call(node.value, frame, alone=True)
        else:
            self.value(node.value, frame)

    def do_break(self, node: ast.Break, frame: Frame) -> None:
        loop = next((each for each in frame.script.ancestors(node) if isinstance(each, ast.For | ast.While)), None)
        for context in self.contexts:
            if context.node is loop and self.uneven(context):
                self.problem(frame, node, _ENDS_EARLY, context.loaders)
        self.left_early.append(self.gradients)

    def do_return(self, node: ast.Return, frame: Frame) -> None:
        for context in self.contexts:
            if context.frame is frame and self.uneven(context):
                self.problem(frame, node, _ENDS_EARLY, context.loaders)
        frame.returns.append(self.value(node.value, frame) if node.value else NOTHING)

    def do_for(self, node: ast.For, frame: Frame) -> None:
        over = self.value(node.iter, frame)
        constants = node.iter.elts if isinstance(node.iter, ast.List | ast.Tuple) else []
        given = [self.value(each, frame) for each in constants if isinstance(each, ast.Constant)]
        if given and len(given) == len(constants) <= 4:
            for value in (*given, *given):  # each phase for itself, and once more
                self.assign(node.target, value, frame)
                self.block(node.body, frame)
            return
        first = dict(frame.names)
        with self.looping(node, over, frame), self.taking(node, frame):
            known: Names = {}
            for count in range(_TURNS):
                before = dict(frame.names)
                if count >= 2 and _settled(frame, known):
                    break
                known = before
                self.assign(node.target, self.each_of(over, node.iter), frame)
                self.turn(node.body, frame, always=bool(over.only(Parameters)))
                if self.in_forward and self.in_rows():
                    self.carried(before, frame)
                if count or not self.loaders_in(over):  # a loader has a batch
                    self.merge(frame, before)
                self.carried_on(node, before, frame)
        if runs_over_samples(over) and not self.in_forward:
            self.of_samples(node, first, frame)
        self.mark(node, over, frame)
        self.block(node.orelse, frame)

    do_asyncfor = do_for

    def of_samples(self, loop: ast.For, before: Names, frame: Frame) -> None:
        """A loop over the samples of a batch leaves what it has made of the last of them, or added up over them."""
        for name, value in frame.names.items():
            if value.things or not value.is_local or value == before.get(name):
                continue
            if is_of_last_turn(frame.script, loop, name):
                frame.names[name] = made_of("unknown", [value], reason=TAKEN)
            elif value.kind == "mean":
                frame.names[name] = replace(value, kind="sum")

    def carried(self, before: Names, frame: Frame) -> None:
        """A loop over the samples of a batch, in a model, hands something from one of them to the next."""
        for name, value in frame.names.items():
            if name in before and not before[name].is_local and value.is_local and not value.things:
                frame.names[name] = made_of("unknown", [value], reason=COUPLES)

    def carried_on(self, node: ast.For, before: Names, frame: Frame) -> None:
        """A loop over a rank's part of an evaluation hands numbers from one batch to the next."""
        if self.contexts and self.contexts[-1].node is node and self.by_batches(self.contexts[-1]):
            for name, value in frame.names.items():
                if name in before and not before[name].is_local:
                    frame.names[name] = self.added_up(value)

    def mark(self, node: ast.For | ast.While, over: Value, frame: Frame) -> None:
        """Note what a loop over batches has added up."""
        if not self.loaders_in(over) and not self.by_next.loops.get(node):
            return
        for owner in self.visible(frame):
            for name, value in owner.names.items():
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
        with self.taking(node, frame):
            known: Names = {}
            for count in range(_TURNS):
                if count >= 2 and _settled(frame, known):
                    break
                self.decided(node.test, self.value(node.test, frame), frame)
                before = known = dict(frame.names)
                self.turn(node.body, frame)
                self.merge(frame, before)
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
        self.block(node.body, frame)
        for value in values:
            self.own_method(value, "__exit__", node, [SAME] * 3, frame)
        self.without_gradients -= quiet

    do_asyncwith = do_with

    def is_without_gradients(self, node: ast.expr, frame: Frame) -> bool:
        """Whether `with` makes computations that are not differentiated: `set_grad_enabled(phase == "train")`."""
        if isinstance(node, ast.Call) and ast.unparse(node.func).endswith("set_grad_enabled") and len(node.args) == 1:
            return self.value(node.args[0], frame).constant is False
        return is_without_gradients(node)

    def do_try(self, node: ast.Try, frame: Frame) -> None:
        before, gradients = dict(frame.names), self.gradients
        self.block(node.body, frame)
        for handler in node.handlers:
            first, body = frame.names, self.gradients
            frame.names = {**before, **{name: value for name, value in first.items() if name not in before}}
            self.gradients = body.or_else(gradients)
            self.block(handler.body, frame)
            self.gradients = self.gradients.or_else(body)
            self.merge(frame, first, ends=leaves(node.body), other_ends=leaves(handler.body))
        self.block(node.orelse, frame)
        self.block(node.finalbody, frame)

    do_trystar = do_try

    def do_assert(self, node: ast.Assert, frame: Frame) -> None:
        self.value(node.test, frame)

    def do_delete(self, node: ast.Delete, frame: Frame) -> None:
        for target in node.targets:
            if isinstance(target, ast.Name):
                frame.names.pop(target.id, None)


def _settled(frame: Frame, before: Names) -> bool:
    """Whether a turn of a loop has left the variables of the kinds that they were of."""
    now = {name: (value.kind, value.is_none) for name, value in frame.names.items()}
    return now == {name: (value.kind, value.is_none) for name, value in before.items()}
