"""Puts a few lines into a whole training script, converts it, and shows what became of them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from textwrap import dedent

from ddpify_codemods import Finding, Result, convert
from ddpify_codemods.layout import CALLS, laid_out

_BEGIN, _END = "# begin\n", "# end\n"
_SCRIPT = """\
import torch
from torch import nn
{imports}
{begin}{lines}{end}
trained = nn.Linear(4, 1)
stepper = torch.optim.SGD(trained.parameters(), lr=0.1)
for _ in range(3):
    stepper.zero_grad()
    trained(torch.rand(8, 4)).mean().backward()
    stepper.step()
"""


def check_noop(lines: str, target: str = "cuda", imports: str = "") -> None:
    """The lines stay as they are."""
    check_transformed(lines, lines, target, imports)


def check_transformed(before: str, after: str, target: str = "cuda", imports: str = "") -> None:
    """The lines become these, and what comes out is Python."""
    result = _converted(before, target, imports)
    assert not result.reason
    assert not [each for each in result.findings if each.severity == "refused"]
    code = result.code
    assert code.split(_BEGIN)[1].split(_END)[0] == laid_out(_tidy(before), _tidy(after), CALLS)
    compile(code, "train.py", "exec")


def imports_of(lines: str, target: str = "cuda", imports: str = "") -> str:
    """What stands above the lines after the conversion."""
    return _converted(lines, target, imports).code.split(_BEGIN)[0]


def findings(lines: str, target: str = "cuda", imports: str = "") -> Sequence[Finding]:
    """What is said about the lines."""
    return _converted(lines, target, imports).findings


def _converted(lines: str, target: str, imports: str) -> Result:
    script = _SCRIPT.format(imports=dedent(imports), begin=_BEGIN, lines=_tidy(lines), end=_END)
    return convert({Path("train.py"): script}, target)[Path("train.py")]


def _tidy(lines: str) -> str:
    return dedent(lines).strip("\n") + "\n"
