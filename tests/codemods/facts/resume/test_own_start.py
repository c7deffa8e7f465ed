"""What a script's own checkpoint decides before its loop trains."""

from __future__ import annotations

import pytest
from ddpify_codemods.facts.resume.obstacle import CannotResume
from ddpify_codemods.facts.resume.own_start import own_start
from ddpify_codemods.facts.resume.training import CallGraph

from tests.codemods.checks import script_of

LOOP = "for epoch in range(first, 9):\n    loss(model).backward()\nprint(best)\n"
LOADED = """\
first = best = 0
if args.resume:
    saved = torch.load(args.resume)
    model.load_state_dict(saved['model'])
    first = saved['epoch'] + 1
    best = saved['best']
    seen = saved['seen']
"""


def decided(source: str, *restored: str) -> tuple[str, ...]:
    training = CallGraph([script_of(f"import os, sys, torch\n{source}")])
    (loop,) = training.outermost()
    return own_start(training, loop, restored)


def indented(source: str) -> str:
    return "".join(f"    {line}\n" for line in source.splitlines())


@pytest.mark.parametrize(
    ("lines", "names"),
    [
        (LOADED, ("best", "first")),  # the loop and what follows read these, and not the others
        ("first = best = torch.load('a.pt')['epoch']\n", ("best", "first")),
        ("def load():\n    return torch.load('a.pt')['epoch']\nfirst, best = load(), 0\n", ("best", "first")),
        ("first = torch.load('a.pt')['epoch']\nbest = first / 2\n", ("best", "first")),
        ("saved = torch.load('a.pt')\nfirst = saved['epoch'] + 1\nbest = 0\n", ("first",)),
        ("first, best = 0, 1.0\n", ()),
    ],
)
def test_values_of_a_file(lines: str, names: tuple[str, ...]) -> None:
    assert decided(lines + LOOP) == names


def test_what_is_restored_in_place_needs_no_start() -> None:
    assert decided(LOADED + LOOP, "best") == ("first",)


def test_attributes_of_an_object() -> None:
    lines = "best = 0\nif args.resume:\n    args.first = torch.load(args.resume)['epoch']\n"
    assert decided(lines + LOOP.replace("first", "args.first")) == ("args.first",)


def test_a_parameter_that_a_caller_has_of_a_file() -> None:
    function = "def train(first, best):\n" + indented(LOOP)
    assert decided(function + LOADED + "train(first, 0)\n") == ("first",)
    assert decided(function + LOADED + "train(0, 1)\n") == ()
    assert decided(function + "args.first = torch.load('a.pt')['epoch']\ntrain(args.first, 0)\n") == ("first",)


@pytest.mark.parametrize(
    ("source", "line", "message"),
    [
        ("if not os.path.exists('a.pt'):\n" + indented(LOOP), 2, "whether it trains depends on a file"),
        ("if os.path.isfile('a.pt'):\n    sys.exit(0)\n" + LOOP, 2, "whether it trains depends on a file"),
        ("there = path.exists()\nif there:\n    sys.exit(0)\n" + LOOP, 3, "whether it trains depends on a file"),
        (LOADED + "def main():\n" + indented(LOOP) + "main()\n", 10, "first, which a checkpoint of the script's own"),
    ],
)
def test_what_a_file_may_not_decide(source: str, line: int, message: str) -> None:
    with pytest.raises(CannotResume) as raised:
        decided(source)
    assert message in raised.value.obstacle.message and raised.value.obstacle.line == line


def test_a_script_that_leaves_for_another_reason() -> None:
    assert decided(LOADED + "if args.test:\n    sys.exit(0)\n" + LOOP) == ("best", "first")
