"""DDP214: tensor types in scripts that become plain torch_xla code."""

from __future__ import annotations

import pytest

from .eager import check_noop, check_transformed, refusals


@pytest.mark.parametrize("line", ["x = torch.FloatTensor(3)", "x = net.weight.type(torch.FloatTensor)"])
def test_host_types_stay(line: str) -> None:
    check_noop(line)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("x = torch.cuda.LongTensor(3, 4)", "x = torch.LongTensor(3, 4).to(torch_xla.device())"),
        ("x = net.weight.type(torch.cuda.HalfTensor)", "x = net.weight.to(torch_xla.device(), torch.float16)"),
        ("x = net.weight.type('torch.cuda.HalfTensor')", "x = net.weight.to(torch_xla.device(), torch.float16)"),
    ],
)
def test_tensors_are_made_on_the_device(before: str, after: str) -> None:
    check_transformed(before, after)


@pytest.mark.parametrize("value", ["torch.cuda.FloatTensor", "'torch.cuda.FloatTensor'"])
def test_a_type_that_is_kept_is_refused(value: str) -> None:
    assert refusals(f"kind = {value}") == ["DDP214"]
