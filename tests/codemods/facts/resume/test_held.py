"""What a training loop changes without assigning it."""

from __future__ import annotations

import ast

from ddpify_codemods.facts.resume.held import objects, passed_in
from ddpify_codemods.facts.resume.training import CallGraph

from tests.codemods.checks import script_of, sources_of
from tests.codemods.facts.flow.followed import HEAD, TRAINING


def test_models_and_optimizers_in_the_order_in_which_they_are_made() -> None:
    training = CallGraph([script_of(HEAD + TRAINING)])
    (loop,) = training.outermost()
    found = objects(training, loop)
    assert [name for name in found if name in ("model", "optimizer")] == ["model", "optimizer"]


def test_what_callers_hand_over() -> None:
    script = script_of("def train(net):\n    for e in range(3):\n        net(e).backward()\ntrain(model)")
    (loop,) = CallGraph([script]).outermost()
    assert isinstance(loop.node, ast.For)
    assert sources_of(passed_in(script, loop, "net")) == ["model"]


def test_generators_that_are_drawn_from() -> None:
    head = HEAD.replace(
        "import torch\n", "import torch\norder = torch.Generator().manual_seed(3)\naverages = [torch.ones(2)]\n", 1
    )
    lines = "torch.randperm(8, generator=order)\n    torch._foreach_mul_(averages, 0.9)"
    training = CallGraph([script_of(head + TRAINING + f"    {lines}\n")])
    (loop,) = training.outermost()
    assert {"order", "averages"} <= {*objects(training, loop)}


def test_methods_of_the_scripts_own_change_their_object() -> None:
    made = "class Pool:\n    def get(self, x):\n        self.x = x\npool, table = Pool(), {}\n"
    training = CallGraph([script_of(f"{HEAD}{made}{TRAINING}        pool.get(x)\n        table.items()\n")])
    (loop,) = training.outermost()
    assert "pool" in objects(training, loop) and "table" not in objects(training, loop)
