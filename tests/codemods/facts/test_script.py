"""A script as the rules see it: parents, scopes, and what its names mean."""

from __future__ import annotations

import ast

import pytest

from tests.codemods.checks import node_of, script_of

SCRIPT = script_of("""
import torch.optim as optim
from torch.utils.data import DataLoader as Loads
from torch.nn import *
import os.path
def f():
    x = optim.SGD(p)
""")


@pytest.mark.parametrize(
    ("source", "name"),
    [("optim.SGD", "torch.optim.SGD"), ("Loads", "torch.utils.data.DataLoader"), ("a.b", "a.b"), ("f()", "")],
)
def test_full_names(source: str, name: str) -> None:
    assert SCRIPT.qualified(ast.parse(source, mode="eval").body) == name


def test_imports() -> None:
    assert SCRIPT.imported["optim"] == "torch.optim" and SCRIPT.imported["os"] == "os"
    assert SCRIPT.star_imports == ("torch.nn",)
    assert len(SCRIPT.imports) == 4


def test_where_a_node_stands() -> None:
    call = node_of(SCRIPT, "optim.SGD(p)")
    function = next(SCRIPT.find(ast.FunctionDef))
    assert SCRIPT.statement(call) is function.body[0]
    assert SCRIPT.scope(call) is function
    assert list(SCRIPT.ancestors(call)) == [function.body[0], function, SCRIPT.tree]
