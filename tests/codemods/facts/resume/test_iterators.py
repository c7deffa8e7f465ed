"""What next() takes items of is counted where it is made, or refused."""

from __future__ import annotations

import ast

import pytest
from ddpify_codemods.facts.resume.iterators import counted, makes_iterator, takes_an_item
from ddpify_codemods.facts.resume.obstacle import CannotResume
from ddpify_codemods.facts.resume.training import CallGraph

from tests.codemods.checks import node_of, script_of, sources_of

STEP = "    loss(next(batches)).backward()\n"


def found(before: str, body: str = STEP) -> list[str]:
    """What is counted for a loop that trains, after some lines and with a body."""
    training = CallGraph([script_of(f"{before}\nfor step in range(9):\n{body}")])
    (loop,) = training.outermost()
    return sources_of(node for _, node in counted(training, loop, loop))


@pytest.mark.parametrize(
    ("before", "iterable"),
    [
        ("batches = iter(loader)", "loader"),
        ("made = iter(loader)\nbatches = made", "loader"),
        ("def forever():\n    while True:\n        yield from loader\nbatches = forever()", "forever()"),
        ("batches = enumerate(loader)", "enumerate(loader)"),
    ],
)
def test_where_an_iterator_is_made(before: str, iterable: str) -> None:
    assert found(before) == [iterable]


def test_an_iterator_that_is_made_again_of_the_same_loader() -> None:
    again = "    if step % 3 == 0:\n        batches = iter(loader)\n"
    assert found("batches = iter(loader)", again + STEP) == ["loader", "loader"]


def test_what_is_taken_in_a_function() -> None:
    assert found("batches = iter(loader)\ndef take():\n    return next(batches)", "    take().backward()\n") == [
        "loader"
    ]


def test_an_iterator_of_a_single_item_needs_no_count() -> None:
    assert found("", "    loss(next(iter(loader))).backward()\n    next(model.parameters())\n") == []


@pytest.mark.parametrize(
    ("before", "body", "line", "message"),
    [
        ("batches = unknown(loader)", STEP, 3, "not seen what next(batches) takes items of"),
        ("", "    batches = enumerate(loader)\n" + STEP, 3, "which could not be made again as it was"),
        ("batches = iter(loader)", STEP + "    loader = other\n", 1, "loader, which is assigned in the loop"),
    ],
)
def test_what_cannot_be_counted(before: str, body: str, line: int, message: str) -> None:
    with pytest.raises(CannotResume) as raised:
        found(before, body)
    obstacle = raised.value.obstacle
    assert message in obstacle.message and obstacle.line == line and obstacle.remedy


def test_calls_of_next_and_of_what_makes_iterators() -> None:
    script = script_of("import itertools\na = next(b)\nc = itertools.cycle(d)\ne = f(g)\nh.next(i)")
    calls = ["next(b)", "itertools.cycle(d)", "f(g)", "h.next(i)"]
    nodes: list[ast.Call] = [node_of(script, each) for each in calls]
    assert [takes_an_item(script, each) for each in nodes] == [True, False, False, False]
    assert [makes_iterator(script, each) for each in nodes] == [False, True, False, False]
