"""Lists that a loop over the samples of a batch fills, `for s in batch: rows.append(np.abs(stft(s)))`: what a library
makes of one sample is a row of its own, whatever it is, where the turn sees nothing of the other samples."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence

from ..bindings import names_in
from ..called_modules import last_name
from ..script import Script
from .frames import Frame
from .held_values import local_entries
from .operations import runs_over_samples
from .state import State
from .tensor_uses import is_tensor_here
from .turns import takes_samples
from .values import (
    COUPLES,
    DRAWN,
    KEPT,
    LOCAL_ROWS,
    TAKEN,
    Function,
    Instance,
    Items,
    Library,
    Module,
    Value,
    made_of,
)

_OF_OTHERS = KEPT | {COUPLES, DRAWN, TAKEN}
# What they give depends on what was given before.
_TAKES = frozenset(
    {"next", "send", "pop", "popleft", "popitem", "setdefault", "heappush", "heappop", "heappushpop", "heapreplace"}
)
_LEAVES = ast.Continue | ast.Break | ast.Return | ast.Try | ast.Yield | ast.YieldFrom
_SIMPLE = ast.Assign | ast.AnnAssign | ast.AugAssign | ast.Expr


class SampleEntries(State):
    """What a list gets in each turn of a loop over samples."""

    def of_sample(self, node: ast.Call, value: Value, frame: Frame) -> Value:
        """What `rows.append(value)` puts into a list: a row of this turn's sample, where it is made of no other."""
        context = self.contexts[-1] if self.contexts else None
        loop = context.node if context is not None else None
        rows = (
            context is not None
            and value.kind in LOCAL_ROWS
            and isinstance(loop, ast.For)
            and runs_over_samples(self.value(loop.iter, context.frame))  # a forward has other names
        )
        if rows and names_in(node) & left_by_turns(loop):  # type: ignore[arg-type]
            return made_of("unknown", [value], reason=COUPLES)
        if not isinstance(loop, ast.For) or not fills(frame.script, loop, node) or not self.is_unseen(value):
            return value
        return made_of("rows", [value]) if self.takes_alike(loop, frame) else value

    def decides_by_sample(self, node: ast.expr, value: Value, frame: Frame) -> bool:
        """Whether `if len(row) < n: row = pad(row)` decides for this turn's sample, by what is made of no other."""
        loop, decides = self.contexts[-1].node if self.contexts else None, frame.script.parents[node]
        if not isinstance(loop, ast.For) or not isinstance(decides, ast.If) or not self.is_unseen(value):
            return False
        statements = [each for each in ast.walk(decides) if isinstance(each, ast.stmt)]
        if loop not in frame.script.ancestors(node) or not all(isinstance(x, ast.If | ast.Assign) for x in statements):
            return False
        filled = {each.id for each in _filled(loop)}
        seen = names_in(node) & left_by_turns(loop) or _keeps(loop.body, _stored(loop.body) | filled)
        return not seen and self.takes_alike(loop, frame)

    def is_unseen(self, value: Value) -> bool:
        """Whether something is unknown, and may be for one sample all the same."""
        return value.kind == "unknown" and not (value.couples or value.reason in _OF_OTHERS or value.things)

    def takes_alike(self, loop: ast.For, frame: Frame) -> bool:
        """Whether a loop runs over samples, or several things for each, and reads nothing else that differs between
        them: not over numbers of turns, or things for these, which are others on each rank."""
        zipped = isinstance(loop.iter, ast.Call) and ast.unparse(loop.iter.func) == "zip"
        overs = loop.iter.args if zipped else [loop.iter]  # type: ignore[attr-defined]
        takes_each = bool(overs) and all(self.takes_sample(each, frame) for each in overs)
        return takes_each and all(self.is_alike(each, frame) for each in given(loop))

    def takes_sample(self, over: ast.expr, frame: Frame) -> bool:
        """Whether a loop over something takes one sample in each turn, or what is of one."""
        value = self.value(over, frame)
        if value.kind == "batch" and not value.dimensions and is_tensor_here(frame.script, over, lambda _, __: False):
            return True
        return row_of_each(value) is not None or (value.is_local and takes_samples(value))

    def is_alike(self, node: ast.Name | ast.Attribute, frame: Frame) -> bool:
        """Whether what a turn reads from outside is the same for each sample: a number, or a function that keeps
        nothing."""
        value = self.value(node, frame)
        if value.is_local or local_entries(value):
            return False
        return all(
            not self.may_see(thing, frame) if isinstance(thing, Function) else isinstance(thing, Library)
            for thing in value.things
        )

    def may_see(self, function: Function, frame: Frame) -> bool:
        """Whether a function may keep something, or reads more than it is given that differs between the ranks."""
        own = {each.arg for each in ast.walk(function.node) if isinstance(each, ast.arg)} | _stored([function.node])
        own -= _with_defaults(function.node)
        if _keeps([function.node], own) or any(
            isinstance(x, ast.Global | ast.Nonlocal) for x in ast.walk(function.node)
        ):
            return True
        owners = function.owner.things if function.owner is not None else frozenset()
        attributes = [thing.attributes for thing in owners if isinstance(thing, Instance | Module)]
        for each in ast.walk(function.node):
            held: list[Value] = []
            if isinstance(each, ast.Attribute):
                held = [known[each.attr] for known in attributes if each.attr in known]
            elif isinstance(each, ast.Name) and each.id not in own and (outer := frame.owner(each.id)):
                held = [outer.names[each.id]]
            if any(one.is_local or local_entries(one) or one.only(Library) != [*one.things] for one in held):
                return True
        return False


def fills(script: Script, loop: ast.For, append: ast.Call) -> bool:
    """Whether a call puts one thing into a list in each turn of a loop, in order: a list that is begun above the loop.
    Nothing goes from turn to turn."""
    name = append.func.value if isinstance(append.func, ast.Attribute) else None
    if script.parents[append] not in loop.body or not isinstance(name, ast.Name):
        return False
    own, block = _stored(loop.body), script.block(loop)
    filled = {each.id for each in _filled(loop)}
    if (
        name.id not in filled
        or any(isinstance(each, _LEAVES) for each in ast.walk(loop))
        or _keeps(loop.body, own | filled)
    ):
        return False
    begun = any(name.id in _begun(each) for each in block[: block.index(loop)])
    return begun and not any(_root(each) in own | filled for each in given(loop))


def row_of_each(value: Value) -> Value | None:
    """What a list holds that has one entry for each sample of a batch, in order; None for anything else."""
    lists = [thing for thing in value.things if isinstance(thing, Items) and thing.shape == "list"]
    if value.is_local or len(lists) != 1 or len(value.things) != 1 or lists[0].known or lists[0].rest is None:
        return None
    by_sample = lists[0].by_sample and (lists[0].in_order or not lists[0].grows) and not lists[0].on_every_rank
    return lists[0].rest if by_sample and lists[0].rest.kind == "rows" else None


def given(loop: ast.For) -> Iterator[ast.Name | ast.Attribute]:
    """What a turn of a loop reads that it has not made itself: names and attributes, not the lists that it fills."""
    filled = _filled(loop)
    for each in _read(loop.body, _stored([loop.target])):
        if getattr(each, "value", None) not in filled:
            yield each


def left_by_turns(loop: ast.For) -> set[str]:
    """The names whose values come, by some way, from an earlier turn of a loop."""
    left = {_root(each) for each in given(loop)} & _stored(loop.body)
    assigned = [each for each in ast.walk(loop) if isinstance(each, ast.Assign) and left]
    for _ in assigned:
        further = {name for each in assigned if names_in(each.value) & left for name in _stored(each.targets)}
        if further <= left:
            break
        left |= further
    return left


def _read(block: Sequence[ast.AST], known: set[str]) -> Iterator[ast.Name | ast.Attribute]:
    """The names and attributes that statements read, with none of those that are known; these become more."""
    for part in block:
        if isinstance(part, ast.If):
            ways = (set(known), set(known))
            yield from _read([part.test], known)
            yield from _read(part.body, ways[0])
            yield from _read(part.orelse, ways[1])
            known |= ways[0] & ways[1]
        elif isinstance(part, ast.For | ast.With):
            begins = [part.iter] if isinstance(part, ast.For) else [item.context_expr for item in part.items]
            yield from _read(begins, known)
            inner = known | _stored([part.target] if isinstance(part, ast.For) else part.items)
            yield from _read(part.body, inner)
            known |= inner if isinstance(part, ast.With) else set()
        else:
            yield from _read_at_once(part, known)
            known |= _stored([part]) if isinstance(part, _SIMPLE) else set()


def _read_at_once(part: ast.AST, known: set[str]) -> Iterator[ast.Name | ast.Attribute]:
    parts = [*ast.walk(part)]
    own = known | _stored([each for each in parts if isinstance(each, ast.comprehension)])
    own |= {each.arg for each in parts if isinstance(each, ast.arg)}
    inner = {each.value for each in parts if isinstance(each, ast.Attribute)}
    for each in parts:
        reads = isinstance(each, ast.Name | ast.Attribute) and each not in inner and isinstance(each.ctx, ast.Load)
        if isinstance(each, ast.AugAssign) and isinstance(each.target, ast.Name) and each.target.id not in own:
            yield each.target
        elif reads and _root(each) not in own:
            yield each  # type: ignore[misc]


def _with_defaults(function: ast.AST) -> set[str]:
    """The parameters of a function that have a default, which may keep something from call to call."""
    found: set[str] = set()
    for each in (each.args for each in ast.walk(function) if isinstance(each, (ast.FunctionDef, ast.Lambda))):
        named = [*each.posonlyargs, *each.args]
        found |= {one.arg for one in named[len(named) - len(each.defaults) :]}
        found |= {one.arg for one, default in zip(each.kwonlyargs, each.kw_defaults, strict=True) if default}
    return found


def _root(node: ast.AST) -> str:
    """The name that an attribute is one of; "" where it is of another expression, in which its own names stand."""
    while isinstance(node, ast.Attribute):
        node = node.value
    return node.id if isinstance(node, ast.Name) else ""


def _stored(parts: Sequence[ast.AST]) -> set[str]:
    names = (each for part in parts for each in ast.walk(part) if isinstance(each, ast.Name))
    return {each.id for each in names if isinstance(each.ctx, ast.Store)}


def _filled(loop: ast.For) -> set[ast.Name]:
    """The lists that a loop appends to, each turn one thing."""
    calls = (each.value for each in loop.body if isinstance(each, ast.Expr) and isinstance(each.value, ast.Call))
    added = (each.func for each in calls if isinstance(each.func, ast.Attribute) and each.func.attr == "append")
    return {each.value for each in added if isinstance(each.value, ast.Name)}


def _begun(statement: ast.stmt) -> set[str]:
    """The lists that a statement begins: `rows = []`, `rows, phases = [], []`."""
    if not isinstance(statement, ast.Assign) or len(statement.targets) != 1:
        return set()
    target, value = statement.targets[0], statement.value
    both = isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple) and len(target.elts) == len(value.elts)
    pairs = zip(target.elts, value.elts, strict=True) if both else [(target, value)]  # type: ignore[attr-defined]
    return {each.id for each, made in pairs if isinstance(each, ast.Name) and ast.unparse(made) in ("[]", "list()")}


def _keeps(parts: Sequence[ast.AST], own: set[str]) -> bool:
    """Whether something is written that is not among the names of a turn or of a function itself, or is taken out of
    what keeps its place: `next(weights)`, `heapq.heappop(heap)`."""
    aliases = {
        name
        for part in parts
        for each in ast.walk(part)
        if isinstance(each, ast.Assign) and isinstance(each.value, ast.Name | ast.Attribute | ast.Subscript)
        for name in _stored(each.targets)
    }
    for each in (each for part in parts for each in ast.walk(part)):
        if isinstance(each, ast.Call) and last_name(each.func) in _TAKES:
            return True
        if isinstance(each, ast.AugAssign) and isinstance(each.target, ast.Name) and each.target.id in aliases:
            return True  # it may change what has another name, in place
        if isinstance(each, ast.Attribute | ast.Subscript) and not isinstance(each.ctx, ast.Load):
            held = each
            while isinstance(held, ast.Attribute | ast.Subscript):
                held = held.value  # type: ignore[assignment]
            if not (isinstance(held, ast.Name) and held.id in own):
                return True
        if isinstance(each, ast.Expr) and isinstance(each.value, ast.Call) and _root(each.value.func) not in own:
            return True
    return False
