"""DDP311: a program that trains in a way that the source does not show."""

from __future__ import annotations

from collections.abc import Iterator

from ...facts.script import Script
from ...rule import Edit, Finding, Rule
from ...targets import Target


def check(script: Script, target: Target) -> Iterator[Edit | Finding]:
    """Nothing in one file alone: whether a program is followed to its optimizers is known when all were read."""
    return iter(())


RULE = Rule(
    id="DDP311",
    title="Training that cannot be followed is not converted",
    why="""\
A program that computes gradients and steps along them, but whose optimizer or module is not found in the source: the
optimizer comes out of a library, or of a module that is imported by a name made in the run. Left as it is it would run
on every process, print and save on each, and divide nothing. The finding names the line where the trail is lost.""",
    before="""\
import torch
from company_tools import training_setup

model, optimizer = training_setup()
for _ in range(10):
    optimizer.zero_grad()
    model(torch.ones(4, 2)).mean().backward()
    optimizer.step()
""",
    after="",
    check=check,
)
