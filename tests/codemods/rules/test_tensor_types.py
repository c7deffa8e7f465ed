from __future__ import annotations

import pytest

from .snippet import check_noop, check_transformed


def test_gpus_keep_their_types() -> None:
    check_noop("x = torch.cuda.FloatTensor(3)")


def test_a_type_in_a_dead_branch_stays() -> None:
    lines = "cuda = False\ncuda = torch.cuda.is_available()\nkind = torch.FloatTensor"
    check_transformed(lines, lines.replace("torch.cuda.is_available()", "False"), "cpu")


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("x = torch.cuda.FloatTensor(3)", "x = torch.FloatTensor(3)"),
        ("x = torch.ones(2).type('torch.cuda.LongTensor')", "x = torch.ones(2).type('torch.LongTensor')"),
        ("kind = torch.cuda.FloatTensor if torch.cuda.is_available() else torch.FloatTensor",
         "kind = torch.FloatTensor"),
    ],
)  # fmt: skip
def test_cpu_types(before: str, after: str) -> None:
    check_transformed(before, after, "cpu")


def test_xla_makes_them_on_its_device() -> None:
    check_transformed("x = torch.cuda.FloatTensor(3)", "x = torch.FloatTensor(3).to(torch_xla.device())", "xla")
