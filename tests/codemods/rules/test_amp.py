from __future__ import annotations

import pytest

from .snippet import check_noop, check_transformed, findings

CUDA_AMP = "from torch.cuda.amp import GradScaler, autocast"


@pytest.mark.parametrize("target", ["cpu", "cuda"])
@pytest.mark.parametrize(
    "lines", ["with autocast():\n    pass", 'with torch.autocast("cuda"):\n    pass', "scaler = GradScaler()"]
)
def test_mixed_precision_stays_where_it_switches_itself_off(lines: str, target: str) -> None:
    check_noop(lines, target, CUDA_AMP)


@pytest.mark.parametrize("lines", ['with torch.autocast("cpu"):\n    pass', "scaler = 1"])
def test_xla_keeps_the_rest(lines: str) -> None:
    check_noop(lines, "xla", CUDA_AMP)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("with autocast():\n    pass", 'with torch.autocast("xla"):\n    pass'),
        ("with autocast(True, dtype=torch.bfloat16):\n    pass",
         'with torch.autocast("xla", enabled=True, dtype=torch.bfloat16):\n    pass'),
        ("with torch.autocast(device_type='cuda'):\n    pass", "with torch.autocast(device_type='xla'):\n    pass"),
        ("scaler = GradScaler()", "scaler = GradScaler(enabled=False)"),
        ("use = True\nscaler = GradScaler(enabled=use)", "use = True\nscaler = GradScaler(enabled=False)"),
    ],
)  # fmt: skip
def test_xla_words(before: str, after: str) -> None:
    check_transformed(before, after, "xla", CUDA_AMP)


def test_the_scaler_is_reported() -> None:
    assert [each.severity for each in findings("scaler = GradScaler()", "xla", CUDA_AMP)] == ["warning"]
