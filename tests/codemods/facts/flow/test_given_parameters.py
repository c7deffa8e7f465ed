"""Parameters that an optimizer is given one by one, or by groups of layers."""

from __future__ import annotations

import pytest

from tests.codemods.plain.test_followed import plain, refusals

NETS = """\
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, TensorDataset


class Head(nn.Module):
    def __init__(self):
        super().__init__()
        self.kernel = nn.Parameter(torch.rand(8, 3))
        self.bare = torch.rand(8, 3).requires_grad_()

    def forward(self, x):
        return x @ self.kernel


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = nn.Linear(4, 8)
        self.norm = nn.LayerNorm(8)

    def forward(self, x):
        return self.norm(self.first(x))


def groups(layers):
    if not isinstance(layers, list):
        layers = [*layers.modules()]
    norms, others = [], []
    for layer in layers:
        if isinstance(layer, nn.LayerNorm):
            norms.extend([*layer.parameters()])
        elif isinstance(layer, nn.Linear):
            others.extend([*layer.parameters()])
    return norms, others


class Layers(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList([nn.Linear(8, 8), nn.Linear(8, 3)])
        self.kernel = nn.Parameter(torch.rand(3, 3))

    def weights(self):
        yield self.kernel
        yield self.layers[0].weight

    def forward(self, x):
        for layer in self.layers:
            x = layer(x)
        return x @ self.kernel


def tensors(model, bias):
    for layer in model.modules():
        if isinstance(layer, nn.Linear):
            if bias:
                yield layer.bias
            else:
                yield layer.weight


loader = DataLoader(TensorDataset(torch.rand(64, 4), torch.randint(3, (64,))), batch_size=8, shuffle=True)
net, teacher, head = Net(), Net(), Head()
"""
STEPS = """\
for x, y in loader:
    loss = F.cross_entropy({loss}, y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
"""
TAKEN = "params = {}(net.parameters())\n{}\noptimizer = torch.optim.SGD(params, lr=0.1)"
WRAPPED = [f"ddp_{name} = DistributedDataParallel({name})\n" for name in ("net", "head")]


def program(given: str, loss: str = "head(net(x))") -> str:
    """A script that trains with an optimizer that is given that."""
    return f"{NETS}{given}\n{STEPS.format(loss=loss)}"


GIVEN = [
    "optimizer = torch.optim.SGD([{'params': net.parameters()}, {'params': [head.kernel], 'lr': 0.2}], lr=0.1)",
    "optimizer = torch.optim.SGD(params=[*net.parameters()] + [head.kernel], lr=0.1)",
    "kernel = head.kernel\noptimizer = torch.optim.SGD([net.first.weight, net.first.bias, kernel], lr=0.1)",
    "a, b = groups(net)\noptimizer = torch.optim.SGD([*b[:-1], b[-1], *a, head.kernel], lr=0.1)",
    "groups(teacher)\na, b = groups(net)\noptimizer = torch.optim.SGD(a + b + [head.kernel], lr=0.1)",
    "a, b = groups(layers=net)\noptimizer = torch.optim.SGD(a + b + [head.kernel], lr=0.1)",
    "options = {'lr': 0.1}\noptions['params'] = [*net.parameters(), head.kernel]\n"
    "optimizer = torch.optim.SGD(**options)",
    "optimizer = torch.optim.SGD(**{'params': [*net.parameters(), head.kernel], 'lr': 0.1})",
    "given = dict(params=[*net.parameters(), *head.parameters()], lr=0.1)\noptimizer = torch.optim.SGD(**given)",
    "optimizer = torch.optim.SGD([{'params': tensors(net, True)}, {'params': head.parameters()}], lr=0.1)",
]


@pytest.mark.parametrize("given", GIVEN)
def test_both_models_are_wrapped_whose_parameters_are_given(given: str) -> None:
    result = plain(program(given))
    assert not refusals(result)
    assert all(each in result.code for each in WRAPPED) and "ddp_head(ddp_net(x))" in result.code


@pytest.mark.parametrize("makes", ["list", "(lambda given: [*given])", "sorted"])
@pytest.mark.parametrize(
    "put",
    [
        "for part in head.layers:\n    params.append(part.weight)",
        "params.append(head.kernel)",
        "params.insert(0, head.kernel)",
        "params += [head.kernel]",
        "params.extend(head.weights())",
        "params = [*params, *head.weights()]",
        "params.extend(m.kernel for m in [head])",
        "params.extend(part.weight for part in head.layers)",
        "params.extend([part.weight for part in head.layers])",
        "for p in getattr(head, 'layers'):\n    params.append(p.weight)",
        "for p in [head.layers[0]]:\n    params.append(p.weight)",
    ],
)
def test_what_is_put_into_a_list_is_of_a_model_that_is_wrapped_or_refused(makes: str, put: str) -> None:
    result = plain(program("head = Layers()\n" + TAKEN.format(makes, put)))
    assert refusals(result) or (all(each in result.code for each in WRAPPED) and "ddp_head(ddp_net(x))" in result.code)


SUMS = "norms, others = [], []\nfor layer in net.modules():\n    others += list(layer.parameters(recurse=False))\n"


def test_parameters_are_added_to_a_list() -> None:
    result = plain(program(f"{SUMS}optimizer = torch.optim.SGD(others, lr=0.1)", "net(x)"))
    assert not refusals(result) and "F.cross_entropy(ddp_net(x), y)" in result.code


OTHERS = [
    # Nothing averages the gradient of what the loss takes by itself
    (GIVEN[0], "net(x) @ head.kernel"),
    (GIVEN[0].replace("[head.kernel]", "[teacher.first.weight]"), "F.linear(net(x), teacher.first.weight)[:, :3]"),
    (
        "optimizer = torch.optim.SGD(net.parameters(), lr=0.1)\noptimizer.add_param_group({'params': [head.kernel]})",
        "net(x) @ head.kernel",
    ),
    # Of another model, or of no module
    ("groups(net)\na, b = groups(teacher)\noptimizer = torch.optim.SGD(a + b, lr=0.1)", "net(x)"),
    ("groups(net)\na, b = groups([*teacher.modules()])\noptimizer = torch.optim.SGD(a + b, lr=0.1)", "net(x)"),
    ("optimizer = torch.optim.SGD(tensors(teacher, True), lr=0.1)", "net(x)"),
    (GIVEN[0].replace("[head.kernel]", "[head.kernel, head.bare]"), "head(net(x)) + x.mean() * head.bare.sum()"),
    (GIVEN[0].replace("[head.kernel]", "[*head.parameters()] + [head.bare]"), "head(net(x)) + head.bare.sum()"),
    (
        "scale = nn.Parameter(torch.ones(3))\noptions = {'lr': 0.1}\noptions['params'] = [*net.parameters(), scale]\n"
        "optimizer = torch.optim.SGD(**options)",
        "net(x)[:, :3] * scale",
    ),
]


BOTH = "params = [*net.parameters(), *head.parameters()]\n"
GETS = "optimizer = torch.optim.SGD(params, lr=0.1)"
OTHERS += [
    (f"{BOTH}{put}\n{GETS}", "head(net(x)) * head.bare.sum()")
    for put in (
        "params.append(head.bare)",
        "params += [head.bare]",
        "bare = head.bare\nparams.extend([bare])",
        "params = params + [head.bare]",
        "params = [*params, *[head.bare]]",
        "params = dict(params=head.bare)\nparams = [dict(params=net.parameters()), params]",
        "params = [{'params': [head.bare]}, {'params': params}]",
        "params.extend(m.bare for m in [head])",
        f"{GETS}\noptimizer.add_param_group({{'params': [head.bare], 'lr': 0.5}})",
    )
]


@pytest.mark.parametrize(("given", "loss"), OTHERS)
def test_what_no_wrapper_averages_is_refused(given: str, loss: str) -> None:
    assert refusals(plain(program(given, loss)))


def test_what_else_is_read_of_a_model_is_no_tensor() -> None:
    given = (
        "net.rate, net.least, teacher.cut = 0.1, 1, 2\nparams = [p for p in net.parameters() if p.ndim > net.least]\n"
    )
    given += "params = [{'params': params[: teacher.cut], 'lr': net.rate}]\noptimizer = torch.optim.SGD(params, lr=0.1)"
    assert not refusals(plain(program(given, "net(x)")))


def test_settings_that_a_model_keeps_are_no_parameters() -> None:
    given = "teacher.rate = 0.1\noptimizer = torch.optim.SGD(net.parameters(), lr=teacher.rate)"
    assert not refusals(plain(program(given, "net(x)")))


@pytest.mark.parametrize("given", ["norms", "tensors(net, True)"])
def test_what_is_taken_of_some_layers_and_frozen_leaves_the_others(given: str) -> None:
    freezes = f"norms, others = groups(net)\nfor p in {given}:\n    p.requires_grad = False\n"
    result = plain(program(f"{freezes}optimizer = torch.optim.SGD(net.parameters(), lr=0.1)", "net(x)"))
    assert not refusals(result) and "F.cross_entropy(ddp_net(x), y)" in result.code
