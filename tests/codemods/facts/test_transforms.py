"""Which classes are transforms of samples."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest
from ddpify_codemods.facts.script import Script
from ddpify_codemods.facts.transforms import calls_of_transforms

CLASSES = """\
class Flip:
    def __call__(self, image):
        return image


class Crop:
    def __init__(self):
        pass

    def forward(self, image):
        return image


class Data:
    def __getitem__(self, i):
        return i
"""


def transforms(code: str, name: str = "train.py") -> list[str]:
    text = CLASSES + code
    script = Script(Path(name), text, ast.parse(text), True, frozenset())
    return [script.parents[each].name for each in calls_of_transforms([script], script)]  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    "code",
    [
        "steps = Compose([Flip(), Crop()])",
        "data = Data(Flip(), Crop())",
        "data = Pictures(transform=Flip(), target_transform=Crop())",
        "transform = Flip()\naugmentation = Crop()",
        "class Compose:\n    pass\n",
    ],
)
def test_they_are_known_by_what_they_are_given_to(code: str) -> None:
    assert transforms(code) == ["Flip", "Crop"]


def test_a_file_of_transforms_has_nothing_else() -> None:
    assert transforms("", "transforms.py") == ["Flip", "Crop"]


def test_a_class_that_is_called_elsewhere_is_none() -> None:
    assert transforms("model = Flip()\nloss = Crop()") == []
