"""Optimizers that are made to load a checkpoint, and never take a step."""

from __future__ import annotations

import pytest
from ddpify_codemods.facts.flow.idle import idle_optimizers

from tests.codemods.facts.flow.followed import TRAINING, followed

OTHER = """\
other = nn.Linear(4, 3)
second = torch.optim.SGD(other.parameters(), lr=0.1)
"""
LOADED = """\
second.load_state_dict(torch.load("second.pt"))
with torch.no_grad():
    for x, y in test_loader:
        print(other(x).argmax(1).eq(y).sum().item())
"""


def models(source: str) -> tuple[int, list[str]]:
    """How many models are trained, and which problems there are."""
    found = followed(source)
    return len(found.found.optimizers_of), [each.reason for each in found.problems]


def test_a_model_whose_optimizer_takes_no_step_is_not_trained() -> None:
    assert models(TRAINING + OTHER + LOADED) == (1, [])


@pytest.mark.parametrize(
    "use",
    [
        "second.step()",
        "scaler = torch.amp.GradScaler()\nscaler.step(second)",
        "for x, y in train_loader:\n    F.cross_entropy(other(x), y).backward()",
    ],
)
def test_one_that_is_in_use_is_trained(use: str) -> None:
    assert models(TRAINING + OTHER + use)[0] == 2


def test_where_no_optimizer_takes_a_step_all_are_as_they_were() -> None:
    assert idle_optimizers(followed(OTHER + LOADED).found) == frozenset()
