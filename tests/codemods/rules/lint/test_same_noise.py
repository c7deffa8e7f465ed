"""Noise that is the same on all ranks (DDP518)."""

from __future__ import annotations

import pytest
from ddpify_codemods.rules.lint.same_noise import RULE

from .wrapped import STEP, told

DRAWS = "z = torch.randn(8, 4)"


@pytest.mark.parametrize(
    ("seed", "draw", "is_told"),
    [
        ("torch.manual_seed(3)", DRAWS, True),
        ("torch.manual_seed(args.seed)", DRAWS, True),
        ("", DRAWS, False),
        ("torch.manual_seed(3 + dist.get_rank())", DRAWS, False),
        ("torch.manual_seed(3)", "z = torch.randn(8, 4, generator=own)", False),
        ("torch.manual_seed(3)", "z = torch.ones(8, 4)", False),
    ],
)
def test_draws_of_a_loop(seed: str, draw: str, is_told: bool) -> None:
    assert told(RULE, before=f"{seed}\n", step=f"{draw}\n{STEP}") == ([draw] if is_told else [])


def test_draws_beside_training() -> None:
    assert not told(RULE, DRAWS, before="torch.manual_seed(3)\n")
