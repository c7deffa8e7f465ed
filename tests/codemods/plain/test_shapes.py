"""Tensors of unlike numbers of dimensions, whose samples meet in pairs: `(B, 1)` and `(B,)`."""

from __future__ import annotations

import pytest
from ddpify_codemods.facts.flow.values import BROADCAST

from .test_followed import plain, refusals, training, undivided

ONE = "torch.randint(3, (64,))"
COLUMN = "model(x)[:, :1]"
TARGETS = [
    (ONE, False),
    ("torch.randint(3, (64, 1))", True),
    ("torch.tensor([0.5 * i for i in range(64)])", False),
    ("torch.tensor(NUMBERS)", True),  # not known, and let through
]


@pytest.mark.parametrize(("target", "right"), TARGETS)
@pytest.mark.parametrize(
    "loss",
    [
        f"(({COLUMN} - y) ** 2).mean()",
        f"F.mse_loss({COLUMN}, y.float())",
        f"nn.SmoothL1Loss()({COLUMN}, y.float())",
        f"{COLUMN}.sub(y).abs().mean()",
        f"torch.where(y > 0, {COLUMN}, -{COLUMN}).mean()",
        f"torch.max({COLUMN}, y.float()).mean()",
        f"F.mse_loss({COLUMN}, (y.float() - y.float().mean()) / 2)",
        f"(F.relu(nn.Dropout(0.1)(-{COLUMN}).sigmoid()) * y.float()).mean()",
    ],
)
def test_a_loss_of_a_column_and_a_row_is_refused(loss: str, target: str, right: bool) -> None:
    source = training(loss).replace(ONE, target, 1).replace("total = 0.0", "NUMBERS = input_data()\ntotal = 0.0")
    found = refusals(plain(source))
    assert any(BROADCAST in each for each in found) is not right
    assert right is not bool(found)


@pytest.mark.parametrize(
    "loss",
    [
        "F.mse_loss(model(x)[:, 0], y.float())",
        f"F.mse_loss({COLUMN}.squeeze(1), y.float())",
        f"F.mse_loss({COLUMN}.squeeze(), y.float())",
        f"F.mse_loss({COLUMN}.view(-1), y.float().view(-1))",
        f"F.mse_loss({COLUMN}.flatten(), y.float())",
        f"F.mse_loss({COLUMN}, y.float().unsqueeze(1))",
        f"F.mse_loss({COLUMN}, y.float().view(-1, 1))",
        f"F.mse_loss({COLUMN}, y[:, None].float())",
        "F.mse_loss(model(x).sum(1), y.float())",
        "F.mse_loss(model(x).max(1)[0], y.float())",
        "F.mse_loss(model(x), F.one_hot(y, 3).float())",
        "(model(x) * y.float().unsqueeze(1)).mean()",
        "F.mse_loss(model(x).mean(1, keepdim=True), y.float().reshape(-1, 1))",
        "F.mse_loss(torch.cat([model(x), model(x)], 1)[:, 0], y.float())",
        "F.mse_loss(torch.stack([model(x), model(x)])[0, :, 0], y.float())",
        "F.nll_loss(F.log_softmax(model(x), -1), y)",
        '(F.cross_entropy(model(x), y, reduction="none") * y).mean()',
        "(model(x).max(dim=1).values - y).pow(2).mean()",
        "nn.CosineSimilarity()(model(x), model(2 * x)).mean()",
        "model(x)[:, 0].view(-1, 1).pow(2).mean()",
        "(nn.Flatten()(model(x)).sort(dim=-1)[0]).pow(2).mean()",
    ],
)
def test_tensors_of_as_many_dimensions_are_compared(loss: str) -> None:
    assert not undivided(plain(training(loss)))


@pytest.mark.parametrize(
    "loss",
    [
        "(model(x)[:, 0] - y[:, None]).abs().mean()",
        "torch.sub(model(x)[:, 0].unsqueeze(1), y).abs().mean()",
        "F.softmax(model(x)[:, 0], dim=-1).pow(2).mean()",
        "model(x).mT.softmax(1).mean()",
        "nn.Softmax(dim=-1)(model(x)[:, 0]).pow(2).mean()",
        "model(x).max(1)[0].softmax(-1).pow(2).mean()",
        "torch.max(model(x), dim=1).values.sort(dim=-1)[0].pow(2).mean()",
        'F.cross_entropy(model(x), y, reduction="none").topk(4, dim=-1)[0].mean()',
        'nn.MSELoss(reduction="none")(model(x)[:, 0], y.float()).topk(4, dim=-1)[0].mean()',
        "F.pairwise_distance(model(x), model(2 * x)).softmax(-1).pow(2).mean()",
        "F.relu(1 - model(x)[:, 0].view(-1, 2).diff(dim=1)).mean()",
        "nn.CosineSimilarity(dim=0)(model(x)[:, 0], y.float())",
        "nn.Flatten(0)(model(x)[:, :1]).softmax(-1).pow(2).mean()",
    ],
)
def test_what_is_meant_to_meet_in_pairs_is_computed_of_all_ranks(loss: str) -> None:
    assert not refusals(plain(training(loss)))
    assert undivided(plain(training(loss)))


@pytest.mark.parametrize(
    ("loss", "kind"),
    [("model(x)[:, 0].mean(-1)", "mean"), ("model(x)[:, 0].sum(-1)", "sum"), ("model(x).mT.sum(0).mean(-1)", "mean")],
)
def test_a_last_dimension_may_be_that_of_the_samples(loss: str, kind: str) -> None:
    result = plain(training(loss))
    assert not refusals(result)
    assert ("(loss * dist.get_world_size()).backward()" in result.code) is (kind == "sum")


def test_a_layer_of_one_of_several_classes_says_nothing_of_dimensions() -> None:
    """`conv = nn.Conv2d if images else nn.Conv1d`: which one it is, the run knows."""
    net = """\
class Net(nn.Module):
    def __init__(self, images):
        super().__init__()
        conv = nn.Conv2d if images else nn.Conv1d
        self.conv = conv(1, 1, 1)
        self.last = nn.Linear(4, 3)

    def forward(self, x):
        x = x.view(-1, 1, 4)
        return self.last(self.conv(x) + x)[:, 0]


model = Net(input_data())
"""
    assert not refusals(plain(training().replace("model = nn.Linear(4, 3)\n", net)))


NET = """\
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = nn.Linear(4, 3)
        self.last = nn.Linear(3, 1)

    def forward(self, x):
        return self.last(F.relu(self.first(x)))


model = Net()
"""


@pytest.mark.parametrize("net", [NET, "model = nn.Sequential(nn.Linear(4, 3), nn.ReLU(), nn.Linear(3, 1))\n"])
@pytest.mark.parametrize(
    ("loss", "right"),
    [
        ("F.mse_loss(model(x), y.float())", False),
        ("((y - model(x)) ** 2).mean()", False),
        ("F.mse_loss(torch.sigmoid(model(x)), y.float())", False),
        ("F.mse_loss(model(x).squeeze(), y.float())", True),
        ("F.mse_loss(model(x).view(-1), y.float())", True),
        ("F.mse_loss(model(x), y.float().unsqueeze(1))", True),
        ("F.mse_loss(model(x), y.float().view(-1, 1))", True),
        ("F.mse_loss(model(x)[:, 0], y.float())", True),
    ],
)
def test_what_a_linear_layer_gives_of_a_batch_has_two_dimensions(net: str, loss: str, right: bool) -> None:
    """Of samples whose number of dimensions is not known; a layer of one dimension would mix them."""
    source = training(loss).replace("model = nn.Linear(4, 3)\n", net)
    source = source.replace("torch.rand(64, 4)", "torch.tensor(input_data())", 1)
    assert "torch.tensor(input_data())" in source
    found = refusals(plain(source))
    assert any(BROADCAST in each for each in found) is not right
    assert right is not bool(found)


WIDER = """\
def wider(h):
    return h.unsqueeze(1)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer, self.conv = nn.Linear(4, 4), nn.Conv1d(1, 1, 1)

    def forward(self, x):
        h = self.layer(x)
        {body}


model = Net()
"""


@pytest.mark.parametrize(
    ("body", "loss", "said"),
    [
        ("return h.unsqueeze(1)", "F.mse_loss(x, model(x))", True),
        ("return h[:, None]", "nn.L1Loss()(model(x), x)", True),
        ("return torch.sigmoid(wider(h)), h", "F.smooth_l1_loss(model(x)[0], x)", True),
        ("return h", "F.mse_loss(x, model(x))", False),
        ("return h", "F.mse_loss(x.unsqueeze(1), model(x))", False),  # who adds one there means it
        ("x = x.unsqueeze(1)\n        return F.mse_loss(h, x)", "model(x)", False),
        ("return h.unsqueeze(1)", "F.mse_loss(model(x), model(x))", False),
        ("return h.unsqueeze(1).squeeze(1)", "F.mse_loss(x, model(x))", False),
        ("return self.conv(h.unsqueeze(1))", "F.mse_loss(x, model(x))", False),
        ("return h.view(-1, 2, 2).unsqueeze(1)", "F.mse_loss(x.view(-1, 1, 2, 2), model(x))", False),  # as many
        ("return h.unsqueeze(1)", "model(x).sub(x).abs().mean()", False),
    ],
)
def test_a_model_that_gives_a_loss_one_dimension_more(body: str, loss: str, said: bool) -> None:
    source = training(loss).replace("TensorDataset(torch.rand(64, 4)", "TensorDataset(torch.tensor(input_data())")
    source = source.replace("model = nn.Linear(4, 3)\n", WIDER.format(body=body))
    result = plain(source)
    assert not refusals(result)
    lines = [each.line for each in result.findings if "gives one of these tensors a dimension more" in each.message]
    assert lines == ([source.split("\n").index(f"        loss = {loss}") + 1] if said else [])
