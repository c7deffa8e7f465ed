"""What an operation gives where it keeps samples apart, computed from the rows that a rank holds."""

from __future__ import annotations

from typing import Any

import torch
import torch.distributed as dist
import torch.nn.functional as F
from ddpify_runtime.lazy.held_rows import HeldRows
from ddpify_runtime.lazy.labels import Labels
from ddpify_runtime.lazy.outputs import loaded
from ddpify_runtime.lazy.partial import Partial

from tests.runtime.processes import run

OPERATIONS: dict[str, Any] = {
    "unary": lambda x: x.exp(),
    "binary": lambda x: x + 2 * x,
    "with what is the same for every sample": lambda x: x * torch.tensor([1.0, 2.0, 3.0]),
    "reshaped": lambda x: x.reshape(len(x), 3, 1),
    "of another dimension": lambda x: x.softmax(1),
    "reduced behind the batch": lambda x: x.sum(-1),
    "transposed behind the batch": lambda x: x.reshape(len(x), 3, 1).transpose(1, 2),
    "largest": lambda x: x.argmax(1),
}
WHOLE: dict[str, Any] = {
    "over the samples": lambda x: x.softmax(0),
    "transposed": lambda x: x.t(),
    "one sample": lambda x: x[0],
    "a product": lambda x: x @ x.t(),
}


def kinds() -> dict[str, tuple[bool, bool]]:
    """Whether each result is held in rows, and whether it is that of the whole."""
    torch.manual_seed(0)
    whole = torch.randn(8, 3)
    found = {}
    for name, operation in {**OPERATIONS, **WHOLE}.items():
        x = loaded(whole[dist.get_rank() :: dist.get_world_size()].clone(), 8, Labels())
        result = operation(x)
        held = isinstance(result, HeldRows)
        found[name] = held, torch.allclose(result.whole() if held else result, operation(whole))
    return found


def test_what_keeps_samples_apart_stays_in_rows() -> None:
    for found in run(2, kinds):
        assert found == {**dict.fromkeys(OPERATIONS, (True, True)), **dict.fromkeys(WHOLE, (False, True))}


def loss() -> tuple[bool, bool]:
    torch.manual_seed(0)
    whole, targets = torch.randn(8, 3), torch.randint(3, (8,))
    part = slice(dist.get_rank(), None, dist.get_world_size())
    x, y = loaded(whole[part].clone(), 8, Labels()), loaded(targets[part].clone(), 8, Labels())
    found = F.cross_entropy(x, y)
    return isinstance(found, Partial), torch.allclose(torch.tensor(found.item()), F.cross_entropy(whole, targets))


def test_a_loss_is_a_sum_over_ranks() -> None:
    assert run(2, loss) == [(True, True)] * 2
