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


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("x = torch.cuda.FloatTensor(3)", "x = ddpify_runtime.xla.FloatTensor(3)"),
        ("kind = torch.cuda.LongTensor if torch.cuda.is_available() else torch.LongTensor",
         "kind = ddpify_runtime.xla.LongTensor"),
        ("kind = torch.cuda.LongTensor if flag else torch.LongTensor",
         "kind = ddpify_runtime.xla.LongTensor if flag else torch.LongTensor"),
        ("torch.set_default_tensor_type('torch.cuda.FloatTensor')",
         "torch.set_default_tensor_type('torch.xla.FloatTensor')"),
        ("flag = torch.ones(2).type() == 'torch.cuda.FloatTensor'",
         "flag = torch.ones(2).type() == 'torch.xla.FloatTensor'"),
        ("T = torch.cuda if flag else torch\nx = T.FloatTensor(2)",
         "T = ddpify_runtime.xla if flag else torch\nx = T.FloatTensor(2)"),
    ],
)  # fmt: skip
def test_xla_types(before: str, after: str) -> None:
    check_transformed(before, after, "xla")


@pytest.mark.parametrize(
    ("imports", "line"),
    [
        ("from torch.cuda import FloatTensor as Tensor", "x = Tensor(3)"),
        ("import torch.cuda as gpu", "x = gpu.FloatTensor(3)"),
    ],
)
def test_types_are_known_however_they_are_imported(imports: str, line: str) -> None:
    check_transformed(line, "x = torch.FloatTensor(3)", "cpu", imports)
    check_transformed(line, "x = ddpify_runtime.xla.FloatTensor(3)", "xla", imports)


@pytest.mark.parametrize("line", ["print(torch.cuda)", "T = [torch.cuda, torch]", "x = torch.FloatTensor(3)"])
def test_what_is_no_type_of_a_gpu_stays(line: str) -> None:
    check_noop(line, "xla")
