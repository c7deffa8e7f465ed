"""DDP309: training inside of threads or worker processes."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import lru_cache

from ...facts.script import KEPT, Script
from ...facts.tree import walk
from ...rule import Edit, Finding, Rule
from ...targets import Target

_STARTERS = frozenset(
    {
        "threading.Thread",
        "multiprocessing.Process",
        "joblib.delayed",
        "threading.Timer",
        "multiprocessing.pool.ThreadPool",
    }
)
_METHODS = frozenset({"submit", "map", "imap", "imap_unordered", "starmap", "apply_async", "map_async", "apply"})


def check(script: Script, target: Target) -> Iterator[Edit | Finding]:
    """Refuse a script that hands functions which train to threads or processes."""
    starts = [call for call in script.find(ast.Call) if _hands_on(script, call)]
    training = _training_functions(script) if starts else frozenset()
    for call in starts:
        given = [*call.args, *(keyword.value for keyword in call.keywords if keyword.arg in ("target", "func", "fn"))]
        handed = [name for name in map(_last_name, given) if name in training]
        if handed and not _is_torch_apply(call):
            message = f"`{handed[0]}` trains in a thread or process of its own; the order of its steps is not fixed"
            remedy = "train in the main thread of the script"
            yield Finding(RULE.id, "refused", call.lineno, message, remedy)


def _hands_on(script: Script, call: ast.Call) -> bool:
    is_method = isinstance(call.func, ast.Attribute) and call.func.attr in _METHODS
    return is_method or script.qualified(call.func) in _STARTERS


def _is_torch_apply(call: ast.Call) -> bool:
    """`model.apply(init_weights)` calls at once."""
    return isinstance(call.func, ast.Attribute) and call.func.attr == "apply" and len(call.args) == 1


def _training_functions(script: Script) -> frozenset[str]:
    """The functions in which a gradient is computed, directly or through another function of the file."""
    called = [(function.name, _called_names(function)) for function in script.find(ast.FunctionDef)]
    training = {name for name, names in called if "backward" in names}
    while True:
        more = {name for name, names in called if names & training} - training
        if not more:
            return frozenset(training)
        training |= more


@lru_cache(maxsize=8 * KEPT)
def _called_names(function: ast.FunctionDef) -> frozenset[str]:
    return frozenset(_last_name(node.func) for node in walk(function) if isinstance(node, ast.Call))


def _last_name(node: ast.expr) -> str:
    if isinstance(node, ast.Attribute):
        return node.attr
    return node.id if isinstance(node, ast.Name) else ""


RULE = Rule(
    id="DDP309",
    title="Training in threads is not converted",
    why="""\
The processes meet in every reduction, in the order of their steps. Threads and pools run in an order of their own,
which is another one on every process (section R).""",
    before="""\
import threading

import torch

model = torch.nn.Linear(2, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)


def train():
    model(torch.ones(4, 2)).mean().backward()
    optimizer.step()


threading.Thread(target=train).start()
""",
    after="",
    check=check,
)
