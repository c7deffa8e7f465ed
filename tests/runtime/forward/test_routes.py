"""The modules whose calls are divided over the processes."""

from __future__ import annotations

from ddpify_runtime import DistributedDataParallel
from ddpify_runtime.forward import routes
from ddpify_runtime.torch_internals import CALL
from torch import nn

from tests.runtime.processes import run


def routed_and_released() -> list[bool]:
    import torch

    model = DistributedDataParallel(nn.Linear(4, 2))
    known = model in routes.routed()
    model(torch.ones(4, 4)).sum().backward()
    call = vars(model)[CALL]
    held = bool(call.reductions)
    routes.release([nn.Parameter(torch.ones(1))])
    stays = bool(call.reductions)
    routes.release(model.parameters())
    return [known, held, stays, not call.reductions]


def test_what_holds_the_process_group_is_released_by_its_parameters() -> None:
    assert run(2, routed_and_released) == [[True] * 4] * 2
