"""DDP108: a seed that is drawn from the clock or the system is drawn once, for all processes (S1)."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from ..facts.script import Script
from ..rule import Edit, Finding, Replace, Rule
from ..targets import Target

_SEEDS = frozenset(
    {"torch.manual_seed", "torch.cuda.manual_seed", "torch.cuda.manual_seed_all", "torch.random.manual_seed"}
    | {"random.seed", "random.Random", "numpy.random.seed", "numpy.random.default_rng", "numpy.random.RandomState"}
    | {"pytorch_lightning.seed_everything", "transformers.set_seed"}
)
_ENTROPY = frozenset(
    {"time.time", "time.time_ns", "time.perf_counter", "os.urandom", "os.getpid", "uuid.uuid4", "uuid.uuid1"}
    | {"datetime.datetime.now", "secrets.randbits", "secrets.randbelow", "secrets.token_bytes"}
)
_MESSAGE = "draw the seed once, for all processes"
# What these do without an argument, written with one.
_WITHOUT_SEED = {
    "random.seed": "{}(rank_zero_value(os.urandom)(16))",
    "random.Random": "{}(rank_zero_value(os.urandom)(16))",
    "numpy.random.seed": "{}(list(rank_zero_value(os.urandom)(16)))",
    "numpy.random.default_rng": "{}(list(rank_zero_value(os.urandom)(16)))",
    "numpy.random.RandomState": "{}(list(rank_zero_value(os.urandom)(16)))",
}


def check(script: Script, target: Target) -> Iterator[Edit | Finding]:
    """Let rank 0 draw the entropy of seeds; refuse where only its author can say how."""
    for call in script.find(ast.Call):
        name = script.qualified(call.func)
        if script.is_settled(call.func):
            continue
        if name in _ENTROPY and _is_seed(script, call):
            yield Replace(call.func, "rank_zero_value({})", _MESSAGE, imports=("rank_zero_value",))
        elif name in _WITHOUT_SEED and not call.args and not call.keywords:
            if _is_in_worker(script, call):
                yield _refused(
                    call, name, "seed it with torch.initial_seed() % 2**32, which the processes have in common"
                )
            else:
                template = _WITHOUT_SEED[name]
                yield Replace(call, template, _MESSAGE, ("rank_zero_value",), ("import os",), parts=(call.func,))
        elif name in ("torch.seed", "torch.random.seed"):
            if isinstance(script.parents[call], ast.Expr):
                template = "torch.manual_seed(rank_zero_value({})())"
                yield Replace(call, template, _MESSAGE, ("rank_zero_value",), ("import torch",), parts=(call.func,))
            else:
                yield _refused(call, name, "give it a fixed seed: torch.manual_seed(0)")


def _refused(call: ast.Call, name: str, remedy: str) -> Finding:
    return Finding(RULE.id, "refused", call.lineno, f"{name}() would seed every process differently", remedy)


def _is_seed(script: Script, call: ast.Call) -> bool:
    """Whether a value goes into a seeding call, or under a name that says so."""
    for parent in script.ancestors(call):
        if isinstance(parent, ast.Call) and script.qualified(parent.func) in _SEEDS:
            return True
        if isinstance(parent, ast.keyword) and parent.arg == "seed":
            return True
        if isinstance(parent, ast.Assign):
            return any("seed" in ast.unparse(target).lower() for target in parent.targets)
        if isinstance(parent, ast.stmt):
            return False
    return False


def _is_in_worker(script: Script, call: ast.Call) -> bool:
    """Whether the call runs in a loader's worker, which cannot speak with rank 0."""
    workers = {
        keyword.value.id
        for keyword in script.find(ast.keyword)
        if keyword.arg == "worker_init_fn" and isinstance(keyword.value, ast.Name)
    }
    methods = {"__getitem__", "collate_fn"}
    scope = script.scope(call)
    in_lambda = any(isinstance(parent, ast.Lambda) for parent in script.ancestors(call))
    return in_lambda or (not isinstance(scope, ast.Module) and scope.name in workers | methods)


RULE = Rule(
    id="DDP108",
    title="One seed for all processes",
    why="""\
All processes draw the same random numbers, so that they shuffle, split and initialise alike. A seed made from the
clock, the process id or the system's entropy would end that (S1, D11): the first process draws it, the others take it
over.""",
    before="""\
import random
import time

import torch

random.seed()
torch.manual_seed(int(time.time()))
model = torch.nn.Linear(2, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
model(torch.rand(4, 2)).mean().backward()
optimizer.step()
""",
    after="""\
import os
import random
import time

import torch
from ddpify_runtime import (
    DistributedDataParallel,
    destroy_process_group,
    init_process_group,
    rank_zero_value,
)

init_process_group("gloo")

random.seed(rank_zero_value(os.urandom)(16))
torch.manual_seed(int(rank_zero_value(time.time)()))
model = torch.nn.Linear(2, 1)
model = DistributedDataParallel(model)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
model(torch.rand(4, 2)).mean().backward()
optimizer.step()
destroy_process_group()
""",
    check=check,
    target="cpu",
)
