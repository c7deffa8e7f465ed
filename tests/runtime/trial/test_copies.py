"""A copy of a module and of its inputs in which every tensor is another one."""

from __future__ import annotations

import torch
from ddpify_runtime.trial.copies import changed, in_float64, on_host
from torch import nn


def test_a_copy_in_float64_is_alike_in_all_else() -> None:
    module = nn.Sequential(nn.Linear(2, 2), nn.BatchNorm1d(2))
    module[0].bias.requires_grad_(False)
    twin, (x, other) = changed(module, [torch.ones(3, 2), "text"], in_float64)
    assert {value.dtype for value in twin.parameters()} == {torch.float64} and x.dtype == torch.float64
    assert [p.requires_grad for p in twin.parameters()] == [p.requires_grad for p in module.parameters()]
    assert other == "text" and module[0].weight.dtype == torch.float32
    torch.testing.assert_close(twin.double()(x), module.double()(x))


def test_what_a_module_holds_twice_stays_one() -> None:
    layer = nn.Linear(2, 2)
    twin, _ = changed(nn.Sequential(layer, layer), [], on_host)
    assert twin[0] is twin[1] and twin[0] is not layer  # type: ignore[index]


def test_whole_numbers_stay_whole() -> None:
    assert in_float64(torch.tensor([1, 2])).dtype == torch.int64
