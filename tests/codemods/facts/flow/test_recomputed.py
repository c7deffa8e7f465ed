"""Layers that torch.utils.checkpoint computes again in a backward pass within the other."""

from __future__ import annotations

import pytest

from tests.codemods.plain.test_followed import plain, training

NET = """\
from torch.utils import checkpoint


class Net(nn.Module):
    def __init__(self, again):
        super().__init__()
        self.again = again
        self.first, self.last = nn.Linear(4, 4), nn.Linear(4, 3)
        {spare}

    def forward(self, x):
        if self.again:
            x = {call}
        else:
            x = self.first(x)
        return self.last(x)


model = Net({again})
"""
SPARE = "self.spare = nn.Linear(4, 4)"
OPTION = "random.random() < 2"


@pytest.mark.parametrize(
    ("call", "spare", "again", "severity"),
    [
        ("checkpoint.checkpoint(self.first, x)", SPARE, "True", "warning"),
        ("checkpoint.checkpoint(self.first, x, use_reentrant=True)", SPARE, "True", "warning"),
        ("checkpoint.checkpoint(self.first, x)", SPARE, OPTION, "warning"),
        ("checkpoint.checkpoint(self.first, x)", SPARE, "False", ""),
        ("checkpoint.checkpoint(self.first, x, use_reentrant=False)", SPARE, "True", ""),
        ("checkpoint.checkpoint(self.first, x)", "", "True", ""),  # it looks for no unused parameters
    ],
)
def test_a_backward_pass_within_one_where_unused_parameters_are_looked_for(
    call: str, spare: str, again: str, severity: str
) -> None:
    net = NET.format(call=call, spare=spare or "pass", again=again)
    findings = plain(training().replace("model = nn.Linear(4, 3)\n", net)).findings
    found = [each.severity for each in findings if "in the backward pass of this" in each.message]
    assert found == ([severity] if severity else [])
