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
    "permuted behind the batch": lambda x: x.reshape(len(x), 3, 1).permute(0, 2, -2),
    "permuted by a list": lambda x: torch.permute(x.reshape(len(x), 3, 1), [0, 2, 1]),
    "moved behind the batch": lambda x: x.reshape(len(x), 3, 1).movedim(-1, 1),
    "a loss of each sample": lambda x: F.cross_entropy(x, x.argmax(1), reduction="none"),
    "a loss of each number": lambda x: F.mse_loss(x, x * 2, reduction="none") * x,
    "what an index of each takes": lambda x: x.log_softmax(-1).gather(-1, x.argmax(1).unsqueeze(-1)).squeeze(-1),
    "what an index that all have takes": lambda x: x.gather(1, torch.arange(len(x))[:, None] % 3),
    "largest": lambda x: x.argmax(1),
}
WHOLE: dict[str, Any] = {
    "over the samples": lambda x: x.softmax(0),
    "transposed": lambda x: x.t(),
    "permuted": lambda x: x.permute(1, 0),
    "moved": lambda x: x.movedim(1, 0),
    "gathered along the samples": lambda x: x.gather(0, torch.zeros(1, 3, dtype=torch.int64)),
    "a loss of each that is weighed by column": lambda x: F.binary_cross_entropy_with_logits(
        x, (x > 0).float(), torch.ones(3), reduction="none"
    ),
    "one sample": lambda x: x[0],
    "a product": lambda x: x @ x.t(),
    "over no dimension that is named": lambda x: x.sum(()),
    "the mean of nothing": lambda x: x[:, 3:].mean(),
    "a power of itself": lambda x: torch.pow(x := x.abs(), x),
    "of no index": lambda x: x[()],
    "of another type": lambda x: x.view(dtype=torch.int32),
    "into another tensor": lambda x: torch.max(x, 1, out=(x.new_empty(0), torch.empty(0, dtype=torch.int64)))[0],
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
        found[name] = held, torch.allclose(result.whole() if held else result, operation(whole), equal_nan=True)
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


ONE_SAMPLE: dict[str, Any] = {
    "cross_entropy": lambda x: F.cross_entropy(x, x.sigmoid()),
    "multilabel_soft_margin_loss": lambda x: F.multilabel_soft_margin_loss(x, (x > 0).float()),
    "triplet_margin_loss": lambda x: F.triplet_margin_loss(anchor=x, positive=x + 1, negative=x * 2),
}


def of_one_sample() -> dict[str, bool]:
    """Losses to which a single dimension is one sample: `criterion(output.squeeze(1), target.float())`."""
    torch.manual_seed(0)
    whole = torch.randn(8)
    x = loaded(whole[dist.get_rank() :: dist.get_world_size()].clone(), 8, Labels())
    return {name: torch.allclose(loss(x), loss(whole)) for name, loss in ONE_SAMPLE.items()}


def test_a_single_dimension_is_one_sample_to_some_losses() -> None:
    assert run(2, of_one_sample) == [dict.fromkeys(ONE_SAMPLE, True)] * 2
