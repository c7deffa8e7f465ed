"""Prints what torch_xla counts for a step, after a warm-up.

Arguments: by hand ("ddp") or by the runtime ("ddpify", "native", "local" for BatchNorm's statistics); "plain" or "batch_norm"; and "in_graph" for collectives
that are operations of the graph, as on an accelerator. CPU devices in processes have none: what takes their place gives
each rank its own part again, and every rank has the same samples.
"""

import sys
from datetime import timedelta

import ddpify_runtime.xla
import torch
import torch.nn.functional as F
import torch_xla
import torch_xla.debug.metrics as metrics
from ddpify_runtime import DistributedDataParallel, destroy_process_group, get_rank, get_world_size, init_process_group
from ddpify_runtime.engines.xla import process_group
from torch import nn

WARM_UP, STEPS = 5, 10
COUNTERS = ("CompileTime", "ExecuteTime", "TransferToDeviceTime", "TransferFromDeviceTime")


class InGraph(process_group._OnDevice):
    def allreduce(self, tensors, options):
        for tensor in tensors:
            tensor.mul_(self.size())
        return process_group._done(tensors)

    def allgather(self, results, tensors, options=None):
        for parts, tensor in zip(results, tensors, strict=True):
            for part in parts:
                part.copy_(tensor)
        return process_group._done(results)

    def broadcast(self, tensors, options):
        return process_group._done(tensors)


class OnAccelerator(process_group.ProcessGroup):
    def __init__(self, store, rank, size, timeout):
        super().__init__(store, rank, size, timeout)
        self.device = InGraph(store, rank, size, timeout)


def counts():
    return [(metrics.metric_data(name) or [0])[0] for name in COUNTERS]


by_hand, with_batch_norm = sys.argv[1] == "ddp", sys.argv[2] == "batch_norm"
if "in_graph" in sys.argv:
    torch.distributed.Backend.register_backend("in_graph", OnAccelerator, devices=["xla", "cpu"])
    process_group.NAME = "in_graph"
init_process_group("xla", init_method="xla://")
torch.manual_seed(0)
device = torch_xla.device()
rank, world_size = get_rank(), get_world_size()
norm = nn.BatchNorm1d(64) if with_batch_norm else nn.Identity()
model = nn.Sequential(nn.Linear(20, 64), norm, nn.ReLU(), nn.Linear(64, 4)).to(device)
if by_hand:
    model = nn.parallel.DistributedDataParallel(model, gradient_as_bucket_view=True, broadcast_buffers=False)
else:
    reduction = "native" if sys.argv[1] == "native" else "ddp"
    options = {"reduction": reduction, "sync_batch_norm": sys.argv[1] != "local"}
    model = DistributedDataParallel(model, gradient_as_bucket_view=True, **options)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for step in range(WARM_UP + STEPS):
    if step == WARM_UP:
        before = counts()
    x, y = torch.randn(16, 20).repeat_interleave(2, 0), torch.randint(0, 4, (16,)).repeat_interleave(2, 0)
    if by_hand:
        x, y = x[rank::world_size], y[rank::world_size]
    optimizer.zero_grad()
    F.cross_entropy(model(x.to(device)), y.to(device)).backward()
    optimizer.step()
    torch_xla.sync()
torch_xla.sync(wait=True)
print(*(round((now - then) / STEPS) for now, then in zip(counts(), before, strict=True)))
destroy_process_group()
