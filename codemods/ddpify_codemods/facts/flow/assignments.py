"""Follows assignments: to names, attributes and items."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import replace

from ..bindings import arguments, names_in
from .after_loops import begins_in, mentions
from .arithmetic import combined
from .branches import Branches
from .extended import lengthening
from .frames import Frame
from .held_values import additive, local_entries, may_differ
from .in_place import OTHER_NAME, becomes_unknown, stands_for_another
from .masked import is_mask
from .parameter_groups import OTHERS, is_added, is_stored
from .shared_memory import goes_by_two_names
from .signatures import argument
from .subscripts import is_turn
from .values import (
    ADDED,
    ADDITIVE,
    COUPLES,
    DRAWN,
    KEYED,
    LOCAL_ROWS,
    MIXED,
    NUMBERED,
    PLACED,
    SAME,
    SEVERAL,
    TAKEN,
    UNEVEN,
    Class,
    Instance,
    Items,
    Loader,
    Module,
    OptimizerValue,
    Value,
    are_mixed,
    cut,
    join,
    made_of,
)


class Assignments(Branches):
    """What is written to names, attributes and items."""

    def do_assign(self, node: ast.Assign, frame: Frame) -> None:
        if self.in_rows() and (adds := self.added_to(node, frame)) is not None:
            self.do_augassign(adds, frame)
            return
        value = self.value(node.value, frame)
        if self.in_rows() and value.kind == "same" and not value.things and self.counts_samples(node):
            value = self.of_turn_before(value)
        value = self.of_batch_before(node, value)
        for target in node.targets:
            self.assign(target, self.of_last_turn(value, target, node.value), frame, node.value)

    def of_batch_before(self, node: ast.Assign, value: Value) -> Value:
        """The value, or a number of turns where a rank goes through a part of the batches: `count = count + 1`."""
        uneven = [context for context in self.contexts if self.uneven(context)]
        goes_on = isinstance(node.value, ast.BinOp) and any(mentions(node.value, each) for each in node.targets)
        if not uneven or not goes_on or value.is_local or value.things or self.in_forward or self.in_rows():
            return value
        return value if begins_in(uneven[-1].node, node) else self.counted(uneven[-1])

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
        if is_added(added, node, before) or (into_tensor and is_stored(node.target, before)):
            self.problem(frame, node, OTHERS)
        if (own := self.own_operator(node, before, added, frame)) is not None:
            self.assign(node.target, own, frame, node.value)
            return
        if self.is_group(before) and may_differ(added):
            self.problem(
                frame, node, f"`{ast.unparse(node.target)}`, which an optimizer has, gets numbers of this rank"
            )
        if any(isinstance(thing, Items) for thing in before.things):  # losses += [loss.item()]
            self.extend(before, self.keyed(added) if isinstance(node.op, ast.BitOr) else added, node.value)
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
        if into_tensor and before.things:  # no tensor: `group["lr"] *= factor`
            keys = [self.value(each, frame) for each in _keys(node.target)]
            chosen = next((each for each in keys if each.is_local), None)
            if chosen is not None and not self.in_forward:  # `counter[label] += 1`
                reason = f"`{ast.unparse(node.target)}` is one of this rank's samples"
                self.problem(frame, node, reason, chosen.loaders)
            self.written(added, frame, node.target, node.value)
            return
        rows = any(context.how == "rows" for context in self.contexts)
        if self.in_drawn_rows():  # not so many times more over all ranks
            added = made_of("unknown", [added, Value("unknown", reason=DRAWN)], host=added.host)
        elif rows and isinstance(node.op, ast.Add | ast.Sub) and added.kind in ("same", "mean", *LOCAL_ROWS):
            reason = SEVERAL if self.may_be_of_several(added) else ""
            added = made_of("unknown" if reason else "sum", [added, self.row_value()], host=added.host, reason=reason)
        if into_tensor and isinstance(item, ast.Name | ast.Attribute) and isinstance(node.target, ast.Subscript):
            index = self.value(node.target.slice, frame)
            result = combined(node.op, before, added) if added.is_local else before
            if before.kind == "rows_second" and added.is_local:  # `outputs[0, :, :] += h`, one of the steps
                taken = self.value(node.target, frame)
                if taken.kind == combined(node.op, taken, added).kind == "rows":
                    result = replace(made_of("rows_second", [before, added]), dimensions=before.dimensions)
            if before.kind in ("batch", "rows") and not rows and self.is_fixed(node.target.slice, before, added, frame):
                result = made_of("unknown", [before, added], reason=COUPLES)
            if _chooses(index, before) and not (rows and (self.in_forward or result.is_local)):
                result = made_of("unknown", [index, added, before])
            if rows and before.kind in ("batch", "rows") and not self.in_forward and self.leaves_out_samples(frame):
                result = made_of("unknown", [added, before], reason=TAKEN)
            self.changes_given(item, before, result, frame)
            self.changes_other(item, before, result, frame)
            self.assign(item, result, frame)
            return
        if local_entries(added):  # an array += [loss.item(), hits]
            kind, form = additive(added) or ("unknown", "")
            added = replace(made_of(kind if form == "list" else "unknown", [added]), host=True, array=True)
        result = combined(node.op, before, added)
        named = node.target if isinstance(node.target, ast.Name) else None
        if before.constant is None and not added.host:  # no number, which would be another one
            self.changes_given(node.target, before, result, frame)
        if before.constant is None and (before.array or not before.host):
            self.changes_other(node.target, before, result, frame)
        if named is not None and becomes_unknown(before, result) and stands_for_another(named, frame):
            self.problem(frame, node, OTHER_NAME.format(named.id), result.loaders)
        if rows and result.kind == "same" and not result.things and self.counts_samples(node):
            result = self.of_turn_before(result)
        self.assign(node.target, self.added_up(result) if by_batches else result, frame, node.value)

    def added_to(self, node: ast.Assign, frame: Frame) -> ast.AugAssign | None:
        """`n = n + 1` as `n += 1`, where a number that is alike on all ranks is added for each sample."""
        value, target = node.value, node.targets[0]
        if not isinstance(value, ast.BinOp) or not isinstance(value.op, ast.Add | ast.Sub) or len(node.targets) > 1:
            return None
        same = isinstance(target, ast.Name) and isinstance(value.left, ast.Name) and value.left.id == target.id
        if not same or self.value(value.right, frame).is_local or not self.counts_samples(node):
            return None
        assert isinstance(target, ast.Name)
        return ast.copy_location(ast.AugAssign(target, value.op, value.right), node)

    def of_turn_before(self, value: Value) -> Value:
        """A number that depends on how many samples of this rank a loop has gone through."""
        counted = [value, replace(self.row_value(), reason="")]
        return made_of("unknown", counted, host=value.host, reason=NUMBERED)

    def leaves_out_samples(self, frame: Frame) -> bool:
        """Whether the innermost loop over samples is seen to begin or to end somewhere among them: `range(1, n)`."""
        node = next(context.node for context in reversed(self.contexts) if context.how == "rows")
        over = node.iter if isinstance(node, ast.For) else None
        if not isinstance(over, ast.Call) or ast.unparse(over.func) != "range":
            return False
        return len(over.args) != 1 or self.value(over.args[0], frame).kind != "size"

    def of_each_batch(self, value: Value, loaders: frozenset[Loader]) -> Value:
        """What is added for each of a rank's batches, which are those of one process: whatever it is, a sum of all."""
        if not value.is_local:
            return Value("sum", loaders, host=value.host)
        return replace(value, kind="sum") if value.kind == "mean" and not value.reason else value

    def added_up(self, value: Value) -> Value:
        """The value, with the note that it is no batch's own."""
        return replace(value, reason=value.reason or ADDED) if value.kind in ADDITIVE else value

    def assign(self, target: ast.expr, value: Value, frame: Frame, source: ast.expr | None = None) -> None:
        """Give a target a value; source: the expression that is written to it, where that is one."""
        if isinstance(target, ast.Name):
            owner = frame
            if target.id in frame.outside:
                self.keeps_decision(target, value, frame)
                owner = (frame.outer or frame).owner(target.id) or self.module_frame(frame.script)
                if self.undecided and target.id in owner.names:  # branches are joined in their own function
                    value = join(owner.names[target.id], value)
            owner.names[target.id] = value.settled
        elif isinstance(target, ast.Tuple | ast.List):
            for place, part in enumerate(target.elts):
                inner = part.value if isinstance(part, ast.Starred) else part
                self.assign(inner, self.part(value, place), frame)
        elif isinstance(target, ast.Attribute) and target.attr == "data" and value.is_local and self.in_forward:
            self.assign(target.value, cut(value), frame, source)  # `self.center.data = …`
        elif isinstance(target, ast.Attribute):
            self.may_retype(target, source, frame)
            self.assign_attribute(self.value(target.value, frame), target, value, frame, source)
        elif isinstance(target, ast.Subscript):
            self.assign_item(target, value, frame, source)

    def written(self, value: Value, frame: Frame, target: ast.expr, source: ast.expr | None) -> None:
        """A value goes where it is not followed any more."""
        if value.is_local or local_entries(value):
            given = SAME if source is None else self.value(source, frame)
            if source is None or not may_differ(given):  # `table[y][guess] += 1`, for each of this rank's samples
                self.problem(frame, target, f"`{ast.unparse(target)}` gets a number of this rank", value.loaders)
            else:
                self.demand(source, given, frame)
        elif source is not None:
            self.found.read_same.add(source)

    def assign_attribute(
        self, owner: Value, target: ast.Attribute, value: Value, frame: Frame, source: ast.expr | None
    ) -> None:
        value = value.settled
        kept = [thing for thing in owner.only(Instance) if thing not in self.settings.values()]
        kept += [thing for thing in owner.only(Loader) if thing in self.own_loaders]
        known = kept or (owner.only(Module) and self.in_forward)
        if not known:
            self.written(value, frame, target, source)
            value = SAME if value.is_local else value
        elif value.is_local and any((thing, target.attr) in self.read_before for thing in owner.only(Module)):
            self.problem(frame, target, "the model keeps a statistic of its batches, another one on each rank")
        self.keeps_decision(target, value, frame)
        if is_stored(target, owner):
            self.problem(frame, target, OTHERS)
        if self.in_forward and not self.undecided:
            self.set_now |= {(thing, target.attr) for thing in owner.things}
        if target.attr == "collate_fn" and owner.only(Loader) and not owner.things.intersection(self.loaders_begun):
            reason = "a loader gets another collate function, by which ranks may weigh samples differently (L3)"
            self.problem(frame, target, reason)
        if target.attr == "__dict__":
            self.sets_by_name(owner)
        if target.attr == "__class__" and owner.only(Module):
            self.problem(frame, target, "a model gets another class, which is not followed")
        if target.attr in ("step", "zero_grad") and owner.only(OptimizerValue):
            self.problem(frame, target, "what an optimizer does is replaced by something that is not followed")
        if target.attr == "lr_lambdas":
            self.called_by_steps([value], (SAME,))
        if target.attr == "reduction" and not owner.things:  # of one of `network.modules()`
            self.reduces_otherwise(self.modules.values())
        if target.attr == "training" and not owner.things:
            self.sets_part(target, frame)
        if target.attr == "requires_grad":
            self.freezes(owner, target, value.constant, frame)
        if owner.only(Module) or owner.only(Class):
            self.written_in(owner, target.attr, value)
        self.gets_layers(owner, [value], target, frame)
        for thing in owner.things:
            if isinstance(thing, Module | Instance) or thing in self.own_loaders:
                assert isinstance(thing, Module | Instance | Loader)
                if isinstance(thing, Module):
                    for inner in value.only(Module):
                        assert isinstance(inner, Module)
                        if inner is not thing:
                            self.belongs(inner, thing)
                        if inner in self.begins_apart and not self.in_forward:
                            self.drawn_anew([thing], target, frame)
                        thing.networks = thing.networks or inner.networks
                if value.is_local and source is not None:
                    self.sources.setdefault((thing, target.attr), set()).add(source)
                old = thing.attributes.get(target.attr)
                if old is not None and any(map(self.by_batches, self.contexts)):
                    value = self.added_up(value)
                anew = self.in_forward and not self.undecided  # by each call of the model
                if thing in self.settings.values():  # by the parser, too
                    value = replace(value, constant=None, is_none=None)
                new = value if old is None or anew else join(old, value)
                of_model = isinstance(thing, Module) and bool(self.in_forward)
                self.attributes_set += of_model or (old is not None and new != old)
                thing.attributes[target.attr] = new

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
        if is_stored(target, owner):
            self.problem(frame, target, OTHERS)
        self.gets_layers(owner, [value], target, frame)
        if isinstance(target.value, ast.Attribute) and target.value.attr == "lr_lambdas":
            self.called_by_steps([value], (SAME,))
        rows = [context for context in self.contexts if context.how == "rows"]
        index = self.value(target.slice, frame)
        index = SAME if index.reason == NUMBERED and not self.place_taken(target.slice, frame).is_local else index
        if index.is_local and owner.only(Items) and not self.in_forward:
            value = made_of("unknown", [index, value], reason=KEYED)  # counts[y] = …
        unknown = owner.whole and any(each.kind == "unknown" for each in (value, index))
        if unknown or are_mixed(owner, value) or are_mixed(owner, index):
            self.problem(frame, target, MIXED)
        if (drawn := self.drawn_in(target.slice, frame)) and isinstance(target.value, ast.Name | ast.Attribute):
            value = made_of("unknown", [owner, value, *drawn], reason=DRAWN)
            if not owner.only(Items):
                self.assign(target.value, value, frame)
                return
        if not rows and _fills(owner, index, value) and is_mask(frame.script, target.slice):
            self.assign(target.value, replace(made_of("rows", [owner, index]), dimensions=owner.dimensions), frame)
            return
        if self.takes_as_masked(target, owner, index, source, frame):
            self.assign(target.value, made_of("rows", [owner, value, index]), frame)
            return
        if may_differ(value) and self.is_group(owner):  # `groups[0]["lr"] = …`, which an optimizer has
            self.written(value, frame, target, source)
            value = replace(SAME, host=value.host)
        known = False
        for thing in owner.only(Items):
            assert isinstance(thing, Items)
            known, thing.in_order = True, False
            if isinstance(key, str | int) and key is not None:
                old = thing.known.get(key)
                anew = old is None or not (rows or self.contexts or self.undecided or thing.of_several)
                if old is None and thing.default is not None and self.undecided:
                    thing.rest = value
                thing.known[key] = value if old is None or anew else join(old, value)
            elif isinstance(key, slice) or key is None:
                thing.lengthened |= lengthening(value) if isinstance(key, slice) else self.lengthening_here()
                thing.rest = value if thing.rest is None else join(thing.rest, value)
        chosen = _chooses(index, owner) and not (rows and (self.in_forward or owner.is_local or value.is_local))
        adds = owner.zero or owner.is_local or chosen
        if owner.kind in ("batch", "rows") and not rows and self.is_fixed(target.slice, owner, value, frame):
            self.assign(target.value, made_of("unknown", [owner, value], reason=COUPLES), frame)
            return
        if not known and adds and isinstance(target.value, ast.Name | ast.Attribute):
            first = target.slice.elts[0] if isinstance(target.slice, ast.Tuple) else target.slice
            is_place = value.kind in LOCAL_ROWS and rows and not isinstance(first, ast.Name)  # a place in a picture
            unseen = is_place or chosen
            by_others = index.kind == "unknown" and index.reason not in ("", NUMBERED) and bool(self.in_forward)
            reason = PLACED if is_place else COUPLES if by_others else ""  # at places that depend on other samples
            kind = made_of("unknown", [value] if value.is_local else [index, value], reason=reason) if unseen else value
            if owner.kind == "rows_second" and value.kind in ("batch", "rows") and is_turn(target.slice, frame):
                kind = made_of("rows_second", [owner, value])  # `outputs[step] = out`
            joined = owner if owner.kind == kind.kind else kind if owner.zero else join(owner, kind)
            self.changes_given(target.value, owner, joined, frame)
            self.changes_other(target.value, owner, joined, frame)
            self.assign(target.value, replace(joined, zero=False), frame)
        elif not known:
            self.written(value, frame, target, source)

    def changes_other(self, target: ast.expr, before: Value, after: Value, frame: Frame) -> None:
        """A tensor is changed that has another name, which is not seen to change: `a = counts.view(-1); a += hits`."""
        if self.in_forward or before.is_local or not after.is_local or not isinstance(target, ast.Name):
            return
        if goes_by_two_names(target, target, frame):
            self.problem(frame, target, OTHER_NAME.format(target.id), after.loaders)

    def changes_given(self, target: ast.expr, before: Value, after: Value, frame: Frame) -> None:
        """A function changes a tensor that it was given: its caller's is not seen to change, unless it is given what
        the function returns, `matrix = add(matrix, y)`."""
        function = frame.node
        if self.in_forward or before.is_local or not after.is_local or not isinstance(target, ast.Name):
            return
        if not isinstance(function, ast.FunctionDef) or target.id not in arguments(function):
            return
        returns = (each.value for each in ast.walk(function) if isinstance(each, ast.Return) and each.value)
        given = argument(function, target.id, frame.call) if isinstance(frame.call, ast.Call) else None
        statement = None if frame.caller is None else frame.caller.statement
        kept = [*map(ast.unparse, ast.walk(statement.targets[0]))] if isinstance(statement, ast.Assign) else []
        is_kept = given is not None and ast.unparse(given) in kept
        if not is_kept or not any(target.id in names_in(each) for each in returns):
            self.problem(frame, target, OTHER_NAME.format(target.id), after.loaders)

    def takes_as_masked(
        self, target: ast.Subscript, owner: Value, mask: Value, source: ast.expr | None, frame: Frame
    ) -> bool:
        """Whether a tensor takes from another one, where a mask says so, what stands there: `far[mask] = d[mask]`."""
        name = target.slice
        if not isinstance(source, ast.Subscript) or not isinstance(name, ast.Name):
            return False
        if not isinstance(source.slice, ast.Name) or source.slice.id != name.id:
            return False
        stores = frame.script.stores.get((frame.script.scope(name), name.id), ())
        makes = [frame.script.parents[each] for each in stores]
        of_tensors = [owner, mask, self.value(source.value, frame)]
        return (
            bool(makes)
            and all(isinstance(each, ast.Assign) and isinstance(each.value, ast.Compare) for each in makes)
            and all(each.kind in ("batch", "rows") and not each.only(Items) for each in of_tensors)
        )

    def is_fixed(self, index: ast.expr, owner: Value, value: Value, frame: Frame) -> bool:
        """Whether samples are changed that have a place in the batch: `x[0] = 0`, not `batch[0] = batch[0].cuda()`."""
        place = index.elts[0] if isinstance(index, ast.Tuple) else index
        if isinstance(place, ast.Slice):
            return any(bound is not None for bound in (place.lower, place.upper, place.step))
        is_tensor = owner.kind == "rows" or place is not index or isinstance(value.constant, int | float)
        constant = self.value(place, frame).constant
        return is_tensor and isinstance(constant, int) and not isinstance(constant, bool)


def _fills(owner: Value, mask: Value, value: Value) -> bool:
    """Whether parts of samples become a number that is alike on all ranks, where a tensor as long says so."""
    plain = all(each.kind in ("batch", "rows") and not each.only(Items) for each in (owner, mask))
    return plain and value.kind == "same" and not value.things


def _keys(target: ast.expr) -> Iterator[ast.expr]:
    """The keys by which a target is found, the last first: `counts[label]["hits"]`."""
    while isinstance(target, ast.Subscript):
        yield target.slice
        target = target.value


def _chooses(index: Value, owner: Value) -> bool:
    """Whether samples choose the places of what is theirs, `seen[y]`, or of the script's own, `confusion[y, guess]`."""
    return index.is_local or (owner.kind == "same" and bool(local_entries(index)))
