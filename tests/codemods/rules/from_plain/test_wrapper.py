"""Models are called themselves where their wrappers were (DDP704)."""

from __future__ import annotations

import pytest
from ddpify_codemods.rules.from_plain.wrapper import RULE

from tests.codemods.checks import findings_of, rewritten

HEAD = """\
import torch
from torch.nn.parallel import DistributedDataParallel as DDP
ddp_model = DDP(model)
"""


def test_the_model_is_called() -> None:
    code = rewritten(RULE, HEAD + "ddp_model(x).backward()\nsave(ddp_model.module)\n", "cpu")
    assert code == HEAD.replace("ddp_model = DDP(model)\n", "") + "model(x).backward()\nsave(model)\n"


def test_what_the_wrapper_alone_needs_goes() -> None:
    code = rewritten(RULE, HEAD + "ddp_model.require_backward_grad_sync = last\nprint(1)\n", "cpu")
    assert code.endswith("as DDP\nprint(1)\n")


@pytest.mark.parametrize(
    ("line", "at"),
    [
        ("ddp_model = DDP(other)", 4),
        ("def f(ddp_model): pass", 4),
        ("own.ddp_model(x)", 4),
        ("print(model)", None),
    ],
)
def test_a_name_that_means_something_else(line: str, at: int | None) -> None:
    found = findings_of(RULE, HEAD + line, "cpu")
    assert [each.line for each in found if each.severity == "refused"] == ([at] if at else [])
