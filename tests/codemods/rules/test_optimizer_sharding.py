from __future__ import annotations

from pathlib import Path

import pytest
from ddpify_codemods import Result, convert
from ddpify_codemods.layout import CALLS, laid_out

SCRIPT = """\
import torch
from torch import nn, optim
from torch.optim import Adam, AdamW

net = nn.Linear(4, 1)
{lines}
for _ in range(3):
    optimizer.zero_grad()
    net(torch.rand(8, 4)).mean().backward()
    optimizer.step()
"""
PATH = Path("train.py")


def converted(lines: str, target: str = "cpu", sharded: bool = True) -> Result:
    return convert({PATH: SCRIPT.format(lines=lines)}, target, optimizer_sharding=sharded)[PATH]


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("Adam(net.parameters())", "(net.parameters(), optimizer_class=Adam)"),
        ("Adam(net.parameters(), 0.1, (0.9, 0.99))",
         "(net.parameters(), optimizer_class=Adam, lr=0.1, betas=(0.9, 0.99))"),
        ("torch.optim.SGD(net.parameters(), lr=0.1, momentum=0.9)",
         "(net.parameters(), optimizer_class=torch.optim.SGD, lr=0.1, momentum=0.9)"),
        ("optim.SGD((p for p in net.parameters()), 0.1, 0.9)",
         "((p for p in net.parameters()), optimizer_class=optim.SGD, lr=0.1, momentum=0.9)"),
        ("optim.SGD(p for p in net.parameters() if p.requires_grad)",
         "((p for p in net.parameters() if p.requires_grad), optimizer_class=optim.SGD)"),
        ("Adam(lr=0.1, params=net.parameters())", "(lr=0.1, optimizer_class=Adam, params=net.parameters())"),
        ("Adam(net.parameters(), **{'lr': 0.1})", "(net.parameters(), optimizer_class=Adam, **{'lr': 0.1})"),
        ("getattr(optim, 'Adam')(net.parameters(), 0.1)",
         "(net.parameters(), optimizer_class=getattr(optim, 'Adam'), lr=0.1)"),
        ("Adam(\n    net.parameters(),  # all\n    0.1,  # the rate\n)",
         "(\n    net.parameters(),\n    optimizer_class=Adam,  # all\n    lr=0.1,  # the rate\n)"),
    ],
)  # fmt: skip
def test_it_hands_over_the_class(before: str, after: str) -> None:
    result = converted(f"optimizer = {before}")
    assert not [each for each in result.findings if each.severity == "refused"]
    assert laid_out("", f"optimizer = ZeroRedundancyOptimizer{after}\n", CALLS) in result.code
    assert convert({PATH: result.code}, "cpu")[PATH].code == result.code
    assert convert({PATH: result.code}, "cpu", optimizer_sharding=True)[PATH].code == result.code


@pytest.mark.parametrize(
    ("lines", "line", "message"),
    [
        ("optimizer = optim.LBFGS(net.parameters())", 6, "may look at all parameters"),
        ("class Mine(optim.SGD): ...\noptimizer = Mine(net.parameters(), lr=0.1)", 7, "may look at all parameters"),
        ("import lion\noptimizer = lion.Lion(net.parameters())", 7, "of which a process cannot keep a part"),
        ("given = (net.parameters(), 0.1)\noptimizer = Adam(*given)", 7, "have no names here"),
        ("optimizer = Adam(net.parameters())\nkept = optimizer.state[net.weight]", 7, "looks at that of all"),
    ],
)
def test_refused(lines: str, line: int, message: str) -> None:
    [finding] = [each for each in converted(lines).findings if each.severity == "refused"]
    assert (finding.rule, finding.line) == ("DDP125", line)
    assert message in finding.message
    assert not [each for each in converted(lines, sharded=False).findings if each.severity == "refused"]


def test_there_and_back() -> None:
    made = "optimizer = Adam(net.parameters(), lr=0.1)"
    sharded = converted(made).code
    assert convert({PATH: sharded}, "none")[PATH].code.rstrip() == SCRIPT.format(lines=made).rstrip()
    assert "ZeroRedundancyOptimizer" in convert({PATH: sharded}, "cuda")[PATH].code
    [finding] = convert({PATH: sharded}, "xla")[PATH].findings
    assert (finding.rule, finding.severity) == ("DDP125", "refused")


def test_an_optimizer_that_comes_later_is_divided_where_that_is_asked() -> None:
    code = converted("optimizer = Adam(net.parameters(), lr=0.1)").code
    added = code.replace("for _ in", "second = AdamW(net.parameters())\nfor _ in")
    assert convert({PATH: added}, "cpu")[PATH].code == added
    again = convert({PATH: added}, "cpu", optimizer_sharding=True)[PATH].code
    assert "second = ZeroRedundancyOptimizer(net.parameters(), optimizer_class=AdamW)" in again
