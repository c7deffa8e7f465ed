from __future__ import annotations

import ast

import pytest
from ddpify_codemods.facts.devices_of_the_run import made_of_setting, moved_to_setting

from tests.codemods.checks import script_of


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("torch.device(args.device)", True),
        ("torch.device(cfg['device'])", True),
        ("torch.device('cuda')", False),
        ("torch.device(args.gpu)", False),
        ("torch.device(cfg['local_rank'])", False),
        ("torch.device(args.kind, 0)", False),
        ("torch.device(torch.device(args.device).type)", False),
    ],
)
def test_a_device_made_of_a_setting(line: str, expected: bool) -> None:
    read = script_of(f"import torch\n{line}\n")
    call = next(each for each in read.find(ast.Call) if isinstance(read.parents[each], ast.Expr))
    assert made_of_setting(read, call) is expected


@pytest.mark.parametrize(("key", "expected"), [("gpus", True), ("device", True), ("dtype", False)])
def test_what_is_moved_to_a_setting(key: str, expected: bool) -> None:
    read = script_of(f"model.to(config['trainer']['{key}'])\n")
    place = next(each for each in read.find(ast.Call)).args[0]
    assert moved_to_setting(read, place) is expected
