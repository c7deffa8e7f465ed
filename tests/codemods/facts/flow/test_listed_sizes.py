"""Sizes of a tensor that a function writes into a list, and makes the tensor of by the list's name."""

from __future__ import annotations

import pytest

from tests.codemods.facts.flow.followed import undivided

PROGRAM = """\
class Mask:
    def __init__(self, rows, steps):
        {sizes}
        self.own = torch.ones(sizes).bool(){then}
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.out = nn.Linear(4, 3)
    def forward(self, x):
        hidden = x.unsqueeze(1) * x.unsqueeze(2)
        scores = hidden.masked_fill(Mask(x.size(0), x.size(1)).own, -1e9)
        return self.out(torch.softmax(scores, dim=-1).sum(1))
def change(sizes):
    sizes[0] = 1
model = Net()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for x, y in train_loader:
    optimizer.zero_grad()
    loss = F.cross_entropy(model(x), y)
    loss.backward()
    optimizer.step()
"""


def program(sizes: str, then: str = "") -> str:
    return PROGRAM.format(sizes=sizes.replace("\n", "\n        "), then=then)


@pytest.mark.parametrize(
    "sizes",
    [
        "sizes = [rows, steps, steps]",
        "sizes = (rows, steps, steps)",
        "sizes = [rows, 2 * steps - 4, steps]",
        "self.steps = steps\nsizes = [rows, self.steps, 4]",
    ],
)
def test_a_list_with_a_name_is_what_it_is_written_with(sizes: str) -> None:
    assert not undivided(program(sizes))


@pytest.mark.parametrize(
    "sizes",
    [
        "sizes = [rows, steps]\nsizes.append(steps)",
        "sizes = [steps, rows, steps]\nsizes.reverse()",
        "sizes = [rows, steps, steps]\nsizes[0] = 1",
        "sizes = [rows, steps, steps]\nother = sizes\nother[0] = 1",
        "sizes = [rows, steps, steps]\nchange(sizes)",
        "sizes = [rows, steps, steps]\nself.kept = sizes",
        "sizes = [rows, steps, steps]\nrows = 1",
        "sizes = [rows, steps, steps]\nif steps > 3:\n    sizes = [1, steps, steps]",
        "self.rows = rows\nsizes = [self.rows, steps, steps]\nself.rows = 1",
        "sizes = [len(str(rows)), steps, steps]",
        "global rows_seen\nrows_seen = rows\nsizes = [rows_seen, steps, steps]",
    ],
)
def test_lists_that_are_changed_are_not_known(sizes: str) -> None:
    assert undivided(program(sizes))


def test_what_is_made_of_them_is_looked_at_all_the_same() -> None:
    """Its rows are those of the batch."""
    sizes = "sizes = [rows, steps, steps]"
    assert undivided(program(sizes, ".float().cumsum(0) > 3"))
