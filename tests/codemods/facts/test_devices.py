"""Where a script picks an accelerator, and which of its branches a target leaves dead."""

from __future__ import annotations

import ast

import pytest
from ddpify_codemods.facts.devices import (
    Branches,
    indexed_string,
    is_gpu_string,
    number_of_gpu,
    quoted_like,
    second_gpu,
    taken_with_gpu,
)
from ddpify_codemods.targets import TARGETS

from tests.codemods.checks import node_of, script_of

CHOICE = """
import torch
device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
if torch.cuda.is_available():
    on_gpu()
else:
    on_cpu()
"""


@pytest.mark.parametrize(("target", "dead"), [("xla", "on_cpu()"), ("cpu", "on_gpu()")])
def test_a_target_leaves_one_branch_dead(target: str, dead: str) -> None:
    script = script_of(CHOICE)
    branches = Branches(script, TARGETS[target])
    assert node_of(script, dead) in branches.dead
    assert branches.truth(node_of(script, "torch.cuda.is_available()")) is (target == "xla")


def test_a_choice_of_devices_is_settled_by_the_target() -> None:
    script = script_of(CHOICE)
    choice = node_of(script, "'cuda' if torch.cuda.is_available() else 'cpu'")
    assert Branches(script, TARGETS["cpu"]).device(choice) == "cpu"
    assert Branches(script, TARGETS["cuda"]).names_gpu(choice)


def test_what_only_the_run_knows_stays_open() -> None:
    script = script_of("import torch\nif torch.cuda.is_available() and args.cuda:\n    a()\nelse:\n    b()")
    branches = Branches(script, TARGETS["cuda"])
    assert branches.truth(node_of(script, "torch.cuda.is_available() and args.cuda")) is None
    assert not branches.dead & {node_of(script, "a()"), node_of(script, "b()")}


@pytest.mark.parametrize(
    ("source", "is_gpu", "is_numbered"),
    [("'cuda:0'", True, True), ("'cuda'", True, False), ("f'cuda:{n}'", True, True), ("'cpu'", False, False)],
)
def test_names_of_gpus(source: str, is_gpu: bool, is_numbered: bool) -> None:
    node = ast.parse(source, mode="eval").body
    assert (is_gpu_string(node), indexed_string(node)) == (is_gpu, is_numbered)


def test_a_second_gpu_is_found_by_its_number() -> None:
    script = script_of("import torch\na.to('cuda:0')\nb.to('cuda:1')")
    assert number_of_gpu(script, node_of(script, "'cuda:1'")) == 1
    found = second_gpu(script)
    assert found is not None and found.lineno == 3
    assert second_gpu(script_of("a.to('cuda:0')\nb.to('cuda:0')")) is None


def test_a_string_keeps_the_quotes_of_its_author() -> None:
    script = script_of("a.to('cuda')\nb.to(\"cpu\")")
    assert quoted_like(script, node_of(script, "'cuda'"), "xla") == "'xla'"
    assert quoted_like(script, node_of(script, "'cpu'"), "xla") == '"xla"'


@pytest.mark.parametrize(
    ("test", "answer"),
    [
        ("torch.cuda.is_available()", True),
        ("not torch.cuda.is_available()", False),
        ("use_cuda", True),
        ("torch.cuda.is_available() and large", None),
        ("args.cuda", None),
    ],
)
def test_which_way_is_taken_with_a_gpu(test: str, answer: bool | None) -> None:
    script = script_of(f"use_cuda = torch.cuda.is_available()\nchosen = a if {test} else b")
    assert taken_with_gpu(script, node_of(script, f"a if {test} else b")) is answer
