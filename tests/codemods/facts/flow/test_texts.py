"""Texts that a program writes down, by which it chooses a network."""

from __future__ import annotations

import ast

import pytest
from ddpify_codemods.facts.flow.texts import is_part, of_text
from ddpify_codemods.facts.flow.values import SAME, Value

from tests.codemods.facts.flow.followed import TRAINING, followed

CHOSEN = """\
def make(name):
    if name.startswith("lin") and "small" not in name:
        return nn.Linear(4, 3, True)
    else:
        return nn.Sequential(nn.Linear(4, 3), nn.Softmax(0))
model = make({name!r})
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
"""


@pytest.mark.parametrize(
    ("call", "answer"),
    [
        ("'resnet50'.startswith('res')", True),
        ("'resnet50'.endswith('18')", False),
        ("'ResNet'.lower()", "resnet"),
        ("'a-b'.replace('-', '_')", "a_b"),
        ("'a'.startswith()", None),  # ends when it runs
        ("'a'.startswith('a', 1)", None),
        ("'a'.join('b')", None),
    ],
)
def test_what_a_text_says_that_is_known(call: str, answer: object) -> None:
    node = ast.parse(call, mode="eval").body
    assert isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute)
    owner, *args = (Value(constant=ast.literal_eval(each)) for each in (node.func.value, *node.args))
    found = of_text(node.func.attr, owner, args, has_keywords=False)
    assert (found.constant if found is not None else None) == answer


def test_what_is_not_written_down_is_not_known() -> None:
    assert of_text("lower", SAME, [], has_keywords=False) is None
    node = ast.parse("part in text", mode="eval").body
    assert isinstance(node, ast.Compare)
    assert is_part(node, [Value(constant="a"), SAME]) is None
    found = is_part(node, [Value(constant="a"), Value(constant="cat")])
    assert found is not None and found.constant is True


@pytest.mark.parametrize(("name", "is_linear"), [("linear", True), ("linear_small", False), ("mlp", False)])
def test_a_network_that_is_chosen_by_its_name_is_that_one(name: str, is_linear: bool) -> None:
    found = followed(CHOSEN.format(name=name) + TRAINING)
    made = {ast.unparse(module.made) for module in found.found.trained} - {"nn.Linear(4, 3)"}
    assert made == ({"nn.Linear(4, 3, True)"} if is_linear else {"nn.Sequential(nn.Linear(4, 3), nn.Softmax(0))"})
