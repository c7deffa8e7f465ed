"""DDP108: a seed that is drawn from the clock or the system is drawn once, for all processes (S1)."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from ...facts.clock_names import names_something
from ...facts.effects import sample_code
from ...facts.origins import origins
from ...facts.script import Script
from ...facts.seeds import makes_a_seed, seeds_worker
from ...rule import Edit, Finding, Replace, Rule
from ...targets import Target

# They draw from the system, whatever it is for.
_SYSTEM = frozenset(
    {"os.urandom", "secrets.randbits", "secrets.randbelow", "secrets.choice"}
    | {"secrets.token_bytes", "secrets.token_hex", "secrets.token_urlsafe"}
)
_IN_SAMPLE = "leave it out: a loader gives every worker a seed, which the processes have in common"
_OF_WORKER = "seed the workers by their loader's seed, which the processes have in common"
# Numbers that a seed of a worker is made of.
_NUMBERS = frozenset(
    {"time.time", "time.time_ns", "time.perf_counter", "time.perf_counter_ns", "time.monotonic", "time.process_time"}
    | {"os.getpid"}
)
_MESSAGE = "draw the seed once, for all processes"
# What these do without an argument, written with one.
_WITHOUT_SEED = {
    "random.seed": "{}(rank_zero_value(os.urandom)(16))",
    "random.Random": "{}(rank_zero_value(os.urandom)(16))",
} | {
    f"numpy.random.{name}": "{}(list(rank_zero_value(os.urandom)(16)))"
    for name in (
        "seed",
        "default_rng",
        "RandomState",
        "SeedSequence",
        "PCG64",
        "PCG64DXSM",
        "MT19937",
        "Philox",
        "SFC64",
    )
}
# The same for generators that the script made itself, by what made them.
_RESEEDED = {
    "torch.Generator": "{}.manual_seed(rank_zero_value({}.seed)())",
    "random.Random": "{}.seed(rank_zero_value(os.urandom)(16))",
    "numpy.random.RandomState": "{}.seed(list(rank_zero_value(os.urandom)(16)))",
}
_SYSTEM_GENERATORS = ("random.SystemRandom", "secrets.SystemRandom")


def check(script: Script, target: Target) -> Iterator[Edit | Finding]:
    """Let rank 0 draw the entropy of seeds; refuse where only its author can say how."""
    per_sample = sample_code(script)
    for call in script.find(ast.Call):
        name = script.qualified(call.func)
        if script.is_settled(call.func):
            continue
        makes_seed = makes_a_seed(script, call)
        if seeds_worker(script, call) and (makes_seed and name in _NUMBERS):
            seed = "torch.initial_seed() % 2**31"
            template = seed if isinstance(script.parents[call], ast.Call) else f"({seed})"
            yield Replace(call, template, _OF_WORKER, modules=("import torch",))
        elif seeds_worker(script, call) and name in _WITHOUT_SEED and _has_no_seed(call):
            template = "{}(torch.initial_seed() % 2**32)"
            yield Replace(call, template, _OF_WORKER, modules=("import torch",), parts=(call.func,))
        elif makes_seed and _is_in_worker(script, call):
            yield _refused(call, name, _IN_SAMPLE)
        elif makes_seed or (name in _SYSTEM and call not in per_sample and not _is_in_worker(script, call)):
            if not names_something(script, call):  # which DDP114 gives to all
                yield Replace(call.func, "rank_zero_value({})", _MESSAGE, imports=("rank_zero_value",))
        elif name in _SYSTEM_GENERATORS and call not in per_sample:
            template = "random.Random(rank_zero_value(os.urandom)(16))"
            yield Replace(call, template, _MESSAGE, ("rank_zero_value",), ("import os", "import random"))
        elif name in _WITHOUT_SEED and _has_no_seed(call):
            if _is_in_worker(script, call):
                yield _refused(call, name, _IN_SAMPLE)
            else:
                template = _WITHOUT_SEED[name]
                yield Replace(call, template, _MESSAGE, ("rank_zero_value",), ("import os",), parts=(call.func,))
        elif name in ("torch.seed", "torch.random.seed"):
            if call.args or call.keywords:  # it takes none: a TypeError, as in one process
                continue
            if isinstance(script.parents[call], ast.Expr):
                template = "torch.manual_seed(rank_zero_value({})())"
                yield Replace(call, template, _MESSAGE, ("rank_zero_value",), ("import torch",), parts=(call.func,))
            else:
                yield _refused(call, name, "give it a fixed seed: torch.manual_seed(0)")
        elif _has_no_seed(call) and isinstance(call.func, ast.Attribute) and call.func.attr == "seed":
            yield from _reseeded(script, call, call.func.value)


def _reseeded(script: Script, call: ast.Call, generator: ast.expr) -> Iterator[Replace | Finding]:
    """A `generator.seed()`, by what made the generator."""
    made = [script.qualified(each.func) for each in origins(script, generator) if isinstance(each, ast.Call)]
    name = next((name for name in made if name in _RESEEDED), "")
    if not name:
        return
    if isinstance(generator, ast.Call):  # `torch.Generator().seed()`: only its result is left
        yield Replace(call.func, "rank_zero_value({})", _MESSAGE, ("rank_zero_value",))
    elif isinstance(script.parents[call], ast.Expr) and not _is_in_worker(script, call):
        parts = (generator,) * _RESEEDED[name].count("{}")
        yield Replace(call, _RESEEDED[name], _MESSAGE, ("rank_zero_value",), ("import os",), parts=parts)
    else:
        yield _refused(call, ast.unparse(call.func), "give it a fixed seed: manual_seed(0)")


def _has_no_seed(call: ast.Call) -> bool:
    given = [*call.args, *(keyword.value for keyword in call.keywords)]
    return all(isinstance(value, ast.Constant) and value.value is None for value in given)


def _refused(call: ast.Call, name: str, remedy: str) -> Finding:
    return Finding(RULE.id, "refused", call.lineno, f"{name}() would seed every process differently", remedy)


def _is_in_worker(script: Script, call: ast.Call) -> bool:
    """Whether the call runs in a loader's worker, which cannot speak with rank 0."""
    scope = script.scope(call)
    in_lambda = any(isinstance(parent, ast.Lambda) for parent in script.ancestors(call))
    in_sample = not isinstance(scope, ast.Module) and scope.name in {"__getitem__", "collate_fn"}
    return in_lambda or in_sample or seeds_worker(script, call)


RULE = Rule(
    id="DDP108",
    title="One seed for all processes",
    why="""\
All processes draw the same random numbers, so that they shuffle, split and initialise alike. A seed made from the
clock, the process id, a hash or the system's entropy would end that (S1, D11): the first process draws it, the others
take it over. It is followed to where it is drawn, through names, attributes and functions of the file.""",
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
