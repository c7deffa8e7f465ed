"""What chose a GPU stays on the CPU (DDP222)."""

from __future__ import annotations

import pytest
from ddpify_codemods.rules.backend.cpu_devices import RULE

from tests.codemods.checks import rewritten


@pytest.mark.parametrize(
    ("line", "after"),
    [
        ("torch.cuda.set_device(1)\nx = 1\n", "x = 1\n"),
        ("x = x.cuda(1)\n", "x = x.cpu()\n"),
        ("x = x.to('cuda:0')\n", "x = x.to('cpu')\n"),
        ("x = x.to(f'cuda:{n}')\n", "x = x.to('cpu')\n"),
        ("x = x.to('meta')\n", "x = x.to('meta')\n"),
    ],
)
def test_where_tensors_go(line: str, after: str) -> None:
    assert rewritten(RULE, f"import torch\n{line}", "cpu").replace('"', "'") == f"import torch\n{after}"
    assert rewritten(RULE, f"import torch\n{line}", "cuda") == f"import torch\n{line}"
