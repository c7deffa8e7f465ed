"""Generators that run over a loader again and again."""

from __future__ import annotations

import pytest
from ddpify_codemods.facts.flow.endless import endless

from tests.codemods.checks import script_of


@pytest.mark.parametrize(
    ("body", "loader"),
    [
        ("while True:\n        for batch in loader:\n            yield batch", "loader"),
        ("while 1:\n        yield from loader", "loader"),
        ('"""All batches, again and again."""\n    while True:\n        yield from loader', "loader"),
        ("while True:\n        for batch in loader:\n            yield 2 * batch", ""),
        ("while True:\n        for batch in loader:\n            yield first", ""),
        ("while True:\n        for batch in others:\n            yield batch", ""),
        ("while True:\n        for batch in loader:\n            print(batch)\n            yield batch", ""),
        ("while True:\n        yield loader", ""),
        ("while loader:\n        yield from loader", ""),
        ("for batch in loader:\n        yield batch", ""),
        ("loader = loader[1:]\n    while True:\n        yield from loader", ""),
    ],
)
def test_what_they_run_over(body: str, loader: str) -> None:
    script = script_of(f"def cycle(loader, first=None):\n    {body}\n")
    found = endless(script, script.tree.body[0])
    assert (found.loader if found is not None else "") == loader
