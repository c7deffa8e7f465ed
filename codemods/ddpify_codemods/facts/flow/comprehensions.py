"""Follows comprehensions: the lists, dicts and sets that they make."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Literal

from .extended import of_samples
from .frames import Frame
from .held_values import local_entries, local_runs
from .listed_samples import is_number, lists_run_over, others_in, taken
from .operations import runs_over_samples
from .own_decisions import is_drawn, only_takes
from .phases import entry_by_entry, holds_of_key, written_down
from .subscripts import Subscripts
from .values import (
    BROADCAST,
    COUPLES,
    LOCAL_ROWS,
    NUMBERED,
    OWN_SIZE,
    SEVERAL,
    Items,
    Parameters,
    Value,
    made_of,
    of,
)


class Comprehensions(Subscripts):
    """What comprehensions make."""

    def of_own_iteration(self, over: Value, node: ast.AST, frame: Frame) -> Value:
        raise NotImplementedError

    def on_listcomp(self, node: ast.ListComp | ast.GeneratorExp | ast.SetComp | ast.DictComp, frame: Frame) -> Value:
        inner = Frame(frame.script, frame.node, {}, frame, statement=frame.statement)
        if isinstance(node, ast.DictComp):
            known = self.of_constants(node, inner) or self.of_entries(node, inner)
            if known is not None:
                return known
        if not isinstance(node, ast.DictComp) and (known := self.part_by_part(node, inner)) is not None:
            return known
        if isinstance(node, ast.ListComp) and (known := self.of_listed(node, inner)) is not None:
            return known
        overs: list[Value] = []
        with self.comprehension(node.generators, inner, overs):
            if isinstance(node, ast.DictComp):
                value = self.value(node.value, inner)
                key = self.value(node.key, inner)
                if key.is_local:
                    value = made_of("unknown", [key, value])
            else:
                value = self.value(node.elt, inner)
        if value.only(Parameters):
            parts = {each for each in value.things if not isinstance(each, Parameters)}
            return replace(value, things=frozenset({*parts, Parameters(self.parameters_in([value]))}))
        if any(map(is_drawn, overs)):  # how many there are, too
            return made_of("unknown", [value, *overs])
        by_sample = any(runs_over_samples(over) for over in overs)
        coupled = value.kind == "unknown" and value.reason in (COUPLES, BROADCAST, NUMBERED, OWN_SIZE)
        if (by_sample or any(over.kind in LOCAL_ROWS for over in overs)) and value.is_local and not coupled:
            reason = SEVERAL if not by_sample and value.kind == "mean" and value.forwards else ""
            nested = sum(over.is_local for over in overs) > 1  # not as many of each sample
            picks = nested or any(part.ifs for part in node.generators)
            merged = value.merged or bool(reason)
            value = made_of("picked" if picks else "rows", [value, *overs], host=value.host, reason=reason)
            value = replace(value, merged=merged)
        elif by_sample and not (self.in_forward or value.is_local or value.things or isinstance(node, ast.DictComp)):
            # `1 for a, b in zip(labels, guesses) if a == b`
            rows = [each for over in overs for each in ([over] if over.is_local else local_runs(over))]
            picks = any(part.ifs for part in node.generators)
            value = made_of("picked" if picks else "rows", rows, host=True) if rows else value
        shape: Literal["dict", "list"] = "dict" if isinstance(node, ast.DictComp) else "list"
        unclear = any(over.is_local or _may_have_each_sample(over) for over in overs)
        return of(Items(shape, {}, value, by_sample=by_sample and shape == "list", may_be_by_sample=unclear))

    def of_constants(self, node: ast.DictComp, frame: Frame) -> Value | None:
        """`{phase: … for phase in ["train", "val"]}`, entry by entry; None for another dict."""
        part = node.generators[0]
        written = written_down(frame.script, part.iter) if len(node.generators) == 1 and not part.ifs else []
        turns = [self.value(each, frame) for each in written]
        if not turns or not isinstance(node.key, ast.Name):
            return None
        items = Items("dict")
        for turn in turns:
            frame.names = {}
            self.assign(part.target, turn, frame)
            key = self.value(node.key, frame).constant
            if not isinstance(key, str | int) or key in items.known:
                frame.names = {}
                return None
            self.variant = (*self.variant, key)
            items.known[key] = self.value(node.value, frame)
            self.variant = self.variant[:-1]
        return of(items)

    def of_entries(self, node: ast.DictComp, frame: Frame) -> Value | None:
        """`{key: each.to(device) for key, each in batch.items()}` of a dict that holds things of a batch under known
        names, entry by entry; None for another dict."""
        part = node.generators[0]
        target = part.target.elts if isinstance(part.target, ast.Tuple) else []
        if len(node.generators) > 1 or len(target) != 2 or ast.unparse(node.key) != ast.unparse(target[0]):
            return None
        pairs = entry_by_entry(self.value(part.iter, frame))
        if not pairs or not all(each.kind == "same" or each.kind in LOCAL_ROWS for each in pairs.values()):
            return None
        items = Items("dict")
        for key, value in pairs.items():
            takes = [holds_of_key(test, ast.unparse(target[0]), key) for test in part.ifs]
            if None in takes:
                frame.names = {}
                return None
            if all(takes):
                frame.names = {}
                self.assign(part.target, of(Items("tuple", {0: Value(constant=key, host=True), 1: value})), frame)
                items.known[key] = self.value(node.value, frame)
        frame.names = {}
        return of(items)

    def part_by_part(self, node: ast.ListComp | ast.GeneratorExp | ast.SetComp, frame: Frame) -> Value | None:
        """`[each.to(device) for each in batch]`, part by part where these are not alike; None for others."""
        part = node.generators[0]
        over = self.value(part.iter, frame)
        items = [thing for thing in over.only(Items) if isinstance(thing, Items)]
        if len(node.generators) > 1 or part.ifs or over.is_local or len(items) != 1 or len(over.things) != 1:
            return None
        parts, by_sample = items[0].known, items[0].by_sample or items[0].may_be_by_sample
        several = (
            items[0].shape != "dict" and items[0].rest is None and not by_sample and not isinstance(node, ast.SetComp)
        )
        if not several or len({each.kind for each in parts.values()}) < 2 or not _are_parts(parts.values()):
            return None
        made: dict[object, Value] = {}
        for place, value in parts.items():
            frame.names = {}
            self.assign(part.target, value, frame)
            made[place] = self.value(node.elt, frame)
        return of(Items("list", made))

    def of_listed(self, node: ast.ListComp, frame: Frame) -> Value | None:
        """`[1 if p > 0.5 else 0 for p in probs]` of a list with a number for each sample; None for another one."""
        lists = [of_samples(self.value(each, frame)) for each in lists_run_over(frame.script, node)]
        names = taken(node.generators[0].target)
        rows = [each for each in lists if each is not None]
        if not rows or len(rows) < len(lists) or not is_number(frame.script, node.elt, names):
            return None
        others = [self.value(each, frame) for each in others_in(node.elt, names)]
        if any(each.is_local or local_entries(each) for each in others):
            return None
        return of(Items("list", {}, made_of("rows", rows, host=True), extended=True, in_order=True))

    on_generatorexp = on_listcomp

    on_setcomp = on_listcomp

    on_dictcomp = on_listcomp

    @contextmanager
    def comprehension(self, parts: list[ast.comprehension], frame: Frame, overs: list[Value]) -> Iterator[None]:
        if not parts:
            yield
            return
        over = self.of_own_iteration(self.value(parts[0].iter, frame), parts[0].iter, frame)
        whole = frame.script.parents[parts[0]]
        if not (is_drawn(over) and isinstance(whole, ast.ListComp | ast.GeneratorExp) and only_takes(whole.elt)):
            self.turns(parts[0].iter, over, frame)
        overs.append(over)
        with self.looping(parts[0], over, frame):
            self.assign(parts[0].target, self.each_of(over, parts[0].iter), frame)
            for test in parts[0].ifs:
                value = self.value(test, frame)
                if value.kind not in LOCAL_ROWS and not self.is_own_decision(test, value, frame):
                    self.demand(test, value, frame)
            with self.comprehension(parts[1:], frame, overs):
                yield


def _may_have_each_sample(value: Value) -> bool:
    """Whether a list has an entry for each sample, or may have: so may one that is made of its entries."""
    return any(isinstance(each, Items) and (each.by_sample or each.may_be_by_sample) for each in value.things)


def _are_parts(values: Iterable[Value]) -> bool:
    """Whether some values are tensors of a batch, or lists, with something for each sample."""
    return all(each.kind in LOCAL_ROWS for each in values)
