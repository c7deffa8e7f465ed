"""Layers that no call is seen of: what they compute by themselves."""

from __future__ import annotations

import pytest

from tests.codemods.plain.test_followed import plain, refusals, training, undivided

NET = """\
class Scale(nn.Module):
    def __init__(self):
        super().__init__()
        self.by = nn.Parameter(torch.ones(6))

    def forward(self, h, shift=None):
        {layer}
        return h if shift is None else h + shift


class Encoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.scale, self.last = nn.Linear(4, 6), Scale(), nn.Linear(6, 3)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.encoder = Encoder()
        self.parts = []
        for part in self.encoder.children():
            self.parts.append(part)

    def forward(self, x):
        h = self.parts[0](x)
        {body}
        return self.parts[2](self.parts[1](h))


model = Net()
"""


def of_net(layer: str = "h = h * self.by", body: str = "h = h.relu()") -> str:
    """A script that trains a network whose layers are in a list that is not followed."""
    return training().replace("model = nn.Linear(4, 3)\n", NET.format(layer=layer, body=body))


def test_layers_that_leave_samples_apart_are_divided_though_no_call_of_them_is_seen() -> None:
    result = plain(of_net())
    assert not undivided(result) and "find_unused_parameters=True" in result.code  # some may not be called


@pytest.mark.parametrize(
    "layer",
    [
        "h = h - h.softmax(0)",
        "h = h.cumsum(0)",
        "h = h * len(h)",
        "h = h[torch.randperm(len(h))]",
        "h = h.t().softmax(-1).t()",
        "h = h * 2 if h.max() > 1 else h",
        "self.last = h.mean(0).detach()\nh = h + self.last",
        "h = h * len(shift) if shift is not None else h",
    ],
)
def test_layers_that_couple_samples_are_not(layer: str) -> None:
    assert undivided(plain(of_net(layer=layer.replace("\n", "\n        "))))


@pytest.mark.parametrize(
    "body",
    [
        "h = h.t().contiguous()",
        "h = h.T",
        "h = torch.permute(h, (1, 0))",
        "h = torch.relu(x).transpose(0, 1)",
        "h = h.reshape(6, -1)",
        "h = h.expand(2, -1, -1)",
        "h = h.repeat(2, 1, 1)",
    ],
)
def test_a_model_that_moves_its_samples_may_give_layers_other_things_than_samples(body: str) -> None:
    assert refusals(plain(of_net(body=body)))


UNUSED = """\
class Centred(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(4, 4)

    def forward(self, x):
        return self.layer(x - x.mean(0))


class Net({base}):
    def __init__(self):
        super().__init__()
        {made}
        self.last = nn.Linear(4, 3)

    def forward(self, x):
        return self.last({body})


model = Net()
"""


def of_unused(
    made: str = "self.centred = Centred()", body: str = "x", base: str = "nn.Module", before: str = ""
) -> str:
    """A script that trains a network which has a layer that couples samples, and may not call it."""
    net = UNUSED.format(made=made.replace("\n", "\n        "), body=body, base=base)
    return training().replace("model = nn.Linear(4, 3)\n", before + net)


def test_a_layer_that_nothing_names_is_not_called() -> None:
    result = plain(of_unused())
    assert not refusals(result) and not undivided(result) and "find_unused_parameters=True" in result.code
    base = "class Base(nn.Module):\n    pass\n\n\n"
    assert not refusals(plain(of_unused(before=base, base="Base")))


@pytest.mark.parametrize(
    ("made", "body"),
    [
        ("self.centred = Centred()", "self.centred(x)"),
        ("self.centred = Centred()", "getattr(self, NAME)(x)"),
        ("self.centred = Centred()", "self.__dict__['_modules'][NAME](x)"),
        ("self.centred = Centred()", "[*self.children()][len(x) // 8 - 1](x)"),
        ("self.centred = Centred()", "[*self.modules()][1](x)"),
        ("self.centred = Centred()", "self.get_submodule(NAME)(x)"),
        ("self.centred = Centred()", "vars(self)['_modules'][NAME](x)"),
        ("centred = Centred()\nself.centred = centred\nself.parts = made_of(centred)", "self.parts[0](x)"),
        ("self.centred = self.other = Centred()", "self.other(x)"),
    ],
)
def test_a_layer_that_may_be_called_in_another_way(made: str, body: str) -> None:
    before = 'import os\nfrom others import made_of\n\nNAME = os.environ.get("NAME", "centred")\n\n\n'
    result = plain(of_unused(made, body, before=before))
    assert refusals(result) or undivided(result)


def test_a_class_of_a_library_may_call_the_layers_of_what_is_derived_from_it() -> None:
    result = plain(of_unused(base="Trunk", before="from others import Trunk\n\n\n"))
    assert refusals(result)


BACKBONE = """\
class Backbone(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.act, self.fc = nn.Linear(4, 4), nn.ReLU(), nn.Linear(4, 7)

    def features(self, x):
        return self.act(self.first(x))

    def forward(self, x):
        return self.fc(self.features(x))


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.backbone = {made}
        self.last = nn.Linear(4, 3)

    def forward(self, x):
        return self.last({body})


model = Net()
"""


def of_backbone(body: str, made: str = "Backbone()") -> str:
    """A script that trains a network which calls another one, or layers of that one by one."""
    net = BACKBONE.format(body=body, made=made.replace("\n", "\n        "))
    return "import torchvision\n" + training().replace("model = nn.Linear(4, 3)\n", net)


@pytest.mark.parametrize(
    ("body", "made", "leaves_out"),
    [
        ("self.backbone.first(x)", "Backbone()", True),
        ("self.backbone.features(x)", "Backbone()", True),
        ("self.backbone.features(self.other(x)[:, :4])", "Backbone()\nself.other = Backbone()", True),
        ("self.backbone.fc(self.backbone.first(x))", "Backbone()", False),  # the activation has nothing to train
        ("self.backbone.features(x)", "Backbone()\nself.backbone.fc = nn.Identity()", True),  # needless, and no harm
        ("self.backbone(x)", "Backbone()", False),
        ("self.backbone.conv1(x)", "torchvision.models.resnet18()", True),
        ("self.backbone.features(x).flatten(1)", "torchvision.models.vgg11()", True),
        ("self.backbone.fc(self.backbone.conv1(x))", "torchvision.models.resnet18()", False),
        ("self.backbone.conv1(x)", "torchvision.models.resnet18()\nself.backbone.fc = nn.Identity()", False),
        ("self.backbone(x)", "torchvision.models.resnet18()", False),
    ],
)
def test_layers_of_a_network_whose_forward_never_runs(body: str, made: str, leaves_out: bool) -> None:
    result = plain(of_backbone(body, made))
    assert not refusals(result) and ("find_unused_parameters=True" in result.code) is leaves_out
