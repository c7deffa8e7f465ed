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


NOISY = """\
model = nn.Sequential(nn.Dropout(0.2), nn.Linear(4, 3))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
"""
DRAWS = """\
n = int(10 * torch.rand(1).item())
m = 3
groups = [{"params": model.parameters(), "lr": torch.rand(1).item()}]
def warm(epoch):
    return 1 / (n + epoch)
def steady(epoch):
    n = 3
    return 1 / (n + epoch)
"""


@pytest.mark.parametrize(
    ("made", "shared"),
    [
        *(("torch.optim.SGD(model.parameters(), lr=n)", ["n"]), ("torch.optim.SGD(model.parameters(), n)", ["n"])),
        ("torch.optim.Adam(model.parameters(), lr=m, betas=(0.5, 1 / n))", ["1 / n"]),
        ("torch.optim.SGD([{'params': model.parameters(), 'lr': 2 * n}], lr=0.1)", ["2 * n"]),
        ("getattr(torch.optim, 'SGD')(model.parameters(), lr=n)", ["n"]),
        ("torch.optim.lr_scheduler.StepLR(optimizer, step_size=n)", ["n"]),
        ("torch.optim.lr_scheduler.MultiStepLR(optimizer, [m, n])", ["n"]),
        ("optimizer.add_param_group({'params': [], 'lr': n})", ["n"]),
        ("torch.optim.lr_scheduler.LambdaLR(optimizer, lambda n: 1 / (m + n))", []),
        ("torch.optim.lr_scheduler.LambdaLR(optimizer, steady)", []),
        ("torch.optim.lr_scheduler.StepLR(optimizer, step_size=m)", []),
        ("torch.optim.SGD(model.parameters(), lr=m)", []),
    ],
)
def test_numbers_that_an_optimizer_is_told_are_those_of_all_ranks(made: str, shared: list[str]) -> None:
    found = followed(NOISY + TRAINING + DRAWS + made + "\n")
    assert [ast.unparse(each) for each in found.found.of_rank_0] == shared and not found.problems


@pytest.mark.parametrize(
    "made",
    [
        "torch.optim.SGD(groups, lr=0.1)",
        "torch.optim.SGD(model.parameters(), lr=torch.rand(1))",
        "torch.optim.lr_scheduler.LambdaLR(optimizer, lambda epoch: 1 / (n + epoch))",
        "torch.optim.lr_scheduler.LambdaLR(optimizer, warm)",
    ],
)
def test_numbers_of_a_rank_that_an_optimizer_cannot_be_told_are_refused(made: str) -> None:
    assert not reasons(NOISY + TRAINING + DRAWS) and reasons(NOISY + TRAINING + DRAWS + made + "\n")


def test_a_factor_of_the_learning_rate_that_is_a_loss_is_the_mean_of_all_ranks() -> None:
    step = "        torch.optim.lr_scheduler.ExponentialLR(optimizer, loss.item()).step()\n"
    found = followed(TRAINING + step)
    (reductions,) = found.found.reductions.values()
    assert {each.kind for each in reductions} == {"mean"} and not found.problems


FROZEN = """\
import sys
model, other = nn.Linear(4, 3), nn.Linear(4, 3)
for p in model.parameters():
    p.requires_grad = False
if "resnet" in sys.argv[1]:
    model.fc = nn.Linear(4, 3)
elif "vgg" in sys.argv[1]:
    model.classifier = nn.Linear(4, 3)
{made}
for x, y in train_loader:
    loss = F.cross_entropy({out}, y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
"""


@pytest.mark.parametrize(
    ("trained", "out", "refused"),
    [
        ("model.parameters()", "model(x)", False),
        ("[*model.parameters(), *other.parameters()]", "model(x) + other(x)", True),
    ],
)
def test_a_frozen_model_that_may_get_a_head(trained: str, out: str, refused: bool) -> None:
    """Without a head, one model alone trains nothing: its backward pass raises, in one process too."""
    source = FROZEN.format(made=f"optimizer = torch.optim.SGD({trained}, lr=0.1)", out=out)
    assert any("has frozen parameters here" in each for each in reasons(source)) is refused
