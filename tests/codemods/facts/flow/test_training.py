"""Backward passes and steps of optimizers."""

from __future__ import annotations

import ast

import pytest

from tests.codemods.facts.flow.followed import TRAINING, followed, reasons


def test_a_backward_pass_is_known_with_the_calls_that_it_goes_through() -> None:
    found = followed(TRAINING).found
    ((backward, _), calls) = next(iter(found.reached.items()))
    assert ast.unparse(backward) == "loss.backward()"
    assert [ast.unparse(call) for call in calls] == ["model(x)"]
    assert not found.not_averaged


def test_a_second_backward_pass_of_one_call_is_not_averaged() -> None:
    twice = TRAINING.replace("loss.backward()", "loss.backward(retain_graph=True)\n        (2 * loss).backward()")
    found = followed(twice)
    assert found.found.not_averaged or found.problems


def test_parts_may_name_each_other() -> None:
    descriptors = "import pb\na, b = pb.make(), pb.make()\na.other = b\nb.other = a\na.fields[0].other = b\n"
    assert not followed(descriptors + TRAINING).problems


PERCEPTUAL = """\
class Perceptual(nn.Module):
    def __init__(self, network):
        super().__init__()
        {layers}
            {freezes}
        self.extractor = nn.Sequential(*layers)

    def forward(self, a, b):
        return F.mse_loss(self.extractor(a), self.extractor(b))


import torchvision
for epoch in range(2):
    loss_of = Perceptual({network})
    for x, y in train_loader:
        optimizer.zero_grad()
        loss = loss_of(model(x), x)
        loss.backward()
        optimizer.step()
"""
LAYERS = [
    "layers = list(network.children())[0]\n        for layer in layers:",
    "layers = list(network.children())[:5]\n        for at, layer in enumerate(layers):",
    "layers = []\n        for m in network.modules():\n            layers.append(m)\n        for layer in layers:",
]
FREEZES = ["layer.requires_grad = False", "for p in layer.parameters():\n                p.requires_grad = False"]


@pytest.mark.parametrize("layers", LAYERS)
@pytest.mark.parametrize("freezes", FREEZES)
def test_layers_of_a_network_that_is_not_trained_are_frozen(layers: str, freezes: str) -> None:
    made = "torchvision.models.vgg19(pretrained=True).eval()"
    assert reasons(PERCEPTUAL.format(layers=layers, freezes=freezes, network=made)) == []


@pytest.mark.parametrize("layers", LAYERS)
@pytest.mark.parametrize("network", ["model", "unseen"])
def test_layers_of_one_that_is_trained_or_not_seen(layers: str, network: str) -> None:
    """The wrapper, which is made before, is told to look which parameters are used."""
    found = followed(PERCEPTUAL.format(layers=layers, freezes=FREEZES[1], network=network)).found
    assert found.frozen_at_times and found.frozen_at_times == found.unused


LAYER = "        self.layer = nn.Linear(4, 4)\n"
FORWARD = """\
    def forward(self, x):
        self.layer.requires_grad_({})
        return self.head(self.layer(x))


"""
FREEZING = f"""\
class Freezing(nn.Module):
    def __init__(self):
        super().__init__()
{LAYER}        self.head = nn.Linear(4, 3)

{FORWARD}model = Freezing()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
"""


@pytest.mark.parametrize("requires", ["False", "self.training", "True"])
def test_a_forward_that_freezes_or_unfreezes_a_layer(requires: str) -> None:
    found = followed(FREEZING.format(requires) + TRAINING).found
    assert found.frozen_at_times == found.unused and len(found.unused) == 1
    assert bool(found.thawed) is (requires != "False")


@pytest.mark.parametrize("requires", ["False", "self.training"])
def test_a_forward_that_unfreezes_what_was_frozen_when_it_was_wrapped(requires: str) -> None:
    source = FREEZING.replace(LAYER, f"{LAYER}        self.layer.requires_grad_(False)\n").format(requires) + TRAINING
    assert any("frozen or unfrozen" in each for each in reasons(source)) is (requires != "False")
