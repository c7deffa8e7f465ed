"""Where a model is moved, or gets numbers of another type, between two steps of its training."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from ...facts.script import Script
from ...rule import Edit, Finding, Replace
from .words import program_of

_REASON = (
    "the model gets another device or type here and is trained again: DistributedDataParallel would no longer average "
    "its gradients"
)
_REMEDY = (
    "save {name: value.cpu() for name, value in model.state_dict().items()}, or move a copy (copy.deepcopy(model)), or "
    "use --style exact"
)
_SAVED = "{name: value.cpu() for name, value in {}.state_dict().items()}"


def moved_late(script: Script) -> Iterator[Edit | Finding]:
    """Move what is saved of a model in place of the model, where that is what it is moved for."""
    found = program_of(script).followed.found
    for move in sorted(found.late_moves, key=lambda each: (each.lineno, each.col_offset)):
        if move not in script.parents:
            continue
        state = _saved(script, move)
        if state is None:
            yield Finding("DDP602", "refused", move.lineno, _REASON, _REMEDY)
        else:
            owner = move.func.value  # type: ignore[attr-defined]
            yield Replace(state, _SAVED, "save what the model holds, moved to the CPU", parts=(owner,))


def _saved(script: Script, move: ast.Call) -> ast.Call | None:
    """The call of state_dict in `torch.save(model.cpu().state_dict(), path)`, where the model goes back to its device
    before anything else is done with it; None for all else."""
    attribute = script.parents[move]
    state = script.parents[attribute]
    if not isinstance(attribute, ast.Attribute) or attribute.attr != "state_dict" or not isinstance(state, ast.Call):
        return None
    owner = move.func.value if isinstance(move.func, ast.Attribute) else move
    if state.args or state.keywords or not isinstance(owner, ast.Name | ast.Attribute) or not _to_host(move):
        return None
    statement = script.statement(move)
    save = statement.value if isinstance(statement, ast.Expr) else None
    if not isinstance(save, ast.Call) or script.qualified(save.func) != "torch.save":
        return None
    if {"name", "value"} & {part.id for part in ast.walk(owner) if isinstance(part, ast.Name)}:
        return None
    inside = [part for part in ast.walk(statement) if ast.unparse(part) == ast.unparse(owner)]
    return state if len(inside) == 1 and _goes_back(script, statement, ast.unparse(owner)) else None


def _to_host(move: ast.Call) -> bool:
    return ast.unparse(move).endswith((".cpu()", ".to('cpu')"))


def _goes_back(script: Script, statement: ast.stmt, code: str) -> bool:
    """Whether the first that is done with a model, behind a statement of the same block, is to move it."""
    block = script.block(statement)
    for each in block[block.index(statement) + 1 :]:
        if any(ast.unparse(part) == code for part in ast.walk(each) if isinstance(part, ast.Name | ast.Attribute)):
            value = each.value if isinstance(each, ast.Expr | ast.Assign) else None
            moves = (part for part in ast.walk(value) if isinstance(part, ast.Call)) if value is not None else ()
            return any(ast.unparse(part.func) in (f"{code}.to", f"{code}.cuda") for part in moves)
    return False
