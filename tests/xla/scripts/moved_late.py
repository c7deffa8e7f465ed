"""Builds its optimizer before it moves a model with tied weights to the device, and moves it there and back later."""

import ddpify_runtime.xla
import torch
import torch_xla
from ddpify_runtime import DistributedDataParallel, destroy_process_group, init_process_group, rank_zero_only
from torch import nn


class Tied(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed, self.norm, self.out = nn.Embedding(6, 4), nn.BatchNorm1d(4), nn.Linear(4, 6, bias=False)
        self.out.weight = self.embed.weight

    def forward(self, x):
        return self.out(self.norm(self.embed(x)))


if __name__ == "__main__":
    init_process_group("xla", init_method="xla://")
    torch.ones(1, requires_grad=True).sum().backward()  # on the host, before anything is on the device
    torch.manual_seed(0)
    model = Tied()
    model = DistributedDataParallel(model, gradient_as_bucket_view=True)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    model.to(torch_xla.device())
    for step in range(5):
        if step == 3:  # as for a look at it on the host
            model.cpu().to(torch_xla.device())
        x = torch.randint(0, 6, (12,))
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(x.to(torch_xla.device())), (x + 1).to(torch_xla.device()) % 6).backward()
        optimizer.step()
        torch_xla.sync()
    print(model.out.weight is model.embed.weight, len(optimizer.param_groups[0]["params"]))
    rank_zero_only(torch.save)({"model": model.state_dict(), "optimizer": optimizer.state_dict()}, "state.pt")
    destroy_process_group()
