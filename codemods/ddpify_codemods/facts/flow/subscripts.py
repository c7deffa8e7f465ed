"""Follows subscripts: which part of a value is taken."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from dataclasses import replace
from typing import TypeGuard

from .bags import is_in_one
from .batches import between
from .comparisons import Comparisons
from .dimensions import of_dimensions
from .frames import Frame
from .layout import axis, reduced, unsqueezed
from .meetings import meeting
from .operations import element
from .own_places import counted_places
from .packed import is_packed, of_each, steps_of
from .sizes import sizes_taken
from .values import (
    ADDITIVE,
    COUPLES,
    DRAWN,
    LOCAL_ROWS,
    LONGEST,
    NUMBERED,
    OWN_SIZE,
    SAME,
    SHUFFLED,
    TAKEN,
    Instance,
    Items,
    Kind,
    Module,
    Parameters,
    Value,
    entries,
    join,
    made_of,
    unnumbered,
)

# They say at which places of a tensor something is.
_FIND = frozenset({"argmax", "argmin", "argsort", "topk", "sort", "max", "min", "nonzero", "kthvalue"})


class Subscripts(Comparisons):
    """What a subscript takes."""

    def chooses_object(self, node: ast.Subscript, owner: Value, chosen: Value, frame: Frame) -> None:
        """One of several objects of the program: by a rank's samples, `meters[label]`, or one that only the ranks have
        that come here, of a defaultdict."""
        uneven = [context for context in self.contexts if self.uneven(context)]
        made = any(isinstance(thing, Items) and thing.default is not None for thing in owner.things)
        if chosen.is_local:
            reason = f"`{ast.unparse(node)}` is an object that each rank chooses by its own samples"
            self.problem(frame, node, reason, chosen.loaders)
        elif uneven and made:
            loaders = frozenset().union(*(context.loaders for context in uneven))
            self.problem(frame, node, f"a rank that has no batch has no `{ast.unparse(node)}`", loaders)

    def on_subscript(self, node: ast.Subscript, frame: Frame) -> Value:
        if ast.unparse(node.value) in ("globals()", "locals()") and (named := self.class_by_name(node.slice, frame)):
            return named
        owner, key = self.value(node.value, frame), self.key(node.slice, frame)
        if any(isinstance(each, Items) and each.by_sample for each in owner.things):
            return made_of("unknown", entries([owner]), reason=TAKEN)
        if owner.only(Items):
            chosen = SAME
            if not isinstance(node.slice, ast.Slice | ast.Constant):
                chosen = self.place_taken(node.slice, frame)
            if not self.in_forward and element(owner, None).only(Instance):
                self.chooses_object(node, owner, chosen, frame)
            if chosen.kind == "unknown":  # `[f, g][int(x.max() > 1)]`
                self.gives_chosen(node, owner, chosen, frame)
                return made_of("unknown", [*entries([owner]), chosen])
            layers = self.held(Value(things=frozenset(owner.only(Module))), key)  # of nn.Sequential(*self.layers)
            part = element(owner, key) if layers is None else join(element(owner, key), layers)
            return part if self.in_forward else self.as_many_as_samples(part, node.slice, frame)
        if (layers := self.held(owner, key)) is not None:
            return layers
        index = SAME if isinstance(node.slice, ast.Slice) else self.place_taken(node.slice, frame)
        slices = [part for part in (*ast.iter_child_nodes(node.slice), node.slice) if isinstance(part, ast.Slice)]
        said = [bound for part in slices for bound in (part.lower, part.upper, part.step) if bound is not None]
        bounds = [self.value(bound, frame) for bound in said]
        if owner.kind == "shape" and isinstance(node.slice, ast.Slice):
            ends = [None if each is None else self.value(each, frame) for each in (node.slice.lower, node.slice.upper)]
            return sizes_taken(owner, self.size_in(owner, owner.constant), node.slice, ends)
        if owner.kind == "shape":
            return self.size_in(owner, key)
        if is_packed(owner) and key == 0:
            return steps_of(owner)
        if owner.reason == LONGEST and isinstance(node.slice, ast.Tuple):
            return of_each(owner, [self.value(part, frame) for part in node.slice.elts])
        if owner.kind in LOCAL_ROWS:
            if drawn := self.drawn_in(node.slice, frame):
                return made_of("unknown", [owner, *drawn], reason=DRAWN)
            in_use = owner.kind == "batch" and not isinstance(key, slice | str) and self.is_a_tensor(node.value, frame)
            owner = (
                replace(owner, kind="rows")
                if owner.kind == "batch" and (in_use or is_tensor(node.value) or says_sample(node.slice, frame))
                else owner
            )
            found = self.of_turn(self.indexed(owner, node.slice, key, index, frame), node.slice, key)
            by_samples = found.kind == "picked" and axis(owner.kind) == 0
            return self.noted_join(found, node, SAME, [owner, index]) if by_samples else found
        if owner.kind in ADDITIVE and index.kind in LOCAL_ROWS:
            return self.noted_join(made_of("unknown", [owner, index], reason=COUPLES), node, SAME, [owner, index])
        if owner.kind in ADDITIVE:
            return replace(owner, things=frozenset())
        if not owner.is_local and isinstance(node.slice, ast.Tuple) and (taken := self.by_samples(node.slice, frame)):
            return taken
        if any(each.is_local for each in bounds) and not owner.only(Parameters):
            return made_of("unknown", [owner, *bounds], reason=OWN_SIZE)
        if owner.is_local or index.is_local:
            if index.kind in LOCAL_ROWS and not owner.is_local:
                return made_of(index.kind, [index])
            return made_of("unknown", [owner, index])
        parameters = [each for each in owner.things if isinstance(each, Parameters)]
        if isinstance(key, str) and key != "params":  # `group["lr"]`
            parameters = [each for each in parameters if not each.groups]
        return Value(things=frozenset(owner.only(Module)) | frozenset(parameters))

    def as_many_as_samples(self, taken: Value, slice_: ast.expr, frame: Frame) -> Value:
        """`names[:len(y)]`: what is taken of a list, which is not as long on each rank."""
        ends = (slice_.lower, slice_.upper, slice_.step) if isinstance(slice_, ast.Slice) else ()
        bounds = [self.value(each, frame) for each in ends if each is not None]
        loaders = frozenset().union(*(each.loaders for each in bounds if each.is_local))
        lists = [thing for thing in taken.only(Items) if isinstance(thing, Items)] if loaders else []
        parts = {replace(each, known=dict(each.known), lengthened=each.lengthened | loaders) for each in lists}
        return replace(taken, things=taken.things - {*lists} | parts)

    def place_taken(self, slice_: ast.expr, frame: Frame) -> Value:
        """What says which part is taken; the number of a sample that a training loop has come to, `y[i]`, says nothing
        of other samples. `x[mask, :]` takes what `x[mask]` takes."""
        parts = slice_.elts if isinstance(slice_, ast.Tuple) else [slice_]
        first_alone = bool(parts) and not _is_slice(parts[0]) and all(map(is_whole, parts[1:]))
        whole = self.value(parts[0] if first_alone else slice_, frame)
        if not self.begins_with_place(parts, frame):
            return unnumbered(whole)
        others = [unnumbered(self.value(each, frame)) for each in parts[1:] if not isinstance(each, ast.Slice)]
        local = [each for each in others if each.is_local]
        return made_of("unknown", local) if local else SAME

    def begins_with_place(self, parts: Sequence[ast.expr], frame: Frame) -> bool:
        """Whether the first of some indices is the number of a sample that a training loop has come to."""
        first = self.value(parts[0], frame) if parts and isinstance(parts[0], ast.Name) else SAME
        return not self.in_forward and first.reason == NUMBERED and first.host and bool(self.samples_taken())

    def by_samples(self, index: ast.Tuple, frame: Frame) -> Value | None:
        """What samples take of a tensor that all ranks have, by several indices: `table[y, 0]`; None where no index is
        of samples."""
        values = [SAME if _is_slice(each) else unnumbered(self.value(each, frame)) for each in index.elts]
        local = [each for each in values if each.is_local]
        if not local or self.begins_with_place(index.elts, frame):
            return None
        if any(each.kind not in LOCAL_ROWS for each in local):
            return made_of("unknown", local)
        nodes = [each for each, value in zip(index.elts, values, strict=True) if value.is_local]
        if len({axis(each.kind) for each in local}) > 1 or meeting(frame.script, nodes, local):
            return made_of("unknown", local, reason=COUPLES)
        if any(each.kind == "picked" for each in local):
            return made_of("picked", local)
        fixed = all(
            value.is_local or _is_slice(each) or isinstance(each, ast.Constant)
            for each, value in zip(index.elts, values, strict=True)
        )
        first = index.elts[0]
        in_front = not _is_slice(first) and not (isinstance(first, ast.Constant) and first.value in (None, ...))
        first_dimension = fixed and in_front and all(axis(each.kind) == 0 for each in local)
        return made_of("rows" if first_dimension else "rows_moved", local)

    def of_turn(self, found: Value, slice_: ast.expr, key: object) -> Value:
        """What is taken of a batch; in a loop over its samples, by the number of the turn, one of them: `y[i]`."""
        taken = self.samples_taken()
        first = slice_.elts[0] if isinstance(slice_, ast.Tuple) else slice_
        counted = key is None and not isinstance(first, ast.Slice | ast.Constant) and found.sample is None
        return replace(found, sample=taken[-1]) if taken and counted else found

    def drawn_in(self, slice_: ast.expr, frame: Frame) -> list[Value]:
        """What says which part is taken, `x[:, indices]`, `x[:, at : at + 8]`, if each rank draws another one."""
        parts = slice_.elts if isinstance(slice_, ast.Tuple) else [slice_]
        said: list[ast.expr | None] = []
        for part in parts:
            said += [part.lower, part.upper, part.step] if isinstance(part, ast.Slice) else [part]
        values = [self.value(each, frame) for each in said if each is not None]
        return [value for value in values if value.reason == DRAWN]

    def indexed(self, owner: Value, slice_: ast.expr, key: object, index: Value, frame: Frame) -> Value:
        """Some of a batch."""
        parts = slice_.elts if isinstance(slice_, ast.Tuple) else [slice_]
        first = parts[0]
        whole = is_whole(first) or (isinstance(first, ast.Constant) and first.value is ...)
        left = self.dimensions_left(owner, parts, frame)
        if is_new(first):
            return of_dimensions(made_of(unsqueezed(owner.kind, 0), [owner]), left)
        if axis(owner.kind) != 0:
            chosen = [value for each in parts if (value := self.chosen_by(each, frame)) is not None]
            if any(value.kind in LOCAL_ROWS for value in chosen):  # `out[mask]`: as many as this rank's samples have
                return made_of("picked", [owner, *chosen])
            if self.takes_samples(owner, parts, frame) or self.takes_merged(owner, first, frame):
                return made_of("unknown", [owner], reason=COUPLES if self.in_forward else TAKEN)
            kind = self.indexed_before(owner, parts, key, frame)
            return of_dimensions(made_of("rows" if kind == "rows_last" and left == 1 else kind, [owner]), left)
        longest = [bound for each in parts[1:] for bound in self.longest(each, frame)] if whole else []
        if longest and self.in_forward:
            for bound in longest:
                self.asks_longest(bound, frame)
            return made_of("unknown", [owner], reason=LONGEST)
        self.as_long_as_all(longest, frame)
        if whole and any(
            self.value(each, frame).kind in LOCAL_ROWS for each in parts[1:] if not isinstance(each, ast.Slice)
        ):
            return made_of("unknown", [owner, index], reason=COUPLES)  # `x[:, y]`: of each sample all samples' columns
        if self.takes_of_each(parts, frame):
            return made_of("rows", [owner, *(self.value(each, frame) for each in parts[1:] if not _is_slice(each))])
        if whole:
            return of_dimensions(made_of(owner.kind if owner.kind != "batch" else "rows", [owner]), left)
        if isinstance(first, ast.Slice) and first.step is None:
            bounds = (first.lower, first.upper)
            lower, upper = (None if bound is None else self.value(bound, frame) for bound in bounds)
            if (batches := between(owner, lower, upper)) is not None:
                return of_dimensions(batches, left)
        if index.kind in LOCAL_ROWS:
            found = made_of("unknown" if is_in_one(owner) else "picked", [owner, index])
            return of_dimensions(found, owner.dimensions if index.dimensions == 1 else None)
        if self.value(first, frame).reason == SHUFFLED and all(isinstance(each, ast.Slice) for each in parts[1:]):
            return made_of("rows", [owner])
        is_tensor_here = owner.part and bool(owner.dimensions) and not isinstance(key, str)  # `batch[0][0]`: a sample
        if owner.kind == "batch" and isinstance(key, str | int) and not isinstance(key, bool) and not is_tensor_here:
            dimensions = dict(owner.parts).get(key)
            return replace(made_of("batch", [owner]), part=True, batches=owner.batches, dimensions=dimensions)
        if (
            owner.kind == "batch"
            and key is None
            and not index.is_local
            and len(parts) == 1
            and not isinstance(first, ast.Slice)
        ):
            return made_of("batch", [owner])
        fixed = isinstance(first, ast.Slice | ast.BinOp) or isinstance(key, int)
        return made_of("unknown", [owner, index], reason=COUPLES if self.in_forward and fixed else TAKEN)

    def takes_of_each(self, parts: list[ast.expr], frame: Frame) -> bool:
        """Whether each sample takes parts of its own: `x[torch.arange(len(x)), chosen]`."""
        counts = counted_places(frame.script, parts[0]) if len(parts) > 1 else None
        if counts is None or self.value(counts, frame).kind != "size":
            return False
        others = [self.value(each, frame) for each in parts[1:] if not _is_slice(each)]
        return all(each.kind == "same" or (each.kind in LOCAL_ROWS and axis(each.kind) == 0) for each in others)

    def chosen_by(self, part: ast.expr, frame: Frame) -> Value | None:
        """What a mask or places say that are taken: `out[mask]`, `out[:, places]`; None for slices."""
        return None if isinstance(part, ast.Slice) else self.value(part, frame)

    def takes_samples(self, owner: Value, parts: list[ast.expr], frame: Frame) -> bool:
        """Whether some of the samples are taken, or may be, that do not lie along the first dimension: `x[:, :4]`."""
        known, samples = owner.dimensions, axis(owner.kind)
        if samples is not None and samples < 0:
            samples = None if known is None else samples + known
        rest = next((place for place, part in enumerate(parts) if self.is_rest(part, frame)), len(parts))
        samples = None if any(map(is_new, parts)) else samples
        for place, part in enumerate(parts):
            if place == rest or not self.is_some(part, frame):
                continue
            behind = place > rest
            at = place if not behind else None if known is None else place - len(parts) + known
            unknown = samples is None and (
                place > 0 or any(map(is_new, parts))
            )  # x[:k] is of the first, mostly not theirs
            if unknown or (samples is not None and (at == samples or (at is None and place < len(parts) - 1))):
                return True
        return False

    def takes_merged(self, owner: Value, part: ast.expr, frame: Frame) -> bool:
        """Whether some of the rows are taken that each sample has in each step, `x.flatten(0, 1)[:5]`, and not by the
        number of samples, `[-len(x):]`."""
        if owner.front != "merged" or not self.is_some(part, frame):
            return False
        bounds = [part.lower, part.upper] if isinstance(part, ast.Slice) and part.step is None else [None]
        return not any(self.value(each, frame).is_local for each in bounds if each is not None)

    def is_rest(self, part: ast.expr, frame: Frame) -> bool:
        return not isinstance(part, ast.Slice) and self.value(part, frame).constant is ...

    def is_some(self, part: ast.expr, frame: Frame) -> bool:
        """Whether a part of a subscript is seen to take some of what lies along its dimension."""
        if isinstance(part, ast.Slice | ast.Name):
            constant = None if isinstance(part, ast.Slice) else self.value(part, frame).constant
            return not is_whole(part) and (
                isinstance(part, ast.Slice) or isinstance(constant, int) or is_turn(part, frame)
            )
        return not is_new(part)

    def is_one(self, part: ast.expr, frame: Frame) -> bool:
        """Whether a part of a subscript takes one of what lies along its dimension, which goes: `x[-1]`, `x[step]`."""
        constant = None if _is_slice(part) else self.value(part, frame).constant
        return (isinstance(constant, int) and not isinstance(constant, bool)) or is_turn(part, frame)

    def dimensions_left(self, owner: Value, parts: list[ast.expr], frame: Frame) -> int | None:
        """How many dimensions are left of a tensor of which parts are taken by numbers and slices."""
        left = owner.dimensions
        for part in parts:
            constant = None if isinstance(part, ast.Slice) else self.value(part, frame).constant
            if isinstance(part, ast.Slice) or constant is ...:
                continue
            if is_new(part):
                left = None if left is None else left + 1
            elif isinstance(constant, int) or is_turn(part, frame):
                left = None if left is None else left - 1
            else:
                return None
        return left

    def longest(self, index: ast.expr, frame: Frame) -> list[ast.expr]:
        """What says how much of each sample is taken, if a rank's samples say it: `x[:, :max(lengths)]`."""
        bounds = [index.lower, index.upper] if isinstance(index, ast.Slice) else [index]
        local = [(each, value) for each in bounds if each is not None and (value := self.value(each, frame)).is_local]
        if self.in_forward or not isinstance(index, ast.Slice):  # other bounds, of sizes, are those of all ranks
            return [each for each, value in local if value.kind == "unknown" and value.reason in (COUPLES, LONGEST)]
        return [each for each, _ in local]

    def as_long_as_all(self, bounds: list[ast.expr], frame: Frame) -> None:
        """Samples are as long as the longest of all ranks, or of a batch that one rank has alone."""
        for bound in bounds:
            value = self.value(bound, frame)
            if not value.loaders or any(self.status.get(each) != "batches" for each in value.loaders):
                self.demand(bound, value, frame)

    def indexed_before(self, owner: Value, parts: list[ast.expr], key: object, frame: Frame) -> Kind:
        """What is left of a tensor whose samples do not lie along its first dimension."""
        self.as_long_as_all(self.longest(parts[0], frame), frame)
        if owner.kind == "rows_second" and len(parts) > 1 and all(isinstance(each, ast.Slice) for each in parts):
            return owner.kind if is_whole(parts[1]) else "rows_moved"
        if owner.kind == "rows_second" and len(parts) > 1 and is_whole(parts[1]):  # `outputs[-1, :, :]`, of all samples
            others = all(_is_slice(each) or self.is_one(each, frame) for each in parts[2:])
            return "rows" if others and self.is_one(parts[0], frame) else "rows_moved"
        if len(parts) > 1:
            return "rows_moved"
        if isinstance(parts[0], ast.Slice):
            return owner.kind
        one = isinstance(key, int) or is_turn(parts[0], frame)
        return reduced(owner.kind, (0,), keeps=False) if one else "rows_moved"


def _is_slice(part: ast.expr) -> bool:
    return isinstance(part, ast.Slice)


def is_turn(part: ast.expr, frame: Frame) -> bool:
    """Whether an index is the number of a loop's turn: `x[step]`, `x[step - 1]`, `for step in range(1, steps):`."""
    if isinstance(part, ast.BinOp) and isinstance(part.op, ast.Add | ast.Sub) and isinstance(part.right, ast.Constant):
        part = part.left
    if not isinstance(part, ast.Name):
        return False
    stores = frame.script.stores.get((frame.script.scope(part), part.id), ())
    loops = [frame.script.parents[each] for each in stores]
    return bool(loops) and all(
        isinstance(loop, ast.For)
        and isinstance(loop.target, ast.Name)
        and isinstance(loop.iter, ast.Call)
        and frame.script.qualified(loop.iter.func) in ("range", "tqdm.trange")
        for loop in loops
    )


def says_sample(index: ast.expr, frame: Frame) -> bool:
    """Whether an index says where something of a tensor is, `x[losses.argmax()]`, also by a name: x is one, then."""
    scope = frame.script.scope(index)
    made = [index]
    for name in (each.id for each in ast.walk(index) if isinstance(each, ast.Name)):
        statements = (frame.script.statement(each) for each in frame.script.stores.get((scope, name), ()))
        made += [each.iter if isinstance(each, ast.For) else each.value for each in statements if is_given(each)]
    calls = (each for part in made if part is not None for each in ast.walk(part) if isinstance(each, ast.Call))
    return any(isinstance(each.func, ast.Attribute) and each.func.attr in _FIND for each in calls)


def is_given(statement: ast.stmt) -> TypeGuard[ast.Assign | ast.For]:
    return isinstance(statement, ast.Assign | ast.For)


def is_new(part: ast.expr) -> bool:
    """Whether a part of a subscript is a new dimension: `x[:, None]`, `x[np.newaxis]`."""
    named = isinstance(part, ast.Attribute) and part.attr == "newaxis"
    return named or (isinstance(part, ast.Constant) and part.value is None)


def is_whole(part: ast.expr) -> bool:
    """Whether a part of a subscript takes all: `:`."""
    return isinstance(part, ast.Slice) and part.lower is None and part.upper is None and part.step is None


def is_tensor(node: ast.expr) -> bool:
    """Whether an expression can only be a tensor, not a tuple of several: `correct.data`, `scores.detach()`."""
    if isinstance(node, ast.Call):
        return isinstance(node.func, ast.Attribute) and node.func.attr == "detach"
    return isinstance(node, ast.Attribute) and node.attr == "data"
