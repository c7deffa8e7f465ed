"""DDP120: operations that a target does not have."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from ...facts.script import Script
from ...rule import Edit, Finding, Rule
from ...targets import Target

_REMEDY = "run it on the CPU, or use another form on XLA; elsewhere --target cuda or cpu"


def check(script: Script, target: Target) -> Iterator[Edit | Finding]:
    """Warn of packed sequences and sparse tensors; they may be meant for the host."""
    for call in script.find(ast.Call) if target.lacking else ():
        names = [script.qualified(call.func), f".{call.func.attr}" if isinstance(call.func, ast.Attribute) else ""]
        said = [what for begin, what in target.lacking if any(name.startswith(begin) for name in names)]
        if said:
            yield Finding(RULE.id, "warning", call.lineno, said[0], _REMEDY)


RULE = Rule(
    id="DDP120",
    title="Name what XLA has not",
    why="""\
torch_xla 2.9 cannot run recurrent layers over packed sequences and has no sparse tensors. On XLA devices such a call
ends the run with one line; on the host it works, so this is a warning and no refusal.""",
    before="""\
import torch
from torch.nn.utils.rnn import pack_padded_sequence

rnn = torch.nn.GRU(4, 8).to("cuda")
optimizer = torch.optim.SGD(rnn.parameters(), lr=0.1)
for _ in range(10):
    x = pack_padded_sequence(torch.rand(5, 3, 4, device="cuda"), torch.tensor([5, 3, 2]))
    rnn(x)[1].mean().backward()
    optimizer.step()
""",
    after="""\
import ddpify_runtime.xla
import torch
import torch_xla
from ddpify_runtime import (
    DistributedDataParallel,
    destroy_process_group,
    init_process_group,
)
from torch.nn.utils.rnn import pack_padded_sequence

init_process_group("xla", init_method="xla://")

rnn = torch.nn.GRU(4, 8).to(torch_xla.device())
rnn = DistributedDataParallel(rnn, gradient_as_bucket_view=True)
optimizer = torch.optim.SGD(rnn.parameters(), lr=0.1)
for _ in range(10):
    x = pack_padded_sequence(torch.rand(5, 3, 4, device=torch_xla.device()), torch.tensor([5, 3, 2]))
    rnn(x)[1].mean().backward()
    optimizer.step()
    torch_xla.sync()

destroy_process_group()
""",
    check=check,
    target="xla",
)
