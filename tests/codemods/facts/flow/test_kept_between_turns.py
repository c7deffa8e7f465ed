"""What a turn of a loop leaves for the next one."""

from __future__ import annotations

import ast
from textwrap import indent

import pytest
from ddpify_codemods.facts.flow.kept_between_turns import kept_between_turns


def kept(body: str) -> str:
    [loop] = ast.parse("for i, (x, y) in enumerate(loader):\n" + indent(body, "    ")).body
    assert isinstance(loop, ast.For)
    return kept_between_turns(loop)


@pytest.mark.parametrize(
    ("body", "name"),
    [
        ("total += x - last[0]\nlast[0] = x", "last"),
        ("up = not up", "up"),
        ("s = [s[0] + 1]", "s"),
        ("total += next(counter)", "next(counter)"),
        ("total += self.last\nself.last = x", "self.last"),
        ("if i:\n    first = x\ntotal += first", "first"),
        ("if x.any():\n    print(before)\nbefore = x", "before"),
        ("for each in x:\n    total += each - old\n    old = each", "old"),
    ],
)
def test_what_is_read_before_it_has_a_value_of_this_turn(body: str, name: str) -> None:
    assert kept(body) == name


@pytest.mark.parametrize(
    "body",
    [
        "x = x.cuda()\nout = net(x)\nout = out.float()\ntotal += out",
        "total += x\ncount += 1",
        "if a:\n    out = net(x)\nelse:\n    out = x\ntotal += out",
        "with here:\n    out = net(x)\ntotal += out",
        "rows[i] = x",
        "first = next(iter(x))",
        "kept.append(x)",
        "for each in x:\n    value = each\n    total += value",
    ],
)
def test_what_is_of_one_turn_or_added_up(body: str) -> None:
    assert kept(body) == ""
