"""Statements that do nothing but compute."""

from __future__ import annotations

import ast

import pytest
from ddpify_codemods.facts.quiet_statements import changed_names, is_quiet

from tests.codemods.checks import script_of

HEAD = """\
import os
import random
import numpy as np
import torch


def doubled(x):
    return [2 * each for each in x]


def filled(found, x):
    found.append(x)


def kept(x):
    torch.save(x, "x.pt")


def counted():
    global count
    count += 1


class Meter:
    def __init__(self):
        self.rows = []

    def add_row(self, x):
        self.rows.append(x)


for x in range(3):
"""


def quiet(line: str) -> bool:
    script = script_of(HEAD + f"    {line}\n")
    return is_quiet([script], script, script.tree.body[-1], ())


@pytest.mark.parametrize(
    "line",
    [
        "seen.append(np.mean(x))",
        "y = doubled(x) if x > 2 else torch.multinomial(x.softmax(1), 1)",
        "print(x.log(), torch.log(x), sorted(seen))",
        "with torch.no_grad(): y = model(x)",
        "while x > 2: x -= random.random()",
        "seen[x] = 3; seen[x] += 1",
    ],
)
def test_what_computes_is_quiet(line: str) -> None:
    assert quiet(line)


@pytest.mark.parametrize(
    "line",
    [
        "kept(x)",
        "counted()",
        "filled(seen, x)",
        "meter.add_row(x)",
        "meter.rows.append(x)",
        "meter.best = x",
        "loss.backward()",
        "optimizer.step()",
        "model.eval()",
        "torch.manual_seed(x)",
        "torch.nn.init.zeros_(model.weight)",
        "torch.add(x, x, out=y)",
        "os.makedirs(x)",
        "y = torch.load(x)",
        "y = next(batches)",
        "writer.add_scalar('x', x)",
        "raise ValueError(x)",
        "with open(x) as file: pass",
        "torch.distributed.barrier()",
        "del seen[0]",
    ],
)
def test_what_others_may_see_is_not(line: str) -> None:
    assert not quiet(line)


def test_a_model_that_is_trained_is_called_by_all_ranks() -> None:
    script = script_of(HEAD + "    y = model(x)\n")
    loop = script.tree.body[-1]
    calls = [each for each in ast.walk(loop) if isinstance(each, ast.Call) and ast.unparse(each) == "model(x)"]
    assert is_quiet([script], script, loop, ()) and not is_quiet([script], script, loop, calls)


def test_the_variables_that_are_set_and_changed() -> None:
    tree = ast.parse("a, b[0] = c\nd.append(e)\nf[1].sort()\ng.mul_(2)\nrandom.shuffle(h)\nfor i in j: pass")
    found = {(name.id, in_place) for name, in_place in changed_names(tree)}
    assert found == {("a", False), ("b", True), ("d", True), ("f", True), ("g", True), ("h", True), ("i", False)}
