"""Places of samples among those of their rank, which loops over a batch count."""

from __future__ import annotations

import ast

import pytest
from ddpify_codemods.facts.flow.turns import counts_to, goes_on

from tests.codemods.plain.test_followed import plain, refusals, training

LOOP = "    for x, y in train_loader:\n"
CE = "F.cross_entropy(model(x), y)"
SUMMED = """\
        out, w, loss = model(x), 1.0, 0
        for {of}:
            loss = loss + {each}
        loss = loss / len(x)
"""


def before(lines: str) -> str:
    """A script that changes its batches before a model gets them."""
    body = "".join(f"        {line}\n" for line in lines.split("\n"))
    return training().replace(LOOP, LOOP + body)


@pytest.mark.parametrize(
    ("lines", "fine"),
    [
        ("for i, v in enumerate(x):\n    x[i] = v * i", False),
        ("for i, v in enumerate(x):\n    x[i] = v * 2", True),
        ("x = torch.stack([v * (1 + i) for i, v in enumerate(x)])", False),
        ("x = torch.stack([v * 2 for i, v in enumerate(x)])", True),
        ("rows = []\nfor i, v in enumerate(x):\n    rows.append(v + i)\nx = torch.stack(rows)", False),
        ("w = [1.0] * 8\nx = torch.stack([v * a for v, a in zip(x, w)])", False),
        ("w = [1.0] * 8\nfor v, a in zip(x, w):\n    v.mul_(a)", False),
        ("x = torch.stack([v * a for v, a in zip(x, x * 2)])", True),
        ("import scipy.signal\nx = torch.stack([scipy.signal.detrend(v) * (1 + i) for i, v in enumerate(x)])", False),
        (
            "import scipy.signal\nx = torch.stack([scipy.signal.detrend(scipy.signal.detrend(v) + i)"
            " for i, v in enumerate(x)])",
            False,
        ),
        ("s = 1.0\nfor i in range(len(x)):\n    s *= 0.9\n    x[i] *= s", False),
        ("s = 1.0\nfor i in range(len(x)):\n    s = s * 0.9\n    x[i] *= s", False),
        ("s = 1.0\nfor v in x:\n    s *= 0.9\n    v.mul_(s)", False),
        ("for i in range(len(x)):\n    s = 1.0\n    s *= 0.9\n    x[i] *= s", True),
        (
            "back = False\nfor i in range(len(x)):\n    x[i] = x[i].flip(0) if back else x[i]\n    back = not back",
            False,
        ),
    ],
)
def test_samples_that_are_changed_by_their_places(lines: str, fine: bool) -> None:
    assert (refusals(plain(before(lines))) == []) is fine


@pytest.mark.parametrize(
    ("of", "each", "fine"),
    [
        ("i, (o, t) in enumerate(zip(out, y))", "F.cross_entropy(o[None], t[None])", True),
        ("i, (o, t) in enumerate(zip(out, y))", "F.cross_entropy(o[None], t[None]) * (1 + i)", False),
        ("o, t in zip(out, y)", "w * F.cross_entropy(o[None], t[None]); w *= 0.9", False),
        ("o, t in zip(out, y)", "w * F.cross_entropy(o[None], t[None])", True),
        ("o, t, a in zip(out, y, range(8))", "a * F.cross_entropy(o[None], t[None])", False),
    ],
)
def test_losses_of_samples_that_weigh_by_their_places(of: str, each: str, fine: bool) -> None:
    source = training().replace(LOOP, LOOP + SUMMED.format(of=of, each=each)).replace(f"loss = {CE}", "pass")
    assert (refusals(plain(source)) == []) is fine


def test_a_loop_that_counts_its_samples() -> None:
    """`n = n + 1` was taken for a number that all ranks have alike; it is the same sum as `n += 1`."""
    counted = "n = 0\nfor t in y:\n    n {}\nprint(n)"
    for adds in ("= n + 1", "+= 1"):
        result = plain(before(counted.format(adds)))
        assert not refusals(result) and "sum_over_ranks(n)" in result.code


def test_numbers_that_a_turn_makes_of_those_of_the_one_before() -> None:
    loop = ast.parse("for v in x:\n    s *= 2\n    k = k + 1\n    a = 1\n    a *= 2\n    n = m\n").body[0]
    assert isinstance(loop, ast.For)
    found = [goes_on(loop, each) for each in loop.body if isinstance(each, ast.Assign | ast.AugAssign)]
    assert found == [True, True, False, False, False]
    ends = [counts_to(ast.parse(each, mode="eval").body) for each in ("range(n)", "range(1, m)", "x")]
    assert [ast.unparse(each) if each is not None else "" for each in ends] == ["n", "m", ""]
