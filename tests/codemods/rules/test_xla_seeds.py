"""XLA's devices are seeded where the CPU is (DDP119)."""

from __future__ import annotations

import pytest

from .snippet import check_noop, check_transformed

_WORKER = """\
def seed(number):
    torch.manual_seed(number)
loader = Loader(worker_init_fn=seed)
"""


def test_other_targets_keep_these_calls() -> None:
    lines = "torch.manual_seed(3)"
    check_noop(lines, "cpu")
    check_noop(lines, "cuda")


@pytest.mark.parametrize("lines", ["g = torch.Generator().manual_seed(1)", "use(torch.manual_seed(1))", _WORKER])
def test_xla_keeps_the_rest(lines: str) -> None:
    check_noop(lines, "xla")


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("seed = 1\ntorch.manual_seed(seed)", "seed = 1\ntorch.manual_seed(seed)\ntorch_xla.manual_seed(seed)"),
        (
            "torch.manual_seed(int('7'))",  # what is called may give something else the second time
            "torch.manual_seed(int('7'))\ntorch_xla.manual_seed(torch.initial_seed())",
        ),
        ("torch.manual_seed(-1)", "torch.manual_seed(-1)\ntorch_xla.manual_seed(torch.initial_seed())"),
        ("g = torch.manual_seed(1)", "g = torch.manual_seed(1)\ntorch_xla.manual_seed(1)"),
    ],
)
def test_xla_seeds_its_devices(before: str, after: str) -> None:
    check_transformed(before, after, "xla")
