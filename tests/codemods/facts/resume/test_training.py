"""The loops that a run goes on from."""

from __future__ import annotations

import ast

from ddpify_codemods.facts.resume.training import CallGraph

from tests.codemods.checks import script_of

SCRIPT = script_of("""
import torch
def step(x):
    loss(x).backward()
    optimizer.step()
def evaluate():
    for x in test:
        print(x)
def main():
    optimizer = torch.optim.SGD(p, lr=1)
    for epoch in range(3):
        for x in loader:
            step(x)
        evaluate()
main()
""")


def test_loops_that_come_to_a_backward_pass() -> None:
    training = CallGraph([SCRIPT])
    (outer,) = training.outermost()
    assert ast.unparse(outer.node.iter) == "range(3)"  # type: ignore[union-attr]
    (inner,) = training.loops(SCRIPT, outer.node.body)
    assert training.steps(inner) and not training.steps(outer)
    assert isinstance(outer.scope, ast.FunctionDef) and outer.scope.name == "main"


def test_functions_that_are_reached() -> None:
    training = CallGraph([SCRIPT])
    (outer,) = training.outermost()
    assert {each.node.name for each in training.reached(SCRIPT, outer.node.body)} == {"step", "evaluate"}
    assert training.trains(SCRIPT, outer.node.body)
    assert training.builds_optimizer(SCRIPT, SCRIPT.tree.body) is not None
