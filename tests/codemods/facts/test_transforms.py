"""Which classes are transforms of samples."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest
from ddpify_codemods.facts.script import Script
from ddpify_codemods.facts.transforms import calls_of_transforms, may_be_called_for_samples

CLASSES = """\
class Flip:
    def __call__(self, image):
        return image


class Crop:
    def __init__(self):
        pass

    def __call__(self, image):
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


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        ("step = Flip()\nx = step(x)\nloss.backward()\n", ["Crop"]),
        ("step = Flip()\ndef train():\n    x = step(x)\n    loss.backward()\n", ["Crop"]),
        ("step = Flip()\nkept = Kept(step)\ndef train():\n    loss.backward()\n", ["Flip", "Crop"]),
    ],
)
def test_what_a_data_set_may_call_is_not_what_a_step_calls(code: str, expected: list[str]) -> None:
    script = Script(Path("train.py"), CLASSES + code, ast.parse(CLASSES + code), True, frozenset())
    found = may_be_called_for_samples([script], script)
    assert [script.parents[each].name for each in found] == expected  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    "code", ["transformer = Flip()\nmodel = Net(transformer=Crop())", "class Transformer:\n    pass\n"]
)
def test_a_transformer_is_a_model(code: str) -> None:
    assert transforms(code) == [] and transforms(code, "transformer.py") == []


def test_the_forward_of_a_layer_is_none() -> None:
    assert transforms("transform = Head()\nclass Head:\n    def forward(self, x):\n        return x\n") == []
