"""Networks of which all parts are seen: those without buffers have none to be sent before they are evaluated."""

from __future__ import annotations

import pytest

from tests.codemods.plain.test_followed import plain, refusals, training

MODEL = "model = nn.Linear(4, 3)\n"
NORM = "other = nn.BatchNorm1d(3)\n"
NET = """\
class Net(nn.Module):
    def __init__(self, size, first, layers):
        super().__init__()
        self.size, self.first = size, first
        self.rest = nn.Sequential(*layers)
        {makes}

    def forward(self, x):
        return self.rest({takes})


model = Net(4, nn.Linear(4, 4), [nn.ReLU(), nn.LayerNorm(4), nn.Linear(4, 3)])
"""
EVALUATES = "model.eval()\nprint(model(torch.ones(2, 4)).sum().item())\n"


def sends(made: str) -> bool:
    """Whether buffers of a model that is made so are sent, in a program that has BatchNorm somewhere."""
    result = plain(training().replace(MODEL, NORM + made, 1) + EVALUATES)
    assert not refusals(result)
    return "model.buffers()" in result.code


@pytest.mark.parametrize(
    ("makes", "takes"),
    [
        ("pass", "self.first(x)"),
        ("pass", "self.first(x.view(-1, self.size)) / self.size"),
        ("self.scale = nn.Parameter(torch.ones(1))", "self.first(x) * self.scale"),
        ("self.more = nn.ModuleList(); self.more.append(nn.Linear(4, 4))", "self.more[0](self.first(x))"),
    ],
)
def test_nothing_is_sent_where_no_part_has_buffers(makes: str, takes: str) -> None:
    assert not sends(NET.format(makes=makes, takes=takes))


@pytest.mark.parametrize(
    ("makes", "takes"),
    [
        ("self.norm = nn.BatchNorm1d(4)", "self.norm(self.first(x))"),
        ("self.more = nn.ModuleList(); self.more.append(nn.BatchNorm1d(4))", "self.more[0](self.first(x))"),
        ("self.register_buffer('seen', torch.zeros(1))", "self.first(x) + self.seen"),
        ("setattr(self, 'norm', nn.BatchNorm1d(4))", "self.norm(self.first(x))"),
        ("self.first = nn.utils.spectral_norm(self.first)", "self.first(x)"),
        ("from networks import first_layer; self.first = first_layer()", "self.first(x)"),
        ("self.norms = [nn.BatchNorm1d(4)]", "self.norms[0](self.first(x))"),
    ],
)
def test_what_may_have_buffers_sends_them(makes: str, takes: str) -> None:
    assert sends(NET.format(makes=makes, takes=takes))


def test_layers_that_a_container_gets_from_elsewhere() -> None:
    assert not sends("model = nn.Sequential(nn.Linear(4, 4), nn.Linear(4, 3))\n")
    assert sends("import networks\nmodel = nn.Sequential(networks.first(), nn.Linear(4, 3))\n")
    assert sends("import networks\nmodel = nn.Sequential(*networks.layers(), nn.Linear(4, 3))\n")
    assert sends("model = nn.Sequential(nn.Linear(4, 4), nn.Linear(4, 3))\nmodel.append(nn.BatchNorm1d(3))\n")
