"""Where a model gets other parameters than those that its wrapper averages: `load_state_dict(state, assign=True)`."""

from __future__ import annotations

from collections.abc import Iterator

from .early_calls import begins
from .frames import Problem
from .program import Program
from .wrapped_names import Wrapping

_OTHERS = "the model gets other parameters here than those that its wrapper averages; leave out `assign=True`"


def assigned_parameters(program: Program, result: Wrapping) -> Iterator[Problem]:
    """The calls behind the wrapper that put the tensors of a file in place of parameters, before training ends."""
    found = program.followed.found
    trained = max((found.visits[backward][1] for backward, _ in found.reached if backward in found.visits), default=0)
    for call, models in found.assigned.items():
        first, last = found.visits[call]
        wrapped = [begins(program, each) for each in result.models if each.made & models]
        if wrapped and last >= min(wrapped) and first <= trained:
            yield Problem(found.scripts[call], call, _OTHERS)
