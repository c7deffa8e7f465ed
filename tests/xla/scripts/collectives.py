"""What torch_xla and torch.distributed exchange between devices, each against the value that it must have."""

import sys

import torch
import torch.distributed as dist
import torch_xla
import torch_xla.core.xla_model as xm
import torch_xla.distributed.xla_backend
import torch_xla.runtime as xr


def check(name, found, expected):
    expected = torch.as_tensor(expected, dtype=found.dtype)
    assert torch.equal(found.cpu(), expected), f"{name}: {found.cpu()} is not {expected}"


def main(rank, started):
    assert rank == xr.global_ordinal() and __name__ == "__mp_main__"
    assert started == ["the arguments arrive"] and "MASTER" not in globals()
    dist.init_process_group("xla", init_method="xla://")
    world = dist.get_world_size()
    assert (dist.get_rank(), world) == (rank, xr.world_size())
    device = torch_xla.device()
    ranks = torch.arange(world)

    def mine(*values):
        return torch.tensor([value + rank for value in values], device=device)

    check("xm.all_reduce", xm.all_reduce(xm.REDUCE_SUM, mine(1.0)), [(ranks + 1).sum()])
    check("scaled", xm.all_reduce(xm.REDUCE_SUM, mine(1.0), scale=1 / world), [(ranks + 1).sum() / world])
    check("max", xm.all_reduce(xm.REDUCE_MAX, mine(1)), [world])
    inplace, other = mine(1.0), mine(3)
    xm.all_reduce(xm.REDUCE_SUM, [inplace, other])
    check("a list, two types", inplace, [(ranks + 1).sum()])
    check("a list, two types", other, [(ranks + 3).sum()])
    check("xm.all_gather", xm.all_gather(mine(0, 10)), [value for r in range(world) for value in (r, r + 10)])
    pairs = [[0, 1], [2, 3]] if world == 4 else None
    if pairs:
        check("groups", xm.all_reduce(xm.REDUCE_SUM, mine(0), groups=pairs), [pairs[rank // 2][0] + pairs[rank // 2][1]])
    scattered = xm.reduce_scatter(xm.REDUCE_SUM, mine(*range(world)).float(), 1.0, 0, world)
    check("xm.reduce_scatter", scattered, [(ranks + rank).sum()])
    check("xm.all_to_all", xm.all_to_all(mine(*range(0, 10 * world, 10)), 0, 0, world), ranks + 10 * rank)
    ring = [[r, (r + 1) % world] for r in range(world)]
    check("xm.collective_permute", xm.collective_permute(mine(5), ring), [5 + (rank - 1) % world])
    assert xm.mesh_reduce("sum", rank, sum) == int(ranks.sum())

    total, gathered = mine(1.0), [torch.zeros(1, device=device) for _ in range(world)]
    dist.all_reduce(total)
    check("dist.all_reduce", total, [(ranks + 1).sum()])
    dist.all_gather(gathered, mine(0.0))
    check("dist.all_gather", torch.cat(gathered), ranks)
    source = mine(7)
    dist.broadcast(source, 1)
    check("dist.broadcast", source, [8])
    reduced = mine(0.0)
    dist.reduce(reduced, 0)
    check("dist.reduce", reduced, [ranks.sum() if rank == 0 else rank])
    xm.rendezvous("end")
    print(f"rank {rank} of {world} is right", flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    MASTER = "a name that the other processes do not have"
    torch_xla.launch(main, args=(sys.argv[1:],))
