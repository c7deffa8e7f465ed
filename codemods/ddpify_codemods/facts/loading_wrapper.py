"""An nn.DataParallel that serves the keys of a file alone, which begin with `module.`:

net = nn.DataParallel(net)
net.load_state_dict(torch.load(path))
net = net.module
"""

from __future__ import annotations

import ast

from .script import Script

_LOADS = "load_state_dict"


def uses_for_keys(script: Script, wraps: ast.Call) -> list[ast.Attribute] | None:
    """What is taken of an nn.DataParallel, where that is nothing but a state that is loaded into it, and the model.

    None where anything else may be done with it.
    """
    made = script.parents[wraps]
    if not isinstance(made, ast.Assign) or made.value is not wraps or len(made.targets) != 1:
        return None
    target, around = made.targets[0], script.scope(made)
    above = [*script.ancestors(made)]
    if not isinstance(target, ast.Name) or not all(
        isinstance(each, ast.If | ast.With | ast.Try) for each in above[: above.index(around)]
    ):
        return None
    if any(target.id in each.names for each in script.find(ast.Global, ast.Nonlocal)):
        return None
    taken: list[ast.Attribute] = []
    for name in _names_behind(script, made, target.id):
        statement, use = script.statement(name), script.parents[name]
        if script.scope(name) is not around:
            return None
        if not isinstance(name.ctx, ast.Load):
            follows = any(each in script.block(statement) for each in (made, *above))
            if follows and isinstance(statement, ast.Assign | ast.Delete):
                break  # from here on it is something else
        elif isinstance(use, ast.Attribute) and _is_for_keys(script, use):
            taken.append(use)
        else:
            return None
    loads = [each for each in taken if each.attr == _LOADS]
    return taken if loads and len(loads) < len(taken) else None


def _names_behind(script: Script, made: ast.Assign, name: str) -> list[ast.Name]:
    """Where a variable is named behind the statement that makes it, and in functions of its scope; what a statement
    reads comes before what it assigns."""
    around, end = script.scope(made), (made.end_lineno or 0, made.end_col_offset or 0)
    uses = [each for each in script.find(ast.Name) if each.id == name and around in script.ancestors(each)]
    behind = [each for each in uses if (each.lineno, each.col_offset) > end or script.scope(each) is not around]
    return sorted(behind, key=lambda each: (script.statement(each).lineno, not isinstance(each.ctx, ast.Load)))


def _is_for_keys(script: Script, use: ast.Attribute) -> bool:
    """Whether it is the model, or the call that loads a state."""
    if use.attr == "module":
        return isinstance(use.ctx, ast.Load)
    call = script.parents[use]
    return use.attr == _LOADS and isinstance(call, ast.Call) and call.func is use
