"""Which indices are masks, by what makes them."""

from __future__ import annotations

import ast

import pytest
from ddpify_codemods.facts.flow.masked import is_mask

from tests.codemods.checks import script_of


@pytest.mark.parametrize(
    ("made", "index", "masks"),
    [
        ("", "x > 0.5", True),
        ("", "(x > 0.5) & ~(x > 0.8)", True),
        ("", "torch.isnan(x)", True),
        ("", "y.eq(2)", True),
        ("mask = x != 0", "mask", True),
        ("mask = x != 0\nmask = mask.bool()", "mask", True),
        ("mask = x != 0\nmask = order", "mask", False),
        ("", "order", False),
        ("", "y.long()", False),
        ("", "x in seen", False),
        ("", "-(x > 0)", False),
        ("", "(x > 0) + order", False),
        ("for mask in masks:\n    pass", "mask", False),
    ],
)
def test_masks(made: str, index: str, masks: bool) -> None:
    script = script_of(f"{made}\nx[{index}] = 0\n")
    place = next(each for each in script.find(ast.Subscript) if isinstance(each.ctx, ast.Store))
    assert is_mask(script, place.slice) is masks
