"""What rank 0 says about the training: once, on standard error, and nothing where a process is alone."""

from __future__ import annotations

import os

import pytest
import torch
import torch.nn.functional as F
from ddpify_runtime import DataLoader, DistributedDataParallel, report
from torch import nn
from torch.utils.data import TensorDataset

from .processes import run


def reported() -> None:
    model = DistributedDataParallel(nn.Linear(8, 3))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(5):
        F.cross_entropy(model(torch.ones(12, 8)), torch.arange(12) % 3).backward()
        optimizer.step()


def test_rank_0_reports_once_and_a_process_alone_is_silent(capfd: pytest.CaptureFixture[str]) -> None:
    run(2, reported)
    lines = [line for line in capfd.readouterr().err.splitlines() if line.startswith("ddpify: ")]
    assert lines[0] == "ddpify: one training on 2 processes"
    assert lines[1].startswith("ddpify: the training forward of Linear is divided: 12 samples, 6 per rank")
    assert len(lines) == 2
    run(1, reported)
    assert "ddpify" not in capfd.readouterr().err


def in_each_epoch() -> None:
    model = DistributedDataParallel(nn.Linear(1, 3))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(3):
        loader = DataLoader(TensorDataset(torch.rand(12)), batch_size=4, collate_fn=lambda rows: (torch.rand(4, 1),))
        for (x,) in loader:
            model(x).sum().backward()
            optimizer.step()
    report.finish()


@pytest.mark.filterwarnings("ignore:ddpify")
def test_what_is_true_of_the_loaders_of_all_epochs_is_said_once(capfd: pytest.CaptureFixture[str]) -> None:
    run(2, in_each_epoch)
    said = capfd.readouterr().err
    assert said.count("\nddpify: TensorDataset is loaded whole") == 1


def reported_at_length() -> None:
    os.environ["DDPIFY_REPORT"], os.environ["DDPIFY_RANDOM"] = "1", ""
    torch.manual_seed(0)
    model = DistributedDataParallel(nn.Linear(8, 1))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for loader in (
        DataLoader(TensorDataset(torch.randn(40, 8)), batch_size=8),
        DataLoader(TensorDataset(torch.randn(14, 8)), batch_size=10),  # of which only the last batch is divided
    ):
        for (x,) in loader:
            model(x).square().mean().backward()
            optimizer.step()
    with torch.no_grad():
        model(torch.randn(8, 8))
    report.finish()


def test_the_long_report_tells_of_loading_and_evaluation(capfd: pytest.CaptureFixture[str]) -> None:
    run(2, reported_at_length)
    said = capfd.readouterr().err
    assert "TensorDataset is loaded in parts: batches of 8, of which each process loads its 4" in said
    assert "TensorDataset is loaded in parts: batches of 10, of which each process loads its 5" in said
    assert "the training forward of Linear is divided: 8 samples, 4 per rank" in said
    assert "the forward without gradients of Linear is divided" in said
