"""What plain code does not promise is said once for a program, at the line that it is about, in whichever file."""

from __future__ import annotations

from pathlib import Path

from ddpify_codemods import Finding, convert

TRAIN = """\
import torch
import torch.nn as nn
import torch.nn.functional as F
from data import loader_of{also}

model = nn.Sequential(nn.Linear(4, 4), nn.BatchNorm1d(4), nn.Dropout(0.1), nn.Linear(4, 3))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
{made}
for epoch in range(2):
    for x, y in loader:
        loss = F.cross_entropy(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
"""
DATA = """\
import numpy as np
import torch
from torch.utils.data import DataLoader, Dataset


class Noisy(Dataset):
    def __init__(self):
        self.rng = np.random.default_rng(0)

    def __len__(self):
        return 64

    def __getitem__(self, index):
        return torch.tensor(self.rng.random(4), dtype=torch.float32), index % 3


def loader_of():
    return DataLoader(Noisy(), batch_size=4, shuffle=True, drop_last=True)
"""


def said(**files: str) -> list[tuple[str, Finding]]:
    """What DDP611 says of the files of a program, with the file of each."""
    found = convert({Path(f"{name}.py"): text for name, text in files.items()}, "cpu", style="plain")
    return [(path.stem, each) for path, result in found.items() for each in result.findings if each.rule == "DDP611"]


def test_it_stands_where_the_loader_of_training_is_made() -> None:
    found = said(train=TRAIN.format(also="", made="loader = loader_of()"), data=DATA)
    line = DATA.split("\n").index("    return DataLoader(Noisy(), batch_size=4, shuffle=True, drop_last=True)") + 1
    begins = {"the ranks draw their", "the batch size is 4:", "BatchNorm takes its ", "dropout draws its ma"}
    assert {each.message[:20] for file, each in found if (file, each.line) == ("data", line)} == begins
    rest = [(file, each) for file, each in found if (file, each.line) != ("data", line)]
    own = DATA.split("\n").index("        self.rng = np.random.default_rng(0)") + 1
    assert [(file, each.line, each.message[:17]) for file, each in rest] == [("data", own, "by this generator")]


def test_a_loader_of_the_script_itself_comes_first() -> None:
    made = "from torch.utils.data import DataLoader\n\n\nloader = DataLoader(Noisy(), batch_size=16, shuffle=True)"
    script = TRAIN.format(also=", Noisy", made=made) + "\nloader = loader_of()\n"
    again = script.partition("for epoch")[2]
    found = said(train=f"{script}for epoch{again}", data=DATA)
    order = [(file, each.line) for file, each in found if each.message.startswith("the ranks draw")]
    assert order == [("train", script.split("\n").index(made.split("\n")[-1]) + 1)]
