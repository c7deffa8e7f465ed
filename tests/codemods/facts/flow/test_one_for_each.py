"""Rows of parameters that are repeated for the samples of a batch: one, or several that then lie elsewhere."""

from __future__ import annotations

import pytest

from tests.codemods.facts.flow.followed import TRAINING, undivided

NET = """\
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.token = nn.Parameter({made})
        self.head = nn.Linear(4, 3)

    def forward(self, x):
        h = torch.cat(({token}, x[:, None]), dim=1)
        return self.head(h.sum(1))


model = Net()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
{after}"""
ONE = "torch.randn(1, 1, 4)"


def is_refused(token: str, made: str = ONE, after: str = "") -> bool:
    """Whether the loss of a model with a token is not divided."""
    return bool(undivided(NET.format(token=token, made=made, after=after) + TRAINING))


@pytest.mark.parametrize(
    "token",
    [
        "torch.repeat_interleave(self.token, x.shape[0], 0)",
        "torch.repeat_interleave(self.token, len(x), dim=0)",
        "torch.repeat_interleave(self.token, repeats=x.size(0), dim=-3)",
        "self.token.repeat_interleave(len(x), dim=0)",
    ],
)
def test_one_row_is_there_for_each_sample(token: str) -> None:
    assert not is_refused(token)
    assert not is_refused(token, "torch.zeros((1, 1, 4))")


REPEATED = "torch.repeat_interleave(self.token, len(x), 0).view(len(x), -1, 4)"


@pytest.mark.parametrize(
    ("token", "made", "after"),
    [
        (REPEATED, "torch.randn(2, 1, 4)", ""),
        (REPEATED, "torch.randn(int(torch.rand(()) + 1), 1, 4)", ""),
        (REPEATED, "torch.cat([torch.randn(1, 1, 4)] * 2)", ""),
        (REPEATED, ONE, "model.token.data = torch.randn(2, 1, 4)\n"),
        (REPEATED, ONE, "setattr(model.token, 'data', torch.randn(2, 1, 4))\n"),
        (REPEATED, ONE, "model.token = nn.Parameter(torch.randn(2, 1, 4))\n"),
        (REPEATED, ONE, "model.token.set_(torch.randn(2, 1, 4))\n"),
        ("torch.repeat_interleave(self.token, len(x)).view(len(x), 1, 4)", ONE, ""),
        ("torch.repeat_interleave(self.token, len(x), 2).view(len(x), 1, 4)", ONE, ""),
        ("torch.repeat_interleave(self.token, x.argmax(1), 0)[:len(x)]", ONE, ""),
        ("torch.repeat_interleave(self.token, len(x), 0) * torch.arange(len(x))[:, None, None]", ONE, ""),
    ],
)
def test_rows_that_lie_elsewhere_on_each_rank(token: str, made: str, after: str) -> None:
    assert is_refused(token, made, after)


def test_a_part_of_parameters_has_other_sizes() -> None:
    rows = "torch.repeat_interleave(self.token[0], len(x), 0).reshape(len(x), -1, 4)"
    assert is_refused(rows, "torch.randn(1, 2, 4)")


@pytest.mark.parametrize(
    "after",
    [
        "for p in model.parameters():\n    p.data = torch.randn(2, 1, 4)\n",
        "token = model.token\ntoken.data = torch.randn(2, 1, 4)\n",
        "model.register_parameter('token', nn.Parameter(torch.randn(2, 1, 4)))\n",
    ],
)
def test_parameters_that_may_get_other_sizes(after: str) -> None:
    assert is_refused("torch.repeat_interleave(self.token, len(x), 0)", after=after)
