"""Prints how many programs are compiled for a first and for a longer second evaluation that add up on the device."""

import ddpify_runtime.xla
import torch
import torch.nn.functional as F
import torch_xla
import torch_xla.debug.metrics as metrics
from ddpify_runtime import DataLoader, destroy_process_group, init_process_group
from torch import nn
from torch.utils.data import TensorDataset

init_process_group("xla", init_method="xla://")
torch.manual_seed(0)
device = torch_xla.device()
model = nn.Linear(6, 3).to(device).eval()


def evaluate(batches):
    before = (metrics.metric_data("CompileTime") or [0])[0]
    loader = DataLoader(TensorDataset(torch.randn(4 * batches, 6), torch.randint(0, 3, (4 * batches,))), batch_size=4)
    total = torch.zeros((), device=device)
    with torch.no_grad():
        for x, y in loader:
            total += F.cross_entropy(model(x.to(device)), y.to(device))
    mean = total.item() / len(loader)
    return (metrics.metric_data("CompileTime") or [0])[0] - before, mean


(first, _), (second, mean) = evaluate(3), evaluate(7)
print(first, second, 0 < mean < 3)
destroy_process_group()
