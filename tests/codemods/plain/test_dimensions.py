"""`softmax(x)`, which runs along another dimension by how many there are."""

from __future__ import annotations

import pytest

from .test_followed import plain, refusals, training, undivided


@pytest.mark.parametrize(
    ("loss", "right"),
    [
        ("F.nll_loss(F.log_softmax(model(x.view(-1, 4)) / 2.0), y)", True),
        ("F.nll_loss(F.log_softmax(model(x.view(x.size(0), -1)).clone()), y)", True),
        ("F.kl_div(F.log_softmax(model(x.flatten(1))), F.softmax(model(x.flatten(1)).detach()))", True),
        ("F.kl_div(torch.log(nn.Softmax()(model(x.view(-1, 4)))), F.softmax(model(x.view(-1, 4))))", True),
        ("F.nll_loss(F.log_softmax(model(x)), y)", True),
        ("F.nll_loss(F.log_softmax(model(x.squeeze())), y)", False),
        ("F.softmax(model(x.view(-1, 1, 4))).mean()", False),
        ("nn.Softmax()(model(x.view(-1, 1, 4))).mean()", False),
        ("F.softmax(model(x.view(-1, 4)) * torch.rand(2, 1, 1)).mean()", False),
        ("F.softmax(model(x.view(-1, 4)).unsqueeze(1)).mean()", False),
        ("F.softmax(model(x.view(-1, 4)) if random.random() > 2 else x.view(-1, 2, 2)).mean()", False),
        ("F.softmax(model(x.view(*SHAPE))).mean()", False),
        ("F.softmax(model(x.view(SHAPE))).mean()", False),
    ],
)
def test_the_dimension_follows_from_how_many_there_are(loss: str, right: bool) -> None:
    source = training(loss).replace("total = 0.0", "SHAPE = (-1, 1, 4)\ntotal = 0.0")
    assert bool(undivided(plain(source))) is not right


def test_a_model_whose_softmax_runs_over_the_samples_is_refused() -> None:
    net = """\
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(4, 3)

    def forward(self, x):
        return F.softmax(self.layer(x.view({sizes}))).view(-1, 3)


model = Net()
"""
    for sizes, right in (("-1, 4", True), ("-1, 1, 4", False)):
        source = training("F.nll_loss(torch.log(model(x)), y)")
        source = source.replace("model = nn.Linear(4, 3)\n", net.format(sizes=sizes))
        assert bool(refusals(plain(source))) is not right


@pytest.mark.parametrize(
    ("loss", "right"),
    [
        ("model(x).unflatten(1, (3, 1)).softmax(1).mean()", True),
        ("model(x).unflatten(0, (len(x), 1)).softmax(2).mean()", True),
        ("model(x).unflatten(0, (2, -1)).softmax(1).mean()", False),
        ("model(x).unflatten(0, (-1, 2)).softmax(1).mean()", False),
        ("torch.unflatten(model(x), 0, (2, -1)).softmax(1).mean()", False),
        ("model(x.view(-1, 4)).mT.softmax(0).mean()", True),
        ("model(x.view(-1, 4)).mT.softmax(1).mean()", False),
        ("model(x.view(-1, 4)).transpose(-1, -2).softmax(1).mean()", False),
        ("model(x.view(-1, 1, 4)).transpose(-1, -2).softmax(1).mean()", True),
        ("model(x.view(-1, 1, 4)).transpose(-3, -2).softmax(1).mean()", False),
    ],
)
def test_where_samples_lie_after_a_tensor_is_laid_out_anew(loss: str, right: bool) -> None:
    assert bool(undivided(plain(training(loss)))) is not right
