"""Follows a small program that trains, for tests of how programs are followed."""

from __future__ import annotations

from ddpify_codemods.facts.flow.program import Followed
from ddpify_codemods.styles import in_program

from tests.codemods.checks import script_of

HEAD = """\
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, TensorDataset
train_set = TensorDataset(torch.rand(64, 4), torch.randint(3, (64,)))
test_set = TensorDataset(torch.rand(30, 4), torch.randint(3, (30,)))
train_loader = DataLoader(train_set, batch_size=8, shuffle=True)
test_loader = DataLoader(test_set, batch_size=8)
model = nn.Linear(4, 3)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
total = 0.0
"""
TRAINING = """\
for epoch in range(2):
    for x, y in train_loader:
        optimizer.zero_grad()
        loss = F.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()
"""


def followed(source: str) -> Followed:
    """What is known of a program that begins as above."""
    (script,) = in_program([script_of(HEAD + source)])
    assert script.program is not None
    return script.program.followed


def reasons(source: str) -> list[str]:
    """Why a program cannot be divided."""
    return [problem.reason for problem in followed(source).problems]


def of_evaluation(adds: str, shown: str = "total") -> Followed:
    """What is known of a program that trains, and then adds something up over a test set."""
    body = "\n".join(f"    {line}" for line in adds.splitlines())
    return followed(f"{TRAINING}for x, y in test_loader:\n{body}\nprint({shown})\n")
