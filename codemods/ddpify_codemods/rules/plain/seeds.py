"""DDP609: all ranks draw the same random numbers before training begins."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from itertools import chain

from ...facts.backends import options
from ...facts.flow.draws import draws_from, may_draw, state_of
from ...facts.flow.program import Program
from ...facts.header import joined_after, main_guard
from ...facts.origins import origins, sources
from ...facts.script import Script
from ...rule import Edit, Finding, Insert, Rule
from ...targets import Target
from .words import module_name, program_of

_CODE = {"torch": "{}.manual_seed(0)", "numpy": "{}.random.seed(0)", "random": "{}.seed(0)"}
_ALIKE = ("random.rand", "numpy.random.", "torch.", "int")  # what draws the same on all ranks, once these are seeded
_DRAWS = {"numpy": "numpy.random.", "random": "random."}


def check(script: Script, target: Target) -> Iterator[Edit | Finding]:
    """Seed the generators that the program draws from, where it does not surely seed them itself, and before."""
    program = program_of(script)
    for call in _seeded_with_none(script, program.scripts):
        message = f"`{ast.unparse(call)}` seeds each process otherwise where its option is not given"
        yield Finding(RULE.id, "refused", call.lineno, message, "give the option a number by default")
    if not script.is_entry:
        return
    if missing := unseeded(program):
        at, where = joined_after(script)
        names_there = {library: module_name(script, library, at, where == "after") for library in missing}
        code = "\n".join(_CODE[library].format(name) for library, name in names_there.items())
        modules = tuple(f"import {library}" for library, name in names_there.items() if library == name)
        message = "draw the same random numbers on all ranks"
        yield Insert(at, code, message, where, modules=modules, last=True)


def _seeded_with_none(script: Script, scripts: Sequence[Script]) -> Iterator[ast.Call]:
    """The calls that seed numpy or `random` in any case with an option which may be None: with chance, then."""
    for call in script.find(ast.Call):
        seeds = script.qualified(call.func) in ("numpy.random.seed", "random.seed") and len(call.args) == 1
        given = call.args[0] if seeds else None
        if isinstance(given, ast.Attribute) and any(any(options(each, given.attr)) for each in scripts):
            around = (each for each in script.ancestors(call) if each is not main_guard(script.tree))
            asked = any(isinstance(each, ast.If | ast.IfExp | ast.BoolOp) for each in around)
            if not asked and not _is_given_before(script, call, given) and _may_be_none(scripts, script, given):
                yield call


def _is_given_before(script: Script, call: ast.Call, option: ast.Attribute) -> bool:
    """Whether an option gets a number above a call if it has none: `if opt.seed is None: opt.seed = randint(1, 9)`."""
    code, statement = ast.unparse(option), script.statement(call)
    tests = (f"{code} is None", f"not {code}", f"{code} == None")
    for before in script.block(statement)[: script.block(statement).index(statement)]:
        body = before.body if isinstance(before, ast.If) and ast.unparse(before.test) in tests else [before]
        for each in body:
            if isinstance(each, ast.Assign) and code in map(ast.unparse, each.targets):
                calls = (part.func for part in ast.walk(each.value) if isinstance(part, ast.Call))
                drawn = all(script.qualified(func).startswith(_ALIKE) for func in calls)
                return drawn and not (isinstance(each.value, ast.Constant) and each.value.value is None)
    return False


def draws_unseeded(script: Script) -> Iterator[ast.Call]:
    """The calls in a file that draw other numbers on each rank, but for seeds that are put into the program."""
    missing, scripts = unseeded(program_of(script)), program_of(script).scripts
    found = (call for call, library in _draws(script, scripts) if library in missing)
    torch = (call for call in script.find(ast.Call) if "torch" in missing and draws_from(script, call) == "torch")
    return chain(found, torch)


def unseeded(program: Program) -> list[str]:
    """The libraries from whose generators a program draws which it does not surely seed before: torch's are drawn for
    its weights, at least."""
    found = program.followed.found
    drawn = {"torch", *(library for script in program.scripts for _, library in _draws(script, program.scripts))}
    return [library for library in _CODE if library in drawn - found.seeded | drawn & found.drawn_first]


def _draws(script: Script, scripts: Sequence[Script]) -> Iterator[tuple[ast.Call, str]]:
    """The calls in a file that draw from the generators of numpy and Python."""
    frames = "pandas" in script.imported.values()
    for call in script.find(ast.Call):
        name = script.qualified(call.func)
        yield from ((call, library) for library, start in _DRAWS.items() if name.startswith(start))
        sampled = frames and isinstance(call.func, ast.Attribute) and call.func.attr == "sample"
        if (sampled or may_draw(name, call)) and _may_be_none(scripts, script, state_of(call)):
            yield call, "numpy"


def _may_be_none(scripts: Sequence[Script], script: Script, node: ast.expr | None) -> bool:
    """Whether a seed may be None: all but numbers, names of numbers and options with a number by default."""
    made: list[ast.expr] = []
    if isinstance(node, ast.Attribute):
        calls = [call for each in scripts for call in options(each, node.attr)]
        made = [word.value for call in calls for word in call.keywords if word.arg == "default"]
        made = made if len(made) == len(calls) else []
    elif node is not None:
        made = [each for each in origins(script, node) if not sources(script, each)]
    return not made or not all(isinstance(each, ast.Constant) and each.value is not None for each in made)


RULE = Rule(
    id="DDP609",
    title="Seed all ranks alike",
    why="""\
Ranks that are not seeded split and shuffle their data differently, and make other data (S1, D11): a sample of one
rank's training set would be in another's test set. scikit-learn and pandas draw from numpy's generator where no
`random_state` is given. A script that seeds its generators in any case (not `if args.seed is not None`), and before it
draws, stays as it is.""",
    before="""\
import torch
from torch.utils.data import DataLoader, TensorDataset, random_split

dataset = TensorDataset(torch.rand(64, 4), torch.rand(64, 1))
train_set, test_set = random_split(dataset, [48, 16])
loader = DataLoader(train_set, batch_size=8, shuffle=True)
model = torch.nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for x, y in loader:
    loss = torch.nn.functional.mse_loss(model(x), y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
""",
    after="""\
import os
import sys

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, TensorDataset, random_split
from torch.utils.data.distributed import DistributedSampler

dist.init_process_group("gloo")
if dist.get_rank() != 0:
    sys.stdout = open(os.devnull, "w")  # rank 0 prints
torch.manual_seed(0)

dataset = TensorDataset(torch.rand(64, 4), torch.rand(64, 1))
train_set, test_set = random_split(dataset, [48, 16])
loader = DataLoader(
    train_set,
    batch_size=8 // dist.get_world_size(),
    sampler=DistributedSampler(train_set, shuffle=True),
)
model = torch.nn.Linear(4, 1)
ddp_model = DistributedDataParallel(model)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for x, y in loader:
    loss = torch.nn.functional.mse_loss(ddp_model(x), y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()

dist.destroy_process_group()
""",
    check=check,
    target="cpu",
)
