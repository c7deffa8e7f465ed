"""Trains with the statistics of each rank's rows; every rank writes its state."""

import ddpify_runtime.xla
import torch
import torch_xla
from ddpify_runtime import DistributedDataParallel, destroy_process_group, get_rank, init_process_group
from torch import nn

init_process_group("xla", init_method="xla://")
torch.manual_seed(0)
model = nn.Sequential(nn.BatchNorm1d(6), nn.Linear(6, 1)).to(torch_xla.device())
model = DistributedDataParallel(model, gradient_as_bucket_view=True, sync_batch_norm=False)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for step in range(5):
    x = torch.arange(8 * 6).view(8, 6).sin() * (step + 1)
    optimizer.zero_grad()
    model(x.to(torch_xla.device())).square().mean().backward()
    optimizer.step()
    torch_xla.sync()
torch.save({name: value.cpu() for name, value in model.state_dict().items()}, f"state{get_rank()}.pt")
destroy_process_group()
