"""Files that all ranks open together."""

from __future__ import annotations

import ast

import pytest
from ddpify_codemods.facts.opened_in_step import closes, is_read, opened_in_step

from tests.codemods.checks import node_of, script_of, sources_of

OPEN = "open('a', 'w')"


@pytest.mark.parametrize(
    ("source", "together"),
    [
        ("f = open('a', 'w')", False),
        ("try:\n    f = open('a', 'w')\nexcept OSError:\n    pass", True),
        ("try:\n    f = open('a', 'w')\nexcept (ValueError, FileNotFoundError):\n    pass", True),
        ("try:\n    f = open('a', 'w')\nexcept:\n    pass", True),
        ("try:\n    f = open('a', 'w')\nexcept ValueError:\n    pass", False),
        ("try:\n    f = open('a', 'w')\nexcept KeyboardInterrupt:\n    pass", False),
        ("try:\n    pass\nexcept OSError:\n    f = open('a', 'w')", False),
        ("try:\n    f = open('a', 'w')\nfinally:\n    pass", False),
        ("with contextlib.suppress(OSError):\n    f = open('a', 'w')", True),
        ("with torch.no_grad():\n    f = open('a', 'w')", False),
        ("def log():\n    f = open('a', 'w')\ntry:\n    log()\nexcept Exception:\n    pass", True),
        ("def log():\n    f = open('a', 'w')\n    log()\nlog()", False),
        (
            "class Log:\n  def __init__(self):\n    f = open('a', 'w')\ntry:\n  Log()\nexcept IOError:\n  pass",
            True,
        ),
        ("import pathlib\npathlib.Path('a').read_text()\nf = open('a', 'w')", True),
        ("p = 'a'\nx = open(p).read()\nf = open('a', 'w')", True),
        ("def read(p):\n    return open(p).read()\nread('a')\nf = open('a', 'w')", True),
        ("x = open('b').read()\nf = open('a', 'w')", False),
    ],
)
def test_who_has_to_wait(source: str, together: bool) -> None:
    script = script_of(source)
    assert opened_in_step(script, node_of(script, OPEN)) is together


def test_handlers_of_a_log_are_on_every_rank() -> None:
    made = "logging.FileHandler('a')"
    script = script_of(f"import logging\ntry:\n    h = {made}\nexcept OSError:\n    x = open('a').read()")
    assert not opened_in_step(script, node_of(script, made))
    assert is_read(script, node_of(script, made))


def test_a_file_that_its_function_closes() -> None:
    script = script_of("f = open('a', 'w')\ng.close()\ndef h(f):\n    f.close()\nf.close()")
    made = script.tree.body[0]
    assert isinstance(made, ast.Assign)
    found = list(closes(script, made))
    assert sources_of(found) == ["f.close()"]
    assert found[0].lineno == 5
