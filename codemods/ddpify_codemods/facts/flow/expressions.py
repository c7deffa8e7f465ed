"""Follows expressions: what a value is."""

from __future__ import annotations

import ast
from dataclasses import replace

from .arithmetic import combined
from .batches import sure_size
from .by_place import is_taken_by_place
from .class_tests import known_ways
from .enumerations import member_name
from .extended import lengthening, of_samples
from .frames import Frame, Reduction
from .held_values import is_record, is_tuple, local_entries, local_runs, may_differ
from .input_gradients import learns_samples
from .joined import last_name
from .longest import LARGEST
from .meetings import meeting
from .operands import dimensions_added, measures, operands, says_places
from .operation_names import LOSS_CLASSES, REORDERS
from .operations import element, one_behind_the_other
from .own_decisions import is_drawn, only_takes
from .own_operators import OwnOperators
from .sizes import sizes_behind
from .taken_parts import TakenParts
from .truth import truth
from .values import (
    ADDITIVE,
    CHOSEN,
    COUPLES,
    DRAWN,
    KEYED,
    LOCAL_ROWS,
    MOVED,
    NOT_FOLLOWED,
    PLACED,
    SAME,
    Function,
    Instance,
    Items,
    Library,
    Module,
    Parameters,
    Value,
    adds_nothing,
    entries,
    join,
    made_of,
    of,
    set_in_run,
)
from .whole_calls import changes_parameters, of_all

_BUILTINS = frozenset(
    [
        "print",
        "len",
        "float",
        "int",
        "str",
        "round",
        "abs",
        "min",
        "max",
        "sum",
        "range",
        "enumerate",
        "zip",
        "list",
        "tuple",
        "dict",
        "set",
        "sorted",
        "reversed",
        "isinstance",
        "open",
        "getattr",
        "setattr",
        "hasattr",
        "iter",
        "next",
        "map",
        "filter",
        "any",
        "all",
        "bool",
        "repr",
        "format",
        "super",
        "eval",
        "globals",
        "__import__",
        "type",
        "vars",
    ]
)
_DIMENSIONS = 9  # more than a tensor and what is listed behind its shape have


# The names of the methods that know what an expression of a kind holds.
_METHODS = {kind: f"on_{kind.__name__.lower()}" for kind in ast.expr.__subclasses__()}


class Expressions(OwnOperators, TakenParts):
    """What expressions hold."""

    def value(self, node: ast.expr | None, frame: Frame) -> Value:
        """What an expression may hold."""
        self.count()
        if node is None:
            return SAME
        if node in self.of_all:
            return self.of_all_ranks(node, frame)
        if node in self.own_sizes and self.is_size_of(node, frame):
            self.found.full_batches[node] = frame.script
            loader, _ = self.own_sizes[node]
            return Value("size", frozenset({loader}), host=True, batches=sure_size(loader))
        method = getattr(self, _METHODS.get(type(node), ""), None)
        value = method(node, frame) if method is not None else self.of_parts(node, frame)
        if value.in_parallel and isinstance(node, ast.Name | ast.Attribute):
            value = self.unless_without_parallel(value, node, frame)
        if self.in_forward and (value.kind in MOVED or (value.kind == "unknown" and last_name(node) in REORDERS)):
            self.has_moved = True
        if self.in_forward and value.kind in ("batch", "rows") and dimensions_added(node):
            value = replace(value, widened=True)
        if self.joined.terms or self.joined.calls:
            value = self.after_joining(value, node, frame)
        if isinstance(node, ast.Call) and node in self.lengths.asked and last_name(node) in LARGEST:
            value = Value(host=value.host) if self.agree(node, [value], frame) else value
        if value.kind in ("unknown", "inverse") and isinstance(node, ast.Call | ast.BinOp | ast.Subscript):
            return self.noted(value, node, frame)
        return self.for_evaluation(value, node) if node in self.evaluation_sites else value

    def is_size_of(self, node: ast.expr, frame: Frame) -> bool:
        """Whether something that may be the batch size of a loader is."""
        loader, is_sure = self.own_sizes[node]
        if is_sure or not isinstance(node, ast.Attribute | ast.Subscript):
            return is_sure
        owner = self.value(node.value, frame)
        held = owner.only(Instance) if isinstance(node, ast.Attribute) else owner.only(Items)
        return bool(held) and owner.things == self.found.size_owners.get(loader)

    def noted(self, value: Value, node: ast.expr, frame: Frame) -> Value:
        """Something unknown, with where that began, if the batches of all ranks would tell what it is."""
        if value.reason == PLACED and any(is_placed(part, frame) for part in operands(node)):
            return value
        if last_name(node) == "range" or says_places(node, frame.script):  # of a rank's own samples
            return value
        divided = value.loaders and all(self.status.get(each) == "training" for each in value.loaders)
        begins = divided and not value.made_at and not self.in_forward and value.reason not in (CHOSEN, DRAWN)
        return replace(value, made_at=frozenset({node})) if begins else value

    def of_all_ranks(self, node: ast.expr, frame: Frame) -> Value:
        """Something that is computed from the batches of all ranks."""
        learned = self.may_learn(node, frame)
        values = [
            (
                part,
                self.on_name(part, frame) if part is node and isinstance(part, ast.Name) else self.value(part, frame),
            )
            for part in operands(node)
        ]
        local = [value for _, value in values if value.is_local]
        if local and all(map(is_drawn, local)):  # in an evaluation that every rank goes through by itself
            self.found.read_same |= {part for part, _ in values}
            return Value("unknown", reason=DRAWN, host=all(value.host for value in local))
        for part, value in values:
            learned |= bool(value.forwards or value.bypasses)
            if value.is_local or local_entries(value) or local_runs(value):
                self.demand(part, value, frame, gathers=True)
            elif loaders := lengthening(value):
                self.problem(frame, part, f"`{ast.unparse(part)}` is not as long on each rank", loaders)
            elif not adds_nothing(value):
                self.found.read_same.add(part)
        if isinstance(node, ast.Call):
            self.enter_with_all(node, frame)
        return replace(SAME, made_at=frozenset({node})) if learned else SAME

    def enter_with_all(self, node: ast.Call, frame: Frame) -> None:
        """Follow a function of the program that is given the batches of all ranks."""
        for thing in self.value(node.func, frame).only(Function):
            assert isinstance(thing, Function)
            given = [self.value(each, frame) for each in node.args]
            named = {word.arg or "**": self.value(word.value, frame) for word in node.keywords}
            lists = any(map(of_samples, (*given, *named.values())))
            args, words = [*map(of_all, given)], {name: of_all(value) for name, value in named.items()}
            made = self.enter(thing, node, args, words, frame)
            is_method = thing.owner is not None and bool(thing.owner.only(Instance))
            if made.is_local or local_entries(made) or changes_parameters(thing, self.found, is_method, lists):
                self.problem(
                    frame, node, f"what {ast.unparse(node.func)} does with a batch would be done with a copy of it"
                )

    def of_parts(self, node: ast.expr, frame: Frame) -> Value:
        parts = [self.value(part, frame) for part in ast.iter_child_nodes(node) if isinstance(part, ast.expr)]
        local = [part for part in parts if part.is_local]
        return made_of("unknown", local) if local else SAME

    def on_constant(self, node: ast.Constant, frame: Frame) -> Value:
        if node.value is None or (node.value in (0, "") and not isinstance(node.value, bool)):
            return Value(zero=True, constant=node.value, host=True, is_none=node.value is None)
        return Value(constant=node.value, host=True)

    def on_name(self, node: ast.Name, frame: Frame) -> Value:
        owner = frame.owner(node.id)
        if owner is None:
            qualified = frame.script.qualified(node)
            known = qualified != node.id or node.id in frame.script.imported or node.id in _BUILTINS
            return of(Library(qualified)) if known else SAME
        value = owner.names[node.id]
        if value.pending is not None:
            return self.after_loop(value, owner, node.id, frame)
        return value

    def on_attribute(self, node: ast.Attribute, frame: Frame) -> Value:
        if node.attr == "name" and isinstance(node.value, ast.Attribute):
            member = member_name(self.value(node.value.value, frame), node.value.attr)
            if member is not None:
                return member
        owner = self.value(node.value, frame)
        found = self.attribute_of(owner, node.attr, node, frame)
        self.notes_attribute(node, owner, found, frame)
        return found

    def on_call(self, node: ast.Call, frame: Frame) -> Value:
        return self.call(node, frame)

    def on_binop(self, node: ast.BinOp, frame: Frame) -> Value:
        left, right = self.value(node.left, frame), self.value(node.right, frame)
        if isinstance(node.op, ast.Mod) and (isinstance(left.constant, str) or right.only(Items)):
            self.formatted(node.right, right, frame)
            return SAME
        if (own := self.own_operator(node, left, right, frame)) is not None:
            return own
        kinds = (Items, Parameters)
        if isinstance(node.op, ast.Add) and any(left.only(kind) or right.only(kind) for kind in kinds):
            alone = isinstance(node.left, ast.List | ast.Tuple) and len(node.left.elts) == 1
            made = self.with_samples(left, right) or (sizes_behind(left, right) if alone else None)
            if made is not None:
                return made
            made = one_behind_the_other(left, right) or join(left, right)
            if isinstance(node.left, ast.List) and is_record([element(left, None), element(right, None)]):
                made = of(Items("list", {}, element(made, None), mixed=True))
            return made
        if isinstance(node.op, ast.Mult) and left.only(Items):
            return left
        if isinstance(node.op, ast.BitOr) and (left.only(Items) or right.only(Items)):
            dicts = [_dict_in(left), _dict_in(right)]
            known = [each for each in dicts if each is not None]
            both = join(left, right)
            other = made_of("unknown", [both], reason=KEYED) if both.is_local else both
            return of(_merged(*known)) if len(known) == 2 else other
        left, right = self.of_data(node.left, left, right, frame), self.of_data(node.right, right, left, frame)
        sides = [(node.left, left), (node.right, right)]
        alike = [part for part, value in sides if not (value.is_local or value.zero or value.constant is not None)]
        if not left.is_local and not right.is_local and self.is_measured_whole():
            self.found.read_same |= {*alike}
        else:
            in_ratio = isinstance(node.op, ast.Div | ast.FloorDiv) and len(alike) > 1
            for part in alike:
                beside = (node.right if part is node.left else node.left) if in_ratio else None
                self.found.met_same.setdefault(part, set()).add(beside)
        host = (left.host or not left.is_local) and (right.host or not right.is_local)
        result = combined(node.op, left, right)
        of_one = bool(self.in_forward) and result.kind == "unknown"  # `h[k] * h`
        if (result.kind in LOCAL_ROWS or of_one) and self.meets_others([left, right]):
            result = made_of("unknown", [left, right], reason=COUPLES)
        meet = result.kind in LOCAL_ROWS and not isinstance(node.op, ast.MatMult)
        if meet and (coupled := meeting(frame.script, [node.left, node.right], [left, right])):
            result = made_of("unknown", [left, right], reason=coupled)
        additive_parts = {left.kind, right.kind} <= {*ADDITIVE, "same"}
        several = [(part, value) for part, value in ((node.left, left), (node.right, right)) if value.is_local]
        turns = any(part in self.found.reductions for part, _ in several)  # in an earlier turn of a loop
        divides = isinstance(node.op, ast.Div) and left.kind in ("sum", "size") and not right.is_local
        if divides and host and any(part in self.found.reductions for part in ast.walk(node.right)):
            self.demand(node.left, left, frame)
            return replace(SAME, host=True)
        if isinstance(node.op, ast.Div) and (left.kind, right.kind) == ("sum", "sum") and not host:
            result = self.by_all_ranks(node, result, left, right, frame)
        if (
            (result.kind == "unknown" or turns)
            and host
            and additive_parts
            and not (self.in_forward or self.in_factory or says_places(node, frame.script))
        ):
            self.demand(node.left, left, frame)
            self.demand(node.right, right, frame)
            return replace(SAME, host=True)
        self.found.kept_apart |= {part for part, value in several if value.kind in ("sum", "size")}
        return result if says_places(node, frame.script) else self.noted_join(result, node, SAME, [left, right])

    def formatted(self, node: ast.expr, value: Value, frame: Frame) -> None:
        """What `text % values` shows; a list of numbers of all ranks is no tuple."""
        several = any(isinstance(thing, Items) and thing.shape == "tuple" for thing in value.things)
        if several and not isinstance(node, ast.Tuple) and not is_tuple(value) and local_entries(value):
            loaders = made_of("same", [value]).loaders
            self.problem(frame, node, f"`{ast.unparse(node)}` is read here: it holds numbers of this rank", loaders)
        else:
            self.shown_parts([node], frame)

    def is_measured_whole(self) -> bool:
        """Whether what is followed may measure, for an evaluation that is not divided, what it measures of training:
        in its loop, or behind it, as a meter's `average()`."""
        return not self.contexts or any(context.how == "whole" for context in self.contexts)

    def of_data(self, node: ast.expr, value: Value, other: Value, frame: Frame) -> Value:
        """A number of a batch that samples are computed with, before any model: `(x - x.mean()) / x.std()`. It is that
        of all ranks, and nothing is differentiated through it."""
        made = value.kind == "mean" or (value.kind == "unknown" and value.made_at and all(map(measures, value.made_at)))
        learned = value.forwards or value.bypasses or other.forwards or other.bypasses
        if other.kind not in LOCAL_ROWS or not made or learned or value.merged or self.in_forward or self.in_factory:
            return value
        of_samples = any(learns_samples(each) for each in self.scripts)
        if not self.may_join(value.loaders) or of_samples or self.may_learn(node, frame):
            return value
        self.demand(node, value, frame)
        return replace(SAME, host=value.host, dimensions=value.dimensions)

    def by_all_ranks(self, node: ast.BinOp, result: Value, left: Value, right: Value, frame: Frame) -> Value:
        """A loss that is a sum over a batch, divided by another one: a mean over a mask, if all ranks' masks divide it.

        Each rank divides by the mean over ranks of the divisor, which nothing may be differentiated through (L3).
        """
        divided = frozenset(each for each in result.loaders if self.status.get(each) != "training")
        if divided:
            self.problem(frame, node, "it is divided by a sum of all ranks, which are at different places", divided)
        apart = any(context.how == "rows" or self.uneven(context) for context in self.contexts)
        learned = right.forwards or right.bypasses or self.may_learn(node.right, frame)
        if divided or apart or learned or self.in_forward or not left.forwards:
            return result
        self.found.scripts[node.right] = frame.script
        self.found.reductions.setdefault(node.right, set()).add(Reduction(frame.script, node.right, "mean"))
        return replace(made_of("mean", [result]), made_at=frozenset())

    def may_learn(self, node: ast.expr, frame: Frame, depth: int = 3) -> bool:
        """Whether parameters may be in an expression, or in what its variables are given in the file."""
        for part in ast.walk(node):
            if isinstance(part, ast.Attribute) and part.attr in ("Parameter", "requires_grad_"):
                return True
            if isinstance(part, ast.keyword) and part.arg == "requires_grad":
                return True
            if not isinstance(part, ast.Name):
                continue
            owner = frame.owner(part.id)
            value = owner.names[part.id] if owner is not None else SAME
            modules = [each.name.rpartition(".")[2] for each in value.only(Module) if isinstance(each, Module)]
            if value.only(Parameters) or any(name not in (*LOSS_CLASSES, "file") for name in modules):
                return True
            given = (each.value for each in frame.script.find(ast.Assign) if part.id in map(ast.unparse, each.targets))
            if depth and value.kind == "same" and any(self.may_learn(each, frame, depth - 1) for each in given):
                return True
        return False

    def on_unaryop(self, node: ast.UnaryOp, frame: Frame) -> Value:
        value = self.value(node.operand, frame)
        if isinstance(node.op, ast.Not) and self.in_forward and is_drawn(value):
            return value
        if isinstance(node.op, ast.Not) and self.can_be_of_rank_0(value):
            self.found.of_rank_0[node.operand] = frame.script, "" if value.host else "bool"
            return SAME
        if isinstance(node.op, ast.Not) and value.is_local:
            self.demand(node.operand, value, frame)
            return SAME
        constant = value.constant
        if isinstance(node.op, ast.Not) and (holds := truth(node.operand, value)) is not None:
            return Value(constant=not holds, host=True)
        if isinstance(node.op, ast.USub) and isinstance(constant, int | float):
            return replace(value, constant=-constant)
        return replace(value, constant=None, things=frozenset()) if value.is_local else SAME

    def on_boolop(self, node: ast.BoolOp, frame: Frame) -> Value:
        result, drawn, known = SAME, None, True
        for part in node.values:
            value = self.value(part, frame)
            known = known and isinstance(value.constant, bool)
            if value.constant is isinstance(node.op, ast.Or):
                return value  # the others are not computed
            if self.in_forward and is_drawn(value):
                drawn = value
            elif isinstance(part, ast.Compare) and self.can_be_of_rank_0(value):
                self.found.of_rank_0[part] = frame.script, "" if value.host else "bool"
            elif value.is_local and self.goes_own_way(part, value, frame):
                drawn = value
            elif value.is_local and not self.counts_by_sample(part, frame):
                self.demand(part, value, frame)
            result = join(result, replace(value, kind="same")) if value.things else result
        answer = isinstance(node.op, ast.And) if known else None  # none of them has decided it
        return replace(drawn or result, constant=answer)

    def on_ifexp(self, node: ast.IfExp, frame: Frame) -> Value:
        test = self.value(node.test, frame)
        takes = is_drawn(test) and only_takes(node.body) and only_takes(node.orelse)
        takes = takes and not self.can_be_of_rank_0(test)
        own = not takes and self.decided(node.test, test, frame)
        if (holds := truth(node.test, test)) is not None:
            return self.value(node.body if holds else node.orelse, frame)
        outer, self.always = self.always, set()
        self.undecided += 1
        with self.deciding(own):
            one, two = known_ways(node.test, frame.names)
            before = {name: frame.names[name] for name in one}
            frame.names.update(one)
            first = self.value(node.body, frame)
            once, self.always = self.always, set()
            frame.names.update(two)
            other = self.value(node.orelse, frame)
            frame.names.update(before)
        self.undecided -= 1
        self.one_way_of_two(outer, once, node.test, frame)
        found = made_of("unknown", [test, first, other]) if takes else join(first, other)
        return self.after_own_decision(found, frame, node) if own else found

    def on_tuple(self, node: ast.Tuple | ast.List | ast.Set, frame: Frame) -> Value:
        known: dict[object, Value] = {}
        shape = "tuple" if isinstance(node, ast.Tuple) else "list"
        values = [self.value(part.value if isinstance(part, ast.Starred) else part, frame) for part in node.elts]
        rest: Value | None = None
        if shape == "tuple" and node.elts and isinstance(node.elts[0], ast.Starred) and values[0].kind == "shape":
            for value in values[1:]:  # `*x.shape, x.device`: the batch size, and then sizes that are no rank's own
                rest = value if rest is None else join(rest, value)
            rest = SAME if rest is None else join(rest, SAME)
            return of(Items("tuple", {0: self.part(values[0], 0), **dict.fromkeys(range(1, _DIMENSIONS), rest)}, rest))
        if shape == "tuple":
            known = dict(enumerate(values))
            return of(Items("tuple", known, written=node))
        if any(isinstance(part, ast.Starred) for part in node.elts):
            return self.listed(node.elts, values)
        if is_taken_by_place(frame.script, node):
            return of(Items("list", dict(enumerate(values)), mixed=is_record(values), written=node))
        for value in values:
            rest = value if rest is None else join(rest, value)
        made = Items("list", {}, rest, in_order=not values, mixed=is_record(values), written=node)
        return replace(of(made), zero=not values)

    on_list = on_tuple

    on_set = on_tuple

    def on_dict(self, node: ast.Dict, frame: Frame) -> Value:
        items = Items("dict")
        for key, part in zip(node.keys, node.values, strict=True):
            value = self.value(part, frame)
            if key is None and (other := _dict_in(value)) is not None:  # `{**numbers, "epoch": 3}`
                items = _merged(items, other)
                continue
            if key is None:  # `{"coupled": False, **json.load(file)}`
                items.known = {name: set_in_run(each) for name, each in items.known.items()}
            constant = self.value(key, frame).constant if key is not None else None
            if isinstance(constant, str | int):
                items.known[constant] = value
            else:
                items.rest = value if items.rest is None else join(items.rest, value)
        return replace(of(items), zero=not node.keys)

    def on_joinedstr(self, node: ast.JoinedStr, frame: Frame) -> Value:
        self.shown_parts([part.value for part in node.values if isinstance(part, ast.FormattedValue)], frame)
        return SAME

    def on_lambda(self, node: ast.Lambda, frame: Frame) -> Value:
        return of(Function(node, frame.script, frame))

    def on_namedexpr(self, node: ast.NamedExpr, frame: Frame) -> Value:
        value = self.value(node.value, frame)
        self.assign(node.target, value, frame)
        return value

    def on_yield(self, node: ast.Yield | ast.YieldFrom, frame: Frame) -> Value:
        value = self.value(node.value, frame)
        divided = frozenset(each for each in self.loaders_in(value) if self.status.get(each) in ("training", "sharded"))
        if value.is_local or local_entries(value) or (divided and isinstance(node, ast.YieldFrom)):
            loaders = frozenset().union(divided, *(each.loaders for each in entries([value])))
            self.problem(frame, node, NOT_FOLLOWED, loaders)
        frame.yields.append(value)
        return SAME

    on_yieldfrom = on_yield

    def on_starred(self, node: ast.Starred, frame: Frame) -> Value:
        return self.value(node.value, frame)

    def on_await(self, node: ast.Await, frame: Frame) -> Value:
        return self.value(node.value, frame)


def is_placed(node: ast.expr, frame: Frame) -> bool:
    """Whether a variable holds samples at places of it."""
    owner = frame.owner(node.id) if isinstance(node, ast.Name) else None
    return owner is not None and owner.names[node.id].reason == PLACED  # type: ignore[attr-defined]


def _dict_in(value: Value) -> Items | None:
    """The only dict that a value may be."""
    found = [each for each in value.things if isinstance(each, Items) and each.shape == "dict"]
    return found[0] if len(found) == len(value.things) == 1 else None


def _merged(first: Items, second: Items) -> Items:
    """A new dict with the entries of two, of which the second may have any name where not all of them are known."""
    rests = [each.rest for each in (first, second) if each.rest is not None]
    rest = join(*rests) if len(rests) == 2 else rests[0] if rests else None
    other = second.rest if second.rest is not None and may_differ(second.rest) else None
    known = {key: each if other is None else join(each, other) for key, each in first.known.items()}
    return Items("dict", {**known, **second.known}, rest)
