"""How a program is distributed already."""

from __future__ import annotations

import pytest
from ddpify_codemods.facts.distribution import called_names, kind

from tests.codemods.checks import script_of


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("import torch\ntorch.zeros(2)", "one process"),
        ("import torch.distributed as dist\ndist.init_process_group('nccl')", "eager"),
        ("from torch.distributed import init_process_group as join\njoin('gloo')", "eager"),
        ("def init_process_group(): pass\ninit_process_group()", "one process"),
        ("import torch_xla.core.xla_model as xm\nxm.mark_step()", "torch_xla"),
    ],
)
def test_the_kind_of_a_program(source: str, expected: str) -> None:
    assert kind([script_of("import os"), script_of(source)]) == expected


def test_calls_go_by_their_full_names() -> None:
    assert called_names(script_of("from torch import nn\nnn.Linear(1, 1)\nprint()")) == {"torch.nn.Linear", "print"}
