"""Collate functions: whether what one makes of its samples has them, each alone, along the first dimension."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Mapping, Set
from dataclasses import replace

from .collate_expressions import CollateExpressions, is_descending, looks_up, stored
from .collate_parts import COLUMNS, Keyed, Names, Part, Unclear, either, flat, is_of_turn, is_stacked, of_one
from .concatenated import Concatenated, Offsets, appended_to
from .filled import filled, is_longest, size_of_first
from .lengthened import Lengthened
from .padding import Padded
from .pictures import pictures
from .values import Function

_DEPTH = 3


def stacks(function: Function) -> bool:
    """Whether a collate function gives nothing but tensors with a row for each sample, which it makes of that alone.

    A list of samples is none, nor is a tensor that is padded to the longest of them.
    """
    part = collated(function)
    return part is not None and is_stacked(part)


def collated(function: Function) -> Part | None:
    """What a collate function makes of its samples; None where that is not seen."""
    parameters = function.node.args
    names = [each.arg for each in (*parameters.posonlyargs, *parameters.args)][function.owner is not None :]
    if not names:
        return None
    given: dict[str, Part] = dict.fromkeys((*names[1:], *(each.arg for each in parameters.kwonlyargs)), "same")
    given[names[0]] = "column"
    codes = {name: ast.Name(name, ast.Load()) for name, part in given.items() if part == "same"}
    try:
        return _given_back(function, given, _DEPTH, names[0], codes, function)
    except Unclear:
        return None


_APART = frozenset({"stacked", "column", "opened"})


def is_apart(part: Part) -> bool:
    """Whether something has its samples one by one: lists and tensors with an entry for each, padded or not; or one
    behind the other, where what tells where each begins tells it of these."""
    if isinstance(part, tuple):
        of = {each.samples for each in flat(part) if isinstance(each, Concatenated)}
        told = all(each.samples in of for each in flat(part) if isinstance(each, Offsets))
        return bool(part) and all(map(is_apart, part)) and told
    return isinstance(part, Padded | Concatenated | Offsets) or part in _APART


def paddings(part: Part) -> dict[str | int | None, Padded]:
    """What is padded of a batch, by its place or key in it; None for the batch itself."""
    if isinstance(part, Padded):
        return {None: part}
    if not isinstance(part, tuple):
        return {}
    keys: Iterable[str | int] = part.keys if isinstance(part, Keyed) else range(len(part))
    return {key: each for key, each in zip(keys, part, strict=True) if isinstance(each, Padded)}


def _given_back(
    function: Function, names: Names, depth: int, batch: str, codes: Mapping[str, ast.expr], outer: Function
) -> Part:
    """What a function gives back for arguments. batch: the name of all samples, which may be sorted; "" where it is
    called by the collate function, outer. codes: what its parameters stand for there."""
    node = function.node
    decorators = {ast.unparse(each) for each in getattr(node, "decorator_list", ())}
    if node.args.vararg or node.args.kwarg or not decorators <= {"staticmethod"}:
        raise Unclear
    follow = _Follow(function, dict(names), stored(node), depth, batch, codes, outer)
    if isinstance(node, ast.Lambda):
        return follow.part(node.body)
    follow.run(node.body)
    return follow.returned if follow.returned is not None else "same"


class _Follow(CollateExpressions):
    """Follows the statements, too. returned: what the function gives back. at_times: where not every sample comes.
    counting: lists of something to which a loop appends something of each sample."""

    returned: Part | None = None
    at_times = False
    counting: Set[str] = frozenset()

    def given_back(self, function: Function, names: dict[str, Part], codes: Mapping[str, ast.expr]) -> Part:
        return _given_back(function, names, self.depth - 1, "", codes, self.outer)

    def run(self, body: Iterable[ast.stmt]) -> None:
        for statement in body:
            self.statement(statement)

    def statement(self, node: ast.stmt) -> None:
        if node in self.filling:
            return
        if isinstance(node, ast.Assign) and self.pads_pictures(node):
            return
        if isinstance(node, ast.Assign) and len(node.targets) == 1 and (self.fills(node) or self.measures(node)):
            return
        if isinstance(node, ast.Assign) and len(node.targets) == 1:
            value, code, target = self.part(node.value), self.code_of(node.value), node.targets[0]
            if (
                value == "stacked"
                and isinstance(target, ast.Tuple)
                and getattr(node.value, "elt", node.value) in self.by_column
            ):
                value = (value,) * len(target.elts)
            self.assign(target, value)
            if isinstance(target, ast.Name) and value == "same" and code is not None:
                self.codes[target.id] = code
        elif isinstance(node, ast.AnnAssign) and node.value is not None:
            self.assign(node.target, self.part(node.value))
        elif isinstance(node, ast.AugAssign) and isinstance(node.target, ast.Name):
            if isinstance(node.op, ast.MatMult):
                raise Unclear
            owner = self.named(node.target.id)
            self.assign(node.target, self.computed([owner, self.part(node.value)]))
            if self.names[node.target.id] != owner:  # it may be changed in place, for whoever else holds it
                raise Unclear
        elif isinstance(node, ast.Return) and node.value is not None and not self.in_turn:
            found = self.part(node.value)
            self.returned = found if self.returned is None else either(self.returned, found)
        elif isinstance(node, ast.Expr):
            self.alone(node.value)
        elif isinstance(node, ast.For) and not node.orelse and not self.in_turn:
            self.loop(node)
        elif isinstance(node, ast.If):
            self.branches(node)
        elif not isinstance(node, ast.Pass | ast.Assert | ast.Raise | ast.Import | ast.ImportFrom):
            raise Unclear

    def measures(self, node: ast.Assign) -> bool:
        """Whether the length of the longest sample is kept for a tensor that will be filled, and for nothing else."""
        lists = [name for name, part in self.names.items() if part == "column"]
        longest = any(is_longest(self.script.scope(node), node.value, name) for name in lists)
        if longest and isinstance(node.targets[0], ast.Name):
            self.assign(node.targets[0], "longest")
        return longest and isinstance(node.targets[0], ast.Name)

    def pads_pictures(self, node: ast.Assign) -> bool:
        """Whether a tensor is made which a loop fills with pictures, padded to the largest; or its sizes are."""
        found = pictures(self.script, self.script.scope(node)) if not self.in_turn and not self.at_times else None
        if found is None or self.names.get(found.samples) != "column":
            return False
        if node in found.sizes:
            self.names[ast.unparse(node.targets[0])] = "longest"
            return True
        code = self.value_of(found.value) if node is found.made and self.part(found.value) == "same" else ""
        if not code:
            return False
        first, *others = found.dimensions
        self.names[ast.unparse(node.targets[0])] = Padded(first, code, also=tuple(others))
        self.filling.add(found.loop)
        return True

    def value_of(self, value: ast.expr) -> str:
        """The code of what samples are padded with, in the words of the collate function; "" where it has none."""
        code = self.code_of(value)
        return "" if code is None else ast.unparse(code)

    def fills(self, node: ast.Assign) -> bool:
        """Whether a tensor is made which a loop fills with samples, padded to the longest."""
        lists = {name for name, part in self.names.items() if part in ("column", "unordered")}
        alike = not self.in_turn and not self.at_times
        found = filled(self.script, self.script.scope(node), node, lists) if alike else None
        if found is None or self.named(found.samples) != "column" or self.part(found.value) != "same":
            return False
        if not (code := self.value_of(found.value)):
            return False
        if not all(size_of_first(each) in lists or self.part(each) == "same" for each in found.sizes):
            return False
        self.assign(node.targets[0], Padded(1, code))
        self.filling.add(found.loop)
        return True

    def alone(self, node: ast.expr) -> None:
        """An expression that is a statement: `images.append(image)`."""
        if isinstance(node, ast.Constant):
            return
        if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute):
            raise Unclear
        holder = node.func.value
        if node.func.attr == "append" and isinstance(holder, ast.Name) and holder.id in self.counting:
            if not (self.in_turn and len(node.args) == 1 and of_one(self.part(node.args[0]))):
                raise Unclear
            return
        owner = self.part(holder)
        if node.func.attr == "sort" and isinstance(holder, ast.Name) and self.is_untouched(holder.id):
            self.descending = is_descending(node)
            return
        if node.func.attr != "append" or owner == "one" or not isinstance(holder, ast.Name):
            if owner not in ("one", "stacked"):
                raise Unclear
            self.part(node)
            return
        if len(node.args) != 1:
            raise Unclear
        each = self.part(node.args[0])
        if owner == "new" and self.in_turn and not self.at_times and of_one(each):
            self.names[holder.id] = "column"
        elif owner == "new" and self.in_turn and not self.at_times and isinstance(each, Lengthened):
            self.names[holder.id] = replace(each, of_all=True)
        elif (owner == "new" or isinstance(owner, tuple)) and not self.in_turn:
            self.names[holder.id] = (*(owner if isinstance(owner, tuple) else ()), each)
        else:
            raise Unclear

    def loop(self, node: ast.For) -> None:
        over = self.part(node.iter)
        for name in stored(node):  # what it has from the turn before
            self.names.pop(name, None)
            self.codes.pop(name, None)
        if over in COLUMNS or over == "numbered":
            self.counting = {name for name in appended_to(node) if isinstance(self.names.get(name), tuple)}
            for name in self.counting:  # `[0]`, with something of each sample behind: it tells of those before
                del self.names[name]
            self.in_turn = True
            self.takes(node.target, over)
            self.run(node.body)
            self.in_turn = False
            self.names = {name: part for name, part in self.names.items() if not is_of_turn(part)}
        elif over == "same" or (over == "first" and looks_up(node.target, node.body)):
            empty = {name for name, part in self.names.items() if part == "new"}
            self.assign(node.target, "same")
            self.run(node.body)
            for name in empty:  # filled in each turn
                if self.names.get(name) == "column":
                    del self.names[name]
        else:
            raise Unclear
        for name in stored(node):  # as many turns as there are
            self.codes.pop(name, None)

    def branches(self, node: ast.If) -> None:
        test = self.part(node.test)
        if not of_one(test):
            raise Unclear
        before, codes, at_times = dict(self.names), dict(self.codes), self.at_times
        self.at_times = at_times or test != "same"
        self.run(node.body)
        after, self.names = self.names, before
        said, self.codes = self.codes, codes
        self.run(node.orelse)
        self.codes = {name: code for name, code in self.codes.items() if _is_same_code(code, said.get(name))}
        self.at_times = at_times
        both = {}
        for name in self.names.keys() & after.keys():
            try:
                both[name] = either(self.names[name], after[name])
            except Unclear:
                continue  # it matters if it is read
        self.names = both


def _is_same_code(code: ast.expr, other: ast.expr | None) -> bool:
    return other is not None and ast.unparse(code) == ast.unparse(other)
