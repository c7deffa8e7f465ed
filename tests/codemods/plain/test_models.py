"""What models do with the samples of a batch: each for itself, or together, which ranks cannot divide."""

from __future__ import annotations

import pytest

from tests.codemods.plain.test_followed import plain, refusals, training, undivided

MODEL = """\
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.second = nn.Linear(4, 6), nn.Linear(6, 3)
        self.by_time, self.by_batch = nn.GRU(6, 6), nn.GRU(6, 6, batch_first=True)
        self.columns, self.attention = nn.Softmax(dim=0), nn.MultiheadAttention(6, 2)

    def forward(self, x):
        h = self.first(x)
        {body}
        return self.second(h)


model = Net()
"""


def of_model(body: str) -> str:
    """A script that trains a model which makes something of its hidden layer."""
    model = MODEL.format(body=body.replace("\n", "\n        "))
    return training().replace("model = nn.Linear(4, 3)\n", model)


@pytest.mark.parametrize(
    "body",
    [
        "h = F.softmax(h, dim=0)",
        "h = h.softmax(0)",
        "h = self.columns(h)",
        "h = h / h.max()",
        "h = h / h.norm()",
        "h = h.cumsum(0)",
        "h = h + torch.roll(h, 1, 0)",
        "h = h + torch.sort(h, 0)[0]",
        "h = h + torch.flip(h, [0])",
        "h = h + h[0]",
        "h = h + h[torch.randperm(len(h))]",
        "h = h * torch.cdist(h, h).mean(1, keepdim=True)",
        "h = h.t().softmax(-1).t()",
        "h = h.permute(1, 0).softmax(1).permute(1, 0)",
        "h = h.transpose(0, 1).softmax(1).transpose(0, 1)",
        "h = F.softmax(h.view(-1), 0).view(-1, 6)",
        "h = F.softmax(h.view(1, -1), 1).view(-1, 6)",
        "h = h.reshape(2, -1).softmax(1).reshape(-1, 6)",
        "q = h.unsqueeze(0)\nh = (F.softmax(q @ q.transpose(1, 2), -1) @ q).squeeze(0)",
        "a, b = h.chunk(2, 0)\nh = torch.cat([a + b, a - b])",
        'h = torch.einsum("bi,cj->bj", h, h)',
        "h = F.layer_norm(h, h.shape)",
        "h = h * len(x)",
        "h = h / x.size(0)",
        "h = h * h.std(0, keepdim=True).mean().expand(h.size(0), 1)",
        "h = self.by_time(h.unsqueeze(1))[0].squeeze(1)",
        "h = self.by_batch(h.unsqueeze(0))[0].squeeze(0)",
        "h = self.attention(h.unsqueeze(1), h.unsqueeze(1), h.unsqueeze(1))[0].squeeze(1)",
    ],
)
def test_a_model_that_couples_samples_is_refused(body: str) -> None:
    assert refusals(plain(of_model(body)))


@pytest.mark.parametrize(
    "body",
    [
        "h = F.softmax(h, dim=1)",
        "h = h / h.norm(dim=1, keepdim=True)",
        "h = F.normalize(h)",
        "h = h.view(x.size(0), 2, 3).softmax(1).flatten(1)",
        "h = h.view(-1, 2, 3).mean(1).repeat(1, 2)",
        "b, n = h.shape\nh = h.reshape(b, n // 2, 2).transpose(1, 2).reshape(b, n)",
        "h = self.by_time(h.unsqueeze(0))[0].squeeze(0)",
        "h = self.by_batch(h.unsqueeze(1))[0].squeeze(1)",
        "h = self.by_time(h[:, None].repeat(1, 5, 1).permute(1, 0, 2))[0][-1]",
        "h = self.by_time(h[:, None].repeat(1, 5, 1).transpose(0, 1))[0].mean(0)",
        "h = self.by_batch(h[:, None].repeat(1, 5, 1))[1][0]",
        "h = self.attention(h[None], h[None], h[None])[0].squeeze(0)",
        "q = h.view(-1, 2, 3)\nh = (F.softmax(q @ q.transpose(1, 2), -1) @ q).flatten(1)",
        'h = torch.einsum("bi,bj->bij", h, h).sum(2)',
        "h = torch.cat([h[:, :3], h[:, 3:]], dim=1)",
        "h = torch.stack([h, h]).mean(0)",
    ],
)
def test_a_model_that_takes_each_sample_for_itself_is_not(body: str) -> None:
    assert not refusals(plain(of_model(body)))


KEEPS = """\
class Norm(nn.Module):
    def __init__(self):
        super().__init__()
        self.scale = nn.Parameter(torch.ones(4))
        self.mean = 0

    def forward(self, x, mode):
        if mode == "undo":
            return x / self.scale + self.mean
        {sets}
        return (x - self.mean) * self.scale


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm, self.first, self.last = Norm(), nn.Linear(4, 4), nn.Linear(4, 3)

    def forward(self, x):
        return self.last(self.norm(self.first(self.norm(x, "do")), "undo"))


model = Net()
"""


@pytest.mark.parametrize(
    ("sets", "is_refused"),
    [
        ("self.mean = x.mean(dim=1, keepdim=True).detach()", False),
        ("self.mean = 0.9 * self.mean + 0.1 * x.mean(dim=1, keepdim=True).detach()", True),
        ("self.mean = 0.9 * self.mean + 0.1 * x.mean(dim=0).detach()", True),
        ("self.mean = x.mean(dim=0)", True),
        ("if torch.rand(1) > 0.5: self.mean = x.mean(dim=1, keepdim=True)", True),
        ("x, self.mean = x - self.mean, x.mean(dim=1, keepdim=True)", True),
    ],
)
def test_a_module_keeps_something_of_each_sample_within_a_forward(sets: str, is_refused: bool) -> None:
    """Of the sample alone, and set before it is read: not of the batch before (RevIN)."""
    script = training().replace("model = nn.Linear(4, 3)\n", KEEPS.format(sets=sets))
    assert bool(undivided(plain(script))) is is_refused


WEIGHED = """\
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(4, 3)
        self.weight = nn.Parameter(torch.zeros(1))
        {more}

    def forward(self, x):
        return self.layer(x)


model = Net()
"""


@pytest.mark.parametrize(
    ("loss", "more", "finds"),
    [
        ("F.cross_entropy(model(x), y) * torch.exp(-model.weight).sum() + model.weight.sum()", "pass", False),
        ("F.cross_entropy(model(x), y)", "pass", True),
        ("F.cross_entropy(model(x), y)", "self.other = nn.Linear(4, 3)", True),
        ("F.cross_entropy(model(x), y) + model.weight.sum()", "self.other = nn.Linear(4, 3)", None),
    ],
)
def test_a_parameter_that_the_loss_uses_is_not_left_out(loss: str, more: str, finds: bool | None) -> None:
    """The wrapper would take it for one without a gradient, and stop where it gets one."""
    source = training(loss).replace("model = nn.Linear(4, 3)\n", WEIGHED.format(more=more), 1)
    result = plain(source)
    if finds is None:
        assert any("its forward does not use" in each for each in refusals(result))
    else:
        assert not refusals(result)
        assert ("find_unused_parameters=True" in result.code) is finds


CHILDREN = """\
class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = nn.Linear(4, 4)

    def forward(self, x):
        return {computed}


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        for i in range(2):
            self.add_module(f"block{{i}}", Block())
        self.head = nn.Linear(4, 3)

    def forward(self, x):
{forward}        return x


model = Net()
"""
IN_TURN = "        for layer in self.children():\n            x = layer(x)\n"


def of_children(computed: str = "self.inner(x).relu()", forward: str = IN_TURN) -> str:
    """A script whose model calls its layers one after the other."""
    made = "model = nn.Linear(4, 3)\n"
    assert made in training()
    return training().replace(made, CHILDREN.format(computed=computed, forward=forward))


def test_layers_that_a_model_takes_one_after_the_other() -> None:
    result = plain(of_children())
    assert not refusals(result) and "DistributedDataParallel(model)\n" in result.code
    named = IN_TURN.replace("for layer in self.children", "for name, layer in self.named_children")
    assert not refusals(plain(of_children(forward=named)))
    left_out = named.replace("x = layer", "if name == 'block1':\n                continue\n            x = layer")
    assert "DistributedDataParallel(model, find_unused_parameters=True)" in plain(of_children(forward=left_out)).code


def test_what_such_layers_couple_is_seen() -> None:
    assert undivided(plain(of_children("self.inner(x) - self.inner(x).mean(0)")))
    some = IN_TURN.replace("self.children()", "list(self.children())[1:]")
    assert "find_unused_parameters=True" in plain(of_children(forward=some)).code  # which are left out is not seen
    assert undivided(plain(of_children("self.inner(x).softmax(0)", some)))


@pytest.mark.parametrize("read", ["json.load(open('c.json'))", "yaml.safe_load(open('c.yaml'))"])
def test_settings_that_are_read_from_a_file_are_no_layers(read: str) -> None:
    """A number that a layer keeps of them was taken for one which its forward leaves out."""
    model = f"""\
import json, yaml
class Net(nn.Module):
    def __init__(self, settings):
        super().__init__()
        self.rate = settings["rate"] if "rate" in settings else 0.0
        self.layer = nn.Linear(settings["size"], 3)

    def forward(self, x):
        return self.layer(x)


model = Net({read})
"""
    assert "DistributedDataParallel(model)\n" in plain(training().replace("model = nn.Linear(4, 3)\n", model)).code
