"""Draws in every way in a forward, also into views of new tensors; has an output that is gathered late."""

import ddpify_runtime.xla
import torch
import torch.nn.functional as F
import torch_xla
from ddpify_runtime import DataLoader, DistributedDataParallel, destroy_process_group, init_process_group
from torch import nn
from torch.utils.data import TensorDataset

init_process_group("xla", init_method="xla://")
torch.manual_seed(0)
torch_xla.manual_seed(0)
device = torch_xla.device()


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.second = nn.Linear(4, 8), nn.Linear(8, 4000)

    def forward(self, x):
        h = self.first(x)
        z = torch.zeros(len(x), 8, device=x.device)
        z[:, 0] = h[:, 0]
        z[:, 1:] = h[:, 1:] * 2
        p = torch.sigmoid(z)
        noise = torch.normal(p.detach(), torch.ones_like(p)) + torch.empty_like(z).exponential_() + torch.randn_like(z)
        return self.second(z * torch.bernoulli(p.detach()) + 0.1 * noise + F.dropout(z, 0.2))


model = DistributedDataParallel(Net().to(device), gradient_as_bucket_view=True)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
data = TensorDataset(torch.randn(256, 4), torch.randint(0, 4000, (256,)))
for _ in range(3):
    for x, y in DataLoader(data, batch_size=128, shuffle=True):
        output = model(x.to(device))
        loss = F.cross_entropy(output, y.to(device)) + output.softmax(-1).pow(2).sum(1).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        torch_xla.sync()
        print(loss.item(), *(parameter.norm().item() for parameter in model.parameters()))
destroy_process_group()
