"""What a DistributedTensor is among the arguments of a call, and where it is found."""

from __future__ import annotations

import torch
from ddpify_runtime.lazy.batch import (
    DistributedTensor,
    gather_what_it_sees,
    has_distributed,
    in_form,
    same_memory,
    wholes,
)
from ddpify_runtime.lazy.partial import partial
from torch import Tensor


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
