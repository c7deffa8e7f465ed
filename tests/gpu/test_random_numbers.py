"""What a rank draws for its own rows on a GPU without DDPIFY_RANDOM=original: dropout, and what fused kernels draw."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.harness import REPOSITORY
from tests.gpu.ranks import ONE_THREAD, start

LIMIT = 120.0  # seconds

SCRIPT = """\
import json, os, sys
import torch
from ddpify_runtime import DistributedDataParallel, destroy_process_group, get_rank, init_process_group
from torch import nn
from torch.nn.functional import scaled_dot_product_attention

class Dropped(nn.Module):
    def __init__(self, fused):
        super().__init__()
        self.fused = fused
        self.scale = nn.Parameter(torch.ones(64))

    def forward(self, x):
        if not self.fused:
            return nn.functional.dropout(x * self.scale, 0.5)
        keys = torch.zeros(len(x), 1, 8, 64, device=x.device, dtype=torch.float16)  # each place is worth the same
        values = torch.eye(8, 64, device=x.device, dtype=torch.float16).expand_as(keys)
        kept = scaled_dot_product_attention(keys, keys, values, dropout_p=0.5)  # which places each place has kept
        return kept[:, 0, :, :8].flatten(1).float() * x * self.scale

init_process_group("nccl")
torch.manual_seed(int(sys.argv[2]))
model = DistributedDataParallel(Dropped(sys.argv[1] == "fused").cuda())
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
masks, drawn, losses = [], [], []
for _ in range(3):
    x = torch.ones(7, 64, device="cuda")
    out = model(x)
    loss = out.mean(1).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    masks += (out.detach() != 0).tolist()
    losses.append(loss.item())
    drawn += [torch.rand(()).item(), torch.rand((), device="cuda").item()]
found = {"masks": masks, "drawn": drawn, "losses": losses, "scale": model.scale.tolist()}
with open(f"rank{get_rank()}.json", "w") as file:
    json.dump(found, file)
destroy_process_group()
"""


def ran(folder: Path, kind: str, ranks: int, seed: int = 1) -> list[dict[str, Any]]:
    """What each rank found."""
    folder.mkdir()
    (folder / "train.py").write_text(SCRIPT)
    environment = os.environ | {"PYTHONPATH": str(REPOSITORY / "runtime"), **ONE_THREAD}
    code, _, errors = start(["train.py", kind, str(seed)], ranks, folder, environment, LIMIT)
    assert not code, errors[-3000:]
    return [json.loads((folder / f"rank{rank}.json").read_text()) for rank in range(ranks)]


@pytest.mark.parametrize("kind", ["dropout", "fused"])
def test_no_two_samples_have_the_same_mask(tmp_path: Path, kind: str) -> None:
    first, second = ran(tmp_path / "two", kind, 2)
    assert first == second
    rows = {tuple(row) for row in first["masks"]}
    assert len(rows) == len(first["masks"]) == 21
    assert 0.3 < sum(map(sum, rows)) / (21 * 64) < 0.7


@pytest.mark.parametrize("kind", ["dropout", "fused"])
def test_the_same_run_draws_the_same_again_and_another_seed_another(tmp_path: Path, kind: str) -> None:
    first, again, other = (ran(tmp_path / name, kind, 2, seed)[0] for name, seed in [("a", 1), ("b", 1), ("c", 2)])
    assert first == again
    assert first["masks"] != other["masks"]


def test_the_loop_draws_the_same_on_any_number_of_ranks(tmp_path: Path) -> None:
    two, three = (ran(tmp_path / str(ranks), "dropout", ranks) for ranks in (2, 3))
    assert len({tuple(each["drawn"]) for each in two + three}) == 1
