"""Records of a log: their numbers are brought together where they are put in; what all ranks have stays as it is."""

from __future__ import annotations

import pytest

from tests.codemods.plain.test_followed import plain, refusals

PROGRAM = """\
import torch
import torch.nn.functional as F
from torch.utils.data import DataLoader, TensorDataset

train_set = TensorDataset(torch.rand(65, 4), torch.randint(3, (65,)))
model = torch.nn.Linear(4, 3)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
rows = []
for epoch in range(2):
    for step, (x, y) in enumerate(DataLoader(train_set, batch_size=6, shuffle=True)):
        out = model(x)
        loss = F.cross_entropy(out, y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        {keeps}
{reads}
"""
EACH = "for row in rows:\n    print(*row)"


@pytest.mark.parametrize(
    ("keeps", "kept"),
    [
        ("[epoch, step, loss.item()]", "[epoch, step, mean_over_ranks(loss.item())]"),
        ("(step, loss.item())", "(step, mean_over_ranks(loss.item()))"),
        ("['train', float(loss), str(step)]", "['train', mean_over_ranks(float(loss)), str(step)]"),
        (
            "[epoch, loss.item(), (out.argmax(1) == y).sum().item()]",
            "[epoch, mean_over_ranks(loss.item()), sum_over_ranks((out.argmax(1) == y).sum().item())]",
        ),
    ],
)
@pytest.mark.parametrize("reads", [EACH, "print(rows[-1])", "for e, *rest in rows:\n    print(f'{e} {rest}')"])
def test_a_number_is_brought_together_where_it_is_put_into_a_record(keeps: str, kept: str, reads: str) -> None:
    result = plain(PROGRAM.format(keeps=f"rows.append({keeps})", reads=reads))
    assert f"rows.append({kept})\n" in result.code and f"\n{reads}\n" in result.code


def test_a_list_of_numbers_is_brought_together_at_once() -> None:
    code = plain(PROGRAM.format(keeps="rows.append(loss.item())", reads="print(rows)")).code
    assert "rows.append(loss.item())\n" in code and "rows = mean_over_ranks(rows)\n" in code


@pytest.mark.parametrize(
    ("keeps", "reads"),
    [
        ("row = [epoch, loss.item()]\n        rows.append(row)", EACH),
        ("rows += [[epoch, loss.item()]]", EACH),
        ("rows.append([epoch] + [loss.item()])", EACH),
        ("rows.append([epoch, [step, loss.item()]])", EACH),
        ("rows.extend([epoch, loss.item()])", "print(rows)"),
        ("row = [epoch, loss.item()]\n        print(*row)", ""),
        ("row = 'train', loss.item()\n        print(*row)", ""),
    ],
)
def test_other_records_are_refused_where_they_are_read(keeps: str, reads: str) -> None:
    assert refusals(plain(PROGRAM.format(keeps=keeps, reads=reads)))


def test_where_the_ranks_are_at_different_places_it_is_refused() -> None:
    keeps = "for each in out:\n            rows.append([epoch, each.max().item()])"
    result = plain(PROGRAM.format(keeps=keeps, reads=EACH))
    assert refusals(result)
