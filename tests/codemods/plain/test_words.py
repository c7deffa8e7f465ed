"""What the rules of the plain style have in common."""

from __future__ import annotations

import ast

import pytest
from ddpify_codemods.rules.plain.words import (
    computes_quietly,
    device,
    free_name,
    is_quiet,
    load_device,
    module_name,
    names_something,
    normalizes,
)
from ddpify_codemods.styles import in_program
from ddpify_codemods.targets import TARGETS

from tests.codemods.checks import node_of, script_of


@pytest.mark.parametrize(
    ("source", "name"),
    [
        ("import os\nprint(1)", "os"),
        ("import os as system\nprint(1)", "system"),
        ("print(1)\nimport os as system", "os"),
        ("import sys, os as system\nprint(1)", "system"),
    ],
)
def test_the_name_of_a_module(source: str, name: str) -> None:
    script = script_of(source)
    at = script.statement(node_of(script, "print(1)"))
    assert module_name(script, "os", at) == name


def test_an_import_may_be_the_statement_itself() -> None:
    script = script_of("import os as system")
    at = script.tree.body[0]
    assert (module_name(script, "os", at), module_name(script, "os", at, after=True)) == ("os", "system")


@pytest.mark.parametrize(
    ("target", "put", "loaded"),
    [("cpu", "", '"cpu"'), ("cuda", ', device="cuda"', '"cuda"'), ("ignite", "", None)],
)
def test_where_numbers_and_files_go(target: str, put: str, loaded: str | None) -> None:
    assert device(TARGETS[target]).replace("'", '"') == put
    assert loaded is None or load_device(TARGETS[target]) == loaded


def test_a_free_name() -> None:
    assert free_name(script_of("total = total_ = 1"), "total") == "total__"
    assert free_name(script_of("total = 1"), "other") == "other"


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("len(x.cpu())", True),
        ("os.path.join('a', 'b')", True),
        ("math.sqrt(2)", True),
        ("model(x)", False),
        ("len(model(x))", False),
        ("x + 1", True),
    ],
)
def test_what_is_computed_quietly(value: str, expected: bool) -> None:
    script = script_of(f"import math\nimport os\ny = {value}\nlog(z, {value})")
    assert computes_quietly(script, node_of(script, ast.unparse(ast.parse(value)))) is expected
    assert is_quiet(script, script.tree.body[-1].value) is expected  # type: ignore[attr-defined]


@pytest.mark.parametrize(("layer", "expected"), [("BatchNorm1d(4)", True), ("LayerNorm(4)", False)])
def test_statistics_of_batches(layer: str, expected: bool) -> None:
    (script,) = in_program([script_of(f"import torch\nnet = torch.nn.{layer}\n")])
    assert script.program is not None
    assert normalizes(script.program) is expected


def test_names_of_the_program() -> None:
    (script,) = in_program([script_of("import torch\nnet = torch.nn.Dropout2d()\n")])
    assert script.program is not None
    assert names_something(script.program, "Dropout") and not names_something(script.program, "BatchNorm")
