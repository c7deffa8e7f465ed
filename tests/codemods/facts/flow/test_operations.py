"""What operations make of something that holds each sample."""

from __future__ import annotations

import pytest
from ddpify_codemods.facts.flow.operations import on_rows
from ddpify_codemods.facts.flow.values import COUPLES, Kind, Value

from tests.codemods.facts.flow.followed import followed, reasons


@pytest.mark.parametrize(
    ("name", "kind", "dimension", "result"),
    [
        ("mean", "rows", None, "mean"),
        ("mean", "rows", 0, "mean"),
        ("mean", "rows", 1, "rows"),
        ("sum", "rows", 0, "sum"),
        ("sum", "rows_second", 0, "rows"),
        ("softmax", "rows", 1, "rows"),
        ("softmax", "rows", 0, "unknown"),
        ("softmax", "rows_second", 1, "unknown"),
        ("relu", "rows_last", None, "rows_last"),
    ],
)
def test_what_runs_over_samples(name: str, kind: Kind, dimension: int | None, result: str) -> None:
    made = on_rows(name, Value(kind), dimension, [], set())
    assert made is not None and made.kind == result


def test_an_operation_that_is_not_listed_is_unknown() -> None:
    assert on_rows("betainc", Value("rows"), None, [], set()) is None


def test_how_often_classes_occur_is_a_sum_where_it_is_as_long_on_each_rank() -> None:
    for kind in ("rows", "picked"):
        for given, result in ((set[str](), "unknown"), ({"minlength"}, "sum")):
            made = on_rows("bincount", Value(kind), None, [], given)
            assert made is not None and made.kind == result


@pytest.mark.parametrize("name", ["qr", "triu", "fft2"])
def test_what_is_made_of_a_matrix_couples_its_rows(name: str) -> None:
    for dimensions, reason in ((2, COUPLES), (3, "")):
        made = on_rows(name, Value("rows", dimensions=dimensions), None, [], set())
        assert (made.reason if made is not None else "") == reason


WEIGHED = """\
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer, self.last = nn.Linear(4, 6), nn.Linear(6, 3)

    def forward(self, x):
        return self.last({})


def weights(n):
    return torch.arange(n) + 1.0 if n > 1 else None


net = Net()
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
criterion = nn.CrossEntropyLoss(weight=weights(3))
for x, y in train_loader:
    loss = criterion(net(x), y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
"""


@pytest.mark.parametrize(
    "positions",
    ["self.layer(x).unsqueeze(2).flatten(2).mean(2)", "torch.flatten(self.layer(x)[:, :, None, None], 2)[:, :, 0]"],
)
def test_positions_that_are_made_one_dimension_leave_samples_as_they_are(positions: str) -> None:
    found = followed(WEIGHED.format(positions))
    assert not found.problems and found.found.joined


@pytest.mark.parametrize(
    "positions",
    [
        "self.layer(x).unsqueeze(1).flatten(0, 1)",
        "self.layer(x).unsqueeze(1).flatten(end_dim=1)",
        "self.layer(x).unsqueeze(0).flatten(1)",
        "self.layer(x)[None, None].flatten(2)",
        "self.layer(x).t()[None].flatten(1)",
        "self.layer(x).unsqueeze(2).flatten(len(train_set) % 2)",
        "self.layer(x).unsqueeze(2).flatten(-3)",
    ],
)
def test_positions_that_may_be_made_one_dimension_with_samples(positions: str) -> None:
    assert reasons(WEIGHED.format(positions))
