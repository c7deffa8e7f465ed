"""XLA code in older spellings: those that torch_xla 2.9 warns of, and those that it lacks."""

import sys

import torch
import torch_xla.core.xla_model as xm
import torch_xla.distributed.parallel_loader as pl
import torch_xla.distributed.xla_multiprocessing as xmp
from torch_xla.amp import GradScaler
from torch_xla.experimental import pjrt


def train(index, flags):
    xm.set_rng_state(3)
    device = xm.xla_device()
    model = torch.nn.Linear(4, 1).to(device)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.fill_(0.5)
    optimizer = torch.optim.SGD(model.parameters(), lr=flags["lr"] / xm.xrt_world_size())
    scaler = GradScaler()
    data = torch.arange(64.0).reshape(16, 4) / 64
    sampler = torch.utils.data.DistributedSampler(
        data, num_replicas=xm.xrt_world_size(), rank=xm.get_ordinal(), shuffle=False
    )
    loader = torch.utils.data.DataLoader(data, batch_size=2, sampler=sampler)
    for epoch in range(2):
        parallel_loader = pl.ParallelLoader(loader, [device])
        for number, x in enumerate(parallel_loader.per_device_loader(device)):
            optimizer.zero_grad()
            loss = model(x).pow(2).mean()
            scaler.scale(loss).backward()
            scaler.unscale_(optimizer)
            xm.optimizer_step(optimizer)
    xm.mark_step(wait=True)
    if xm.is_master_ordinal():
        print("weight", model.weight.sum().item(), xm.get_local_ordinal(), pjrt.device_type(), flush=True)


if __name__ == "__main__":
    xmp.spawn(train, args=({"lr": 0.1},), nprocs=8, start_method="spawn")
