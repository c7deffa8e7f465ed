"""What is printed to sys.stderr, and what may go elsewhere."""

from __future__ import annotations

import ast

import pytest
from ddpify_codemods.facts.standard_error import is_stderr

from tests.codemods.checks import script_of
from tests.codemods.plain.test_followed import plain, training

BAR = """\
import sys


class Bar:
    def __init__(self, total, output=sys.stderr):
        self.output = output

    def __call__(self, done):
        print(done, file=self.output, end="")


bar = {made}
"""


@pytest.mark.parametrize(
    ("source", "is_so"),
    [
        ("import sys\nprint(1, file=sys.stderr)\n", True),
        ("from sys import stderr\nprint(1, file=stderr)\n", True),
        ("import sys\nshown = sys.stderr\nprint(1, file=shown)\n", True),
        ("import sys\nshown = sys.stderr if a else open('log', 'w')\nprint(1, file=shown)\n", False),
        ("import sys\ndef show(output):\n    print(1, file=output)\n", False),
        ("print(1, file=log)\n", False),
        (BAR.format(made="Bar(3)"), True),
        (BAR.format(made="Bar(3, open('log', 'w'))"), False),
        (BAR.format(made="Bar(3, output=log)"), False),
        (BAR.format(made="Bar(*given)"), False),
        (BAR.format(made="Bar(3)\nbar.output = log"), False),
    ],
)
def test_where_a_line_is_printed(source: str, is_so: bool) -> None:
    script = script_of(source)
    (line,) = (each for each in script.find(ast.Call) if ast.unparse(each.func) == "print")
    (stream,) = (word.value for word in line.keywords if word.arg == "file")
    assert is_stderr([script], script, stream) is is_so


def test_rank_0_alone_draws_a_bar_on_stderr() -> None:
    """All ranks drew it, one over the other."""
    source = BAR.format(made="Bar(3)") + training(step="optimizer.step(); bar(loss.item())")
    code = plain(source).code
    assert "file=self.output if dist.get_rank() == 0 else None" in code


@pytest.mark.parametrize(
    "after", ["raise SystemExit(1)", "sys.exit(1)", "try:\n    pass\nexcept OSError:\n    print(3, file=sys.stderr)"]
)
def test_what_one_rank_says_as_it_fails_stays(after: str) -> None:
    head = "" if "try" in after else "if total:\n    print(2, file=sys.stderr)\n"
    body = f"    {after}\n" if head else f"{after}\n"
    assert "stderr if" not in plain("import sys\n" + training(after=head + body)).code
