"""A scheduler goes by rank 0's number where each rank draws its own (DDP614)."""

from __future__ import annotations

import pytest

from tests.codemods.plain.test_followed import plain

SCRIPT = """\
import numpy as np
import torch
from torch.utils.data import DataLoader, Dataset


class Noisy(Dataset):
    def __len__(self):
        return 64

    def __getitem__(self, index):
        return torch.randn(4), index % 2


model = torch.nn.Linear(4, 2)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
scheduler = torch.optim.lr_scheduler.ReduceLROnPlateau(optimizer)
loader, others = DataLoader(Noisy(), batch_size=8, shuffle=True), DataLoader(Noisy(), batch_size=8)
for epoch in range(4):
    for x, y in loader:
        loss = torch.nn.functional.cross_entropy(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    guesses = []
    with torch.no_grad():
        for x, y in others:
            guesses.extend(model(x)[:, 1].tolist())
    middle = MIDDLE
    scheduler.step(middle)
"""


@pytest.mark.parametrize(
    ("middle", "given"),
    [
        ("float(np.median(np.array(guesses)))", "middle"),
        ("np.median(np.array(guesses))", "float(middle)"),
        ("torch.tensor(guesses).median()", "float(middle)"),
        ("torch.tensor(guesses).median().item()", "middle"),
    ],
)
def test_it_is_given_rank_0s_number(middle: str, given: str) -> None:
    assert f"scheduler.step(from_rank_0({given}))" in plain(SCRIPT.replace("MIDDLE", middle)).code
