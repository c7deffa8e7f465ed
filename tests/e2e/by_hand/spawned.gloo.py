"""The form of the DDP tutorial: processes by spawn, a GPU by its rank, a checkpoint that rank 0 writes for all."""
import os
import sys
import tempfile

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
import torch.nn as nn
import torch.optim as optim
from torch.nn.parallel import DistributedDataParallel as DDP


def setup(rank, world_size):
    os.environ["MASTER_ADDR"] = "localhost"
    os.environ["MASTER_PORT"] = sys.argv[1]
    dist.init_process_group("gloo", rank=rank, world_size=world_size)


def cleanup():
    dist.destroy_process_group()


class ToyModel(nn.Module):
    def __init__(self):
        super().__init__()
        self.net1 = nn.Linear(10, 10)
        self.relu = nn.ReLU()
        self.net2 = nn.Linear(10, 5)

    def forward(self, x):
        return self.net2(self.relu(self.net1(x)))


def demo_checkpoint(rank, world_size):
    print(f"Running DDP checkpoint example on rank {rank}.")
    setup(rank, world_size)

    torch.manual_seed(0)
    model = ToyModel()
    ddp_model = DDP(model)

    path = os.path.join(tempfile.gettempdir(), f"model{sys.argv[1]}.checkpoint")
    if rank == 0:
        torch.save(ddp_model.state_dict(), path)
    dist.barrier()
    ddp_model.load_state_dict(torch.load(path, weights_only=True))

    loss_fn = nn.MSELoss()
    optimizer = optim.SGD(ddp_model.parameters(), lr=0.1)
    generator = torch.Generator().manual_seed(rank)
    for _ in range(5):
        optimizer.zero_grad()
        outputs = ddp_model(torch.randn(20, 10, generator=generator))
        labels = torch.randn(20, 5, generator=generator)
        loss_fn(outputs, labels).backward()
        optimizer.step()
    torch.save([p.detach().cpu() for p in model.parameters()], f"rank{rank}.pt")

    dist.barrier()
    if rank == 0:
        os.remove(path)
    cleanup()


def run_demo(demo_fn, world_size):
    mp.spawn(demo_fn, args=(world_size,), nprocs=world_size, join=True)


if __name__ == "__main__":
    run_demo(demo_checkpoint, 2)
