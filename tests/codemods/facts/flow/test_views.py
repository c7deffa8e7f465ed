"""What lies behind steps or layers, and is viewed anew."""

from __future__ import annotations

import pytest

from tests.codemods.facts.flow.followed import TRAINING, reasons, undivided

RECURRENT = """\
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.rnn = nn.{rnn}
        self.out = nn.Linear(8, 3)
    def forward(self, x):
        x = x.unsqueeze(1)
        b, steps = x.size(0), x.size(1)
        {body}
        return self.out(h)
model = Net()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
"""
STEPS_FIRST = "o, h = self.rnn(x.transpose(0, 1)); h = o"


@pytest.mark.parametrize(
    ("rnn", "body"),
    [
        ("GRU(4, 8, batch_first=True)", "h = self.rnn(x)[1].view(b, -1)"),
        ("GRU(4, 8, batch_first=True)", "h = self.rnn(x)[1].view(-1, 8)"),
        ("LSTM(4, 8, num_layers=1)", "o, (h, c) = self.rnn(x.transpose(0, 1)); h = h.contiguous().view(b, 8)"),
        ("GRU(4, 8)", "o, h = self.rnn(x.squeeze(1).unsqueeze(0)); h = o.view(b, -1)"),
        ("GRU(4, 8)", "o, h = self.rnn(x.view(1, b, -1)); h = o.reshape(b, -1)"),
        ("GRU(4, 8)", f"{STEPS_FIRST}.transpose(0, 1).reshape(b, -1)"),
        ("GRU(4, 8)", f"{STEPS_FIRST}.view(-1, 8); h = h.view(steps, b, 8)[-1]"),
        ("GRU(4, 8, 2)", "h = self.rnn(x.transpose(0, 1))[1].view(2, -1, 8)[-1]"),
        ("GRU(4, 8, 2)", "h = self.rnn(x.transpose(0, 1))[1].permute(1, 0, 2).reshape(-1, 16)[:, 8:]"),
        ("GRU(4, 8)", "h = self.rnn(x.transpose(0, 1))[1].squeeze().view(b, -1)"),
    ],
)
def test_what_a_recurrent_network_gives_back_for_each_sample(rnn: str, body: str) -> None:
    assert undivided(RECURRENT.format(rnn=rnn, body=body) + TRAINING) == []


@pytest.mark.parametrize(
    ("rnn", "body"),
    [
        ("GRU(4, 4, batch_first=True, bidirectional=True)", "h = self.rnn(x)[1].view(b, -1)"),
        ("GRU(4, 4, 2)", "h = self.rnn(x.transpose(0, 1))[1].view(-1, 8)"),
        ("LSTM(4, 8, LAYERS)", "h = self.rnn(x.transpose(0, 1))[1][0].view(b, -1)"),
        ("GRU(4, 8)", f"{STEPS_FIRST}.contiguous().view(b, -1)"),
        ("GRU(4, 8)", f"{STEPS_FIRST}.reshape(len(x), -1, 8).mean(1)"),
        ("GRU(4, 8)", f"{STEPS_FIRST}.reshape((b, -1))"),
        ("GRU(4, 8)", f"{STEPS_FIRST}.reshape(*[b, 8])"),
        ("GRU(4, 8)", f"{STEPS_FIRST}.flatten().view(b, -1)"),
        ("GRU(4, 4, 2)", "h = torch.reshape(self.rnn(x.transpose(0, 1))[1], (b, -1))"),
        ("GRU(4, 4, 2)", "h = F.dropout(torch.relu(self.rnn(x.transpose(0, 1))[1]), 0.1).view(-1, 8)"),
        ("GRU(4, 4, 2)", "h = self.rnn(x.transpose(0, 1))[1].view(2, -1).view(b, 8)"),
        ("GRU(4, 4, 2)", "h = self.rnn(x.transpose(0, 1))[1].squeeze().view(-1, 8)"),
    ],
)
def test_rows_of_several_samples_are_not_taken_for_one(rnn: str, body: str) -> None:
    found = reasons("LAYERS = torch.load('layers')\n" + RECURRENT.format(rnn=rnn, body=body) + TRAINING)
    assert any("couples samples" in each for each in found)


@pytest.mark.parametrize(
    "body",
    [
        "h = o.flatten(0, 1)[:b]",
        "h = torch.relu(o.reshape(-1, 8))[-b:]",
        "h = o.reshape(steps * b, 8); h = h.view(steps, b, 8)[-1]",
        "h = F.adaptive_avg_pool1d(o, 1).expand(steps, b, 8)[-1]",
        "h = o.transpose(0, 1).transpose(1, 2); h = F.max_pool1d(h, h.size(2)).squeeze(2)",
        "h = o.view(steps, b, 2, 4).view(STEPS, b, 8)[0]",
    ],
)
def test_what_has_its_steps_first_stays_so(body: str) -> None:
    body = f"o, h = self.rnn(x.transpose(0, 1)); {body}"
    assert undivided("STEPS = 1\n" + RECURRENT.format(rnn="GRU(4, 8)", body=body) + TRAINING) == []


@pytest.mark.parametrize(
    "body",
    [
        "h = o.flatten(0, 1)[:5]",
        "h = torch.flatten(o, 0, 1)[:5]",
        "h = torch.relu(o.reshape(-1, 8))[0]",
        "h = o.reshape(-1, 8)[::steps]",
        "h = o.reshape(-1, 8).view(-1, 8)[-1:]",
        "h = o.view(10, b, 3)[-1]",
        "h = o.view((10, b, 3))[-1]",
        "h = torch.reshape(o, (10, b, 3))[-1]",
        "h = torch.reshape(o, (steps // 2, b, 16))[-1]",
        "h = x.unsqueeze(0).view(2, b, 2)[0]",
        "h = o.transpose(1, 2); h = F.max_pool1d(h, h.size(2)).squeeze(2)",
        "h = F.avg_pool2d(o, 2)[0]",
        "h = nn.AdaptiveAvgPool2d((None, 4))(o)[0]",
        "h = o.unfold(1, 2, 1)[0]",
        "h = F.batch_norm(o, None, None, training=True)[-1]",
    ],
)
def test_what_runs_over_samples_behind_steps_couples_them(body: str) -> None:
    found = reasons(RECURRENT.format(rnn="GRU(4, 8)", body=f"o, h = self.rnn(x.transpose(0, 1)); {body}") + TRAINING)
    assert any("couples samples" in each for each in found)


WINDOWS = """\
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner, self.out = nn.Linear(2, 2), nn.Linear(4, 3)
    def forward(self, x):
        height, size = x.size(1), 2
        parts = self.inner(x.view(len(x), height // size, size).contiguous().view(-1, size))
        b = {count}
        return self.out(parts.view(b, height // size, size).view(b, -1))
model = Net()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
"""


@pytest.mark.parametrize("count", ["int(parts.shape[0] / (height / size))", "parts.size(0) // (height // size)"])
def test_windows_of_each_sample_are_put_together_again(count: str) -> None:
    assert undivided(WINDOWS.format(count=count) + TRAINING) == []


@pytest.mark.parametrize("count", ["int(len(h) / 2)", "len(h) // 2", "int(h.shape[0] / pairs)"])
def test_samples_are_not_put_together(count: str) -> None:
    body = f"pairs = 2; h = self.rnn(x[:, 0]); h = h.view({count}, 16).view(-1, 2, 8).amax(1)"
    loss = TRAINING.replace("F.cross_entropy(model(x), y)", "model(x).tanh().mean()")
    assert undivided(RECURRENT.format(rnn="Linear(4, 8)", body=body) + loss)


LAYERS = """\
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers, self.out = {layers}, nn.Linear({size}, 3)
    def forward(self, x):
        x = torch.stack([x, 2 * x, 3 * x], 1).transpose(0, 1)
        steps, b, features = x.shape
        self.steps = 3
        h = self.layers({merged})
        {body}
        return self.out(h)
model = Net()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
"""
MODULES = ["nn.Linear(4, 5)", "nn.Sequential(nn.Linear(4, 5), nn.ReLU())", "torch.compile(nn.Linear(4, 5))"]


@pytest.mark.parametrize("layers", MODULES)
@pytest.mark.parametrize("merged", ["x.reshape(-1, features)", "x.flatten(0, 1)", "torch.reshape(x, (steps * b, 4))"])
def test_steps_and_samples_that_layers_take_as_one_dimension_become_two_again(layers: str, merged: str) -> None:
    for body, size in (
        ("h = h.view(steps, b, 5)[-1]", 5),
        ("h = torch.reshape(h, (steps, b, -1)).transpose(0, 1).reshape(b, -1)", 15),
        ("h = h.reshape(x.size(0), x.size(1), 5).mean(0)", 5),
    ):
        assert undivided(LAYERS.format(layers=layers, merged=merged, body=body, size=size) + TRAINING) == []


@pytest.mark.parametrize("layers", MODULES)
@pytest.mark.parametrize(
    "body",
    [
        "h = h.view(b, -1)",
        "h = torch.reshape(h, (b, 15))",
        "h = h.view(steps * 1, b, 5).transpose(0, 1).reshape(b, -1)",
        "h = h.view(3, b, 5).transpose(0, 1).reshape(b, -1)",
        "h = h.view(self.steps, b, 5).transpose(0, 1).reshape(b, -1)",
        "h = h.view(x.size(1), b, -1).transpose(0, 1).reshape(b, -1)",
        "h = h.view(self.out.weight.size(0), b, -1).transpose(0, 1).reshape(b, -1)",
        "other = self.out.weight.shape[0]; h = h.view(other, b, -1).transpose(0, 1).reshape(b, -1)",
        "steps = torch.load('steps'); h = h.view(steps, b, -1).transpose(0, 1).reshape(b, -1)",
    ],
)
def test_steps_of_several_samples_are_not_taken_for_those_of_one(layers: str, body: str) -> None:
    program = LAYERS.format(layers=layers, merged="x.reshape(-1, features)", body=body, size=15)
    assert any("couples samples" in each for each in reasons(program + TRAINING))
