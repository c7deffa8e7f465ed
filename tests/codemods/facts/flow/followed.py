"""Follows a small program that trains, for tests of how programs are followed."""

from __future__ import annotations

import ast

from ddpify_codemods.facts.flow.collate import stacks
from ddpify_codemods.facts.flow.program import Followed
from ddpify_codemods.facts.flow.values import Function
from ddpify_codemods.facts.flow.wrapped_names import Wrapping
from ddpify_codemods.facts.flow.wrapping import wrapping
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


def wrapped(source: str, head: str = HEAD) -> Wrapping:
    """What is wrapped of a program that begins as above."""
    (script,) = in_program([script_of(head + source)])
    assert script.program is not None
    return wrapping(script.program)


def undivided(source: str) -> list[object]:
    """Why a program's loss is not divided: it cannot be, or what it is made of is brought together."""
    return [*reasons(source), *followed(source).found.joined]


def of_evaluation(adds: str, shown: str = "total") -> Followed:
    """What is known of a program that trains, and then adds something up over a test set."""
    body = "\n".join(f"    {line}" for line in adds.splitlines())
    return followed(f"{TRAINING}for x, y in test_loader:\n{body}\nprint({shown})\n")


COLLATE_HEAD = """\
import random
import numpy as np
import torch
import torch.nn.functional as F
from torch.nn.utils.rnn import pad_sequence
from torch.utils.data import default_collate
"""


def is_stacking(source: str) -> bool:
    """Whether the collate function `c` of a file that begins as above is seen to stack its samples."""
    script = script_of(COLLATE_HEAD + source)
    kinds = ast.FunctionDef | ast.Lambda
    functions = [node for node in script.nodes if isinstance(node, kinds) and getattr(node, "name", "c") == "c"]
    return stacks(Function(functions[0], script))
