"""Tensors that go by two names in one memory, in the plain style: where one is changed by a rank's samples, the other
is not seen to change, so no rank may have a part of an evaluation alone."""

from __future__ import annotations

import pytest

from tests.codemods.plain.test_followed import HEAD, LOOP, notes, plain, refusals

TRAINING = LOOP.format(loss="F.cross_entropy(model(x), y)", step="optimizer.step()")
EVALUATION = """\
{made}
for x, y in test_loader:
    out = model(x)
    hits = (out.argmax(1) == y).sum()
    {adds}
print(t)
"""
KEEPS = """\
def add(value, kept=[]):
    kept.append(value)
    return kept


"""


def evaluated(made: str, adds: str) -> str:
    """A script that trains, and then evaluates."""
    return HEAD + "import numpy as np\n" + TRAINING + EVALUATION.format(made=made, adds=adds)


@pytest.mark.parametrize(
    ("made", "adds"),
    [
        ("t = torch.zeros(2)\na, b = t.chunk(2)", "a += hits"),
        ("t = torch.zeros(2)\na, b = t.unbind(0)", "b += hits"),
        ("t = torch.zeros(2)\na, b = torch.split(t, 1)", "b += hits"),
        ("t = torch.zeros(2)\na, b = t[:1], t[1:]", "b += hits"),
        ("t = torch.zeros(2)\na = t[0]", "a += hits"),
        ("t = torch.zeros(2)\na = t", "a += hits.item()"),
        ("t = torch.zeros(1, 2)\na = t.view(-1)", "a += hits"),
        ("t = np.zeros(2)\na = torch.as_tensor(t)", "a += hits"),
        ("t = torch.zeros(2)\na = t.numpy()", "a += hits.item()"),
        ("t = np.zeros(2)\na = np.asarray(t)", "a += hits.item()"),
        ("t = a = torch.zeros(2)", "a += hits"),
        ("a = torch.zeros(2)\nt = [a]", "a += hits"),
        ("a = torch.zeros(2)\nt = dict(hits=a)", "a += hits"),
        ("a, t = torch.zeros(2), []\nt.append(a)", "a += hits"),
        ("t = torch.zeros(2)", "a = t[1:]\n    a += hits"),
        ("t = torch.zeros(2)", "for row in t:\n        row += hits"),
        ("t = torch.zeros(3)\na = t.view(-1)", "a.scatter_add_(0, y, torch.ones(len(y)))"),
    ],
)
def test_an_evaluation_is_whole(made: str, adds: str) -> None:
    result = plain(evaluated(made, adds))
    assert any("every rank evaluates all of it" in each for each in notes(result)) and not refusals(result)


@pytest.mark.parametrize(
    ("made", "adds"),
    [
        ("t = torch.zeros(2)", "t += hits"),
        ("t = torch.zeros(2, device=torch.device('cpu'))", "t[0] += hits\n    t[1] += len(x)"),
        ("t = seen = 0", "t += hits.item()"),
        ("t = torch.zeros(1)\nold = t\nt = torch.zeros(1)", "t += hits"),
        ("t = torch.zeros(2).to(torch.float64)", "t += hits"),
    ],
)
def test_an_evaluation_is_divided(made: str, adds: str) -> None:
    result = plain(evaluated(made, adds))
    assert not notes(result) and not refusals(result) and "sum_over_ranks(t)" in result.code


def test_what_is_made_of_a_tensor_behind_the_loop() -> None:
    behind = "\nfor row in t:\n    print(row)\na, b = t\nlast = t[0]\n"
    result = plain(evaluated("t = torch.zeros(2)", "t += hits") + behind)
    assert not notes(result) and not refusals(result)


def test_a_best_number_that_is_kept_for_the_next_epoch() -> None:
    body = "    t = torch.zeros(1)\n    for x, y in test_loader:\n        t += (model(x).argmax(1) == y).sum()\n"
    kept = "    if best is None or t.item() > best.item():\n        best = t\n    print(t, best)\n"
    result = plain(HEAD + "best = None\n" + TRAINING + body + kept)
    assert not notes(result) and not refusals(result)


@pytest.mark.parametrize("keeps", ["logs.append(running)", "logs['loss'] = running"])
def test_a_number_that_is_kept_and_begun_anew(keeps: str) -> None:
    made = "logs = []\n" if "append" in keeps else "logs = {}\n"
    body = "optimizer.step()\n        running += loss.detach()\n        if len(x) > 1:\n"
    again = f"            {keeps}\n            running = torch.zeros(1)"
    step = body + again
    begins = HEAD + made + "running = torch.zeros(1)\n"
    loop = LOOP.format(loss="F.cross_entropy(model(x), y)", step=step)
    assert not any("goes by another name" in each for each in refusals(plain(begins + loop)))
    mixed = LOOP.format(
        loss="F.cross_entropy(model(x), y)",
        step=step.replace("            running = torch.zeros(1)", "            running += 0"),
    )
    assert any("goes by another name" in each for each in refusals(plain(begins + mixed)))


def test_the_tensor_of_a_training_is_refused() -> None:
    step = "optimizer.step()\n        a += loss.detach()"
    loop = LOOP.format(loss="F.cross_entropy(model(x), y)", step=step)
    assert refusals(plain(HEAD + "t = torch.zeros(1)\na = t.view(-1)\n" + loop + "print(t)\n"))


def test_a_list_that_is_a_default_is_the_same_one_in_each_call() -> None:
    source = evaluated("", "add(hits.item())").replace("print(t)", "print(sum(add(0)))")
    result = plain(source.replace("import numpy", KEEPS + "import numpy"))
    assert not refusals(result) and not notes(result) and "print(sum_over_ranks(sum(add(0))))" in result.code
