"""Where in a script a string means a device."""

from __future__ import annotations

import ast

import pytest
from ddpify_codemods.facts.devices import Branches
from ddpify_codemods.facts.places import asks_which_device, device_place, is_device_call
from ddpify_codemods.targets import TARGETS

from tests.codemods.checks import node_of, script_of


@pytest.mark.parametrize(
    ("line", "place"),
    [
        ("x = torch.device('cuda')", "text"),
        ("x = y.to('cuda')", "device"),
        ("x = torch.zeros(3, device='cuda')", "device"),
        ("x = torch.load('f', map_location='cuda')", "file"),
        ("print('cuda')", ""),
    ],
)
def test_the_place_of_a_string(line: str, place: str) -> None:
    script = script_of(f"import torch\n{line}")
    node = next(each for each in script.find(ast.Constant) if each.value == "cuda")
    assert device_place(Branches(script, TARGETS["cpu"]), node) == place


def test_a_question_which_device_it_is() -> None:
    script = script_of(
        "import torch\nd = torch.device('cpu')\nif d.type == 'cuda':\n    pass\nif name == 'xpu':\n    pass"
    )
    assert asks_which_device(script, node_of(script, "'cuda'"))
    assert is_device_call(script, node_of(script, "torch.device('cpu')"))
