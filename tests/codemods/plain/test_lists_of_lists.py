"""Lists in a list, of which one may be longer than another: each is brought together by itself."""

from __future__ import annotations

import pytest

from tests.codemods.plain.test_followed import plain

PROGRAM = """\
import torch
import torch.nn.functional as F
from torch.utils.data import DataLoader, TensorDataset

train_set = TensorDataset(torch.rand(65, 4), torch.randint(3, (65,)))
model = torch.nn.Linear(4, 3)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
curves = {made}
for epoch in range(2):
    {begins}
    for x, y in DataLoader(train_set, batch_size=6, shuffle=True):
        loss = F.cross_entropy(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        curves{keeps}
print({shown})
"""
EACH = "[mean_over_ranks(numbers) for numbers in curves]"


@pytest.mark.parametrize(
    ("made", "begins", "keeps"),
    [
        ("[[], []]", "pass", "[0].append(loss.item())"),
        ("[]", "curves.append([])", "[-1].append(loss.item())"),
        ("[[], [], []]", "pass", "[int(y[0])].append(loss.item())"),
    ],
)
def test_each_is_brought_together_by_itself(made: str, begins: str, keeps: str) -> None:
    code = plain(PROGRAM.format(made=made, begins=begins, keeps=keeps, shown="curves")).code
    assert f"curves = {EACH}\n" in code and "mean_over_ranks(curves)" not in code


def test_in_an_f_string_they_stand_in_parentheses() -> None:
    source = PROGRAM.format(made="[[], []]", begins="pass", keeps="[0].append(loss.item())", shown="curves")
    source = source.replace("append(loss.item())", "append(loss.item())\n        print(f'{curves}')")
    assert f"print(f'{{({EACH})}}')" in plain(source).code


def test_lists_of_the_same_length_are_brought_together_at_once() -> None:
    keeps = ".append([loss.item(), 2 * loss.item()])"
    code = plain(PROGRAM.format(made="[]", begins="pass", keeps=keeps, shown="curves")).code
    assert "curves = mean_over_ranks(curves)\n" in code
