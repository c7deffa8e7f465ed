"""DDP304: an optimizer of tensors that belong to no module (L16)."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from ...facts.optimizers import optimizers
from ...facts.script import Script
from ...rule import Edit, Finding, Rule
from ...targets import Target


def check(script: Script, target: Target) -> Iterator[Edit | Finding]:
    """Refuse optimizers whose tensors come from no module that can be seen."""
    for optimizer in optimizers(script):
        if optimizer.only_tensors:
            what = "this loop updates" if isinstance(optimizer.call, ast.For) else "this optimizer gets"
            message = f"{what} tensors of which no module is known: there is nothing to divide"
            remedy = "put the tensors into an nn.Module, call it in the loop and hand over its parameters()"
            yield Finding(RULE.id, "refused", optimizer.call.lineno, message, remedy)


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
)
