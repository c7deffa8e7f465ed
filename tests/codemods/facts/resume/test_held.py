"""What a training loop changes without assigning it."""

from __future__ import annotations

import ast

from ddpify_codemods.facts.resume.held import objects, passed_in
from ddpify_codemods.facts.resume.training import Training

from tests.codemods.checks import script_of, sources_of
from tests.codemods.facts.flow.followed import HEAD, TRAINING


def test_models_and_optimizers_in_the_order_in_which_they_are_made() -> None:
    training = Training([script_of(HEAD + TRAINING)])
    (loop,) = training.outermost()
    found = objects(training, loop)
    assert [name for name in found if name in ("model", "optimizer")] == ["model", "optimizer"]


def test_what_callers_hand_over() -> None:
    script = script_of("def train(net):\n    for e in range(3):\n        net(e).backward()\ntrain(model)")
    (loop,) = Training([script]).outermost()
    assert isinstance(loop.node, ast.For)
    assert sources_of(passed_in(script, loop, "net")) == ["model"]
