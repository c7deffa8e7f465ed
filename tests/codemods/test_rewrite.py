"""Everything that no edit names stays byte for byte."""

from __future__ import annotations

import ast
from typing import TypeVar

import pytest
from ddpify_codemods.rewrite import EditNotPlaced, apply
from ddpify_codemods.rule import Delete, Edit, Guard, Insert, Replace, ReplaceImport

Node = TypeVar("Node", bound=ast.AST)


def first(tree: ast.Module, kind: type[Node], number: int = 0) -> Node:
    return [node for node in ast.walk(tree) if isinstance(node, kind)][number]


def with_call_wrapped(text: str) -> str:
    tree = ast.parse(text)
    return apply(text, tree, [Replace(first(tree, ast.Call).func, "once({})", "")])


def with_insert(text: str, at: int, where: str = "before", code: str = "new()") -> str:
    tree = ast.parse(text)
    statement = next(node for node in ast.walk(tree) if isinstance(node, ast.stmt) and node.lineno == at)
    return apply(text, tree, [Insert(statement, code, "", "after" if where == "after" else "before")])


def with_last_inserted(text: str, where: str = "before") -> str:
    """An insertion at the statement `here()`."""
    tree = ast.parse(text)
    here = next(node for node in ast.walk(tree) if isinstance(node, ast.Expr) and ast.unparse(node) == "here()")
    return apply(text, tree, [Insert(here, "new()", "", "after" if where == "after" else "before")])


def with_deleted(text: str, code: str = "gone()") -> str:
    tree = ast.parse(text)
    statements = (node for node in ast.walk(tree) if isinstance(node, ast.stmt))
    return apply(text, tree, [Delete(next(node for node in statements if ast.unparse(node) == code), "")])


def with_loader_replaced(text: str) -> str:
    tree = ast.parse(text)
    return apply(text, tree, [ReplaceImport(first(tree, ast.ImportFrom), "DataLoader", "")])


def test_no_edits_keep_the_text() -> None:
    text = "x = 1 \t\r\n\fy=2"
    assert apply(text, ast.parse(text), []) == text


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("x  =  save( 1 ) # why\n", "x  =  once(save)( 1 ) # why\n"),
        ("if a :\n\tsave('x')\t\n", "if a :\n\tonce(save)('x')\t\n"),
        ("a = 1\r\nsave(a)\r\nb = 2\r\n", "a = 1\r\nonce(save)(a)\r\nb = 2\r\n"),
        ("a = 1\n\f\nsave(a)", "a = 1\n\f\nonce(save)(a)"),
        ("s = 'äöü€𝄞'; save(s)", "s = 'äöü€𝄞'; once(save)(s)"),
        ("# -*- coding: utf-8 -*-\nsave(1)\n\n\n", "# -*- coding: utf-8 -*-\nonce(save)(1)\n\n\n"),
        ("save(\n    1,  # one\n\n    2,\n)\n", "once(save)(\n    1,  # one\n\n    2,\n)\n"),
        ("x = 1 + \\\n    save(1)\n", "x = 1 + \\\n    once(save)(1)\n"),
        ("@save(1)\ndef f(): pass\n", "@once(save)(1)\ndef f(): pass\n"),
    ],
)
def test_only_the_expression_changes(before: str, after: str) -> None:
    assert with_call_wrapped(before) == after


def test_nested_edits_compose() -> None:
    text = "save(load(path))\n"
    tree = ast.parse(text)
    outer, inner = first(tree, ast.Call), first(tree, ast.Call, 1)
    edits: list[Edit] = [Replace(outer, "a({})", ""), Replace(inner, "b({})", ""), Replace(inner.func, "c({})", "")]
    assert apply(text, tree, edits) == "a(save(b(c(load)(path))))\n"


def test_two_edits_of_one_expression_are_applied_in_turn() -> None:
    text = "x\n"
    tree = ast.parse(text)
    name = first(tree, ast.Name)
    assert apply(text, tree, [Replace(name, "a({})", ""), Replace(name, "b({})", "")]) == "b(a(x))\n"


@pytest.mark.parametrize(
    ("before", "template", "after"),
    [
        ("y = (x +\n     1)\n", "f({})", "y = (f(x +\n     1))\n"),
        ("y = x + 1\n", "{}.cpu()", "y = (x + 1).cpu()\n"),
        ("y = (x + 1)\n", "{}.cpu()", "y = ((x + 1).cpu())\n"),
        ('y = ("cuda:0")\n', '"cuda"', 'y = ("cuda")\n'),
        ("y = (1, 2)\n", "f({})", "y = f((1, 2))\n"),
        ("y = [x for x in z]\n", "f({})", "y = f([x for x in z])\n"),
    ],
)
def test_parentheses(before: str, template: str, after: str) -> None:
    tree = ast.parse(before)
    assert apply(before, tree, [Replace(first(tree, ast.Assign).value, template, "")]) == after


def test_parts_stand_for_the_placeholders() -> None:
    text = "net = wrap(a or b, device_ids=[0])\n"
    tree = ast.parse(text)
    call = first(tree, ast.Call)
    edits: list[Edit] = [
        Replace(call, "{}.cpu({})", "", parts=(call.args[0], call.func)),
        Replace(call.func, "once({})", ""),
    ]
    assert apply(text, tree, edits) == "net = (a or b).cpu(once(wrap))\n"


def test_an_edit_without_a_place_is_an_error() -> None:
    tree = ast.parse("x.y.z\n")
    with pytest.raises(EditNotPlaced):
        apply("x = 1\n", tree, [Replace(first(tree, ast.Attribute), "{}", "")])


def test_comments_stay_above_their_statement() -> None:
    assert with_last_inserted("a = 1\n\n# about here\nhere()\n") == "a = 1\nnew()\n\n# about here\nhere()\n"


def test_blank_lines_after_a_block_stay_there() -> None:
    before = "def f():\n    pass\n\n\n# about here\nhere()\n"
    assert with_last_inserted(before) == "def f():\n    pass\n\n\nnew()\n# about here\nhere()\n"


def test_insert_after_goes_before_the_comments_of_the_next() -> None:
    assert with_last_inserted("here()  # x\n# next\nb\n", "after") == "here()  # x\nnew()\n# next\nb\n"


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("here()", "here()\nnew()"),
        ("if a:\n\there()\n", "if a:\n\there()\n\tnew()\n"),
        ("if a:\r\n  here()\r\n# end\r\n", "if a:\r\n  here()\r\n  new()\r\n# end\r\n"),
        (
            "for a in b:\n    if a:\n        here()\n    c\n",
            "for a in b:\n    if a:\n        here()\n        new()\n    c\n",
        ),
    ],
)
def test_new_lines_use_the_newline_and_indent_of_the_file(before: str, after: str) -> None:
    assert with_last_inserted(before, "after") == after


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("a; here(); b  # c\n", "a\nnew()\nhere(); b  # c\n"),
        ("# top\nhere(); b;\n", "# top\nnew()\nhere(); b;\n"),
        ("if x:\n\ta; here();\n", "if x:\n\ta\n\tnew()\n\there();\n"),
    ],
)
def test_statements_that_share_a_line_are_split(before: str, after: str) -> None:
    assert with_last_inserted(before) == after


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("if x: here()\n", "if x:\n    new()\n    here()\n"),
        ("if x: here()  # c\nelse: b\n", "if x:\n    new()\n    here()  # c\nelse: b\n"),
        ("while x: a; here()", "while x:\n    a\n    new()\n    here()"),
        ("def f():\n\tif x: here()\n", "def f():\n\tif x:\n\t\tnew()\n\t\there()\n"),
        ("with x: here()\r\n", "with x:\r\n    new()\r\n    here()\r\n"),
    ],
)
def test_one_line_suites_become_blocks(before: str, after: str) -> None:
    assert with_last_inserted(before) == after


def test_inserted_blocks_use_the_indent_of_the_file() -> None:
    text = "if x:\n\there()\n"
    code = "for m in ms:\n    if m:\n        f(m)"
    expected = "if x:\n\tfor m in ms:\n\t\tif m:\n\t\t\tf(m)\n\there()\n"
    tree = ast.parse(text)
    assert apply(text, tree, [Insert(first(tree, ast.Expr), code, "")]) == expected


def test_insert_before_a_decorated_function() -> None:
    assert with_insert("a = 1\n\n@b\ndef f(): pass\n", at=4) == "a = 1\nnew()\n\n@b\ndef f(): pass\n"


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("a\ngone()\nb\n", "a\nb\n"),
        ("a; gone(); b\n", "a; b\n"),
        ("a; gone()  # c\n", "a  # c\n"),
        ("if x:\n    gone()\nb\n", "if x:\n    pass\nb\n"),
        ("if x: gone()\n", "if x: pass\n"),
        ("a\n# kept\ngone()\nb\n", "a\n# kept\nb\n"),
        ("a\n\n# kept\ngone()", "a\n\n# kept"),
        ("if x:\n    # kept\n    gone()\n", "if x:\n    # kept\n    pass\n"),
    ],
)
def test_delete(before: str, after: str) -> None:
    assert with_deleted(before) == after


def test_edits_inside_a_deleted_statement_are_dropped() -> None:
    text = "gone(x)\na\n"
    tree = ast.parse(text)
    inner = Replace(first(tree, ast.Call), "once({})", "", imports=("once",))
    assert apply(text, tree, [Delete(tree.body[0], ""), inner]) == "a\n"


RUNTIME = "from ddpify_runtime import DataLoader\n"


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("from a import DataLoader\n", RUNTIME),
        ("from a import DataLoader, Dataset  # c\n", f"from a import Dataset  # c\n{RUNTIME}"),
        ("from a import Dataset, DataLoader\n", f"from a import Dataset\n{RUNTIME}"),
        ("from a import (\n    A,  # a\n    DataLoader,\n)\n", f"from a import (\n    A,  # a\n)\n{RUNTIME}"),
        ("from a import (A,\n               DataLoader)\n", f"from a import (A)\n{RUNTIME}"),
        ("# why\nfrom a import DataLoader\nimport os\n", f"# why\nimport os\n\n{RUNTIME}"),
        ("import os; from a import DataLoader; x = 1\n", f"import os\n\n{RUNTIME}x = 1\n"),
        ("from a import DataLoader as DL, B\n", "from a import B\nfrom ddpify_runtime import DataLoader as DL\n"),
    ],
)
def test_replace_import(before: str, after: str) -> None:
    assert with_loader_replaced(before) == after


def test_an_import_in_a_function_leaves_pass() -> None:
    before = "import os\ndef f():\n    from a import DataLoader\n"
    assert with_loader_replaced(before) == f"import os\n\n{RUNTIME}def f():\n    pass\n"


def with_import(text: str, *names: str, modules: tuple[str, ...] = ()) -> str:
    tree = ast.parse(text)
    return apply(text, tree, [Replace(first(tree, ast.Call).func, f"{names[0]}({{}})", "", names, modules)])


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("save(1)\n", "from ddpify_runtime import once\nonce(save)(1)\n"),
        ('"""Doc."""\nsave(1)\n', '"""Doc."""\nfrom ddpify_runtime import once\nonce(save)(1)\n'),
        (
            "#!/usr/bin/env python\n# c\n\nimport a\n\nsave(1)\n",
            "#!/usr/bin/env python\n# c\n\nimport a\nfrom ddpify_runtime import once\n\nonce(save)(1)\n",
        ),
        (
            "from __future__ import annotations\nsave(1)\n",
            "from __future__ import annotations\n\nfrom ddpify_runtime import once\nonce(save)(1)\n",
        ),
        (
            "import sys\nsys.x = 1\nimport a\nLR = 1\nsave(1)\nimport b\n",
            "import sys\nsys.x = 1\nimport a\nfrom ddpify_runtime import once\nLR = 1\nonce(save)(1)\nimport b\n",
        ),
        (
            "import os\nos.save(1)\nimport a\n",
            "import os\n\nfrom ddpify_runtime import once\nonce(os.save)(1)\nimport a\n",
        ),
        (
            "import os\nos.environ.get(1)\nimport a\n",
            "import os\n\nfrom ddpify_runtime import once\nonce(os.environ.get)(1)\nimport a\n",
        ),
        (
            "try:\n    import a\nexcept ImportError:\n    a = None\nsave(1)\n",
            "try:\n    import a\nexcept ImportError:\n    a = None\nfrom ddpify_runtime import once\nonce(save)(1)\n",
        ),
    ],
)
def test_the_import_goes_after_the_leading_imports(before: str, after: str) -> None:
    assert with_import(before, "once") == after


def test_a_name_that_is_taken_gets_another() -> None:
    after = with_import("import a\nonce = 1\nsave(once)\n", "once")
    assert after == "import a\nfrom ddpify_runtime import once as ddpify_once\nonce = 1\nddpify_once(save)(once)\n"


def test_long_imports_are_wrapped() -> None:
    names = [f"a_rather_long_name_{number}" for number in range(5)]
    lines = "".join(f"    {name},\n" for name in names)
    after = with_import("import a\nsave(1)\n", *names)
    assert after == f"import a\nfrom ddpify_runtime import (\n{lines})\n{names[0]}(save)(1)\n"


def test_modules_are_imported_once() -> None:
    after = with_import("import os\nsave(1)\n", "once", modules=("import os", "import time"))
    assert after == "import os\nimport time\n\nfrom ddpify_runtime import once\nonce(save)(1)\n"


TWO_INDENTS = "if a:\n    one()\nif b:\n    two()\nif c:\n\tif d:\n\t\there()\n"


def test_new_blocks_have_the_indent_of_the_block_around_them() -> None:
    """As in Zero-DCE, whose functions have tabs and whose main block has spaces."""
    tree = ast.parse(TWO_INDENTS)
    here = next(node for node in ast.walk(tree) if isinstance(node, ast.Expr) and ast.unparse(node) == "here()")
    edits: list[Edit] = [Insert(here, "if e:\n    if f:\n        three()\n", ""), Guard(here, "g", "")]
    own = "\t\tif e:\n\t\t\tif f:\n\t\t\t\tthree()\n\t\tif g:\n\t\t\there()\n"
    assert apply(TWO_INDENTS, tree, edits) == TWO_INDENTS.replace("\t\there()\n", own)
    inserted = with_insert(TWO_INDENTS, 2, code="if e:\n    three()\n")
    assert inserted == TWO_INDENTS.replace("    one()", "    if e:\n        three()\n    one()")


def test_a_wider_block_does_not_make_new_ones_wider() -> None:
    """As in the DCGAN of pytorch/examples, some of whose blocks have eight spaces."""
    before = "if a:\n    one()\nif b:\n        two()\n"
    assert with_insert(before, 4, code="if e:\n    three()\n") == before.replace(
        "        two()", "        if e:\n            three()\n        two()"
    )


@pytest.mark.parametrize("head", ["if d:", "for d in e:"])
def test_the_block_of_a_statement_of_one_line_has_the_indent_of_the_block_around_it(head: str) -> None:
    before = TWO_INDENTS.replace("if d:\n\t\there()", f"{head} here()")
    tree = ast.parse(before)
    here = next(node for node in ast.walk(tree) if isinstance(node, ast.Expr) and ast.unparse(node) == "here()")
    after = apply(before, tree, [Guard(here, "g", "")])
    assert after == TWO_INDENTS.replace("if d:\n\t\there()", f"{head}\n\t\tif g:\n\t\t\there()")
