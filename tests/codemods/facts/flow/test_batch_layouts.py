"""Networks that lay out their samples by the batch size: by the number that a rank has of them, in the plain style."""

from __future__ import annotations

import pytest

from tests.codemods.plain.test_followed import plain, refusals, training

SOURCE = training().replace("batch_size=8", "batch_size=size").replace("train_set =", "size = 8\ntrain_set =", 1)
NET = """\
class Net(nn.Module):
    def __init__(self, size):
        super().__init__()
        self.size, self.layer, self.head = size, nn.Linear(4, 6), nn.Linear(6, 3)

    def forward(self, x):
        x = self.layer(x)
        {line}
        return self.head(x)


"""


def layout(line: str) -> str:
    """A training of a network that lays out what is in it."""
    made = "model = Net(8)\n"
    return SOURCE.replace("model = nn.Linear(4, 3)\n", NET.format(line=line) + made)


@pytest.mark.parametrize(
    ("line", "after"),
    [
        ("x = x.view(size, -1)", "x = x.view(x.size(0), -1)"),
        ("x = x.reshape(8, 6)", "x = x.reshape(x.size(0), 6)"),
        ("x = x.view(self.size, 2, 3).flatten(1)", "x = x.view(x.size(0), 2, 3).flatten(1)"),
        ("x = x.relu().view(size, 6)", "x = x.relu().view(-1, 6)"),
    ],
)
def test_a_network_lays_out_the_samples_that_a_rank_has(line: str, after: str) -> None:
    result = plain(layout(line))
    assert not refusals(result) and after in result.code


@pytest.mark.parametrize(
    "line",
    [
        "x = x.relu().view(size, -1)",
        "x = x.view(4, -1)[:, :6].repeat(2, 1)",
        "x = torch.cat([x, x]).view(size, -1)[:, :6]",
        "x = x.permute(1, 0).reshape(-1, 6)",
        "x = x.transpose(0, 1).reshape(-1, 6)",
        "x = x[:4].view(size, -1).repeat(1, 2)",
        "x = x.view(-1).view(size, -1)",
    ],
)
def test_a_layout_that_is_not_one_of_samples_is_refused(line: str) -> None:
    assert refusals(plain(layout(line)))
