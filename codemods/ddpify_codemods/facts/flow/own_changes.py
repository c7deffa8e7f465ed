"""Loops that change each sample of a batch by itself, as augmentations do that a training loop calls:
`for i in range(len(x)): x[i, :] *= np.random.uniform(0.8, 1.2)`. Each rank does so for its own samples."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import lru_cache

from ..called_modules import last_name
from ..script import KEPT, Script
from .draws import draws_from

_LIBRARIES = ("numpy.", "math.", "random.", "torch.")
_BUILT_IN = frozenset({"len", "int", "float", "abs", "min", "max", "round", "bool"})
# They do something else than computing.
_ACT = frozenset(
    {"save", "load", "seed", "manual_seed", "savez", "savetxt", "set_state", "setstate", "backward", "open", "shuffle"}
    | {"copyto", "put", "place", "putmask", "fill_diagonal", "dropout", "memmap"}
)
_OTHERS = ("torch.distributed.", "torch.nn.", "torch.utils.", "torch.cuda.", "torch.autograd.")
# What is new, and no other name of something else.
_NEW = ast.Constant | ast.BinOp | ast.UnaryOp | ast.Compare | ast.Call
_PARTS = ast.BinOp | ast.UnaryOp | ast.BoolOp | ast.Compare | ast.IfExp | ast.Tuple | ast.List | ast.Slice


@dataclass
class Changes:
    """What a loop takes of which tensors, by the number of its turn, `taken`, and changes; `tensors`: those that are
    seen to be no lists. others: what else it reads. draws: the libraries that it draws from. inner: its own variables.
    """

    taken: dict[str, ast.Name] = field(default_factory=dict)
    changed: dict[str, ast.Name] = field(default_factory=dict)
    tensors: set[str] = field(default_factory=set)
    others: list[ast.expr] = field(default_factory=list)
    draws: set[str] = field(default_factory=set)
    inner: set[str] = field(default_factory=set)


class _NotAlone(Exception):
    """The loop does something else, too."""


@lru_cache(maxsize=KEPT)
def changes_alone(script: Script, loop: ast.For) -> Changes | None:
    """What a loop changes that computes each of its turns by itself; None for others."""
    call, turn = loop.iter, loop.target
    counts = isinstance(call, ast.Call) and ast.unparse(call.func) == "range" and len(call.args) == 1
    if not counts or not isinstance(turn, ast.Name) or loop.orelse:
        return None
    found = Changes(inner={turn.id})
    sized = ast.unparse(call.args[0])  # type: ignore[attr-defined]
    if sized.endswith((".shape[0]", ".size(0)")):
        found.tensors.add(sized.removesuffix(".shape[0]").removesuffix(".size(0)"))
    reader = _Reader(script, turn.id, found, _stored(loop.body))
    try:
        reader.block(loop.body, set())
    except _NotAlone:
        return None
    return found if found.changed else None


def _stored(body: Sequence[ast.stmt]) -> frozenset[str]:
    """The variables that a block sets."""
    names = (node for each in body for node in ast.walk(each) if isinstance(node, ast.Name))
    return frozenset(node.id for node in names if isinstance(node.ctx, ast.Store))


@dataclass
class _Reader:
    script: Script
    turn: str
    found: Changes
    stored: frozenset[str]

    def block(self, body: Sequence[ast.stmt], set_before: set[str]) -> None:
        """Read statements; set_before: the loop's own variables that this turn has set."""
        for each in body:
            if isinstance(each, ast.If):
                self.read(each.test, set_before)
                for way in (each.body, each.orelse):
                    self.block(way, set(set_before))
            elif isinstance(each, ast.Assign) and len(each.targets) == 1:
                self.read(each.value, set_before)
                into_sample = isinstance(each.targets[0], ast.Subscript)
                if not (into_sample or _is_new(each.value) or self.is_own(each.value, set_before)):
                    raise _NotAlone
                self.write(each.targets[0], set_before)
            elif isinstance(each, ast.AugAssign) and isinstance(each.target, ast.Subscript):
                self.read(each.value, set_before)
                self.write(each.target, set_before)
            elif not isinstance(each, ast.Pass | ast.Continue):
                raise _NotAlone

    def write(self, target: ast.expr, set_before: set[str]) -> None:
        if isinstance(target, ast.Name) and target.id != self.turn:
            set_before.add(target.id)
            self.found.inner.add(target.id)
        elif isinstance(target, ast.Tuple):
            for each in target.elts:
                self.write(each, set_before)
        elif isinstance(target, ast.Subscript) and isinstance(target.value, ast.Name):
            self.sample(target)
            self.found.changed[target.value.id] = target.value
            self.read_all(_indices(target), set_before)
        else:
            raise _NotAlone

    def sample(self, node: ast.Subscript) -> None:
        """`x[i]`, `x[i, :3]`, where `i` is the number of the turn."""
        first = _indices(node)[0]
        if not isinstance(node.value, ast.Name) or node.value.id in self.stored:
            raise _NotAlone
        if not isinstance(first, ast.Name) or first.id != self.turn:
            raise _NotAlone
        self.found.taken[node.value.id] = node.value
        self.found.tensors |= {node.value.id} if isinstance(node.slice, ast.Tuple) else set()

    def read_all(self, nodes: Sequence[ast.expr], set_before: set[str]) -> None:
        for each in nodes:
            if not (isinstance(each, ast.Name) and each.id == self.turn):
                self.read(each, set_before)

    def read(self, node: ast.expr, set_before: set[str]) -> None:
        """Read an expression, which may take this turn's samples, the loop's own variables and what is no sample."""
        if isinstance(node, ast.Constant) or (isinstance(node, ast.Name) and node.id in set_before):
            return
        if isinstance(node, ast.Subscript) and _is_taken(node, self.turn):
            self.sample(node)
            self.read_all(_indices(node), set_before)
        elif _is_other_size(node) or self.is_of_library(node):
            return
        elif isinstance(node, ast.Name | ast.Attribute):
            if isinstance(node, ast.Name) and (node.id in self.stored or node.id == self.turn):
                raise _NotAlone
            if isinstance(node, ast.Attribute) and self.is_own(node.value, set_before):
                self.read(node.value, set_before)
            else:
                self.found.others.append(node)
        elif isinstance(node, ast.Call):
            self.called(node, set_before)
        elif isinstance(node, _PARTS | ast.Subscript):
            for part in ast.iter_child_nodes(node):
                if isinstance(part, ast.expr):
                    self.read(part, set_before)
        else:
            raise _NotAlone

    def called(self, node: ast.Call, set_before: set[str]) -> None:
        name = self.script.qualified(node.func)
        if isinstance(node.func, ast.Attribute) and self.is_own(node.func.value, set_before):
            self.read(node.func.value, set_before)
        elif (
            (name not in _BUILT_IN and not name.startswith(_LIBRARIES))
            or name.endswith("_")
            or (name.startswith(_OTHERS) and not name.startswith("torch.nn.functional."))
        ):
            raise _NotAlone
        if last_name(node.func) in _ACT or any(word.arg in (None, "out") for word in node.keywords):
            raise _NotAlone
        if library := draws_from(self.script, node):
            self.found.draws.add(library)
        for each in (*node.args, *(word.value for word in node.keywords)):
            self.read(each, set_before)

    def is_of_library(self, node: ast.expr) -> bool:
        """`np.pi`."""
        return isinstance(node, ast.Attribute) and self.script.qualified(node).startswith(_LIBRARIES)

    def is_own(self, node: ast.expr, set_before: set[str]) -> bool:
        """Whether something is made of this turn's sample, and of variables of this turn."""
        if isinstance(node, ast.Subscript):
            return _is_taken(node, self.turn) or self.is_own(node.value, set_before)
        if isinstance(node, ast.Call | ast.Attribute):
            inner = node.func if isinstance(node, ast.Call) else node
            return isinstance(inner, ast.Attribute) and self.is_own(inner.value, set_before)
        return isinstance(node, ast.BinOp) or (isinstance(node, ast.Name) and node.id in set_before)


def _is_new(node: ast.expr) -> bool:
    """Whether an expression makes something, `np.where(mask)[0]`, rather than giving a name to what there is."""
    return _is_new(node.value) if isinstance(node, ast.Subscript) else isinstance(node, _NEW)


def _indices(node: ast.Subscript) -> list[ast.expr]:
    return node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]


def _is_taken(node: ast.Subscript, turn: str) -> bool:
    """Whether something is taken by the number of the turn."""
    first = _indices(node)[0]
    return isinstance(first, ast.Name) and first.id == turn


def _is_other_size(node: ast.expr) -> bool:
    """Whether this is a size of a tensor other than how many samples it has: `x.shape[1]`, `x.size(2)`."""
    if isinstance(node, ast.Call):
        place = node.args[0] if len(node.args) == 1 and ast.unparse(node.func).endswith(".size") else None
    else:
        of_shape = isinstance(node, ast.Subscript) and ast.unparse(node.value).endswith(".shape")
        place = node.slice if of_shape else None  # type: ignore[attr-defined]
    return isinstance(place, ast.Constant) and isinstance(place.value, int) and place.value > 0
