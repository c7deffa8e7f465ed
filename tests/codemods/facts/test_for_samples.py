"""Functions that only data sets of other files call: no rank waits there for another one."""

from __future__ import annotations

from pathlib import Path

import pytest
from ddpify_codemods import convert

from tests.codemods.plain.test_followed import CE, LOOP

FILES = """\
import os
import torch


def place_of(i):
    return f"cache/{i}.pt"


def read(i):
    if os.path.exists(place_of(i)):
        return torch.load(place_of(i))
    image = torch.full((4,), i / 48)
    torch.save(image, place_of(i))
    return image
"""
DATA = """\
from torch.utils.data import Dataset
{imports}


class Data(Dataset):
    def __len__(self):
        return 48

    def __getitem__(self, i):
        return {read}(i), i % 3
"""
TRAIN = """\
import torch
import torch.nn.functional as F
from torch.utils.data import DataLoader
from data import Data
{before}
torch.manual_seed(0)
train_loader = DataLoader(Data(), batch_size=8, shuffle=True)
model = torch.nn.Linear(4, 3)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
"""


def converted(imports: str, read: str, style: str, before: str = "") -> str:
    texts = {
        "train.py": TRAIN.format(before=before) + LOOP.format(loss=CE, step="optimizer.step()"),
        "data.py": DATA.format(imports=imports, read=read),
        "files.py": FILES,
    }
    results = convert({Path(name): text for name, text in texts.items()}, "cpu", style=style)
    assert not [each for result in results.values() for each in result.findings if each.severity == "refused"]
    return results[Path("files.py")].code


@pytest.mark.parametrize("style", ["plain", "exact"])
@pytest.mark.parametrize(
    ("imports", "read"),
    [("from files import read", "read"), ("import files", "files.read"), ("import files as f", "f.read")],
)
def test_each_rank_reads_and_writes_for_its_own_samples(imports: str, read: str, style: str) -> None:
    assert converted(imports, read, style) == FILES


def test_what_the_program_calls_itself_too_is_done_on_rank_0() -> None:
    assert "rank" in converted("from files import read", "read", "plain", "from files import read\nread(3)\n")
