"""DDP304: an optimizer of tensors that belong to no module (L16)."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence

from ...facts.optimizers import optimizers
from ...facts.script import Script
from ...rule import Edit, Finding, Rule
from ...targets import Target

_REMEDY = "put the tensors into an nn.Module, call it in the loop and hand over its parameters()"


def check(script: Script, target: Target) -> Iterator[Edit | Finding]:
    """Nothing in one file alone: whether modules are trained too is known when all were read."""
    return iter(())


def check_program(scripts: Sequence[Script], target: Target, edits: Sequence[Edit]) -> Iterator[tuple[Script, Finding]]:
    """Refuse optimizers whose tensors come from no module that can be seen.

    Beside modules they are trained in the exact style: each process has their whole gradient. In plain code it would
    have that of its own samples.
    """
    is_plain = scripts[0].program is not None
    beside = not is_plain and any(optimizer.bases for script in scripts for optimizer in optimizers(script))
    for script in scripts:
        for optimizer in optimizers(script):
            if optimizer.only_tensors and not _is_never_made(script, optimizer.call):
                what = "this loop updates" if isinstance(optimizer.call, ast.For) else "this optimizer gets"
                message = f"{what} tensors of which no module is known: there is nothing to divide"
                line = optimizer.call.lineno
                if beside:
                    yield script, Finding(RULE.id, "note", line, message, "every process computes them alike")
                else:
                    yield script, Finding(RULE.id, "refused", line, message, _REMEDY)


def _is_never_made(script: Script, call: ast.AST) -> bool:
    """Whether a program that is followed never comes to what makes an optimizer."""
    if script.program is None:
        return False
    from ...facts.flow.never_taken import never_taken  # the exact style does not need what it imports

    return never_taken(script.program, script, call)


RULE = Rule(
    id="DDP304",
    title="Optimizers of bare tensors are not converted",
    why="""\
Gradients are averaged per module. A tensor that is optimised by itself (an image in style transfer, an embedding,
weights written out by hand) belongs to no module, so its gradient would stay that of one process (L16).""",
    before="""\
import torch

image = torch.rand(1, 3, 64, 64, requires_grad=True)
optimizer = torch.optim.LBFGS([image])
for _ in range(20):
    optimizer.zero_grad()
    image.square().mean().backward()
    optimizer.step(lambda: image.square().mean())
""",
    after="",
    check=check,
    check_program=check_program,
)
