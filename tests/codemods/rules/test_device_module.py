"""What torch.cuda is asked is asked of the target's module."""

from __future__ import annotations

import pytest
from ddpify_codemods.rules.convert.device_module import RULE

from tests.codemods.checks import findings_of, rewritten


@pytest.mark.parametrize(
    ("line", "after"),
    [
        ("torch.cuda.synchronize()", "torch.xpu.synchronize()"),
        ("print(x.is_cuda)", "print(x.is_xpu)"),
        ("torch.cuda.nvtx.mark('a')", "torch.cuda.nvtx.mark('a')"),
        ("print(f'{torch.cuda.memory_allocated()}')", "print(f'{torch.cuda.memory_allocated()}')"),
        (
            "from torch.cuda import synchronize\nsynchronize()",
            "from torch.cuda import synchronize\ntorch.xpu.synchronize()",
        ),
    ],
)
def test_what_both_modules_have(line: str, after: str) -> None:
    assert rewritten(RULE, f"import torch\n{line}\n", "xpu") == f"import torch\n{after}\n"
    assert rewritten(RULE, f"import torch\n{line}\n", "cuda") == f"import torch\n{line}\n"


@pytest.mark.parametrize(
    ("line", "is_told"),
    [
        ("torch.cuda.nvtx.mark('a')", True),
        ("print(f'{torch.cuda.memory_allocated()}')", True),
        ("torch.cuda.synchronize()", False),
    ],
)
def test_what_stays_is_told(line: str, is_told: bool) -> None:
    assert [each.line for each in findings_of(RULE, f"import torch\n{line}\n", "xpu")] == ([2] if is_told else [])
