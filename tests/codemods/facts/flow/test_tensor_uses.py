"""What can only be a tensor, by what a program does with it."""

from __future__ import annotations

import ast

import pytest
from ddpify_codemods.facts.flow.tensor_uses import is_tensor_given, is_tensor_here

from tests.codemods.checks import script_of

HEAD = "import torch\nimport torch.nn.functional as F\n"


@pytest.mark.parametrize(
    ("loop", "is_tensor"),
    [
        ("x.to(0)\n    x[0]", True),
        ("x = x.to(0)\n    x[0]", True),
        ("x, y = x.to(0), y.to(0)\n    y[0]", True),
        ("loss = F.cross_entropy(x, y)\n    y[0]", True),
        ("loss = layer(x)\n    x[0]", True),
        ("x['a'].to(0)\n    x['a'][0]", True),
        ("x['b'].to(0)\n    x['a'][0]", False),
        ("x[0]", False),
        ("loss = model(x)\n    x[0]", False),
        ("loss = F.mse_loss(out, y[:, 0])\n    y[0]", True),
        ("z = y[0, 1]\n    y[0]", False),  # a dictionary's key may be that
        ("x = torch.cat(x)\n    x.to(0)\n    y[0]", False),
        ("x[0]\n    x = torch.cat(x)\n    x.to(0)", False),  # of two views of each image
        ("x = [each.to(0) for each in x]\n    x[0]", False),
    ],
)
def test_a_name_is_that_of_a_tensor_while_it_is_used_as_one(loop: str, is_tensor: bool) -> None:
    script = script_of(f"{HEAD}for x, y in loader:\n    {loop}\n")
    taken = [
        node
        for node in script.find(ast.Subscript)
        if isinstance(node.slice, ast.Constant) and node.slice.value == 0 and isinstance(node.ctx, ast.Load)
    ]
    (owner,) = {ast.unparse(node.value): node.value for node in taken}.values()
    assert is_tensor_here(script, owner, lambda call, _: ast.unparse(call.func) == "layer") is is_tensor


@pytest.mark.parametrize(
    ("body", "is_tensor"),
    [
        ("return self.out(x.flatten(1))", True),
        ("return layer(x)", True),
        ("return F.interpolate(x, 2)", True),
        ("return self.out(x)", False),
        ("x = torch.cat(x)\n    return x.flatten(1)", False),
        ("if isinstance(x, list):\n        x = x[0]\n    return x.flatten(1)", False),
        ("if isinstance(x, list):\n        return self(torch.cat(x))\n    return layer(x)", False),
        ("return sum(each.flatten(1) for each in x)", False),
    ],
)
def test_what_a_forward_takes_is_a_tensor_where_it_is_used_as_one(body: str, is_tensor: bool) -> None:
    script = script_of(f"{HEAD}def forward(self, x):\n    {body}\n")
    (function,) = script.find(ast.FunctionDef)
    assert is_tensor_given(script, function, "x", lambda call, _: ast.unparse(call.func) == "layer") is is_tensor
