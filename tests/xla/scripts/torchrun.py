"""Hand-written DDP for torchrun, on CPUs: a trainer class, an optimizer that is built early, accumulated gradients."""

import argparse
import os

import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset


class Trainer:
    def __init__(self, model, optimizer, loader):
        self.rank = int(os.environ["RANK"])
        self.raw = model
        self.model = DistributedDataParallel(model)
        self.optimizer = optimizer
        self.loader = loader
        self.history = []

    def step(self, x, y, last):
        loss = F.mse_loss(self.model(x), y) / 2
        loss.backward()
        if last:
            torch.nn.utils.clip_grad_norm_(self.model.parameters(), 5.0)
            self.optimizer.step()
            self.optimizer.zero_grad()
            self.history.append([parameter.detach().cpu().clone() for parameter in self.raw.parameters()])
        return loss

    def train(self, epochs):
        for epoch in range(epochs):
            self.loader.sampler.set_epoch(epoch)
            for number, (x, y) in enumerate(self.loader):
                loss = self.step(x, y, last=number % 2 == 1)
            if self.rank == 0:
                print(f"[{self.rank}] epoch {epoch}: {loss.item():.6f}", flush=True)


def build():
    generator = torch.Generator().manual_seed(3)
    model = torch.nn.Sequential(torch.nn.Linear(5, 12), torch.nn.Tanh(), torch.nn.Linear(12, 1))
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.copy_(torch.randn(parameter.shape, generator=generator) * 0.4)
    x = torch.randn(48, 5, generator=generator)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    return model, optimizer, TensorDataset(x, x.sum(1, keepdim=True))


def main(epochs, folder):
    model, optimizer, data = build()
    loader = DataLoader(data, batch_size=4, sampler=DistributedSampler(data, seed=7))
    trainer = Trainer(model, optimizer, loader)
    trainer.train(epochs)
    torch.save(trainer.history, f"{folder}/rank{trainer.rank}.pt")


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("folder")
    parser.add_argument("--epochs", type=int, default=3)
    args = parser.parse_args()
    dist.init_process_group("gloo")
    main(args.epochs, args.folder)
    dist.destroy_process_group()
