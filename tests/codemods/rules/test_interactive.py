"""DDP307: questions at the keyboard."""

from __future__ import annotations

import pytest
from ddpify_codemods.rules.refuse.interactive import RULE

from ..checks import assert_refused, assert_silent, findings_of


@pytest.mark.parametrize(
    "source",
    [
        "input = batch[0]\nmodel(input)",
        "def f(input):\n    return input(1)",
        "def input():\n    pass\ninput()",
        "for input, target in loader:\n    input()",
        "self.input()",
    ],
)
def test_input_is_often_a_variable(source: str) -> None:
    assert_silent(RULE, source)


@pytest.mark.parametrize(
    "source", ["n = int(input('n? '))", "n = raw_input()", "import getpass\nn = getpass.getpass()"]
)
def test_questions(source: str) -> None:
    assert_refused(RULE, source, line=source.count("\n") + 1)


@pytest.mark.parametrize("source", ["breakpoint()", "import pdb; pdb.set_trace()"])
def test_debuggers_are_only_mentioned(source: str) -> None:
    assert [finding.severity for finding in findings_of(RULE, source)] == ["warning"]


@pytest.mark.parametrize(
    ("source", "line"),
    [
        ("x = 1\nget_ipython().run_line_magic('matplotlib', 'inline')\nget_ipython().system('ls')", 2),
        ("try:\n    get_ipython()\nexcept NameError:\n    pass", 0),
        ("if 'get_ipython' in globals():\n    get_ipython().system('ls')", 0),
        ("def get_ipython():\n    return None\nget_ipython()", 0),
        ("from IPython import get_ipython\nget_ipython()", 0),
    ],
)
def test_what_a_notebook_has_left_is_said_once(source: str, line: int) -> None:
    found = findings_of(RULE, source)
    assert [each.line for each in found if "NameError" in each.message] == [line] * bool(line)
    assert all(each.severity == "warning" for each in found)
