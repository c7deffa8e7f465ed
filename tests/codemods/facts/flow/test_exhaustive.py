"""Conditions of which one has to hold."""

from __future__ import annotations

import ast
import textwrap

import pytest
from ddpify_codemods.facts.flow.exhaustive import is_exhaustive

from tests.codemods.checks import script_of
from tests.codemods.plain.test_followed import plain, refusals, training

CHAIN = 'if args.way == "a":\n        out = f(x)\n    elif args.way == "b":\n        out = g(x)\n'
NESTED = CHAIN.replace("out = f(x)", "if x:\n            out = f(x)\n        else:\n            out = x")
FUNCTION = "def train(x, args):\n{before}    {chain}{after}"


def last_of(source: str) -> bool:
    """What is said of the last condition of a script, which has no `else`."""
    script = script_of(source)
    return is_exhaustive(script, max(script.find(ast.If), key=lambda each: each.lineno))


@pytest.mark.parametrize(
    ("before", "after", "chain"),
    [
        ("", "    loss = c(out)\n", CHAIN),
        ("", "    loss = c(out)\n", NESTED),
        ("", "    print(x)\n    return out\n", CHAIN),
        ("", "    out.sum().backward()\n", CHAIN.replace("out = g", "y, out = g")),
        ("", "    return c(out)\n", CHAIN + '    elif args.way == "c":\n        out = x\n'),
    ],
)
def test_a_name_that_only_the_branches_make_is_read_behind_them(before: str, after: str, chain: str) -> None:
    assert last_of(FUNCTION.format(before=before, after=after, chain=chain))


@pytest.mark.parametrize(
    ("before", "after", "chain"),
    [
        ("    out = x\n", "    loss = c(out)\n", CHAIN),
        ("", "    loss = c(out)\n", NESTED.replace("        else:\n            out = x", "        x = 1")),
        ("", "    loss = c(out)\n", CHAIN.replace("out = g", "other = g")),
        ("", "    print(x)\n", CHAIN),
        ("", "    if x:\n        return x\n    return out\n", CHAIN),
        ("", "    return x or out\n", CHAIN),
        ("", "    return [out for _ in x]\n", CHAIN),
        ("    args.way = x\n", "    return out\n", CHAIN),
        ("    global args\n", "    return out\n", CHAIN),
        ("    global out\n", "    return out\n", CHAIN),
        ("", "    return out\n", CHAIN.replace('args.way == "b"', "args.way()")),
        ("", "    return x\n", CHAIN.replace("out", "x")),
    ],
)
def test_none_may_hold(before: str, after: str, chain: str) -> None:
    assert not last_of(FUNCTION.format(before=before, after=after, chain=chain))
    assert not last_of(FUNCTION.format(before="", after="    return out\n", chain=CHAIN.split("    elif")[0]))


@pytest.mark.parametrize(
    ("behind", "expected"),
    [
        ("    if x:\n        c = f\n    else:\n        c = g\n    return c(out)\n", True),
        ("    if x:\n        out, x = f(out, x)\n    return out\n", True),
        ("    out = c(out)\n    return out\n", True),
        ("    if x:\n        out = x\n    return out\n", False),
        ("    if x:\n        out = x and out\n    return out\n", False),
        ("    if x:\n        out = [out for out in x]\n    return out\n", False),
        ("    if x:\n        print(out)\n", False),
        ("    if x:\n        return x\n    return out\n", False),
        ("    if x:\n        raise x\n    return out\n", False),
        ("    for x in y:\n        if x:\n            break\n    return out\n", False),
        ("    try:\n        x = out\n    except NameError:\n        out = 1\n    return out\n", False),
    ],
)
def test_other_conditions_stand_before_what_reads_the_name(behind: str, expected: bool) -> None:
    script = script_of(FUNCTION.format(before="", after=behind, chain=CHAIN))
    (last,) = (each for each in script.find(ast.If) if isinstance(script.parents[each], ast.If))
    assert is_exhaustive(script, last) is expected


def test_a_condition_may_change_from_turn_to_turn() -> None:
    turn = textwrap.indent(textwrap.dedent(f"    {CHAIN}") + "print(out)\n", "        ")
    loop = f"args = x\n    for args in y:\n{turn}"
    assert not last_of(FUNCTION.format(before="", chain=loop, after=""))
    assert last_of(FUNCTION.format(before="", chain=loop.replace("for args", "for each"), after=""))


def test_names_of_a_file_may_come_from_elsewhere() -> None:
    chain = textwrap.dedent(f"    {CHAIN}    print(out)\n")
    assert last_of(f"args = parse()\n{chain}")
    for other in ("from a import out", "from a import *", "def out():\n    pass"):
        assert not last_of(f"{other}\n{chain}")
    caught = textwrap.indent(chain, "    ")
    assert not last_of(f"try:\n{caught}except NameError:\n    pass\n")


@pytest.mark.parametrize(("before", "refused"), [("", False), ("out = model.bias\n", True)])
def test_a_call_of_the_model_in_each_branch_is_one_in_any_case(before: str, refused: bool) -> None:
    way = f'{before}if way == "a":\n    out = model(x)\nelif way == "b":\n    out = model(2 * x)\n'
    source = training("F.cross_entropy(out, y)")
    source = source.replace("        loss =", f"{textwrap.indent(way, ' ' * 8)}        loss =")
    result = plain(source.replace("total = 0.0\n", "way = __import__('sys').argv[1]\n"))
    assert bool(refusals(result)) is refused
    assert refused or "find_unused" not in result.code
