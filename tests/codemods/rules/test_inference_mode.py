"""XLA has no inference mode: gradients are switched off instead (DDP123)."""

from __future__ import annotations

import pytest

from .snippet import check_noop, check_transformed


@pytest.mark.parametrize("target", ["cpu", "cuda"])
def test_other_targets_keep_it(target: str) -> None:
    check_noop("@torch.inference_mode()\ndef test():\n    pass", target)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("with torch.inference_mode():\n    pass", "with torch.no_grad():\n    pass"),
        ("with torch.inference_mode(1 > 2):\n    pass", "with torch.set_grad_enabled(not (1 > 2)):\n    pass"),
        ("@torch.inference_mode()\ndef f():\n    pass", "@torch.no_grad()\ndef f():\n    pass"),
        ("@torch.inference_mode\ndef f():\n    pass", "@torch.no_grad()\ndef f():\n    pass"),
    ],
)
def test_xla_has_no_inference_mode(before: str, after: str) -> None:
    check_transformed(before, after, "xla")
