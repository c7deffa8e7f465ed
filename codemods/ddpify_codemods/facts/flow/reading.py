"""Where values that differ between the ranks are read."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace

from ..bindings import arguments
from ..called_modules import last_name
from ..effects import effects
from ..meters import is_made
from ..script import Script
from .after_loops import is_of_last_turn, needs_a_turn
from .extended import of_samples
from .frames import AfterLoop, Frame, Problem, Reduction, ancestors, outermost_call
from .held_values import (
    additive,
    holds_unsized,
    is_mixed,
    is_of_lists,
    is_tuple,
    local_entries,
    local_runs,
    merge_own,
    own_keys,
    settled,
)
from .longest import Longest
from .objects import Objects
from .operations import element
from .own_decisions import is_drawn
from .own_regions import OwnRegions, counted_apart
from .sample_counts import SampleCounts
from .sample_entries import SampleEntries
from .scopes import FUNCTIONS
from .signatures import argument
from .sizes import is_sizes
from .tensor_uses import is_tensor_given, is_tensor_here
from .turns import is_counted
from .values import (
    ADDITIVE,
    BY_DRAWN,
    BY_RECURSION,
    BY_SAMPLES,
    COUPLES,
    DRAWN,
    LOCAL_ROWS,
    LONGEST,
    RECURSION,
    SAME,
    UNEVEN,
    Class,
    Instance,
    Items,
    Loader,
    Module,
    Parameters,
    Value,
    entries,
    join,
    made_of,
    of,
)

_NOTHING = "a rank that has no batch would have nothing to add up"
_OVER_OTHERS = "what it adds up in {} is that of this rank's batches in one case, and that of all in another"
_NO_TENSOR = "{} adds up tensors, of which a rank that has no batch would have none; `.item()` of each would do"
# Calls whose names begin so show or write what they are given, and do no more.
_SHOW_NAMES = """
    print show display plot draw imshow title text log write
    info debug warn error critical exception add_scalar add_image add_text add_histogram
"""
_SHOWS = tuple(_SHOW_NAMES.split())


class Reading(Objects, Longest, OwnRegions, SampleEntries, SampleCounts):
    """What is decided, shown or written."""

    def after_loop(self, value: Value, owner: Frame, name: str, frame: Frame) -> Value:
        """A variable that a loop has added up is read."""
        assert value.pending is not None
        loop, _ = value.pending
        here = frame.statement if owner is frame else owner.statement
        around = list(ancestors(owner.script, here, owner.node)) if here is not None else []
        if loop in around:
            return value.settled
        at = loop
        for parent in ancestors(owner.script, loop, owner.node):
            if parent in around:
                break
            if isinstance(parent, ast.FunctionDef | ast.AsyncFunctionDef):  # a global: it may add to it once more
                return value.settled
            at = parent
        found = additive(value)
        if found is None:
            return value.settled
        if any(context.how == "rows" or self.uneven(context) for context in self.contexts):
            self.problem(frame, loop, f"what it adds up in {name} is read in another loop over data", value.loaders)
        kind, form = found
        loaders = made_of("same", [value]).loaders
        uneven = any(self.status.get(each) in UNEVEN for each in loaders)
        if uneven and is_of_last_turn(owner.script, loop, name):
            self.problem(frame, loop, f"{name} is read after the loop, which is of its last batch", loaders)
        if uneven and (kind != "sum" or (form in ("list", "tensors") and self.grows(value))):
            what = "a mean over batches" if kind == "mean" else "what is kept of each batch"
            self.problem(
                frame,
                loop,
                f"{name} is {what}, which cannot be added up over ranks that have different batches",
                loaders,
            )
        reason = _OVER_OTHERS.format(name)
        self.found.added_in.setdefault(loop, Problem(owner.script, loop, reason, loaders))
        if any(entry.array for entry in entries([value])):
            self.found.arrays.add((owner.script, at, name))
            form = "arrays" if form == "list" else form
        self.found.unsized |= {(owner.script, at, name)} if holds_unsized(value) else set()
        form = "tuple" if form == "list" and is_tuple(value) else form
        form = "lists" if form == "list" and is_of_lists(value) else form
        form = "mixed dict" if form == "dict" and is_mixed(value) else form
        self.knows_own(value, (owner.script, at, name))
        self.found.after.add(AfterLoop(owner.script, at, name, kind, form))
        if form == "defaultdict":
            self.has_keys(value, owner, at, name, frame)
        is_number = value.host and not value.array and form == "number"
        missing = _NO_TENSOR.format(name) if form == "number" and not value.array else _NOTHING
        self.by_batches_too((owner.script, at, name), loop, loaders, "" if is_number else missing, frame)
        if form == "number" and not value.host and needs_a_turn(owner.script, loop, name):
            self.found.needs_sample.setdefault((owner.script, loop, name), set()).update(loaders)
        owner.names[name] = settled(value, in_place=form == "defaultdict")
        for names in self.kept_names:  # it is brought together before these statements
            if names.get(name) is value:
                names[name] = owner.names[name]
        return owner.names[name]

    @contextmanager
    def keeping(self, names: dict[str, Value]) -> Iterator[None]:
        """Follow one of several ways; names: what is known where they part, or after another one."""
        self.kept_names.append(names)
        yield
        self.kept_names.pop()

    def has_keys(self, value: Value, owner: Frame, at: ast.stmt, name: str, frame: Frame) -> None:
        """A defaultdict is brought together by its keys, of which a rank without a batch has none."""
        keys = tuple(key for thing in value.only(Items) if isinstance(thing, Items) for key in thing.known)
        if self.found.keys.setdefault((owner.script, at, name), keys) != keys:
            loaders = made_of("same", [value]).loaders
            self.problem(frame, at, f"the keys of {name} are not the same in all cases", loaders)

    def knows_own(self, value: Value, place: object) -> None:
        """A dict may be brought together at a place, of which some entries may be the same on all ranks."""
        if any(isinstance(thing, Items) and thing.shape == "dict" for thing in value.things):
            merge_own(self.found.own_keys.setdefault(place, {}), own_keys(value))

    def key(self, node: ast.expr, frame: Frame) -> object:
        """A constant key; a slice; None for what only the run knows."""
        if isinstance(node, ast.Slice):
            return slice(None)
        constant = self.value(node, frame).constant if not isinstance(node, ast.Tuple) else None
        return constant if isinstance(constant, str | int) else None

    def part(self, value: Value, key: object) -> Value:
        """What a target of an assignment takes of a value, or a dict has under a key."""
        if value.only(Items):
            found = element(value, key)
            other = replace(value, things=frozenset()) if value.kind == "unknown" else SAME  # in another case
            return join(found, self.part(other, key)) if other.is_local else found
        if value.kind in LOCAL_ROWS:
            dimensions = dict(value.parts).get(key) if isinstance(key, int | str) else None
            batches = value.batches if value.kind in ("batch", "rows_second") else ()
            return replace(made_of("batch", [value]), part=True, batches=batches, dimensions=dimensions)
        if value.kind == "shape":
            return self.size_in(value, key)
        if value.is_local:
            return made_of("unknown", [value])
        things = frozenset(value.only(Module)) | frozenset(value.only(Parameters))
        return Value(things=things, loaders=value.loaders, whole=value.whole) if value.whole else Value(things=things)

    def demand(self, node: ast.expr, value: Value, frame: Frame, gathers: bool = False) -> None:
        """Something is decided or computed of a number that has to be the same on all ranks.

        gathers: what holds each sample will do as well, of all ranks.
        """
        if value.is_local and _is_written_to(frame.script, node):
            self.problem(frame, node, "what is computed of all ranks would be written into a copy here")
            return
        self.found.unsized |= {node} if holds_unsized(value) else set()
        self.knows_own(value, node)
        if value.things and not value.is_local and (local_entries(value) or local_runs(value)):
            found = additive(value)
            if found and isinstance(node, ast.GeneratorExp | ast.SetComp | ast.DictComp):
                self.demand(node.value if isinstance(node, ast.DictComp) else node.elt, element(value, None), frame)
                return
            if found and (found[1] == "dict" or (found[1] == "tensors" and not any(e.host for e in entries([value])))):
                self.found.forms[node] = "mixed dict" if found[1] == "dict" and is_mixed(value) else found[1]
            elif found and found[1] == "list" and any(entry.array for entry in entries([value])):
                self.found.forms[node] = "arrays"
            elif found and found[1] == "list" and is_tuple(value):
                self.found.forms[node] = "tuple"
            elif found and found[1] == "list" and is_of_lists(value):
                self.found.forms[node] = "lists"
            found = found if found and found[1] != "defaultdict" else None  # of which ranks may have other keys
            if found is None and (samples := of_samples(value)) and self.can_be_gathered(samples):
                self.found.forms |= {node: "arrays of samples"} if samples.array else {}
                value, gathers = samples, True
            else:
                recursive = any(each.reason == RECURSION for each in entries([value]))
                reason = "" if found or recursive else "it holds numbers of this rank"
                host = not found and _are_numbers(value)
                value = made_of(found[0] if found else "unknown", [value, *local_runs(value)], host, reason)
        if not value.is_local:
            self.found.read_same.add(node)
            return
        if value.host and self.can_be_of_rank_0(value):
            self.found.of_rank_0[node] = frame.script, ""
            return
        if isinstance(node, ast.IfExp):  # all ranks take the same way
            for each in (node.body, node.orelse):
                self.demand(each, self.value(each, frame), frame, gathers)
            return
        if self.read_apart(node, value, frame):
            return
        node, value = self.part_read(node, value, frame)
        self.found.arrays |= {node} if value.array else set()
        uneven = [each for each in value.loaders if self.status.get(each) in UNEVEN]
        if uneven and value.kind in ("mean", "size"):
            value = replace(value, kind="unknown", reason="a mean over batches, which are others on each rank")
        if self.in_forward:
            if not self.in_trained_model():  # a loss, which may be computed of the batch of all ranks
                self.found.calls |= value.calls
                self.found.asked_whole.add(outermost_call(frame, self.in_forward[0]))
            reason = BY_DRAWN if is_drawn(value) else BY_RECURSION if value.reason == RECURSION else BY_SAMPLES
            self.problem(frame, node, reason, value.loaders)
        elif value.kind not in ADDITIVE and not (gathers and self.can_be_gathered(value)):
            self.found.wanted |= value.made_at
            reason = value.reason or "it holds samples of this rank alone"
            self.problem(frame, node, f"`{ast.unparse(node)}` is read here: {reason}", value.loaders)
        elif any(context.how == "rows" or self.uneven(context) for context in self.contexts):
            reason = f"`{ast.unparse(node)}` is read here, where the ranks are at different places"
            if self.in_rows():
                self.found.read_by_rows.add(self.contexts[-1].frame.node)
            if self.in_rows() or not is_made(frame.script, frame.script.statement(node)):
                self.problem(frame, node, reason, value.loaders)
                return
            self.found.scripts[node] = frame.script
            self.found.reductions.setdefault(node, set()).add(Reduction(frame.script, node, value.kind))
            self.found.deferred.setdefault(node, set()).add(Problem(frame.script, node, reason, value.loaders))
            self.by_batches_too(node, node, value.loaders, "" if value.host else _NOTHING, frame)
        else:
            self.found.scripts[node] = frame.script
            kind = value.kind if value.kind in ADDITIVE else "rows"
            self.found.reductions.setdefault(node, set()).add(Reduction(frame.script, node, kind))
            self.by_batches_too(node, node, value.loaders, "" if value.host else _NOTHING, frame)

    def part_read(self, node: ast.expr, value: Value, frame: Frame) -> tuple[ast.expr, Value]:
        """What is brought together for `names[0]`: all names, where nothing says that it is a tensor among several."""
        while value.kind == "batch" and isinstance(node, ast.Subscript) and not isinstance(node.slice, ast.Tuple):
            owner = self.value(node.value, frame)
            takes_one = isinstance(self.key(node.slice, frame), int) or is_counted(frame.script, node.slice)
            if owner.kind != "batch" or not owner.part or not takes_one:
                break
            node, value = node.value, owner
        if value.kind == "batch" and value.part and not self.is_a_tensor(node, frame):
            self.found.may_be_texts.add(node)
        return node, value

    def is_a_tensor(self, node: ast.expr, frame: Frame) -> bool:
        """Whether what an expression holds of a batch is used as only a tensor can be."""

        def takes_tensor(call: ast.Call, place: int) -> bool:
            if not isinstance(call.func, ast.Name | ast.Attribute):
                return False
            return any(self.module_takes_tensor(each, place) for each in self.value(call.func, frame).only(Module))

        if is_tensor_here(frame.script, node, takes_tensor):
            return True
        place = frame
        while place.caller is None and place.outer is not None and place.outer.node is place.node:  # a comprehension's
            place = place.outer
        given = given_for(node, place) if isinstance(node, ast.Name) else None
        return given is not None and place.caller is not None and self.is_a_tensor(given, place.caller)

    def module_takes_tensor(self, module: object, place: int, around: tuple[object, ...] = ()) -> bool:
        """Whether a module takes tensors alone at a place: a layer of torch, or a network of the program whose forward
        does with it what only tensors can. around: the modules whose forwards call it."""
        if not isinstance(module, Module) or module.cls is None:
            return isinstance(module, Module) and takes_tensors(module.name)
        forward = self.method_of(module.cls, "forward", Value(things=frozenset({module})))
        if forward is None or isinstance(forward.node, ast.Lambda):
            return False
        parameters = [*forward.node.args.posonlyargs, *forward.node.args.args][1:]

        def takes_tensor(call: ast.Call, at: int) -> bool:
            of_self = isinstance(call.func, ast.Attribute) and isinstance(call.func.value, ast.Name)
            held = module.attributes.get(call.func.attr) if of_self and isinstance(call.func, ast.Attribute) else None
            layers = frozenset() if held is None else held.only(Module)
            outer = (*around, module)
            return any(each not in outer and self.module_takes_tensor(each, at, outer) for each in layers)

        return place < len(parameters) and is_tensor_given(
            forward.script, forward.node, parameters[place].arg, takes_tensor
        )

    def by_batches_too(
        self, place: object, node: ast.AST, loaders: frozenset[Loader], missing: str, frame: Frame
    ) -> None:
        """Something is brought together somewhere, of loaders of which each rank has every W-th batch, or none.

        missing: what is wrong if a rank has none; "" for numbers, of which it has 0.
        """
        if any(self.status.get(each) == "batches" for each in loaders):
            if missing:
                self.problem(frame, node, missing, loaders)
            reason = "it is a mean over batches in one case, and a sum of them in another"
            self.found.by_batches.setdefault(place, set()).add(Problem(frame.script, node, reason, loaders))

    def can_be_gathered(self, value: Value) -> bool:
        """Whether ranks have as many samples each of something that holds one after the other."""
        divided = value.loaders and all(self.status.get(each) == "training" for each in value.loaders)
        return bool(divided) and value.kind in ("batch", "rows") and value.reason != DRAWN

    def decided(self, node: ast.expr, value: Value, frame: Frame) -> bool:
        """A branch is taken by a value; whether each rank takes its own."""
        value = counted_apart(value)
        if any(context.how == "rows" or self.uneven(context) for context in self.contexts):
            self.found.unequal_tests.add(node)
        own = self.is_own_decision(node, value, frame)
        own = own or (self.fills_own(node, value, frame) and self.goes_own_way(node, value, frame))
        if value.is_local and not own and self.can_be_of_rank_0(value):
            self.found.of_rank_0[node] = frame.script, "" if value.host else "bool"
        elif value.is_local and not own and not self.only_begins(node, value, frame):
            own = self.goes_own_way(node, value, frame)
            by_sample = self.decides_by_sample(node, value, frame) or self.counts_by_sample(node, frame)
            if not own and not by_sample:
                self.demand(node, value, frame)
        return own

    def can_be_of_rank_0(self, value: Value) -> bool:
        """Whether all ranks may take what rank 0 has for something that each of them has drawn otherwise, of no samples
        of its own: where they are at the same place, and not of each batch."""
        in_data = any(context.how in ("rows", "whole") or self.uneven(context) for context in self.contexts)
        return is_drawn(value) and not (value.couples or self.in_forward or self.own_ways or in_data)

    def turns(self, node: ast.expr, over: Value, frame: Frame) -> bool:
        """A loop of a model takes as many turns as a rank's longest sample has: `range(max(lengths))`; or any loop as
        many as the rank has drawn. Whether each rank goes its own way in it."""
        over = counted_apart(over)
        if is_drawn(over) and self.goes_own_way(node, over, frame):
            return True
        if is_drawn(over):
            numbers = node.args if isinstance(node, ast.Call) and last_name(node.func) == "range" else [node]
            for each in numbers:
                self.demand(each, self.value(each, frame), frame)
        if self.in_forward and over.kind == "unknown" and over.reason in (COUPLES, LONGEST):
            self.demand(node, over, frame)
            for bound in node.args if isinstance(node, ast.Call) else ():
                self.asks_longest(bound, frame)
        return False

    def sets_attribute(self, node: ast.Call, args: list[Value], frame: Frame) -> Value:
        """`setattr(owner, name, value)`: of any name where that is not known."""
        owner, name, value = args
        if not isinstance(name.constant, str):
            self.put_by_name(owner, value)
            self.sets_by_name(owner)
        known = {each for thing in owner.things if isinstance(thing, Instance) for each in thing.attributes}
        known |= {
            each for thing in owner.things if isinstance(thing, Class) for each in self.class_attributes[thing.node]
        }
        for each in [name.constant] if isinstance(name.constant, str) else sorted(known):
            owned = node.args[0] if len(node.args) > 2 else node.func.value  # type: ignore[attr-defined]
            target = ast.copy_location(ast.Attribute(owned, each, ast.Store()), node)
            self.assign(target, value, frame, node.args[-1])
        if not known and not name.constant:
            self.shown_parts(node.args[-1:], frame)
        return SAME

    def is_shown(self, node: ast.Call, frame: Frame) -> bool:
        return False

    def shown(self, node: ast.Call, frame: Frame, keeps: bool = False) -> None:
        """A call shows or writes what it is given; keeps: it may keep it, to decide by it later."""
        changes = self.name_of(node.func).endswith("_")
        parts = [*node.args, *(word.value for word in node.keywords)]
        if keeps and last_name(node.func) == "step":
            parts = [each for each in parts if not self.steps_by(each, frame)]
        self.shown_parts(parts, frame, changes, keeps)

    def steps_by(self, node: ast.expr, frame: Frame) -> bool:
        """Whether a scheduler is given what each rank has drawn for itself, and no number of Python: it makes one of
        it, and decides by that."""
        value = self.value(node, frame)
        if value.host or not is_drawn(value):
            return False
        if self.can_be_of_rank_0(value):
            self.found.of_rank_0[node] = frame.script, "float"
        else:
            self.demand(node, value, frame)
        return True

    def may_keep(self, node: ast.Call, frame: Frame) -> bool:
        """Whether a call of something unknown may do more than show what it is given: `scheduler.step(loss)`."""
        return node not in effects(frame.script) and not last_name(node.func).startswith(_SHOWS)

    def pictured(self, node: ast.Call, frame: Frame) -> None:
        """A call draws samples: those of all ranks, or of this one where no way leads to the others."""
        given = [*node.args, *(word.value for word in node.keywords)]
        partial = [part for part in given if self.is_of_this_rank(self.value(part, frame))]
        self.shown_parts([part for part in given if part not in partial], frame)
        self.found.pictures[node] = frame.script
        self.found.partial |= {node} if partial else set()

    def shown_on_bar(self, node: ast.Call, frame: Frame) -> None:
        """A bar shows numbers: in training those of all ranks, else those of this one, since others may not come."""
        parts = [*node.args, *(word.value for word in node.keywords)]
        parts = [one for part in parts for one in (part.values if isinstance(part, ast.Dict) else [part])]
        comes = not any(context.how == "rows" or self.uneven(context) for context in self.contexts)
        self.shown_parts([part for part in parts if comes and self.is_trained_with(self.value(part, frame))], frame)

    def is_trained_with(self, value: Value) -> bool:
        """Whether something is a number of batches of training, or a list or dictionary of such numbers."""
        numbers = [value, *(entry for thing in value.only(Items) if isinstance(thing, Items) for entry in thing.all())]
        loaders = {loader for each in numbers for loader in each.loaders}
        return additive(value) is not None and all(self.status.get(loader) == "training" for loader in loaders)

    def saved(self, picture: Value, node: ast.Call, frame: Frame) -> None:
        """A picture is written that was drawn of something before: `Image.fromarray(grid).save(path)`."""
        self.found.pictures[node] = frame.script
        divided = picture.loaders and all(self.status.get(each) == "training" for each in picture.loaders)
        self.found.partial |= {node} if divided else set()

    def is_of_this_rank(self, value: Value) -> bool:
        """Whether something holds samples of training that cannot be brought together; not what each rank draws."""
        if value.reason == DRAWN and not value.loaders:
            return False  # of the whole number
        divided = all(self.status.get(each) == "training" for each in value.loaders)
        can_be = value.kind in ADDITIVE or value.made_at or self.can_be_gathered(value)
        return value.is_local and divided and not can_be

    def shown_parts(self, parts: Sequence[ast.expr], frame: Frame, changes: bool = False, keeps: bool = False) -> None:
        """Values are shown or written; changes: something that all ranks have is changed by them; keeps: as above."""
        for part in parts:
            inner = part.value if isinstance(part, ast.Starred) else part
            if isinstance(inner, ast.Tuple | ast.List | ast.Set):
                self.shown_parts(inner.elts, frame, changes, keeps)
            elif isinstance(inner, ast.Dict):
                self.shown_parts(inner.values, frame, changes, keeps)
            else:
                value = self.value(inner, frame)
                self.strings(value, inner, frame)
                if not changes and self.is_printed_size(value, frame):
                    self.found.sizes_shown.add(inner)
                elif changes or not _is_of_each_rank(value) or (keeps and _are_numbers(value)):
                    self.demand(inner, value, frame, gathers=True)

    def is_printed_size(self, value: Value, frame: Frame) -> bool:
        """Whether `print(x.shape)` shows a size that is the one of a rank's part; nothing follows of it."""
        call = frame.statement.value if isinstance(frame.statement, ast.Expr) else None
        prints = isinstance(call, ast.Call) and frame.script.qualified(call.func) == "print"
        trains = all(self.status.get(each) == "training" for each in value.loaders)
        return (
            prints
            and (value.kind == "shape" or is_sizes(value) or (value.kind == "size" and bool(self.in_forward)))
            and (bool(self.in_forward) or trains)
        )

    def strings(self, value: Value, node: ast.expr, frame: Frame) -> None:
        """Follow what an object of the program says of itself."""
        things = [
            *value.only(Instance),
            *(e for i in value.only(Items) if isinstance(i, Items) for v in i.all() for e in v.only(Instance)),
        ]
        if things and frame.statement is not None:
            parts = set(ast.walk(frame.statement))
            if any(call in parts for call in effects(frame.script)):
                self.leaves([value])  # rank 0 may be alone there
        for thing in things:
            assert isinstance(thing, Instance)
            for name in ("__str__", "__repr__", "__format__"):
                method = self.method_of(thing.cls, name, of(thing))
                if method is not None:
                    self.enter(method, node, [SAME] if name == "__format__" else [], {}, frame)
                    break


def takes_tensors(name: str) -> bool:
    """Whether a class of a library takes tensors, no lists of them: a layer of torch, a classifier of torchvision."""
    detects = ".detection." in name or name.endswith(".get_model")  # which any name of a model may be given
    return name.startswith(("torch.nn.", "torchvision.models.")) and not detects


def given_for(name: ast.Name, frame: Frame) -> ast.expr | None:
    """What the call that is being followed gives for a parameter that keeps its value; None for other names."""
    function, call = frame.node, frame.call
    if not isinstance(function, FUNCTIONS) or not isinstance(call, ast.Call) or name.id not in arguments(function):
        return None
    return None if (function, name.id) in frame.script.stores else argument(function, name.id, call)


def _is_of_each_rank(value: Value, depth: int = 4) -> bool:
    """Whether all that differs between the ranks in something is drawn by each of them: rank 0 shows its own."""
    if value.is_local:
        return value.reason == DRAWN and not (value.couples or value.loaders)
    inner = [each for thing in value.only(Items) if isinstance(thing, Items) for each in thing.all()]
    local = [each for each in inner if each.is_local or local_entries(each)]
    return bool(local) and depth > 0 and not local_runs(value) and all(_is_of_each_rank(e, depth - 1) for e in local)


def _are_numbers(value: Value) -> bool:
    """Whether all that differs between the ranks in something are numbers of Python."""
    return all(each.host for each in entries([value]) if each.is_local)


def makes_numbers(node: ast.expr) -> bool:
    """Whether something is made of a tensor, and no list of texts: `y.numpy()`."""
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in ("numpy", "tolist")


def _is_written_to(script: Script, node: ast.expr) -> bool:
    """Whether a function of a library writes what it computes into what it is given: `torch.sub(x, y, out=x)`."""
    word = script.parents.get(node)
    call = script.parents[word] if isinstance(word, ast.keyword) and word.arg == "out" else None
    return isinstance(call, ast.Call) and script.qualified(call.func).startswith(("torch.", "numpy."))
