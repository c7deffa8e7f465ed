"""Plain gradient descent and dropouts that do nothing, as a run of verify may have them."""

from __future__ import annotations

import sys
from pathlib import Path

from ddpify.verify import processes

BEGIN = "import torch\nfrom ddpify_recorder import changes\n"
DROPOUT = """
changes.switch_off_dropout()
given, functional = torch.rand(8, 4, 2), torch.nn.functional
for name in changes.DROPOUTS:
    print(torch.equal(getattr(functional, name)(given, p=0.9, training=True), given))
print(torch.nn.LSTM(2, 3, num_layers=2, dropout=0.5).dropout)
attend = functional.scaled_dot_product_attention
print(torch.equal(attend(given, given, given, dropout_p=0.9), attend(given, given, given)))
"""
DESCENT = """
changes.descend_plainly()
weight, idle = torch.nn.Parameter(torch.tensor(3.0)), torch.nn.Parameter(torch.tensor(7.0))
optimizer = torch.optim.Adam([weight, idle], lr=0.5, weight_decay=1.0)

def closure():
    loss = weight**2
    loss.backward()
    return loss

print(optimizer.step(closure).item(), weight.item(), idle.item())
"""


def _printed(folder: Path, script: str) -> list[str]:
    """What a script prints that imports the recorder, which changes torch for the process."""
    (folder / "record").mkdir()
    environment = processes.environment(folder / "record", [])
    code, out, said = processes.execute([sys.executable, "-c", script], folder, environment, 120.0)
    assert code == 0, said
    return out.split()


def test_dropouts_give_what_they_get(tmp_path: Path) -> None:
    assert _printed(tmp_path, BEGIN + DROPOUT) == [*6 * ["True"], "0.0", "True"]


def test_every_optimizer_descends_plainly(tmp_path: Path) -> None:
    assert _printed(tmp_path, BEGIN + DESCENT) == ["9.0", "0.0", "7.0"]
