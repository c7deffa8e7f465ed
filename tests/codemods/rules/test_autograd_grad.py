"""DDP305: gradients that do not go through backward()."""

from __future__ import annotations

import pytest
from ddpify_codemods.rules.refuse.autograd_grad import RULE

from ..checks import assert_refused, assert_silent

HEAD = "import torch\nfrom torch import autograd\n"


@pytest.mark.parametrize(
    "source",
    [
        "loss.backward()",
        "x.requires_grad_()\ng = autograd.grad(y, x)",
        "x = torch.rand(3, requires_grad=True)\ng = autograd.grad(outputs=y, inputs=x, create_graph=True)[0]",
        "y = critic(x)\ng = torch.autograd.grad(y.sum(), [x], create_graph=True)",
        "y = net.forward(x)\ng = autograd.grad(y, x)",
        "y = self.critic(x)\ng = autograd.grad(y, inputs=(x,))",
        "def penalty(y, x):\n    return autograd.grad(y, x)\nx.requires_grad = True\npenalty(critic(x), x)",
        "class S:\n    def penalty(self, y, x):\n        return autograd.grad(outputs=y, inputs=x)\n"
        "    def train(self):\n        x = mix.requires_grad_(True)\n        self.penalty(self.D(x), x)",
        "def inner(y, x):\n    return autograd.grad(y, x)\ndef outer(y, x):\n    return inner(y, x)\n"
        "x.requires_grad = True\nouter(critic(x), x=x)",
        "class Energy:\n    def forward(self, x):\n        return autograd.grad(f(x).sum(), x)",
        "torch.autograd.gradcheck(f, x)",
        "class Adjoint(autograd.Function):\n    @staticmethod\n    def backward(ctx, grad):\n"
        "        _, (dt, dx) = autograd.functional.vjp(f, (t, x))\n        return autograd.grad(y, weights), dx",
    ],
)
def test_gradients_of_inputs(source: str) -> None:
    assert_silent(RULE, HEAD + source)


@pytest.mark.parametrize(
    "source",
    [
        "g = autograd.grad(loss, model.parameters())",
        "g = torch.autograd.grad(loss, weights, create_graph=True)",
        "g = autograd.grad(loss, inputs=list(model.parameters()))",
        "g = autograd.grad(loss, fast_weights[0])",
        "g = torch.func.grad(f)(x)",
        "h = autograd.functional.hessian(f, x)",
    ],
)
def test_other_gradients(source: str) -> None:
    assert_refused(RULE, HEAD + source, line=3)


@pytest.mark.parametrize(
    "source",
    [
        "def step(y, x): return autograd.grad(y, x)\nstep(loss, model.parameters())",
        "def step(y, x): return autograd.grad(y, x)\nx.requires_grad = True\nstep(a, x)\nstep(loss, weights)",
        "def step(y, x): return autograd.grad(y, x) or step(y, x)\nstep(loss, weights)",
    ],
)
def test_gradients_of_what_some_caller_trains(source: str) -> None:
    assert_refused(RULE, HEAD + source, line=3)


@pytest.mark.parametrize("module", ["higher", "functorch"])
def test_functional_libraries(module: str) -> None:
    assert_refused(RULE, f"import {module}\nfmodel = {module}.monkeypatch(model)", line=2)
