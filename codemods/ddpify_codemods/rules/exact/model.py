"""DDP102: every trained module is made distributed, just before the optimizer that gets its parameters is built."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence

from ...facts.all_ways import behind_all_ways
from ...facts.bindings import names_in
from ...facts.made_under import made_under
from ...facts.optimizers import Optimizer, optimizers
from ...facts.script import Script
from ...facts.taken_under import condition_again, taken_under
from ...facts.trained_modules import Base
from ...rule import Edit, Finding, Insert, Replace, Rule
from ...targets import Target

_BRANCHES = (ast.If, ast.Try, ast.With, ast.ExceptHandler, ast.Match, ast.match_case)


def check(script: Script, target: Target) -> Iterator[Edit | Finding]:
    """Insert one DistributedDataParallel line per trained module."""
    if target.shards_models:
        return
    done: list[tuple[Base, ast.stmt]] = []
    in_place: set[ast.expr] = set()
    for optimizer in optimizers(script):
        for base in optimizer.bases:
            if _is_criterion(optimizer, base):
                continue
            if base.bound_at is not None:
                if base.node not in in_place:
                    in_place.add(base.node)
                    yield _replace(target, base)
                continue
            if any(isinstance(node, ast.Call) for node in ast.walk(base.node)) and not base.each_of:
                yield _unnamed(base)
                continue
            at = _behind(script, place(script, optimizer.call, base), base)
            if not any(_covers(script, earlier, base, where, at) for earlier, where in done):
                done.append((base, at))
                yield _insert(script, target, base, at)


def check_program(scripts: Sequence[Script], target: Target, edits: Sequence[Edit]) -> Iterator[tuple[Script, Finding]]:
    """Say so when no module of the program was found that could be divided: exact, but no faster."""
    if edits or target.shards_models or any(script.view and script.view.wraps for script in scripts):
        return
    message = "no module was found whose parameters this optimizer gets, so every process does the whole work"
    remedy = "hand over model.parameters() where the optimizer is built"
    for script in [script for script in scripts if optimizers(script)][:1]:
        yield script, Finding(RULE.id, "warning", optimizers(script)[0].call.lineno, message, remedy)


def _is_criterion(optimizer: Optimizer, base: Base) -> bool:
    """A loss with parameters of its own sees the gathered outputs: it is computed alike everywhere (L17)."""
    name = base.code.rpartition(".")[2].lower()
    return len(optimizer.bases) > 1 and ("criterion" in name or name.endswith("loss"))


def _unnamed(base: Base) -> Finding:
    return Finding(
        RULE.id,
        "note",
        base.node.lineno,
        f"`{base.code}` has no name of its own, so its training forward is not divided over the processes",
        "give the module a name before its parameters are handed to the optimizer",
    )


def place(script: Script, call: ast.Call | ast.stmt, base: Base) -> ast.stmt:
    """The statement before which the module is made distributed: the one that builds the optimizer, or, when that is
    one of several branches, the outermost branching statement that does not itself bind the module, nor stands where
    there is none; when it is in a loop over the module's parts, that loop. Where parameters are updated by hand, the
    training loop around that."""
    if isinstance(call, ast.For):
        return _training_loop(script, base)
    visible = script.scope(base.node) in (script.scope(call), script.tree) and not _of_loop(script, call, base)
    at = best = script.statement(call if visible else base.node)
    if _needs(script, base, at) and not _condition(script, base, at):
        at = best = script.statement(base.node)
    needs = _needs(script, base, at)
    for parent in script.ancestors(at):
        if not (isinstance(parent, _BRANCHES) or _runs_over(parent, base)):
            break
        if _binds(parent, base) or _needs(script, base, parent) != needs:
            break
        if isinstance(parent, (ast.If, ast.Try, ast.For)) and not _is_elif(script, parent):
            best = parent
    while _is_elif(script, best):
        parent = script.parents[best]
        assert isinstance(parent, ast.stmt)
        best = parent
    return best


def _behind(script: Script, at: ast.stmt, base: Base) -> ast.stmt:
    """The statement, or the one behind the `if` around it that makes a module, with its optimizer, in one way and takes
    both from a checkpoint in another."""
    branches = script.parents[at]
    while isinstance(branches, ast.If) and _is_elif(script, branches):
        branches = script.parents[branches]
    if any(isinstance(each, ast.Attribute) and each.attr == "backward" for each in ast.walk(branches)):
        return at
    return behind_all_ways(script, branches, lambda each: _binds(each, base)) or at


def _training_loop(script: Script, base: Base) -> ast.stmt:
    best = script.statement(base.node)
    for parent in script.ancestors(best):
        if isinstance(parent, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Module)) or _binds(parent, base):
            break
        if isinstance(parent, (ast.For, ast.While, ast.With)):
            best = parent
    return best


def _of_loop(script: Script, call: ast.AST, base: Base) -> bool:
    """Whether the module has its name from a loop that is over when the optimizer is built."""
    inside = set(script.ancestors(call))
    names = names_in(base.node)
    return not base.each_of and any(
        isinstance(parent, ast.For) and parent not in inside and names & names_in(parent.target)
        for parent in script.ancestors(base.node)
    )


def _runs_over(node: ast.AST, base: Base) -> bool:
    """Whether it is a loop over the parts of a module: `for name in nets.keys():`."""
    return isinstance(node, ast.For) and any(
        isinstance(part, ast.expr) and ast.unparse(part) == base.code for part in ast.walk(node.iter)
    )


def _is_elif(script: Script, node: ast.stmt) -> bool:
    parent = script.parents.get(node)
    return (
        isinstance(node, ast.If)
        and isinstance(parent, ast.If)
        and parent.orelse == [node]
        and node.col_offset == parent.col_offset
    )


def _binds(node: ast.AST, base: Base) -> bool:
    """Whether something inside a statement assigns the module, or what it is an attribute of."""
    names = _prefixes(base.each_of or base.code)
    return any(
        isinstance(target, (ast.Name, ast.Attribute, ast.Subscript))
        and isinstance(target.ctx, ast.Store)
        and ast.unparse(target) in names
        for target in ast.walk(node)
    )


def _prefixes(code: str) -> set[str]:
    node: ast.expr = ast.parse(code, mode="eval").body
    names = {ast.unparse(node)}
    while isinstance(node, (ast.Attribute, ast.Subscript, ast.Call)):
        node = node.func if isinstance(node, ast.Call) else node.value
        names.add(ast.unparse(node))
    return names - {"self"}


def _covers(script: Script, earlier: Base, base: Base, where: ast.stmt, at: ast.stmt) -> bool:
    """Whether the line inserted at `where` has made the module distributed whenever `at` is reached."""
    if earlier != base:
        return False
    block = script.parents[where]
    if where is not at and not (where.lineno < at.lineno and (block is script.tree or block in script.ancestors(at))):
        return False
    if isinstance(block, (ast.If, ast.Try)) and _branch(block, where) != _branch(block, _child_of(script, block, at)):
        return False
    between = (
        node
        for node in script.nodes
        if isinstance(node, ast.stmt) and where.lineno <= node.lineno < at.lineno and not isinstance(node, _BRANCHES)
    )
    return script.scope(where) is script.scope(at) and not any(
        isinstance(node, (ast.Assign, ast.AnnAssign, ast.For)) and _binds(node, base) for node in between
    )


def _child_of(script: Script, block: ast.AST, node: ast.AST) -> ast.AST:
    while script.parents[node] is not block:
        node = script.parents[node]
    return node


def _branch(block: ast.AST, child: ast.AST) -> str:
    return next(
        name for name, value in ast.iter_fields(block) if value is child or (isinstance(value, list) and child in value)
    )


def _insert(script: Script, target: Target, base: Base, at: ast.stmt) -> Insert:
    code = _code(script, target, base, at)
    name = "DistributedDataParallel" if "DistributedDataParallel(" in code else "replicate"
    return Insert(at, code, f"make {base.each_of or base.code} distributed", imports=_imports(target, name))


def _replace(target: Target, base: Base) -> Replace:
    """What only a comprehension can name becomes distributed where it stands; what comes back is the same module."""
    code = _wrapped("DistributedDataParallel", target, "{}")
    return Replace(base.node, code, f"make each {base.code} distributed", _imports(target, "DistributedDataParallel"))


def _imports(target: Target, name: str) -> tuple[str, ...]:
    return (name, *(target.imports if target.wrapper_arguments else ()))


def _wrapped(name: str, target: Target, code: str) -> str:
    return f"{name}({', '.join(filter(None, (code, target.wrapper_arguments)))})"


def _code(script: Script, target: Target, base: Base, at: ast.stmt) -> str:
    wrapped = _wrapped("DistributedDataParallel", target, base.code)
    in_place = _wrapped("replicate", target, base.code)
    if base.each_of and base.is_list and _assignable(script, base, at):
        return f"{base.each_of} = [{wrapped} for {base.code} in {base.each_of}]"
    if base.each_of:
        return f"for {base.code} in {base.each_of}:\n    {in_place}"
    code = f"{base.code} = {wrapped}" if _assignable(script, base, at) else in_place
    condition = _condition(script, base, at)
    return f"if {condition}:\n    {code}" if condition else code


def _condition(script: Script, base: Base, at: ast.stmt) -> str:
    """That under which alone there is the module before a statement, if it can be asked there: `if args.mask: …`."""
    if base.each_of:
        return ""
    return made_under(script, base.code, at) or condition_again(script, taken_under(script, base.node, at), at)


def _needs(script: Script, base: Base, at: ast.AST) -> str:
    """The same, be it one that cannot be asked there."""
    if base.each_of or not isinstance(at, ast.stmt):
        return ""
    tests = taken_under(script, base.node, at)
    return made_under(script, base.code, at) or " and ".join(map(ast.unparse, tests))


def _assignable(script: Script, base: Base, at: ast.stmt) -> bool:
    """Whether `model = …` means the same variable here; where it does not, the module is made distributed in place."""
    node = base.node
    if isinstance(node, ast.Attribute):
        return True
    if isinstance(node, ast.Subscript):
        return isinstance(node.slice, ast.Constant) and isinstance(node.slice.value, str)
    scope = script.scope(at)
    if not isinstance(node, ast.Name) or node.id == "self":
        return False
    if isinstance(scope, ast.Module):
        return True
    local = {name.arg for name in ast.walk(scope.args) if isinstance(name, ast.arg)}
    declared: set[str] = set()
    for inner in ast.walk(scope):
        if script.scope(inner) is scope:
            if isinstance(inner, ast.Name) and isinstance(inner.ctx, ast.Store):
                local.add(inner.id)
            elif isinstance(inner, (ast.Global, ast.Nonlocal)):
                declared.update(inner.names)
    return node.id in local | declared


RULE = Rule(
    id="DDP102",
    title="Make the trained modules distributed",
    why="""\
A module is trained when an optimizer gets its parameters. Its training forward is then divided: every process
computes its rows of the batch through torch's DistributedDataParallel, and the outputs come back for the whole batch,
so that the rest of the loop is as it was (M1-M3, L1-L6). The module stays the same object, with the same type,
attributes and state_dict.""",
    before="""\
import torch
from torch import nn, optim

encoder, decoder = nn.Linear(8, 2), nn.Linear(2, 8)
# one optimizer for both
optimizer = optim.Adam(list(encoder.parameters()) + list(decoder.parameters()))
for _ in range(10):
    batch = torch.rand(16, 8)
    nn.functional.mse_loss(decoder(encoder(batch)), batch).backward()
    optimizer.step()
    optimizer.zero_grad()
""",
    after="""\
import torch
from ddpify_runtime import (
    DistributedDataParallel,
    destroy_process_group,
    init_process_group,
)
from torch import nn, optim

init_process_group("gloo")

encoder, decoder = nn.Linear(8, 2), nn.Linear(2, 8)
encoder = DistributedDataParallel(encoder)
decoder = DistributedDataParallel(decoder)
# one optimizer for both
optimizer = optim.Adam(list(encoder.parameters()) + list(decoder.parameters()))
for _ in range(10):
    batch = torch.rand(16, 8)
    nn.functional.mse_loss(decoder(encoder(batch)), batch).backward()
    optimizer.step()
    optimizer.zero_grad()

destroy_process_group()
""",
    check=check,
    check_program=check_program,
    target="cpu",
)
