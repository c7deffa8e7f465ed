"""Horovod in a class: several backward passes for a step, and every collective that has a form in torch."""
import horovod.torch as hvd
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset
from torch.utils.data.distributed import DistributedSampler

PASSES = 3


class Trainer:
    def __init__(self):
        self.model = nn.Sequential(nn.Linear(5, 7), nn.ReLU(), nn.Linear(7, 2))
        hvd.broadcast_parameters(self.model.state_dict(), root_rank=0)
        self.optimizer = hvd.DistributedOptimizer(
            torch.optim.SGD(self.model.parameters(), lr=0.05),
            named_parameters=self.model.named_parameters(),
            backward_passes_per_step=PASSES,
        )
        self.history = []

    def step(self, x, y):
        self.optimizer.zero_grad()
        for part, wanted in zip(x.chunk(PASSES), y.chunk(PASSES)):
            loss = nn.functional.mse_loss(self.model(part), wanted) / PASSES
            loss.backward()
        self.optimizer.step()
        self.history.append([value.detach().clone() for value in self.model.parameters()])
        return loss.detach()


def collectives(rank):
    """What each gives on this rank; sums that gradients pass through too."""
    weight = torch.full((2,), 1.0 + rank, requires_grad=True)
    (hvd.allreduce(weight * (rank + 1), op=hvd.Sum) * (rank + 2)).sum().backward()
    (hvd.allreduce(weight, average=True) * (rank + 2)).sum().backward()
    in_place = torch.ones(2) * rank
    hvd.allreduce_(in_place, op=hvd.Sum)
    sent = torch.ones(2) * rank
    hvd.broadcast_(sent, root_rank=1)
    with torch.no_grad():
        return [
            weight.grad,
            hvd.allreduce(torch.tensor([3 + rank, -3 - rank])),
            hvd.allreduce(torch.tensor([1.5 + rank])),
            hvd.allreduce(torch.tensor(3 + rank), average=False),
            hvd.allreduce(torch.tensor([1.0, -2.0]) * (rank + 1), op=hvd.Max),
            hvd.allreduce(torch.tensor([1.0, -2.0]) * (rank + 1), op=hvd.Min),
            hvd.allreduce(torch.tensor([1.0, -2.0]) * (rank + 1), op=hvd.Product),
            hvd.allgather(torch.ones(1 + rank, 2) * rank, name="rows"),
            in_place,
            sent,
            hvd.broadcast(torch.tensor(5 + rank), root_rank=0, name="epoch"),
            hvd.broadcast_object({"rank": rank}, root_rank=1),
            hvd.allgather_object(2 * rank),
            hvd.local_rank(),
            hvd.local_size(),
            hvd.cross_rank(),
            hvd.cross_size(),
        ]


hvd.init()
torch.manual_seed(hvd.rank())
dataset = TensorDataset(torch.arange(300.0).reshape(60, 5) % 7 / 7, torch.arange(120.0).reshape(60, 2) % 5)
sampler = DistributedSampler(dataset, num_replicas=hvd.size(), rank=hvd.rank(), shuffle=False)
trainer, losses = Trainer(), []
for x, y in DataLoader(dataset, batch_size=6, sampler=sampler):
    losses.append(hvd.allreduce(trainer.step(x, y)))
torch.save((trainer.history, [losses, collectives(hvd.rank())]), f"rank{hvd.rank()}.pt")
hvd.barrier()
hvd.shutdown()
