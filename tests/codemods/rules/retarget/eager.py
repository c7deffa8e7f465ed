"""Puts a few lines into a hand-written DDP script for torchrun, converts it for xla, and shows what became of them."""

from __future__ import annotations

from pathlib import Path
from textwrap import dedent, indent

from ddpify_codemods import Finding, Result, convert

_BEGIN, _END = "    # begin\n", "    # end\n"
_SCRIPT = """\
import os
import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP
{above}

def main():
    dist.init_process_group("nccl")
    rank = dist.get_rank()
    net = nn.Linear(4, 1).cuda()
    model = DDP(net)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
{begin}{lines}{end}    for step in range(3):
        optimizer.zero_grad()
        model(torch.rand(8, 4).cuda()).mean().backward()
        optimizer.step()


if __name__ == "__main__":
    main()
"""
PATH = Path("train.py")


def check_noop(lines: str, above: str = "") -> None:
    """The lines stay as they are."""
    check_transformed(lines, lines, above)


def check_transformed(before: str, after: str, above: str = "", above_after: str = "") -> None:
    """The lines become these, and those above `main` where that is asked; nothing is refused, and what comes out is
    Python and stays as it is."""
    result = _converted(before, above)
    assert dedent(above_after) in result.code
    assert not [each for each in result.findings if each.severity == "refused"]
    assert result.code.split(_BEGIN)[1].split(_END)[0] == _tidy(after)
    compile(result.code, "train.py", "exec")
    again = convert({PATH: result.code}, "xla", modernize=True)[PATH]
    assert (again.code, again.reason, again.findings) == (result.code, "XLA code already", ())


def refusals(lines: str, above: str = "") -> list[str]:
    """The rules that refuse the lines."""
    return [each.rule for each in _findings(lines, above) if each.severity == "refused"]


def told(lines: str) -> list[str]:
    """What is said about the lines."""
    return [each.message for each in _findings(lines, "")]


def program(source: str) -> str:
    """A whole script, converted."""
    result = convert({PATH: dedent(source)}, "xla")[PATH]
    assert not result.findings, result.findings
    return result.code


def program_findings(source: str) -> list[Finding]:
    """What is said about a whole script."""
    return list(convert({PATH: dedent(source)}, "xla")[PATH].findings)


def _findings(lines: str, above: str) -> tuple[Finding, ...]:
    return _converted(lines, above).findings


def _converted(lines: str, above: str) -> Result:
    text = _SCRIPT.format(above=dedent(above), begin=_BEGIN, lines=_tidy(lines), end=_END)
    return convert({PATH: text}, "xla")[PATH]


def _tidy(lines: str) -> str:
    return indent(dedent(lines).strip("\n") + "\n", "    ")
