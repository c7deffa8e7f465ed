"""What a DistributedTensor is among the arguments of a call, and where it is found."""

from __future__ import annotations

import gc
import weakref
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from ddpify_runtime import DistributedDataParallel
from ddpify_runtime.lazy.batch import (
    DistributedTensor,
    gather_what_it_sees,
    has_distributed,
    in_form,
    same_memory,
    wholes,
)
from ddpify_runtime.lazy.partial import partial
from torch import Tensor, nn

from tests.runtime.processes import run


def number(value: float) -> DistributedTensor:
    return partial(torch.tensor(value), None, ())


def test_shares_are_found_in_lists_and_joined_where_something_needs_the_whole() -> None:
    share = number(3.0)
    share._whole = torch.tensor(3.0)
    assert has_distributed((1, [share]), {}) and not has_distributed((1, [torch.ones(1)]), {"a": 2})
    whole = wholes([share, "text"])
    assert type(whole[0]) is Tensor and whole[1] == "text"
    plain = [torch.ones(1)]
    assert wholes(plain) is plain


def test_a_tensor_of_which_the_form_is_taken_goes_out_of_the_call() -> None:
    share = number(3.0)
    func, args = in_form(Tensor.view_as, (torch.ones(1), share))
    assert func is Tensor.view and args[1] == share.shape
    assert in_form(Tensor.add, (share, share)) == (Tensor.add, (share, share))


def test_views_have_the_same_memory() -> None:
    x = torch.arange(6)
    assert same_memory(x, x.view(2, 3)) and not same_memory(x, x.clone())


def test_what_a_function_sees_is_joined_before_it_is_called_alone() -> None:
    share = number(3.0)
    share._whole = torch.tensor(3.0)
    held = [share]
    gather_what_it_sees(lambda: held)
    gather_what_it_sees(print)


def joined(loss: str) -> list[bool]:
    """Whether what all ranks put together in a step is gone after it: an output or a number, and the whole of it."""
    model = DistributedDataParallel(nn.Linear(4, 3))

    def step() -> list[weakref.ref[Any]]:
        output: Any = model(torch.randn(6, 4))
        number: Any = F.cross_entropy(output, torch.arange(6) % 3)
        value = number.sqrt() if loss == "number" else output.t() @ output
        value.sum().backward()
        held = [output, output._whole] if loss == "output" else [number, number._whole]
        return [weakref.ref(each) for each in held if each is not None]

    gc.collect()
    gc.disable()
    return [each() is None for each in step()]


@pytest.mark.parametrize("loss", ["output", "number"])
def test_what_was_joined_is_freed_with_its_step(loss: str) -> None:
    assert run(2, joined, loss) == [[True, True]] * 2
