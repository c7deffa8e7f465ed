"""Where a file's leading imports end, and whether it runs anything when it is imported."""

from __future__ import annotations

import ast

import pytest
from ddpify_codemods.facts.header import (
    declares,
    is_docstring,
    is_in_group,
    joined_after,
    last_leading_import,
    main_guard,
    module_level_work,
    option_around,
)
from ddpify_codemods.styles import in_program

from tests.codemods.checks import script_of, sources_of


@pytest.mark.parametrize(
    ("source", "line"),
    [
        ("'''What.'''\nimport os\nimport sys\nx = f()\nimport late", 3),
        ("import os\nsys.path.append('x')\nimport torch\nmain()", 3),
        ("try:\n    import a\nexcept ImportError:\n    import b\nmain()", 1),
        ("'''What.'''\nmain()", 1),
        ("main()", None),
    ],
)
def test_new_imports_go_behind_the_leading_ones(source: str, line: int | None) -> None:
    found = last_leading_import(ast.parse(source))
    assert (found.lineno if found else None) == line


def test_imports_go_before_the_line_that_needs_them() -> None:
    found = last_leading_import(ast.parse("import a\nimport b\nimport c"), before=3)
    assert found is not None and found.lineno == 2


def test_the_main_guard_is_no_work_of_the_module() -> None:
    tree = ast.parse("import os\nrate = 0.1\ndef f(): pass\nwork()\nif '__main__' == __name__:\n    f()")
    guard = main_guard(tree)
    assert guard is not None and guard.lineno == 5
    assert sources_of(module_level_work(tree)) == ["work()"]
    assert main_guard(ast.parse("if __name__ != '__main__': pass")) is None


def test_an_option_decides_whether_a_node_is_run() -> None:
    script = script_of("if args.fp16:\n    from apex import amp\nimport os")
    tests = {ast.unparse(node): option_around(script, node) for node in script.imports}
    guard = tests["from apex import amp"]
    assert guard is not None and ast.unparse(guard) == "args.fp16"
    assert tests["import os"] is None


def test_declarations() -> None:
    script = script_of("""
        import argparse
        parser = argparse.ArgumentParser()
        parser.add_argument('--lr')
        args = parser.parse_args()
    """)
    assert [declares(script, statement) for statement in script.tree.body[1:]] == [True, True, False]
    assert is_docstring(ast.parse("'text'").body[0]) and not is_docstring(ast.parse("3").body[0])


@pytest.mark.parametrize(
    ("source", "line"),
    [
        ("import os\nf()\ng()", 3),
        ("import os\ng()\nif __name__ == '__main__':\n    f()", 4),
        ("import os\ndef h():\n    g()\nif __name__ == '__main__':\n    f()", 5),
    ],
)
def test_calls_after_the_imports_or_in_the_main_guard_are_in_the_group(source: str, line: int) -> None:
    script = script_of(source)
    assert is_in_group(script, next(call for call in script.find(ast.Call) if call.lineno == line))


def test_a_call_before_the_main_guard_is_not_in_the_group() -> None:
    script = script_of("import argparse\np = argparse.ArgumentParser()\nif __name__ == '__main__':\n    f()")
    assert not is_in_group(script, next(script.find(ast.Call)))


@pytest.mark.parametrize(
    ("line", "guarded"),
    [
        ('device = torch.device("cuda" if torch.cuda.is_available() else "cpu")', True),
        ("use_cuda = torch.cuda.is_available()", True),
        ("device: str = 'cuda' if torch.cuda.is_available() else 'cpu'", True),
        ("device = torch.device(torch.cuda.current_device())", False),  # makes a context on the first GPU
        ("print(torch.device('cpu'))", False),
    ],
)
def test_a_device_is_named_before_plain_code_joins_in_the_main_guard(line: str, guarded: bool) -> None:
    script = script_of(f"import torch\n{line}\nif __name__ == '__main__':\n    f()")
    (plain,) = in_program([script])
    assert (joined_after(plain)[1] == "before") is guarded
    assert is_in_group(plain, next(node for node in script.find(ast.Call) if node.lineno == 2)) is not guarded
    assert joined_after(script)[1] == "after"  # what names a device in exact code may be of XLA
