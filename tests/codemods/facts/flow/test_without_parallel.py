"""Where a program's own conditions say that a model is in no nn.DataParallel."""

from __future__ import annotations

import ast

import pytest
from ddpify_codemods.facts.flow.without_parallel import is_without_parallel

from tests.codemods.checks import script_of

MADE = "import torch.nn as nn\nif cuda:\n    net = nn.DataParallel(net)\n"


def without(lines: str, made: str = MADE) -> bool:
    """Whether the net that is read last is in none."""
    script = script_of(made + lines)
    calls = [each for each in script.find(ast.Call) if ast.unparse(each.func) == "nn.DataParallel"]
    reads = [each for each in script.find(ast.Name) if each.id == "net" and isinstance(each.ctx, ast.Load)]
    model = max(reads, key=lambda each: (each.lineno, each.col_offset))
    return is_without_parallel(script, model, [(script, each) for each in calls])


@pytest.mark.parametrize(
    "lines",
    [
        "if cuda:\n    pass\nelse:\n    save(net)",
        "save(None if cuda else net)",
        "if not cuda:\n    save(net)",
        "if hasattr(net, 'module'):\n    pass\nelse:\n    save(net)",
        "save(0 if isinstance(net, nn.DataParallel) else net)",
    ],
)
def test_a_contrary_condition(lines: str) -> None:
    assert without(lines)


@pytest.mark.parametrize(
    "lines",
    [
        "save(net)",
        "if cuda:\n    save(net)",
        "if other:\n    pass\nelse:\n    save(net)",
        "cuda = False\nif not cuda:\n    save(net)",
        "if cuda or other:\n    save(net)",
    ],
)
def test_no_contrary_condition(lines: str) -> None:
    assert not without(lines)


def test_a_second_wrapper() -> None:
    assert not without("net = nn.DataParallel(net)\nif not cuda:\n    save(net)")
