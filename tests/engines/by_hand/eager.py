"""DistributedDataParallel by hand, under torchrun: clipped gradients, batch statistics, a summed loss, a model that is saved."""
import os

import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, TensorDataset
from torch.utils.data.distributed import DistributedSampler


def train(model, loader, optimizer, history):
    model.train()
    total = torch.zeros(1)
    for data, target in loader:
        optimizer.zero_grad(set_to_none=True)
        loss = F.cross_entropy(model(data), target)
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 0.2)
        optimizer.step()
        total += loss.detach()
        history.append([value.detach().clone() for value in model.module.state_dict().values()])
    dist.all_reduce(total)
    return total / dist.get_world_size()


def main():
    local_rank = int(os.environ["LOCAL_RANK"])
    dist.init_process_group("gloo")
    torch.manual_seed(1 + dist.get_rank())  # the ranks begin with other parameters, and rank 0's are sent
    data = TensorDataset(torch.arange(70 * 6).reshape(70, 6) % 11 / 11, torch.arange(70) % 3)
    sampler = DistributedSampler(data)
    loader = DataLoader(data, batch_size=8, sampler=sampler)
    model = nn.Sequential(nn.Linear(6, 8), nn.BatchNorm1d(8), nn.Tanh(), nn.Linear(8, 3))
    model = DDP(model, broadcast_buffers=False)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1 * dist.get_world_size())
    history, numbers = [], []
    for epoch in range(2):
        sampler.set_epoch(epoch)
        numbers.append(train(model, loader, optimizer, history))
        if dist.get_rank() == 0:
            print(f"epoch {epoch} on {dist.get_world_size()} ranks: {numbers[-1].item():.4f}")
    sent = torch.tensor([1.0 + local_rank])
    dist.broadcast(sent, src=1)
    largest = torch.tensor([1.0 + local_rank])
    dist.all_reduce(largest, op=dist.ReduceOp.MAX)
    dist.barrier()
    torch.save((history, [*numbers, sent, largest]), f"rank{dist.get_rank()}.pt")
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
