"""Parameters that a network fills while it is made: its wrapper makes them alike, if it has one."""

from __future__ import annotations

import pytest

from tests.codemods.facts.flow.followed import reasons

PROGRAM = """\
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.out, self.drop = nn.Linear(4, 3), nn.Dropout(0.5)
        self.table = torch.empty(3)
        self.own = nn.Parameter(torch.empty(3, 3))
        {fills}
    def start(self):
        nn.init.normal_(self.out.weight)
    def forward(self, x):
        return self.drop(self.out(x)) @ self.own
def run():
    model = Net()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    {later}
    for x, y in train_loader:
        loss = F.cross_entropy(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
for fold in range(3):
    run()
{after}
"""


def problems(fills: str = "pass", later: str = "pass", after: str = "") -> list[str]:
    return reasons(PROGRAM.format(fills=fills.replace("\n", "\n        "), later=later, after=after))


@pytest.mark.parametrize(
    "fills",
    [
        "nn.init.xavier_uniform_(self.out.weight)",
        "nn.init.kaiming_normal_(self.own)",
        "self.start()",
        "for p in self.parameters():\n    if p.dim() > 1:\n        nn.init.xavier_uniform_(p)",
        "for name, p in self.named_parameters():\n    nn.init.normal_(p)",
        "for m in self.modules():\n    if isinstance(m, nn.Linear):\n        nn.init.normal_(m.weight, 0, 0.1)",
        "for m in self.modules():\n    if isinstance(m, nn.Linear):\n        nn.init.normal_(m.weight.data, 0, 0.1)",
        "for p in self.parameters():\n    nn.init.normal_(p.data)",
        "nn.init.xavier_uniform_(self.own.data)",
    ],
)
def test_parameters_of_a_network_that_is_wrapped_later_are_alike(fills: str) -> None:
    assert not problems(fills)


@pytest.mark.parametrize(
    ("fills", "later"),
    [
        ("nn.init.normal_(self.table)", "pass"),  # no parameter: nothing sends it
        ("nn.init.normal_(self.table.data)", "pass"),
        ("for b in self.buffers():\n    nn.init.normal_(b.data)", "pass"),
        ("pass", "nn.init.normal_(model.out.weight)"),  # once more, after it was wrapped
        ("pass", "nn.init.normal_(model.out.weight.data)"),
        ("pass", "model.start()"),
    ],
)
def test_other_tensors_and_other_times_are_refused(fills: str, later: str) -> None:
    assert any("is not the same on all ranks" in each for each in problems(fills, later))


@pytest.mark.parametrize("fills", ["nn.init.normal_(self.own)", "self.own = nn.Parameter(torch.randn(3, 3))"])
def test_a_network_that_has_no_wrapper_is_refused(fills: str) -> None:
    after = "other = Net()\nfor x, y in test_loader:\n    total += (other(x).argmax(1) == y).sum().item()\nprint(total)"
    bare = after.replace("Net()", "Bare()")
    own = "class Bare(nn.Module):\n    def __init__(self):\n        super().__init__()\n        "
    own += f"self.own = nn.Parameter(torch.empty(4, 3))\n        {fills}\n    def forward(self, x):\n"
    found = problems(after=f"{own}        return x @ self.own\n{bare}")
    assert any("begins with other numbers" in each for each in found)
