"""Functions that read samples of training and of undivided evaluations: training gives them the batch of all ranks."""

from __future__ import annotations

import ast

import pytest

from tests.codemods.facts.flow.followed import TRAINING, followed, reasons

MEASURE = """\
def accuracy(out, y, threshold=0.5):
    y = y == torch.max(y)
    return float(torch.sum((out > threshold) == y)) / float(out.size(0) * out.size(1))


def doubled(out, y):
    return 2 * accuracy(out, y)


"""
PROGRAM = """\
for epoch in range(2):
    measured = 0.0
    for x, y in train_loader:
        out = model(x)
        optimizer.zero_grad()
        loss = F.cross_entropy(out, y)
        loss.backward()
        optimizer.step()
        measured += doubled(out, y[:, None])
    print(measured)
    measured = 0.0
    for x, y in test_loader:
        measured += doubled(model(x), y[:, None])
    print(measured)
"""


def test_what_the_call_is_given_is_brought_together() -> None:
    found = followed(MEASURE + PROGRAM)
    rows = {node for node, each in found.found.reductions.items() if {one.kind for one in each} == {"rows"}}
    assert {ast.unparse(node) for node in rows} == {"out", "y[:, None]"} and not found.problems
    assert all(isinstance(found.found.scripts[node].scope(node), ast.Module) for node in rows)
    assert {*found.status.values()} == {"training", "whole"}


def test_without_such_an_evaluation_the_function_does_it() -> None:
    found = followed(MEASURE + PROGRAM[: PROGRAM.rindex("    measured = 0.0")])
    scopes = {type(found.found.scripts[node].scope(node)) for node in found.found.reductions}
    assert ast.FunctionDef in scopes and not found.problems


@pytest.mark.parametrize("ratio", ["(hits + 5) / (count + 1)", "(hits - 1) * 2 + count ** 2", "(hits + 5) / 3"])
def test_sums_that_are_computed_with_are_those_of_the_evaluation_in_it(ratio: str) -> None:
    """Ranks that evaluate everything would add up what they all have."""
    counts = "    hits, count = ((out > threshold) == y).sum().item(), (out > 0).sum().item()\n"
    source = MEASURE[: MEASURE.index("    y = y ==")] + counts + f"    return {ratio}\n"
    source += MEASURE[MEASURE.index("\n\ndef doubled") :]
    behind = PROGRAM[: PROGRAM.rindex("        measured += ")] + "        outs, ys = [model(x)], [y]\n"
    behind += "    measured = doubled(torch.cat(outs), torch.cat(ys))\n    print(measured)\n"
    for program in (source + PROGRAM, source + behind):
        found = followed(program)
        assert {*found.status.values()} == {"training", "whole"} and not found.problems
        assert all(isinstance(found.found.scripts[node].scope(node), ast.Module) for node in found.found.reductions)


@pytest.mark.parametrize(
    ("before", "after", "reason"),
    [
        ("loss = F.cross_entropy(out, y)", "loss = F.cross_entropy(out, y) + doubled(out, y[:, None])", "all ranks"),
        ("    y = y ==", "    out.sub_(1)\n    y = y ==", "a copy"),
        ("    y = y ==", "    out[0] = 1\n    y = y ==", "a copy"),
        ("    return 2 *", "    out -= 1\n    return 2 *", "a copy"),
        ("== y)) /", "== (y == (x[:, :1] > 0)))) /", "a copy"),
    ],
)
def test_what_a_copy_would_not_do(before: str, after: str, reason: str) -> None:
    source = MEASURE + PROGRAM
    assert before in source
    assert any(reason in each for each in reasons(source.replace(before, after)))


DRAWS_EACH = """\
import matplotlib.pyplot as plt
import numpy as np


def drawn(batch):
    images = []
    for i, series in enumerate(batch.detach()):
        figure = plt.figure()
        figure.gca().plot(series[:2].numpy())
        images.append(np.frombuffer(figure.canvas.tostring_rgb()))
        plt.close(figure)
    return torch.from_numpy(np.stack(images))


"""
IN_AN_EPOCH = "    picture = drawn(2 * {})\n    torch.save(picture, 'picture.pt')\n"


@pytest.mark.parametrize("samples", ["x", "x[:, 1:]", "model(x)"])
def test_a_function_that_draws_each_sample_gets_those_of_all_ranks(samples: str) -> None:
    found = followed(DRAWS_EACH + TRAINING + IN_AN_EPOCH.format(samples))
    reductions = [one for each in found.found.reductions.values() for one in each]
    assert {one.kind for one in reductions} == {"rows"} and not found.problems
    assert all(isinstance(found.found.scripts[node].scope(node), ast.Module) for node in found.found.reductions)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("    images = []\n", "    images = []\n    batch.mul_(2)\n"),
        ("torch.from_numpy(np.stack(images))", "batch"),
    ],
)
def test_one_that_changes_them_or_gives_them_back_is_refused(before: str, after: str) -> None:
    source = DRAWS_EACH.replace(before, after) + TRAINING + IN_AN_EPOCH.format("x")
    assert reasons(source)


def test_samples_that_are_read_one_by_one_beside_any_function_are_refused() -> None:
    each = "    for series in x:\n        plt.plot(series.numpy())\n"
    assert reasons(DRAWS_EACH + TRAINING + each)
