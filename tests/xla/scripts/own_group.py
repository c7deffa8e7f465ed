"""Trains over torch_xla's own process group, as on a TPU, against one process on the host.

The devices are threads: between them torch_xla's collectives work on a CPU too. Argument: "ddp" or "native". Prints for
each rank its samples in a step, and how far losses, weights and buffers are from the host's.
"""

import copy
import sys
import threading

import ddpify_runtime.xla
import torch
import torch.distributed as dist
import torch.nn.functional as F
import torch_xla
import torch_xla.runtime
from ddpify_runtime import DistributedDataParallel, destroy_process_group
from ddpify_runtime.engines.xla import process_group
from torch import nn
from torch.testing._internal.distributed.multi_threaded_pg import ProcessLocalGroup

STEPS = 6
_one_at_a_time = threading.Lock()
_seen = threading.local()


class BetweenThreads(ProcessLocalGroup):
    """Carries host tensors; gloo holds the interpreter's lock while it waits for the other ranks."""

    pg_name = "host"

    def __init__(self, store, rank, size, timeout):
        super().__init__(rank, size)


class Uneven(nn.Module):
    """Has a head that is used in every second step, and a frozen layer."""

    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(20, 64), nn.BatchNorm1d(64), nn.ReLU())
        self.heads = nn.ModuleList(nn.Linear(64, 4) for _ in range(2))
        self.frozen = nn.Linear(64, 4).requires_grad_(False)

    def forward(self, x, head):
        _seen.rows = len(x)
        x = self.body(x)
        return self.heads[head](x) + self.frozen(x)


def train(model, device):
    optimizer = torch.optim.SGD([p for p in model.parameters() if p.requires_grad], lr=0.1, momentum=0.9)
    generator = torch.Generator().manual_seed(1)
    losses = []
    for step in range(STEPS):
        x = torch.randn(16, 20, generator=generator).to(device)
        y = torch.randint(0, 4, (16,), generator=generator).to(device)
        optimizer.zero_grad()
        loss = F.cross_entropy(model(x, step % 2), y, reduction="sum")
        loss.backward()
        optimizer.step()
        torch_xla.sync()
        losses.append(loss.item())
    return [torch.tensor(losses), *(value.cpu().float() for value in model.state_dict().values())]


def main(rank, reduction):
    with _one_at_a_time:
        torch.manual_seed(0)
        model = Uneven()
    expected = train(copy.deepcopy(model), "cpu")
    torch_xla.runtime.device_type = lambda: "an accelerator"
    dist.ProcessGroupGloo = BetweenThreads
    dist.init_process_group(process_group.NAME, init_method="xla://")
    model = DistributedDataParallel(model.to(torch_xla.device()), gradient_as_bucket_view=True, reduction=reduction)
    found = train(model, torch_xla.device())
    apart = [(one - other).norm() / one.norm() for one, other in zip(expected, found, strict=True)]
    worst = torch.stack(apart).max()  # nan if one of them is
    sys.stdout.write(f"{rank} {_seen.rows} {worst:.1e}\n")  # in one piece, between threads
    destroy_process_group()


if __name__ == "__main__":
    torch_xla.launch(main, args=(sys.argv[1],))
