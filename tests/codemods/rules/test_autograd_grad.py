"""DDP127: gradients that do not go through backward(); DDP305: functional ones."""

from __future__ import annotations

import pytest
from ddpify_codemods.rules.convert.autograd_grad import RULE
from ddpify_codemods.rules.refuse import autograd_grad as functional

from ..checks import assert_refused, assert_silent, rewritten

HEAD = "import torch\nfrom torch import autograd\n"


@pytest.mark.parametrize(
    "source",
    [
        "loss.backward()",
        "x = torch.rand(3, requires_grad=True)\ng = autograd.grad(outputs=y, inputs=x, create_graph=True)[0]",
        "x = a * real + b * fake\nx.requires_grad_()\ng = autograd.grad(y, [x], create_graph=True)",
        "x = (a * real + b * fake).requires_grad_(True)\ng = autograd.grad(critic(x).sum(), inputs=(x,))",
        "x = images.detach().requires_grad_()\ng = autograd.grad(y, x)",
        "def penalty(y, x):\n    return autograd.grad(y, x)\nx = a + b\nx.requires_grad = True\npenalty(critic(x), x)",
        "class S:\n    def penalty(self, y, x):\n        return autograd.grad(outputs=y, inputs=x)\n"
        "    def train(self):\n        x = (a + b).requires_grad_(True)\n        self.penalty(self.D(x), x)",
        "def inner(y, x):\n    return autograd.grad(y, x)\ndef outer(y, x):\n    return inner(y, x)\n"
        "x = Variable(a, requires_grad=True)\nouter(critic(x), x=x)",
        "torch.autograd.gradcheck(f, x)",
        "class Adjoint(autograd.Function):\n    @staticmethod\n    def backward(ctx, grad):\n"
        "        _, (dt, dx) = autograd.functional.vjp(f, (t, x))\n        return autograd.grad(y, weights), dx",
    ],
)
def test_gradients_of_samples(source: str) -> None:
    assert_silent(RULE, HEAD + source)
    assert_silent(functional.RULE, HEAD + source)


@pytest.mark.parametrize(
    "given",
    [
        "loss, model.parameters()",
        "loss, weights, create_graph=True",
        "loss, inputs=list(model.parameters())",
        "loss, fast_weights[0]",
        "critic(x), x",  # a list of weights may be what a module is called with
    ],
)
def test_gradients_that_may_be_those_of_parameters(given: str) -> None:
    assert f"g = grad({given})" in rewritten(RULE, f"{HEAD}g = autograd.grad({given})")


@pytest.mark.parametrize(
    "source",
    [
        "params = [p for p in model.parameters() if p.requires_grad]\ng = autograd.grad(loss, params)",
        "for p in model.parameters():\n    if p.requires_grad:\n        g = autograd.grad(loss, p)",
        "w = model.fc.weight\nw.requires_grad_()\ng = autograd.grad(loss, w)",
        "w = model.weight.clone().requires_grad_()\ng = autograd.grad(loss, w)",
        "def step(y, x): return autograd.grad(y, x)\nstep(loss, model.parameters())",
        "def step(y, x): return autograd.grad(y, x)\nx = f(z, requires_grad=True)\nstep(a, x)\nstep(loss, weights)",
        "def step(y, x): return autograd.grad(y, x) or step(y, x)\nstep(loss, weights)",
        "class Energy:\n    def forward(self, x):\n        return autograd.grad(f(x).sum(), x)",
    ],
)
def test_names_that_may_be_parameters(source: str) -> None:
    assert rewritten(RULE, HEAD + source) == HEAD + source.replace("autograd.grad(", "grad(")


def test_a_name_of_its_own_is_imported_from_the_runtime() -> None:
    source = "import torch\nfrom torch.autograd import Variable, grad\ng = grad(loss, model.parameters())"
    left = "import torch\nfrom torch.autograd import Variable\ng = grad(loss, model.parameters())"
    assert rewritten(RULE, source) == left


@pytest.mark.parametrize("code", ["g = torch.func.grad(f)(x)", "h = autograd.functional.hessian(f, x)"])
def test_functional_gradients(code: str) -> None:
    assert_refused(functional.RULE, HEAD + code, line=3)


@pytest.mark.parametrize("module", ["higher", "functorch"])
def test_functional_libraries(module: str) -> None:
    assert_refused(functional.RULE, f"import {module}\nfmodel = {module}.monkeypatch(model)", line=2)
