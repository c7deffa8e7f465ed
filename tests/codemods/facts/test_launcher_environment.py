"""What torchrun tells a process, and where a script reads it."""

from __future__ import annotations

import ast

import pytest
from ddpify_codemods.facts.launcher_environment import is_read_from, read_variable

from tests.codemods.checks import node_of, script_of


@pytest.mark.parametrize(
    ("source", "variable"),
    [
        ("os.environ['RANK']", "RANK"),
        ("os.environ.get('WORLD_SIZE', 1)", "WORLD_SIZE"),
        ("os.getenv('LOCAL_RANK')", "LOCAL_RANK"),
        ("'RANK' in os.environ", "RANK"),
        ("os.environ['HOME']", ""),
        ("settings['RANK']", ""),
    ],
)
def test_variables_that_are_read(source: str, variable: str) -> None:
    script = script_of(f"import os\nx = {source}")
    assert read_variable(script, node_of(script, source)) == variable


def test_what_is_set_is_not_read() -> None:
    script = script_of("import os\nos.environ['RANK'] = '0'")
    assert read_variable(script, node_of(script, "os.environ['RANK']")) == ""


def test_a_number_is_followed_to_where_it_is_read() -> None:
    script = script_of("import os\nrank = int(os.environ['RANK'])\nother = 3\nprint(rank, other)")
    print_call = next(call for call in script.find(ast.Call) if ast.unparse(call.func) == "print")
    assert is_read_from(script, print_call.args[0], "RANK")
    assert not is_read_from(script, print_call.args[0], "LOCAL_RANK")
    assert not is_read_from(script, print_call.args[1], "RANK")
