"""Where tensors of a file go (DDP515)."""

from __future__ import annotations

import pytest
from ddpify_codemods.rules.lint.map_location import RULE

from .wrapped import told

LOAD = 'state = torch.load("a.pt")'


def test_a_file_says_where_in_a_script_of_gpus() -> None:
    assert told(RULE, f"net.cuda()\n{LOAD}") == [LOAD]
    assert not told(RULE, LOAD)


@pytest.mark.parametrize("given", ["map_location='cpu'", "'cpu'", "**options"])
def test_a_call_may_say_where(given: str) -> None:
    assert not told(RULE, f"net.cuda()\nstate = torch.load('a.pt', {given})")


def test_the_other_branch_says_where() -> None:
    assert not told(RULE, f"if cpu:\n    state = torch.load('a.pt', 'cpu')\nelse:\n    {LOAD}.cuda()")
