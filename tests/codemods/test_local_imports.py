"""What an edit needs is imported where a function hides the import of its file."""

from __future__ import annotations

import ast

import pytest
from ddpify_codemods.local_imports import local_imports
from ddpify_codemods.rule import Replace


@pytest.mark.parametrize(
    ("body", "is_needed"),
    [
        ("    if path:\n        import torch\n    {}\n", True),
        ("    {}\n    import torch\n", True),
        ("    {}\n    import torch.nn as torch\n", True),
        ("    {}\n    from lib import torch\n", True),
        ("    import torch\n    {}\n", False),
        ("    import torch.nn\n    {}\n", False),
        ("    {}\n    import torch.nn as nn\n", False),
        ("    {}\n    import numpy\n", False),
        ("    {}\n    def inner():\n        import torch\n", False),
        ("    global torch\n    {}\n    import torch\n", False),
        ("    import torch\n    if path:\n        import torch\n        {}\n", False),
    ],
)
def test_a_function_that_hides_what_the_file_imports(body: str, is_needed: bool) -> None:
    tree = ast.parse('import torch\n\n\ndef build(path):\n    """A network."""\n' + body.format("use(device)"))
    (call,) = (node for node in ast.walk(tree) if isinstance(node, ast.Call))
    edits = [Replace(call, "torch.device({}).type", "", modules=("import torch",))] * 2
    found = local_imports(tree, edits)
    assert [each.code for each in found] == ["import torch"] * is_needed
    assert all(each.at.lineno == 6 for each in found)


def test_code_outside_of_functions_needs_nothing() -> None:
    tree = ast.parse("if path:\n    import torch\nuse(device)\n")
    (call,) = (node for node in ast.walk(tree) if isinstance(node, ast.Call))
    assert local_imports(tree, [Replace(call, "torch.device({}).type", "", modules=("import torch",))]) == []
