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
