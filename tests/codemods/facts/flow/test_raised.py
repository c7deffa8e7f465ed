"""What a program may raise where it is not followed, by names and texts."""

from __future__ import annotations

import ast

import pytest
from ddpify_codemods.facts.flow import raised


def calls(code: str) -> list[ast.Call]:
    return [node for node in ast.walk(ast.parse(code)) if isinstance(node, ast.Call)]


@pytest.mark.parametrize(
    ("code", "found"),
    [
        ("next(batches)", {"StopIteration"}),
        ("next(batches, None)", set()),
        ("batches.__next__()", {"StopIteration"}),
        ("sys.exit(1)", {"SystemExit"}),
        ("train(model)", set()),
    ],
)
def test_what_calls_raise(code: str, found: set[str]) -> None:
    assert raised.raised_by(calls(code)) == found


@pytest.mark.parametrize(
    ("code", "reads"),
    [
        ("open('a')", True),
        ("torch.load('a')", True),
        ("pd.read_csv('a')", True),
        ("os.listdir('a')", True),
        ("os.path.join('a', 'b')", False),
        ("train(model)", False),
    ],
)
def test_calls_that_read_files(code: str, reads: bool) -> None:
    assert raised.read_files(calls(code)) is reads


def test_exceptions_that_a_handler_takes() -> None:
    assert raised.may_be_among(["KeyError"], ["Exception"])
    assert raised.may_be_among(["Own"], ["ValueError"])
    assert not raised.may_be_among(["KeyError"], ["ValueError"])
    assert not raised.may_be_among(["ValueError"], ["torch.OutOfMemoryError"])
