"""Where a model gets other parameters than those that its wrapper averages: `load_state_dict(state, assign=True)`."""

from __future__ import annotations

import ast
import math
from collections.abc import Iterator

from .early_calls import begins
from .frames import Problem
from .program import Program
from .wrapped_names import Wrapping

_OTHERS = "the model gets other parameters here than those that its wrapper averages; leave out `assign=True`"


def assigned_parameters(program: Program, result: Wrapping) -> Iterator[Problem]:
    """The calls behind the wrapper that put the tensors of a file in place of parameters, before training ends."""
    found = program.followed.found
    wrapped = min((begins(program, each) for each in result.models), default=0)
    trained = max((found.visits[backward][1] for backward, _ in found.reached if backward in found.visits), default=0)
    for script in program.scripts:
        for call in script.find(ast.Call):
            first, last = found.visits.get(call, (math.inf, 0))
            if _assigns(call) and last >= wrapped and first <= trained:
                yield Problem(script, call, _OTHERS)


def _assigns(call: ast.Call) -> bool:
    loads = isinstance(call.func, ast.Attribute) and call.func.attr == "load_state_dict"
    given = [word.value for word in call.keywords if word.arg == "assign"]
    return loads and any(not (isinstance(each, ast.Constant) and not each.value) for each in given)
