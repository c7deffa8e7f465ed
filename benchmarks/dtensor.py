"""DTensor beside the runtime's held rows: exactness of what losses and metrics do, and instructions for each.

    OMP_NUM_THREADS=1 torchrun --nproc-per-node 2 -m benchmarks.dtensor

Both hold a rank's rows of a batch. Held rows are `[rank::world_size]` of it, DTensor's Shard(0) consecutive ones: the
batch is in another order for it, which these operations do not see. Each value is read, and the gradient of the
rows compared with that of one process. What was found is told in docs/contract.md, "What it costs".
"""

from __future__ import annotations

import functools
import os
from collections.abc import Callable
from typing import Any

import torch
import torch.distributed as dist
import torch.nn.functional as F
from ddpify_runtime import destroy_process_group, get_rank, get_world_size, init_process_group
from ddpify_runtime.lazy.outputs import output
from ddpify_runtime.sharding.collectives import Rows
from torch import Tensor
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor import DTensor, Shard

os.environ.setdefault("METER", os.devnull)
os.environ["METER_COUNTS"] = "instructions"
from .meter import _file as counter  # which counts from its import on

Operation = Callable[[Tensor, Tensor], Any]


def focal(scores: Tensor, targets: Tensor) -> Tensor:
    """A loss that is no function of torch's."""
    chosen = scores.softmax(1).clamp(min=1e-6).log() * F.one_hot(targets.clamp(min=0), 10)
    return -(chosen.sum(1) * 2).mean()


OPERATIONS: dict[str, Operation] = {
    "cross_entropy": lambda scores, targets: F.cross_entropy(scores, targets.clamp(min=0)),
    "cross_entropy, ignore_index": lambda scores, targets: F.cross_entropy(scores, targets, ignore_index=-100),
    "mse_loss": lambda scores, targets: F.mse_loss(scores, torch.zeros_like(scores)),
    "own loss": focal,
    "hits": lambda scores, targets: (scores.argmax(1) == targets).sum(),
    "mean of softmax": lambda scores, targets: scores.softmax(1).mean(),
}


def used() -> int:
    """User instructions of this process until now."""
    return int.from_bytes(os.read(counter, 8), "little")


def by(operation: Operation, scores: Tensor, targets: Tensor, wrap: Callable[[Tensor], Tensor]) -> Any:
    """The value and the gradient of this rank's rows, read as a script reads them."""
    rows = scores.detach().requires_grad_()
    result = operation(wrap(rows), wrap(targets))
    if result.requires_grad:
        result.backward()
    whole = result.full_tensor() if isinstance(result, DTensor) else result
    return whole.item(), rows.grad


def thousands(run: Callable[[], Any], times: int = 50) -> float:
    """Instructions of one of several runs, in thousands."""
    run()
    before = used()
    for _ in range(times):
        run()
    return (used() - before) / times / 1e3


def main() -> None:
    init_process_group("gloo")
    rank, ranks = get_rank(), get_world_size()
    mesh = init_device_mesh("cpu", (ranks,))
    for total in (64, 64 + ranks - 1, 1 + ranks):
        torch.manual_seed(0)
        scores, targets = torch.randn(total, 10), torch.randint(10, (total,))
        targets[::3] = -100
        mine = torch.arange(total)[rank::ranks]
        ways: dict[str, Callable[[Tensor], Tensor]] = {
            "held rows": lambda rows, total=total: output(rows, total, Rows(0), lambda: None),  # type: ignore[misc]
            "DTensor": lambda rows, total=total: DTensor.from_local(  # type: ignore[misc]
                rows,
                mesh,
                [Shard(0)],
                run_check=False,
                shape=torch.Size((total, *rows.shape[1:])),
                stride=rows.stride(),
            ),
        }
        for name, operation in OPERATIONS.items():
            true, gradient = by(operation, scores, targets, lambda tensor: tensor)
            cells = []
            for way, wrap in ways.items():
                try:
                    found, ours = by(operation, scores[mine], targets[mine], wrap)
                    scale = 1 if way == "DTensor" else ranks  # inside of a divided forward
                    what = "exact" if abs(found - true) <= 1e-5 * abs(true) else "WRONG"
                    if ours is not None and (ours / scale - gradient[mine]).norm() > 1e-5 * gradient.norm():
                        what += f", gradient {ours.norm() / gradient[mine].norm():.1f} times"
                    run = functools.partial(by, operation, scores[mine], targets[mine], wrap)
                    cells.append(f"{way} {what} {thousands(run):.0f}")
                except Exception as error:  # noqa: BLE001  whatever is not covered
                    cells.append(f"{way} {type(error).__name__}: {str(error).splitlines()[0][:60]}")
                dist.barrier()
            if rank == 0:
                print(f"{total} rows; {name}: {' | '.join(cells)}", flush=True)
    destroy_process_group()


if __name__ == "__main__":
    main()
