"""Which expressions are classes of optimizers."""

from __future__ import annotations

import pytest
from ddpify_codemods.facts.optimizer_classes import hands_over_torch_optim, in_optimizer_class, is_optimizer_class

from tests.codemods.checks import node_of, script_of

HEAD = """\
import torch
from torch import optim
table = {"sgd": optim.SGD}
class Mine(optim.Optimizer):
    def step(self): here()
"""


@pytest.mark.parametrize(
    ("source", "answer"),
    [
        ("optim.SGD", True),
        ("table[name]", True),
        ("getattr(torch.optim, name)", True),
        ("Mine", True),
        ("optim.lr_scheduler.StepLR", False),
        ("torch.nn.Linear", False),
    ],
)
def test_classes_of_optimizers(source: str, answer: bool) -> None:
    script = script_of(f"{HEAD}made = ({source})(p)")
    assert is_optimizer_class(script, script.tree.body[-1].value.func) is answer  # type: ignore[attr-defined]


def test_torch_optim_is_handed_over_to_choose_from() -> None:
    script = script_of(f"{HEAD}o = build(config, torch.optim, p)\nx = getattr(torch.optim, 'SGD')")
    assert hands_over_torch_optim(script, node_of(script, "build(config, torch.optim, p)"))
    assert not hands_over_torch_optim(script, node_of(script, "getattr(torch.optim, 'SGD')"))


def test_an_optimizer_of_the_scripts_own() -> None:
    script = script_of(HEAD + "x = there()")
    assert in_optimizer_class(script, node_of(script, "here()"))
    assert not in_optimizer_class(script, node_of(script, "there()"))
