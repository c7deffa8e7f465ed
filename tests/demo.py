"""`make demo`: convert a fixture for cpu, show the diff, train it in one process and in two, show both."""

from __future__ import annotations

import math
import subprocess
import sys
from typing import Any

import numpy

from ddpify.verify import compare
from ddpify.verify.runs import Step
from tests.e2e import fixtures, harness

FIXTURE = "main_guard"
PROCESSES = 2


def main() -> int:
    """Print the demonstration; return 0 if both runs trained the same."""
    fixture = fixtures.load(FIXTURE)
    script = fixture.folder / fixture.entry
    print(f"$ ddpify {script.relative_to(harness.REPOSITORY)} --target cpu --diff\n", flush=True)
    subprocess.run([sys.executable, "-m", "ddpify", str(script), "--target", "cpu", "--diff"], check=True)
    print(f"\n$ python train.py\n$ torchrun --standalone --nproc-per-node {PROCESSES} -- train.py\n", flush=True)
    original = harness.run_original(fixture)
    converted = harness.run_converted(fixture, PROCESSES)
    print(f"  step   gradient, 1 process   gradient, {PROCESSES} processes   difference of parameters")
    for number, (one, many) in enumerate(zip(original.steps(), converted.steps(), strict=False), 1):
        print(f"  {number:4}   {_norm(one.grads):19.6f}   {_norm(many.grads):21.6f}   {_relative(one, many):22.1e}")
    for title, run in (("1 process", original), (f"{PROCESSES} processes", converted)):
        print(f"\n{title} printed:\n" + "".join(f"  {line}\n" for line in run.stdout.splitlines()[-4:]), end="")
    differences = list(compare.equivalent(original, converted, PROCESSES, fixture.tolerance))
    print()
    print("\n".join(differences) or "The same steps, prints and files, and the same parameters after every step.")
    return bool(differences)


def _norm(traces: list[Any]) -> float:
    return math.hypot(*(norm for _, norm, _ in filter(None, traces)))


def _relative(one: Step, many: Step) -> float:
    """The relative difference of the parameters, 2-norm."""
    differences = (numpy.linalg.norm(a[0].astype(float) - b[0]) for a, b in zip(one.params, many.params, strict=True))
    return math.hypot(*differences) / _norm(one.params)


if __name__ == "__main__":
    sys.exit(main())
