"""A hand-written DDP script around a few lines of a test, and the lines of which a rule says something."""

from __future__ import annotations

from textwrap import dedent, indent

from ddpify_codemods.rule import Rule

from tests.codemods.checks import findings_of

_HEAD = """\
import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, DistributedSampler

sampler = DistributedSampler(data)
loader = DataLoader(data, batch_size=8, sampler=sampler)
net = nn.Linear(4, 1)
"""
_WRAPPED = """\
model = DDP(net)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
"""
_LOOP = """\
for epoch in range(3):
    for x, y in loader:
"""
STEP = """\
optimizer.zero_grad()
loss = nn.functional.mse_loss(model(x), y)
loss.backward()
optimizer.step()
"""


def told(rule: Rule, after: str = "", *, step: str = STEP, before: str = "", is_wrapped: bool = True) -> list[str]:
    """The lines of a script of which a rule says something.

    Args: what stands behind the training; what is done with each batch; what stands before the model is wrapped; and
    whether it is.
    """
    wrapped = _WRAPPED if is_wrapped else _WRAPPED.replace("DDP(net)", "net")
    source = _HEAD + dedent(before) + wrapped + _LOOP + indent(dedent(step), 8 * " ") + dedent(after)
    return [source.splitlines()[finding.line - 1].strip() for finding in findings_of(rule, source)]
