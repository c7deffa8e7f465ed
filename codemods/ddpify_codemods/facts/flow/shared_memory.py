"""Tensors and arrays that go by two names in one memory: `hits, seen = counts.chunk(2)`, `table = counts.numpy()`,
`for row in matrix`. Where one of them is changed, the other changes with it, which is not followed."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from ..called_modules import last_name
from ..script import Script
from .frames import Frame

# What they make may be the memory of what they are given; of `to`, `cpu` and `float` where it already is so.
_VIEWS = frozenset(
    {"Variable", "view", "view_as", "detach", "squeeze", "unsqueeze", "transpose", "t", "permute", "numpy", "expand"}
    | {"chunk", "split", "unbind", "tensor_split", "array_split", "hsplit", "vsplit", "narrow", "select", "diagonal"}
    | {"as_tensor", "from_numpy", "asarray", "asanyarray", "ravel", "reshape", "flatten", "unflatten", "movedim"}
    | {"swapaxes", "swapdims", "diag", "atleast_1d", "atleast_2d", "contiguous", "ascontiguousarray", "to", "cpu"}
    | {"cuda", "type", "type_as", "float", "double", "long", "int", "requires_grad_", "enumerate", "zip", "reversed"}
    | {"list", "tuple", "dict", "iter", "values", "items", "expand_as", "unfold", "as_strided"}
)
_PUT = frozenset({"append", "appendleft", "extend", "insert", "setdefault", "update", "setattr"})  # what holds it then
_NUMBERS = frozenset({"float", "int", "type"})
_LIBRARIES = ("torch.", "numpy.")
_LOOPS = ast.For | ast.While
_Given = tuple[list[ast.expr], ast.expr, ast.stmt]


def goes_by_two_names(name: ast.Name, node: ast.AST, frame: Frame) -> bool:
    """Whether what a variable of this function holds may be in the memory of something else, where a node changes it:
    what it was made of, or what was made of it and not given anew before the node comes again."""
    script, scope = frame.script, frame.script.scope(name)
    given = [*_given(script, scope)]
    fresh = [each for targets, value, each in given if _is_new(script, targets, value, each, name.id)]
    before = [each for each in fresh if _is_certain(script, each, node)]
    for targets, value, statement in given:
        own = any(_stores(each, name.id) for each in targets)
        held = _shared(script, value)
        several = own and len(targets) > 1 and not isinstance(value, ast.Constant)  # `hits = seen = torch.zeros(1)`
        shares = bool(held - {name.id}) if own else name.id in held
        if isinstance(statement, ast.For) and statement not in script.ancestors(node):
            continue
        if not (shares or several) or any(_comes_between(script, each, statement, node) for each in before):
            continue
        if any(_follows(script, each, statement, node) for each in fresh):
            continue
        if own or not _is_read_behind(script, targets, statement, node):
            return True
    return False


def _given(script: Script, scope: ast.AST) -> Iterator[_Given]:
    """What the statements of a function give a value: the targets, the value, the statement."""
    for each in ast.walk(scope):
        if isinstance(each, ast.Assign) and script.scope(each) is scope:
            pairs = [_pairs(target, each.value) for target in each.targets]
            if len(each.targets) == 1:
                yield from (([target], value, each) for target, value in pairs[0])
            else:
                yield each.targets, each.value, each
        elif isinstance(each, ast.AnnAssign) and each.value is not None and script.scope(each) is scope:
            yield [each.target], each.value, each
        elif isinstance(each, ast.For) and script.scope(each) is scope:
            yield [each.target], each.iter, each
        elif isinstance(each, ast.Call) and last_name(each.func) in _PUT and script.scope(each) is scope:
            yield [each.func], ast.copy_location(ast.Tuple(each.args, ast.Load()), each), script.statement(each)


def _pairs(target: ast.expr, value: ast.expr) -> list[tuple[ast.expr, ast.expr]]:
    """`a, b = b, a` by its parts."""
    if not isinstance(target, ast.Tuple) or not isinstance(value, ast.Tuple) or len(target.elts) != len(value.elts):
        return [(target, value)]
    return [*zip(target.elts, value.elts, strict=True)]


def _stores(target: ast.expr, name: str) -> bool:
    """Whether a target gives a variable itself a value."""
    if isinstance(target, ast.Tuple | ast.List):
        return any(_stores(each, name) for each in target.elts)
    if isinstance(target, ast.Starred):
        return _stores(target.value, name)
    return isinstance(target, ast.Name) and target.id == name


def _is_new(script: Script, targets: list[ast.expr], value: ast.expr, statement: ast.stmt, name: str) -> bool:
    """Whether a statement gives a variable something that is in no other memory."""
    one = len(targets) == 1 and isinstance(targets[0], ast.Name) and targets[0].id == name
    return one and not isinstance(statement, ast.For) and not _shared(script, value)


def _is_certain(script: Script, statement: ast.stmt, node: ast.AST) -> bool:
    """Whether a statement has run in any case where a node is come to: it stands before it, in a block around it."""
    here = script.statement(node)
    around = [here, *script.ancestors(here)]
    block = script.block(statement)
    return statement is not here and any(each in around for each in block[block.index(statement) + 1 :])


def _loop_around(script: Script, one: ast.AST, other: ast.AST) -> ast.AST | None:
    """The innermost loop that two nodes are in."""
    within = [*script.ancestors(one)]
    return next((each for each in script.ancestors(other) if isinstance(each, _LOOPS) and each in within), None)


def _comes_between(script: Script, fresh: ast.stmt, other: ast.stmt, node: ast.AST) -> bool:
    """Whether a variable is given anew on each way from a statement to a node; the new value comes before the node in
    any case."""
    if other is fresh or other in script.ancestors(node):
        return False
    if other.lineno < fresh.lineno:
        return True
    loop = _loop_around(script, other, node)
    return other.lineno > getattr(node, "lineno", 0) and (loop is None or loop in script.ancestors(fresh))


def _follows(script: Script, fresh: ast.stmt, other: ast.stmt, node: ast.AST) -> bool:
    """Whether a variable is given anew right behind a statement, before a node comes: `logs.append(running)`, and then
    `running = torch.zeros(1)`."""
    block = script.block(other)
    if fresh not in block or block.index(fresh) <= block.index(other):
        return False
    between = block[block.index(other) + 1 : block.index(fresh)]
    leaves = any(isinstance(part, ast.Continue | ast.Break) for each in between for part in ast.walk(each))
    return not leaves and not any(part is node for each in (other, *between) for part in ast.walk(each))


def _is_read_behind(script: Script, targets: list[ast.expr], statement: ast.stmt, node: ast.AST) -> bool:
    """Whether variables are given a value behind a node, and read behind that alone: what they held in the turn before
    of a loop around both is not read any more."""
    parts = [part for each in targets for part in ast.walk(each)]
    names = {part.id for part in parts if isinstance(part, ast.Name)}
    alone = all(isinstance(part, ast.Name | ast.Tuple | ast.expr_context) for part in parts)
    if statement.lineno <= getattr(node, "lineno", 0) or not alone:
        return False
    loop = _loop_around(script, statement, node)
    reads = [each for each in ast.walk(loop or ast.Module([], [])) if isinstance(each, ast.Name) and each.id in names]
    return not any(isinstance(each.ctx, ast.Load) and each.lineno <= statement.lineno for each in reads)


def _shared(script: Script, node: ast.expr) -> set[str]:
    """The variables, `a`, or what they hold, `self.a`, `log["a"]`, in whose memory a value may be."""
    if isinstance(node, ast.Name):
        return set() if node.id in script.imported else {node.id}
    if isinstance(node, ast.Attribute | ast.Subscript | ast.Starred | ast.NamedExpr):
        return _shared(script, node.value)
    if isinstance(node, ast.Call):
        return _shared_by(script, node)
    parts: list[ast.expr] = []
    if isinstance(node, ast.Tuple | ast.List | ast.Set):
        parts = node.elts
    elif isinstance(node, ast.Dict):
        parts = node.values
    elif isinstance(node, ast.IfExp):
        parts = [node.body, node.orelse]
    return set().union(*(_shared(script, each) for each in parts))


def _shared_by(script: Script, node: ast.Call) -> set[str]:
    """The variables in whose memory may be what a call makes: `counts.view(-1)`, `torch.chunk(counts, 2)`."""
    if last_name(node.func) not in _VIEWS:
        return set()
    own = isinstance(node.func, ast.Attribute) and not script.qualified(node.func).startswith(_LIBRARIES)
    if own:
        return _shared(script, node.func.value)  # type: ignore[attr-defined]
    if isinstance(node.func, ast.Name) and node.func.id in _NUMBERS:
        return set()
    return set().union(*(_shared(script, each) for each in [*node.args, *(word.value for word in node.keywords)]))
