"""DDP309: training inside of threads or worker processes, and batches that these put into one queue."""

from __future__ import annotations

import ast
import itertools
from collections.abc import Iterator
from functools import lru_cache

from ...facts.bindings import bindings
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
_COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.GeneratorExp, ast.DictComp)
_LOOPS = (ast.For, ast.While, *_COMPREHENSIONS)
_PUTTING = frozenset({"put", "put_nowait"})
_WAITING = frozenset({"join", "get", "backward"})  # one thread after the other, in the loop that makes them
_METHODS = frozenset({"submit", "map", "imap", "imap_unordered", "starmap", "apply_async", "map_async", "apply"})


def check(script: Script, target: Target) -> Iterator[Edit | Finding]:
    """Refuse a script that hands functions which train to threads or processes; warn of several that fill a queue."""
    starts = [call for call in script.find(ast.Call) if _hands_on(script, call)]
    training = _calling(script, frozenset({"backward"})) if starts else frozenset()
    yield from _in_any_order(script, starts)
    for call in starts:
        handed = [name for name in map(_last_name, _given(call)) if name in training]
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


def _given(call: ast.Call) -> list[ast.expr]:
    return [*call.args, *(keyword.value for keyword in call.keywords if keyword.arg in ("target", "func", "fn"))]


def _in_any_order(script: Script, starts: list[ast.Call]) -> Iterator[Finding]:
    """Several threads that put what they load into one queue: training gets it in the order in which they are ready."""
    files = [script, *(script.program.scripts if script.program is not None else ())]
    classes = {each.name for own in files for each in own.find(ast.ClassDef) if _is_loading_thread(own, each)}
    made = [call for call in script.find(ast.Call) if _last_name(call.func) in classes]
    several = [call for call in (*starts, *made) if _is_one_of_several(script, call)]
    putting = _calling(script, _PUTTING) if several else frozenset()
    for call in several:
        if call in made or any(_last_name(each) in putting for each in _given(call)):
            message = "several threads put into a queue: batches from it have another order on every process"
            yield Finding(RULE.id, "warning", call.lineno, message, "load by one thread, or by a DataLoader's workers")


def _is_loading_thread(script: Script, each: ast.ClassDef) -> bool:
    """Whether a class is a thread whose `run` puts something into a queue."""
    runs = [method for method in each.body if isinstance(method, ast.FunctionDef) and method.name == "run"]
    is_thread = bool(runs) and any(script.qualified(base) in _STARTERS for base in each.bases)
    return is_thread and "run" in _calling(script, _PUTTING)


def _is_one_of_several(script: Script, call: ast.Call) -> bool:
    """Whether a loop makes a thread in each round, beside those of the rounds before, and no queue for each."""
    inside = itertools.takewhile(lambda each: each is not script.scope(call), script.ancestors(call))
    loop = next((each for each in inside if isinstance(each, _LOOPS)), None)
    if loop is None or _is_for_one(script, loop):
        return False
    nodes = [node for node in walk(loop) if node is not loop]
    names = {_last_name(node.func) for node in nodes if isinstance(node, ast.Call)}
    one_by_one = isinstance(loop, (ast.For, ast.While)) and any(isinstance(node, _LOOPS) for node in nodes)
    return not (one_by_one or names & _WAITING or any(name.endswith("Queue") for name in names))


def _is_for_one(script: Script, loop: ast.AST) -> bool:
    """Whether a loop has one round: `for worker in range(1)`, or of a name that is 1."""
    rounds = loop.generators[0].iter if isinstance(loop, _COMPREHENSIONS) else getattr(loop, "iter", None)
    if not isinstance(rounds, ast.Call) or script.qualified(rounds.func) != "range" or len(rounds.args) != 1:
        return False
    count = rounds.args[0]
    known = bindings(script, script.tree).get(count.id, []) if isinstance(count, ast.Name) else [count]
    return [each.value for each in known if isinstance(each, ast.Constant)] == [1] and len(known) == 1


def _calling(script: Script, ends: frozenset[str]) -> frozenset[str]:
    """The functions that call one of some names, directly or through another function of the file."""
    called = [(function.name, _called_names(function)) for function in script.find(ast.FunctionDef)]
    found = {name for name, names in called if names & ends}
    while True:
        more = {name for name, names in called if names & found} - found
        if not more:
            return frozenset(found)
        found |= more


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
which is another one on every process (section R). So do several threads that load batches into one queue: where
training takes them from it, each process would train others: a warning tells. One thread that loads ahead is right.""",
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
