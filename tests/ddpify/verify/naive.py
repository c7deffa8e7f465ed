"""Conversions as people write them by hand, each with one mistake; and runs of them."""

from __future__ import annotations

import functools
import os
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from textwrap import indent
from unittest import mock

from ddpify.verify import command, processes, trial, verdict
from ddpify.verify.command import VerifyOptions
from ddpify.verify.program import Subject, reached
from ddpify.verify.runs import Run
from ddpify.verify.trial import Trial
from ddpify.verify.verdict import Verdict
from tests import forked
from tests.e2e.harness import INTERPRETER

PRETEND = Path(__file__).parents[2] / "e2e" / "pretend"
PROCESSES = 2

SCRIPT = """\
import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, TensorDataset
{start}
{seed}
data = TensorDataset(torch.randn({samples}, 6), torch.randint(3, ({samples},)))
{sets}
loader = {loader}
model = {model}
{wrap}
optimizer = {optimizer}
{before}
for epoch in range(2):
{epoch}
    for x, y in {batches}:
{share}
{zero}
{step}
{steps}
{after}
{end}
{last}
{finish}
"""

# What stands in the gaps of every original, and what people change for DistributedDataParallel.
PLAIN = {
    "start": "",
    "seed": "torch.manual_seed(0)",
    "samples": "40",
    "sets": "",
    "loader": "DataLoader(data, batch_size=8, shuffle=True)",
    "model": "nn.Sequential(nn.Linear(6, 5), nn.Tanh(), nn.Linear(5, 3))",
    "wrap": "",
    "optimizer": "torch.optim.SGD(model.parameters(), lr=0.1)",
    "before": "",
    "epoch": "",
    "batches": "loader",
    "share": "",
    "zero": "optimizer.zero_grad()",
    "step": "F.cross_entropy(model(x), y).backward()",
    "steps": "optimizer.step()",
    "after": "",
    "end": "",
    "last": "",
    "finish": "",
}
BY_HAND = {
    "start": """\
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data.distributed import DistributedSampler
dist.init_process_group("gloo")
rank, world = dist.get_rank(), dist.get_world_size()""",
    "wrap": "model = DistributedDataParallel(model)",
    "finish": "dist.destroy_process_group()",
    "share": "x, y = x[rank::world], y[rank::world]",  # the right samples, if the loader draws the global batch
}
DEPTHS = {"epoch": 4, "share": 8, "zero": 8, "step": 8, "steps": 8, "after": 8, "end": 4}


@dataclass(frozen=True)
class Case:
    """A mistake.

    original: what fills the gaps of both. naive: what fills those of the hand-made conversion, beyond BY_HAND.
    hazards: ids that the verdict must name, the first difference's first. code: the exit code that verify must have.
    pretend: modules of tests/e2e/pretend. launched: whether torchrun starts it, as it does where a run ends otherwise
    than by itself; the others are forked.
    """

    hazards: tuple[str, ...]
    naive: Mapping[str, str] = field(default_factory=dict)
    original: Mapping[str, str] = field(default_factory=dict)
    code: int = 1
    pretend: str = "no_dynamo"
    launched: bool = False


def text(*gaps: Mapping[str, str]) -> str:
    """The script with its gaps filled; later ones win."""
    filled: dict[str, str] = {}
    for each in gaps:
        filled |= each
    return SCRIPT.format(**{name: indent(code, " " * DEPTHS.get(name, 0)) for name, code in filled.items()})


def verify(case: Case) -> Verdict:
    """What verify finds for a case.

    Raises:
        CouldNotRun: as `ddpify verify` tells it.
    """
    original = text(PLAIN, case.original)
    with tempfile.TemporaryDirectory() as folder:
        other = Path(folder).resolve() / "naive.py"
        other.write_text(text(PLAIN, case.original, BY_HAND, case.naive))
        plan, _ = _plan(other.parent, original, case.pretend)
        launched = case.launched or case.code == command.COULD_NOT_RUN
        with mock.patch.object(processes, "execute", processes.execute if launched else _in_forks):
            many = trial.run(plan, other, {}, PROCESSES, {})
        one = run_original(original, case.pretend)
        command.require_end(many, one, "naive.py", plan, PROCESSES)
        return verdict.judge(
            one, many, PROCESSES, original, lambda number: run_original(original, case.pretend, verdict.NOISE, number)
        )


@functools.cache
def run_original(source: str, pretend: str, noise: float = 0.0, number: int = 0) -> Run:
    """Run an original; once in a session."""
    with tempfile.TemporaryDirectory() as folder:
        plan, program = _plan(Path(folder).resolve(), source, pretend)
        settings = {"DDPIFY_NOISE": str(noise), "DDPIFY_NOISE_SEED": str(number)} if noise else {}
        with mock.patch.object(processes, "execute", _in_forks):
            return command.run_original(plan, program.files[0], settings)


def _in_forks(
    command: Sequence[str], folder: Path, environment: Mapping[str, str], limit: float
) -> tuple[int, str, str]:
    """As `processes.execute`, in processes that have imported torch already. The script has no arguments."""
    if "torch.distributed.run" not in command:
        return forked.start(command[-1:], 0, folder, environment, limit, INTERPRETER)
    kept = Path(command[command.index("--log-dir") + 1], "run", "attempt_0")
    return forked.start(command[-1:], PROCESSES, folder, environment, limit, INTERPRETER, kept)


def _plan(folder: Path, source: str, pretend: str) -> tuple[Trial, Subject]:
    script = folder / "train.py"
    script.write_text(source)
    program = reached(script)
    plan = command.plan(VerifyOptions(str(script), timeout=60, against="naive.py"), script, program.files, {})
    paths = os.pathsep.join(map(str, [processes.RECORDER, PRETEND]))
    return replace(plan, options={**plan.options, "DDPIFY_PRETEND": pretend, "PYTHONPATH": paths}), program
