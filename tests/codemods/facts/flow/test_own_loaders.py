"""Loaders of classes that the program derives from DataLoader are followed as those of torch."""

from __future__ import annotations

import ast

import pytest

from tests.codemods.facts.flow.followed import TRAINING, followed

CLASS = """\
class Loader(DataLoader):
    def __init__(self, data):
        {before}
        super().__init__(data, batch_size=8, shuffle=True)
        {after}

train_loader = Loader(train_set)
"""


@pytest.mark.parametrize(
    ("before", "after", "is_seen"),
    [
        ("self.count = len(data)", "print(self.batch_size, self.count)", True),
        ("self.batch_size = self.collate_fn = None", "self.next = self", True),
        ("vars(self)['sampler'] = None", "pass", False),
        ("pass", "self.__dict__['sampler'] = None", False),
    ],
)
def test_the_call_that_makes_the_loader(before: str, after: str, is_seen: bool) -> None:
    known = followed(CLASS.format(before=before, after=after) + TRAINING)
    made = [ast.unparse(loader.call.func) for loader, status in known.status.items() if status == "training"]
    assert made == (["super().__init__"] if is_seen else [])


def test_two_loaders_of_one_class() -> None:
    two = "other_loader = Loader(test_set)\n" + TRAINING.replace("train_loader", "other_loader")
    known = followed(CLASS.format(before="self.data = data", after="pass") + TRAINING + two)
    assert list(known.status.values()).count("training") == 2 and not known.problems


def test_another_collate_function_afterwards() -> None:
    source = CLASS.format(before="pass", after="self.collate_fn = min")
    assert any("another collate function" in each.reason for each in followed(source + TRAINING).problems)
