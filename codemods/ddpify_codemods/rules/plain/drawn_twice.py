"""By how many samples what training adds up is divided: those that DistributedSampler has drawn, some of them twice."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from ...facts.drawing_samplers import drawing_sampler
from ...facts.flow.frames import AfterLoop
from ...facts.flow.options import shown_of
from ...facts.flow.scopes import binder_of
from ...facts.flow.values import Loader
from ...facts.keyword_dictionaries import drops_last
from ...facts.known_sampler import known_sampler
from ...facts.origins import assigned
from ...facts.script import Script
from ...plain_words import Words
from ...rule import Replace
from .ratios import grows_with
from .words import is_here, program_of

_MESSAGE = "divide by the samples of all ranks, some of which come twice"


def drawn_twice(script: Script, words: Words) -> Iterator[Replace]:
    """Divide sums of all ranks by the samples that they are of: `correct / len(train_loader.dataset)`."""
    followed = program_of(script).followed
    for one in followed.found.passes if words.name == "torch" else ():
        loaders = followed.found.loops.get(one.loop, set())
        if not is_here(script, one.script) or not one.loader_here or not all(map(_is_filled_up, loaders)):
            continue
        if {followed.status.get(each) for each in loaders} != {"training"}:
            continue
        datasets = [shown.dataset for each in loaders if (shown := shown_of(each.script, each.call)) is not None]
        for each in followed.found.after:
            if each.at is one.loop and each.kind == "sum" and each.form == "number":
                drawn = f"len({one.loader_here}.sampler) * {words.world_size}"
                for node in _counts(script, each, one.loader_here, datasets):
                    code = f"({drawn})" if isinstance(script.parents[node], ast.BinOp) else drawn
                    yield Replace(node, code, _MESSAGE, modules=words.imports)


def _is_filled_up(loader: Loader) -> bool:
    """Whether the samples of a loader are all of its data set, and DistributedSampler repeats some of them."""
    script, call = loader.script, loader.call
    own = known_sampler(script, call) or drawing_sampler(script, call) or loader.cls or loader.source
    return own is None and drops_last(script, call) is False


def _counts(script: Script, each: AfterLoop, loader: str, datasets: list[ast.expr]) -> Iterator[ast.expr]:
    """What divides a sum behind its loop, and is how many samples there are."""
    block = script.block(each.at)
    for statement in block[block.index(each.at) + 1 :]:
        for node in ast.walk(statement):
            if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Div):
                sums = {part for part in ast.walk(node.left) if isinstance(part, ast.Name) and part.id == each.name}
                divides, by = bool(sums) and grows_with(node.left, {*sums}), node.right
            elif isinstance(node, ast.AugAssign) and isinstance(node.op, ast.Div):
                divides, by = ast.unparse(node.target) == each.name, node.value
            else:
                continue
            if divides and _is_count(script, by, loader, datasets):
                yield by
        if any(_is_set(part, each.name) for part in ast.walk(statement)):
            return


def _is_set(node: ast.AST, name: str) -> bool:
    return isinstance(node, ast.Name) and node.id == name and not isinstance(node.ctx, ast.Load)


def _is_count(script: Script, node: ast.expr, loader: str, datasets: list[ast.expr]) -> bool:
    """Whether an expression is how many samples the data set of a loader has, or a name that is set to that once."""
    values = assigned(script, node) if isinstance(node, ast.Name) else [node]
    call = values[0] if len(values) == 1 else None
    if isinstance(call, ast.Call) and ast.unparse(call.func) in ("float", "int") and len(call.args) == 1:
        call = call.args[0]
    if not isinstance(call, ast.Call) or script.qualified(call.func) != "len" or len(call.args) != 1:
        return False
    counted = call.args[0]
    if ast.unparse(counted) == f"{loader}.dataset" and script.scope(call) is script.scope(node):
        return True
    return (
        isinstance(counted, ast.Name) and bool(datasets) and all(_is_same(script, counted, each) for each in datasets)
    )


def _is_same(script: Script, name: ast.Name, other: ast.expr) -> bool:
    """Whether a name is that of a data set, and set once."""
    if not isinstance(other, ast.Name) or other.id != name.id or other not in script.parents:
        return False
    return binder_of(script, name) is binder_of(script, other) and len(assigned(script, name)) == 1
