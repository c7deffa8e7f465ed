"""A converted file as the script for one device that it stands for."""

from __future__ import annotations

import ast
from pathlib import Path

from ddpify_codemods import convert
from ddpify_codemods.view import called_at_once, is_wrap, settled_key, view

PATH = Path("train.py")
SCRIPT = """\
import torch
from torch.utils.data import DataLoader, TensorDataset

model = torch.nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
loader = DataLoader(TensorDataset(torch.rand(8, 4)), batch_size=4, shuffle=True)
for (x,) in loader:
    optimizer.zero_grad()
    model(x).mean().backward()
    optimizer.step()
"""
NAMES = {"DDP": "DistributedDataParallel"}


def expression(source: str) -> ast.expr:
    return ast.parse(source, mode="eval").body


def test_the_rules_see_the_script_for_one_device() -> None:
    code = convert({PATH: SCRIPT}, "cpu")[PATH].code
    seen = view(ast.parse(code), code)
    assert seen is not None and seen.wraps and seen.statements
    code = ast.unparse(seen.tree)
    assert "init_process_group" not in code and "DistributedDataParallel" not in code


def test_a_module_that_a_person_makes_distributed() -> None:
    for line, wraps in (("return DDP(net())", True), ("return DDP", False), ("return net()", False)):
        code = f"from ddpify_runtime import DistributedDataParallel as DDP\ndef made(net):\n    {line}\n"
        seen = view(ast.parse(code), code)
        assert seen is not None and seen.wraps is wraps


def test_a_file_that_is_not_converted_has_no_view() -> None:
    assert view(ast.parse(SCRIPT), SCRIPT) is None


def test_words_of_conversions() -> None:
    assert is_wrap(expression("DDP(model)"), NAMES) and not is_wrap(expression("DDP(model)"), {})
    found = called_at_once(expression("(lambda: x)()"))  # type: ignore[arg-type]
    assert found is not None and ast.unparse(found) == "x"
    assert called_at_once(expression("f()")) is None  # type: ignore[arg-type]
    assert settled_key(ast.parse("print(3)").body[0], NAMES) == ""
