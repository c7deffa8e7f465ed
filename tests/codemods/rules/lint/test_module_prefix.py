"""Saved states of wrappers, whose keys begin with `module.` (DDP516)."""

from __future__ import annotations

import pytest
from ddpify_codemods.rules.lint.module_prefix import RULE

from .wrapped import told

SAVE = 'torch.save({}.state_dict(), "a.pt")'


@pytest.mark.parametrize(("owner", "is_told"), [("model", True), ("model.module", False), ("optimizer", False)])
def test_whose_state_is_saved(owner: str, is_told: bool) -> None:
    line = SAVE.format(owner)
    assert told(RULE, line) == ([line] if is_told else [])


def test_a_state_that_is_loaded_into_the_wrapper_again() -> None:
    assert not told(RULE, f'{SAVE.format("model")}\nmodel.load_state_dict(torch.load("a.pt"))\n')


def test_a_state_that_is_not_saved() -> None:
    assert not told(RULE, "print(model.state_dict())")
