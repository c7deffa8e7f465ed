"""DDP208: checkpoints hold host tensors, and are read onto the host."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from ...facts.eager import is_module
from ...facts.script import Script
from ...rule import Edit, Finding, Replace, Rule
from ...targets import Target

_MODEL = ("import torch_xla.core.xla_model as xm",)


def check(script: Script, target: Target) -> Iterator[Edit | Finding]:
    """Replace torch.save; DDP113 sees to map_location."""
    for call in script.find(ast.Call):
        if script.qualified(call.func) != "torch.save":
            continue
        if len(call.args) != 2 or call.keywords:
            remedy = "write torch.save(state, path)"
            yield Finding(RULE.id, "refused", call.lineno, "torch.save is given more than a state and a path", remedy)
        elif is_module(script, call.args[0]):
            remedy = "save its state_dict()"
            yield Finding(
                RULE.id, "refused", call.lineno, "a whole module is saved, which XLA cannot load back", remedy
            )
        else:
            message = "save host tensors: a file with XLA tensors loads on XLA only"
            yield Replace(call, "xm.save({}, {}, master_only=False)", message, modules=_MODEL, parts=tuple(call.args))


RULE = Rule(
    id="DDP208",
    title="Save host tensors",
    why="""\
torch.save writes XLA tensors so that only a machine with torch_xla can load them (X7); `xm.save` copies them to the
host first. `master_only=False` because the script itself chooses the process that writes.""",
    before="""\
import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel as DDP


def main():
    dist.init_process_group("gloo")
    model = DDP(torch.nn.Linear(4, 1))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    model(torch.rand(8, 4)).mean().backward()
    optimizer.step()
    if dist.get_rank() == 0:
        torch.save(model.module.state_dict(), "model.pt")


if __name__ == "__main__":
    main()
""",
    after="""\
import torch
import torch.distributed as dist
import torch_xla
import torch_xla.core.xla_model as xm
import torch_xla.distributed.xla_backend
from torch.nn.parallel import DistributedDataParallel as DDP


def main(index):
    dist.init_process_group("xla", init_method="xla://")
    model = DDP(torch.nn.Linear(4, 1).to(torch_xla.device()), gradient_as_bucket_view=True)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    model(torch.rand(8, 4).to(torch_xla.device())).mean().backward()
    optimizer.step()
    torch_xla.sync()
    if dist.get_rank() == 0:
        xm.save(model.module.state_dict(), "model.pt", master_only=False)


if __name__ == "__main__":
    torch_xla.launch(main)
""",
    check=check,
    target="xla",
)
