"""DDP304: tensors that belong to no module."""

from __future__ import annotations

import pytest
from ddpify_codemods.rules.refuse.bare_tensors import RULE

from ..checks import assert_refused, assert_silent


@pytest.mark.parametrize(
    "source",
    [
        "optim.SGD(model.parameters())",
        "optim.SGD([*model.parameters(), temperature])",
        "def f(params):\n    return optim.SGD(params)",
        "def f(params, lr):\n    params = list(params)\n    return optim.SGD(params, lr)",
        "from nets import params\noptim.SGD(params)",
        "y = model(x)\noptim.SGD([model.weight])",
        "class A:\n    def f(self):\n        return optim.SGD(self.params)",
        "optim.lr_scheduler.StepLR(optimizer, 1)",
    ],
)
def test_modules_and_what_cannot_be_followed(source: str) -> None:
    assert_silent(RULE, f"from torch import optim\n{source}")


_OPTIMIZER = """\
class Plain(torch.optim.Optimizer):
    def step(self):
        for group in self.param_groups:
            for p in group["params"]:
                p.data.add_(p.grad, alpha=-group["lr"])
"""
_FUNCTION = """\
def step(optimizer):
    for group in optimizer.param_groups:
        for p in group["params"]:
            p.data.sub_(group["lr"] * p.grad)
"""
_TWO_STEPS = """\
class Sharp(torch.optim.Optimizer):
    def __init__(self, params, base):
        super().__init__(params, {})
        self.base = base(self.param_groups)
        self.param_groups = self.base.param_groups

    def climb(self):
        for group in self.param_groups:
            for p in group["params"]:
                step = group["rho"] * p.grad
                p.add_(step)
"""


@pytest.mark.parametrize("source", [_OPTIMIZER, _FUNCTION, _TWO_STEPS])
def test_the_steps_of_an_optimizer_of_the_script(source: str) -> None:
    assert_silent(RULE, f"import torch\n{source}")


@pytest.mark.parametrize(
    "source",
    [
        "optim.LBFGS([image.requires_grad_()])",
        "optim.SGD([w, b], lr=0.1)",
        "optim.Adam(params=[{'params': w}])",
        "optim.Adam((torch.zeros(1),), lr=model.lr)",
    ],
)
def test_tensors(source: str) -> None:
    head = "import torch\nfrom torch import optim\nimage = torch.rand(3)\nw = b = torch.rand(2)\n"
    assert_refused(RULE, head + source, line=5)


def test_tensors_made_by_a_function() -> None:
    source = "from torch import optim\nsize = data.shape[1]\nw = init(size=[size, 3])\noptimizer = optim.SGD([w])"
    assert_refused(RULE, source, line=4)


def test_a_parameter_made_of_an_argument() -> None:
    source = "from torch import nn, optim\ndef f(image):\n    return optim.SGD([nn.Parameter(image.data)])"
    assert_refused(RULE, source, line=3)
