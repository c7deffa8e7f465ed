"""Horovod as its own examples write it: functions, clipped gradients, batch statistics, metrics, a checkpoint of rank 0."""
import argparse

import horovod.torch as hvd
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, TensorDataset
from torch.utils.data.distributed import DistributedSampler

parser = argparse.ArgumentParser()
parser.add_argument("--epochs", type=int, default=2)
parser.add_argument("--fp16-allreduce", action="store_true")
parser.add_argument("--use-adasum", action="store_true")
parser.add_argument("--no-cuda", action="store_true")
args = parser.parse_args()
args.cuda = not args.no_cuda and torch.cuda.is_available()


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = nn.Linear(6, 8)
        self.norm = nn.BatchNorm1d(8)
        self.outer = nn.Linear(8, 3)

    def forward(self, x):
        return self.outer(torch.tanh(self.norm(self.inner(x))))


def train(epoch, model, optimizer, sampler, loader, history):
    model.train()
    sampler.set_epoch(epoch)
    for data, target in loader:
        if args.cuda:
            data, target = data.cuda(), target.cuda()
        optimizer.zero_grad()
        loss = F.cross_entropy(model(data), target)
        loss.backward()
        optimizer.synchronize()
        nn.utils.clip_grad_norm_(model.parameters(), 0.2)
        with optimizer.skip_synchronize():
            optimizer.step()
        history.append([value.detach().clone() for value in model.state_dict().values()])


def average(value, name):
    return hvd.allreduce(torch.tensor(value), name=name).item()


def main():
    hvd.init()
    torch.manual_seed(1 + hvd.rank())  # the ranks begin with other parameters, and rank 0's are sent
    if args.cuda:
        torch.cuda.set_device(hvd.local_rank())
    data = torch.arange(70 * 6).reshape(70, 6) % 11 / 11
    data = TensorDataset(data, torch.arange(70) % 3)
    sampler = DistributedSampler(data, num_replicas=hvd.size(), rank=hvd.rank())
    loader = DataLoader(data, batch_size=8, sampler=sampler)
    model = Net()
    if args.cuda:
        model.cuda()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1 * hvd.size() if not args.use_adasum else 0.1)
    if hvd.rank() == 0:
        with torch.no_grad():
            model.outer.bias.add_(1)
    hvd.broadcast_parameters(model.state_dict(), root_rank=0)
    hvd.broadcast_optimizer_state(optimizer, root_rank=0)
    compression = hvd.Compression.fp16 if args.fp16_allreduce else hvd.Compression.none
    optimizer = hvd.DistributedOptimizer(
        optimizer,
        named_parameters=model.named_parameters(),
        compression=compression,
        op=hvd.Adasum if args.use_adasum else hvd.Average,
    )
    history, numbers = [], []
    for epoch in range(args.epochs):
        train(epoch, model, optimizer, sampler, loader, history)
        model.eval()
        with torch.no_grad():
            total = sum(F.cross_entropy(model(x), y, reduction="sum").item() for x, y in loader)
        numbers.append(average(total / len(sampler), "loss"))
        if hvd.rank() == 0:
            print(f"epoch {epoch} on {hvd.size()} ranks: {numbers[-1]:.4f}")
    torch.save((history, numbers), f"rank{hvd.rank()}.pt")
    hvd.shutdown()


if __name__ == "__main__":
    main()
