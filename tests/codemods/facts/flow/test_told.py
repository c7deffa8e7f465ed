"""Which objects keep the last numbers that they get."""

from __future__ import annotations

import ast

import pytest
from ddpify_codemods.facts.flow.told import has_window

from tests.codemods.checks import script_of


@pytest.mark.parametrize(
    ("given", "keeps"), [("maxlen=20", True), ("[], 20", True), ("", False), ("[]", False), ("maxlen=size", True)]
)
def test_a_deque_that_forgets(given: str, keeps: bool) -> None:
    method = f"    def __init__(self, size):\n        self.last = deque({given})\n"
    script = script_of(f"from collections import deque\nclass Meter:\n{method}")
    (cls,) = script.find(ast.ClassDef)
    assert has_window(script, cls) is keeps
