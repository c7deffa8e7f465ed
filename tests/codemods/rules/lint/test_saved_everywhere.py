"""Files that all ranks write (DDP514)."""

from __future__ import annotations

import pytest
from ddpify_codemods.rules.lint.saved_everywhere import RULE

from .wrapped import told

SAVE = 'torch.save(state, "a.pt")'


def test_who_saves() -> None:
    assert told(RULE, SAVE) == [SAVE]
    assert not told(RULE, f"if dist.get_rank() == 0:\n    {SAVE}\n")
    assert not told(RULE, SAVE, is_wrapped=False)


@pytest.mark.parametrize(("opened", "is_told"), [('"a.pt"', True), ('f"{dist.get_rank()}.pt"', False)])
def test_a_file_of_each_rank(opened: str, is_told: bool) -> None:
    assert told(RULE, f"torch.save(state, {opened})") == ([f"torch.save(state, {opened})"] if is_told else [])
    within = f"with open({opened}, 'wb') as file:\n    torch.save(state, file)\n"
    assert told(RULE, within) == (["torch.save(state, file)"] if is_told else [])


def test_a_file_in_memory() -> None:
    assert not told(RULE, "import io\nfile = io.BytesIO()\ntorch.save(state, file)\n")
