from __future__ import annotations

import pytest

from .snippet import check_noop, check_transformed, findings, imports_of


def test_a_check_for_the_class_stays() -> None:
    check_noop("net = nn.Linear(1, 1)\nif isinstance(net, nn.DataParallel):\n    net = net.module")


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("net = nn.DataParallel(nn.Linear(1, 1))", "net = DataParallel(nn.Linear(1, 1))"),
        ("net = torch.nn.parallel.DataParallel(nn.Linear(1, 1))", "net = DataParallel(nn.Linear(1, 1))"),
        ("net = nn.DataParallel(nn.Linear(1, 1), device_ids=[0, 1])", "net = DataParallel(nn.Linear(1, 1))"),
        ("net = nn.DataParallel(module=nn.Linear(1, 1), dim=0)", "net = DataParallel(nn.Linear(1, 1))"),
        ("net = nn.DataParallel(nn.Linear(1, 1).cuda(0), [0]).cuda()",
         "net = DataParallel(nn.Linear(1, 1).cuda()).cuda()"),
        ("net = x = nn.Linear(1, 1)\ny = nn.parallel.data_parallel(net, x, range(2))",
         "net = x = nn.Linear(1, 1)\ny = net(x)"),
    ],
)  # fmt: skip
def test_the_stand_in_takes_the_module(before: str, after: str) -> None:
    check_transformed(before, after)


def test_an_imported_name_is_imported_from_the_runtime() -> None:
    lines, imports = "net = DataParallel(nn.Linear(1, 1), [0])", "from torch.nn import DataParallel, Linear"
    check_transformed(lines, "net = DataParallel(nn.Linear(1, 1))", imports=imports)
    above = imports_of(lines, imports=imports)
    assert "from torch.nn import Linear\n" in above
    assert "    DataParallel,\n" in above


@pytest.mark.parametrize(("target", "said"), [("cuda", ["warning"]), ("cpu", [])])
def test_copies_that_are_made_by_hand_are_told_of(target: str, said: list[str]) -> None:
    """Each of the processes makes as many as there are GPUs."""
    found = findings("copies = nn.parallel.replicate(nn.Linear(1, 1), range(2))", target)
    assert [each.severity for each in found if each.rule == "DDP104"] == said
