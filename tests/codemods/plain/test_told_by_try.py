"""What a `try` tells of a call that rank 0 alone makes is sent to the others (DDP614)."""

from __future__ import annotations

import pytest

from tests.codemods.plain.test_followed import plain, refusals

SCRIPT = """\
import torch
import wandb
from torch.utils.data import DataLoader, TensorDataset

BEFORE
loader = DataLoader(TensorDataset(torch.rand(64, 4), torch.rand(64, 1)), batch_size=8, shuffle=True)
model = torch.nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for x, y in loader:
    loss = torch.nn.functional.mse_loss(model(x), y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if online:
        wandb.log({"loss": loss.item()})
torch.save(model.state_dict(), "model.pt")
if online:
    wandb.save("model.pt")
model.load_state_dict(torch.load("model.pt"))
"""
SENT = "\nonline = from_rank_0(online)\n"


@pytest.mark.parametrize(
    "before",
    [
        "try:\n    wandb.init()\n    online = True\nexcept Exception:\n    online = False",
        "online = True\ntry:\n    wandb.init()\nexcept Exception:\n    online = False",
        "online = False\ntry:\n    wandb.init()\n    online = True\nexcept Exception:\n    print('offline')",
    ],
)
def test_a_flag_is_rank_0s(before: str) -> None:
    result = plain(SCRIPT.replace("BEFORE", before))
    assert SENT in result.code and result.code.count("dist.barrier()") == 1  # not behind wandb.save


@pytest.mark.parametrize(
    "before",
    [
        "online = True\ntry:\n    wandb.init()\nexcept ImportError:\n    online = False",
        "online = True\ntry:\n    wandb.init()\nexcept Exception:\n    online = False\n    raise",
        "online = True\nwandb.init()\ntry:\n    print(1)\nexcept Exception:\n    online = False",
        "online = True\ntry:\n    wandb.init()\nexcept Exception as error:\n    failed = True\n    print(error)",
    ],
)
def test_what_all_ranks_are_told_alike_is_not_sent(before: str) -> None:
    result = plain(SCRIPT.replace("BEFORE", before))
    assert not refusals(result) and "from_rank_0" not in result.code


def test_what_cannot_be_sent_is_refused() -> None:
    before = "online = True\ntry:\n    wandb.init()\nexcept Exception as error:\n    online = len(str(error)) > 9"
    [reason] = refusals(plain(SCRIPT.replace("BEFORE", before)))
    assert "another `online`" in reason
