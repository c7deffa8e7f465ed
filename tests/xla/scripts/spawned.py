"""Hand-written DDP in the form of PyTorch's tutorial: spawned processes, a GPU for each where there are GPUs."""

import os
import sys

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
import torch.nn as nn
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, TensorDataset
from torch.utils.data.distributed import DistributedSampler


def setup(rank, world_size):
    os.environ["MASTER_ADDR"] = "localhost"
    os.environ["MASTER_PORT"] = os.environ["TEST_PORT"]

    # join the process group
    backend = "nccl" if torch.cuda.is_available() else "gloo"
    dist.init_process_group(backend, rank=rank, world_size=world_size)


def cleanup():
    dist.destroy_process_group()


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = nn.Linear(6, 16)
        self.second = nn.Linear(16, 3)
        generator = torch.Generator().manual_seed(1)
        with torch.no_grad():
            for parameter in self.parameters():
                parameter.copy_(torch.randn(parameter.shape, generator=generator) * 0.3)

    def forward(self, x):
        return self.second(torch.relu(self.first(x)))


def train(rank, world_size, folder):
    print(f"rank {rank} of {world_size}", flush=True)
    setup(rank, world_size)
    device = torch.device(f"cuda:{rank}" if torch.cuda.is_available() else "cpu")

    generator = torch.Generator().manual_seed(2)
    data = TensorDataset(torch.randn(52, 6, generator=generator), torch.randint(0, 3, (52,), generator=generator))
    sampler = DistributedSampler(data, num_replicas=world_size, rank=rank)
    loader = DataLoader(data, batch_size=8, sampler=sampler)

    model = Net().to(device)
    ddp_model = DDP(model, device_ids=[rank] if torch.cuda.is_available() else None)
    checkpoint = os.path.join(folder, "start.pt")
    if rank == 0:
        torch.save(ddp_model.state_dict(), checkpoint)
    # nobody loads before the file is complete
    dist.barrier()
    ddp_model.load_state_dict(torch.load(checkpoint, map_location=device))

    loss_fn = nn.CrossEntropyLoss()
    optimizer = torch.optim.SGD(ddp_model.parameters(), lr=0.1 * world_size, momentum=0.5)
    history = []
    for epoch in range(3):
        sampler.set_epoch(epoch)
        total = torch.zeros(1, device=device)
        for x, y in loader:
            x, y = x.to(device), y.to(device)
            optimizer.zero_grad()
            loss = loss_fn(ddp_model(x), y)
            loss.backward()
            optimizer.step()
            total += loss.detach()
            history.append([parameter.detach().cpu().clone() for parameter in model.parameters()])
        dist.all_reduce(total)
        if rank == 0:
            print(f"epoch {epoch}: {total.item() / world_size / len(loader):.6f}", flush=True)
    torch.save(history, os.path.join(folder, f"rank{rank}.pt"))
    cleanup()


def run(function, world_size, folder):
    mp.spawn(function, args=(world_size, folder), nprocs=world_size, join=True)


if __name__ == "__main__":
    run(train, 2, sys.argv[1])
