"""Devices that Ignite knows (DDP622)."""

from __future__ import annotations

import pytest

from tests.codemods.plain.test_ignite import HEAD, LOOP, code_of


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("d = torch.device('cuda:1')", "d = idist.device()"),
        ("d = torch.device('cuda' if data else 'cpu')", "d = idist.device()"),
        ("d = 'cuda' if data else 'cpu'", "d = idist.device()"),
        ("d = torch.rand(2).cuda(0, non_blocking=True)", "d = torch.rand(2).to(idist.device(), non_blocking=True)"),
        ("d = torch.rand(2).cuda()", "d = torch.rand(2).to(idist.device())"),
        ("d = torch.device('cpu')", "d = torch.device('cpu')"),
        ("d = torch.load('a')", "d = torch.load('a', map_location={\"cuda:0\": str(idist.device())})"),
        ("d = torch.cuda.is_available()", "d = torch.cuda.is_available()"),
    ],
)
def test_devices(before: str, after: str) -> None:
    code = code_of(f"{HEAD}{before}\n{LOOP}")
    assert f"{after} for epoch in range(3):" in code
