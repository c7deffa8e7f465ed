"""DDP132: an HDF5 file that is only read is opened to be read, since one process alone can have it open to write it."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from ...facts.only_read import mode_to_read
from ...facts.script import Script
from ...rule import Edit, Replace, Rule
from ...targets import Target


def check(script: Script, target: Target) -> Iterator[Edit]:
    """Open files in the mode of which what is done with them has need."""
    for call in script.find(ast.Call):
        if (mode := mode_to_read(script, call)) is not None:
            quote = (ast.get_source_segment(script.text, mode) or '"')[-1]
            yield Replace(mode, f"{quote}r{quote}", "open the file to read it: it is not written")


RULE = Rule(
    id="DDP132",
    title="Open an HDF5 file that is only read to read it",
    why="""\
h5py locks a file that it opens with `"r+"`, whether or not anything is written: where two processes open it, one of
them ends with an error. Opened with `"r"`, all of them can read it.""",
    before="""\
import h5py
import torch
from torch.utils.data import DataLoader, TensorDataset


def load(path):
    file = h5py.File(path, "r+")
    x, y = file["x"][:], file["y"][:]
    file.close()
    return TensorDataset(torch.from_numpy(x), torch.from_numpy(y))


loader = DataLoader(load("train.h5"), batch_size=8, shuffle=True)
model = torch.nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for x, y in loader:
    loss = torch.nn.functional.mse_loss(model(x), y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
""",
    after="""\
import h5py
import torch
from ddpify_runtime import (
    DataLoader,
    DistributedDataParallel,
    DistributedSampler,
    destroy_process_group,
    init_process_group,
)
from torch.utils.data import TensorDataset

init_process_group("gloo")


def load(path):
    file = h5py.File(path, "r")
    x, y = file["x"][:], file["y"][:]
    file.close()
    return TensorDataset(torch.from_numpy(x), torch.from_numpy(y))


loader = DataLoader(
    dataset := load("train.h5"),
    batch_size=8,
    sampler=DistributedSampler(dataset, shuffle=True),
)
model = torch.nn.Linear(4, 1)
model = DistributedDataParallel(model)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for x, y in loader:
    loss = torch.nn.functional.mse_loss(model(x), y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()

destroy_process_group()
""",
    check=check,
    target="cpu",
)
