"""Modules that are trained beside the wrapped one (DDP512)."""

from __future__ import annotations

import pytest
from ddpify_codemods.rules.lint.not_wrapped import RULE

from .wrapped import told

MAKES = "other = torch.optim.SGD(head.parameters(), lr=0.1)"


@pytest.mark.parametrize("head", ["nn.Linear(1, 1)", "nn.Linear(1, 1).to(device)"])
def test_a_module_of_its_own(head: str) -> None:
    assert told(RULE, MAKES, before=f"head = {head}\n") == [MAKES]
    assert not told(RULE, MAKES, before=f"head = {head}\n", is_wrapped=False)


@pytest.mark.parametrize(
    "before",
    [
        "head = DDP(nn.Linear(1, 1))",
        "head = made()",
        "head = nn.Linear(1, 1)\nhead = DDP(head)",
        "head = nn.Linear(1, 1)\nnet = nn.Sequential(net, head)",
        "head = nn.Linear(1, 1)\ndist.all_reduce(head.weight.grad)",
    ],
)
def test_what_is_wrapped_or_averaged_elsewhere(before: str) -> None:
    assert not told(RULE, MAKES, before=f"{before}\n")
