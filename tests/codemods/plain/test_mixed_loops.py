"""Phases whose evaluation is not divided: what outlives a turn holds rows of this rank and of all of them."""

from __future__ import annotations

import pytest

from .test_followed import plain, refusals

PROGRAM = """\
import numpy as np
import torch
import torch.nn.functional as F
from torch.utils.data import DataLoader

from data import test_set, train_set

model = torch.nn.Linear(4, 3)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
loaders = {{
    "train": DataLoader(train_set, batch_size=12, shuffle=True),
    "val": DataLoader(test_set, batch_size=12),
}}
PHASES = ["train", "val"]
{before}
for epoch in range(2):
    for phase in PHASES:
        labels = []
        for x, y in loaders[phase]:
            loss = F.cross_entropy(model(x), y)
            if phase == "train":
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
            labels.extend(y.tolist())
            {inside}
        print(phase, float(np.median(labels)))
        {behind}
    {shown}
"""
SEEN = "print(np.histogram(seen, bins=3))"


def mixed(before: str, inside: str, behind: str, shown: str) -> list[str]:
    """Why a program is refused."""
    result = plain(PROGRAM.format(before=before, inside=inside or "pass", behind=behind or "pass", shown=shown))
    return refusals(result)


@pytest.mark.parametrize(
    ("before", "inside", "behind", "shown"),
    [
        ("seen = []", "seen.extend(y.tolist())", "", SEEN),
        ("seen = []", "seen.append(y)", "", "print(torch.cat(seen).bincount())"),
        ("seen = []", "seen.append(loss.item())", "", "print(sum(seen) / len(seen))"),
        ("seen = []", "seen.append((y, y + 1))", "", "print(sum((a != b).sum().item() for a, b in seen))"),
        ("seen = []", "seen.extend(zip(y.tolist(), y.tolist()))", "", "print(sum(a != b for a, b in seen))"),
        ("seen = []", "", "seen += labels", SEEN),
        ("seen = []", "", "seen.extend(labels)", SEEN),
        ("seen = []", "", "seen = seen + labels", SEEN),
        ("seen = np.zeros(0)", "seen = np.concatenate([seen, y.numpy()])", "", SEEN),
        ("seen = torch.zeros(0)", "seen = torch.cat([seen, y])", "", "print(seen.bincount())"),
        ('log = {"all": []}', 'log["all"].extend(y.tolist())', "", 'print(np.histogram(log["all"]))'),
    ],
)
def test_rows_of_both_are_not_brought_together(before: str, inside: str, behind: str, shown: str) -> None:
    assert mixed(before, inside, behind, shown)


@pytest.mark.parametrize(
    ("before", "inside", "behind", "shown"),
    [
        ('log = {"train": [], "val": []}', "log[phase].extend(y.tolist())", "", 'print(np.histogram(log["val"]))'),
        ("log = {}", "", "log[phase] = labels", 'print(np.histogram(log["val"]), np.histogram(log["train"]))'),
        ("medians = []", "", "medians.append(float(np.median(labels)))", "print(medians)"),
    ],
)
def test_what_belongs_to_one_phase_is(before: str, inside: str, behind: str, shown: str) -> None:
    assert not mixed(before, inside, behind, shown)


BAR = """\
import torch
import torch.nn.functional as F
from sklearn.metrics import f1_score
from torch.utils.data import DataLoader
from tqdm import tqdm

from data import test_set, train_set

model = torch.nn.Linear(4, 3)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)


def run(loader, optimizer=None):
    labels = []
    bar = tqdm(loader)
    for x, y in bar:
        loss = F.cross_entropy(model(x), y)
        if optimizer is not None:
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        bar.set_postfix(loss=loss.item())
        labels.extend(y.tolist())
    print(f1_score(labels, labels))


train_loader = DataLoader(train_set, batch_size=12, shuffle=True)
test_loader = DataLoader(test_set, batch_size=12)
for epoch in range(2):
    run(train_loader, optimizer)
    run(test_loader)
"""


def test_a_bar_that_goes_through_a_loader_is_asked_by_it() -> None:
    result = plain(BAR)
    assert not refusals(result)
    assert "    is_divided = isinstance(loader.sampler, DistributedSampler)\n    for x, y in bar:" in result.code
    assert "f1_score(whole_batch(labels) if is_divided else labels" in result.code
    assert refusals(plain(BAR.replace("    for x, y in bar:", "    loader = None\n    for x, y in bar:")))
    assert refusals(plain(BAR.replace("    for x, y in bar:", "    bar = bar or tqdm(loader)\n    for x, y in bar:")))
