"""What torch.distributed.launch started: --local_rank, a backend by option, .cuda() with and without a number, amp."""
import argparse
import os

import torch
import torch.nn as nn
from torch.utils.data import DataLoader, TensorDataset
from torch.utils.data.distributed import DistributedSampler

parser = argparse.ArgumentParser()
parser.add_argument("--local_rank", default=int(os.environ["LOCAL_RANK"]), type=int)
parser.add_argument("--dist-backend", default="gloo", type=str, help="distributed backend")
parser.add_argument("--epochs", default=2, type=int)
args = parser.parse_args()

torch.distributed.init_process_group(backend=args.dist_backend, init_method="env://")
torch.manual_seed(1)

model = nn.Sequential(nn.Linear(6, 8), nn.Tanh(), nn.Linear(8, 3))
model = nn.parallel.DistributedDataParallel(model, find_unused_parameters=True)
criterion = nn.CrossEntropyLoss()
optimizer = torch.optim.SGD(model.parameters(), 0.1)

data = TensorDataset(torch.randn(70, 6), torch.arange(70) % 3)
sampler = DistributedSampler(data)
loader = DataLoader(data, batch_size=8, sampler=sampler)
for epoch in range(args.epochs):
    sampler.set_epoch(epoch)
    for images, target in loader:
        loss = criterion(model(images), target)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    correct = (model(images).argmax(1) == target).sum().float()
    torch.distributed.all_reduce(correct)
    if args.local_rank == 0:
        print("epoch", epoch, "correct", int(correct))
torch.save([p.detach().cpu() for p in model.parameters()], f"rank{torch.distributed.get_rank()}.pt")
torch.distributed.destroy_process_group()
