"""Whether a data set changes while its samples are loaded (D20)."""

from __future__ import annotations

import pytest

from ddpify.verify.changing_sets import changed_by_loading


@pytest.mark.parametrize(
    ("body", "attribute"),
    [
        ("self.drawn += 1", "self.drawn"),
        ("self.seen[i] = True", "self.seen"),
        ("self.order.append(i)", "self.order"),
        ("self.count(i)", "self.drawn"),
        ("if self.file is None:\n            self.file = open('a')", ""),
        ("return self.data[i]", ""),
        ("local = 3", ""),
    ],
)
def test_an_attribute_that_loading_changes(body: str, attribute: str) -> None:
    text = (
        f"class Data:\n    def __getitem__(self, i):\n        {body}\n    def count(self, i):\n        self.drawn = i\n"
    )
    assert changed_by_loading(text) == attribute


def test_other_classes_and_other_languages() -> None:
    assert changed_by_loading("class A:\n    def step(self):\n        self.x = 1\n") == ""
    assert changed_by_loading("print 'python 2'") == ""
