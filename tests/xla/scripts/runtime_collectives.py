"""The runtime's collectives on XLA devices, of tensors and of lists of them; prints what rank 0 has got."""

import ddpify_runtime.xla
import torch
import torch.distributed as dist
import torch_xla
from ddpify_runtime import (
    all_gather,
    all_gather_object,
    all_reduce,
    broadcast,
    destroy_process_group,
    gather,
    get_rank,
    get_world_size,
    init_process_group,
    reduce_scatter,
)

init_process_group("xla", init_method="xla://")
device, rank, size = torch_xla.device(), get_rank(), get_world_size()


def mine():
    return torch.arange(6.0, device=device).view(2, 3) + 10 * rank


def shown(*tensors):
    print(*(value for tensor in tensors for value in tensor.cpu().flatten().tolist()))


tensor, gaps, whole = mine(), mine()[:, ::2], torch.full((2,), rank + 1, dtype=torch.int32, device=device)
all_reduce([tensor, gaps, whole])
shown(tensor, gaps, whole)
mean = mine()
all_reduce(mean, dist.ReduceOp.AVG)
shown(mean)
sent = [mine(), mine().t()]
broadcast(sent, src=size - 1)
shown(*sent)
places = [torch.zeros(2, 3, device=device) for _ in range(size)]
all_gather(places, mine())
shown(*places)
lists = [[torch.zeros(2, 3, device=device), torch.zeros((), device=device)] for _ in range(size)]
gather([mine(), torch.tensor(float(rank), device=device)], lists if rank == 0 else None)
shown(*(each for pair in lists for each in pair))
output = torch.zeros(2, 3, device=device)
reduce_scatter(output, [mine() * (place + 1) for place in range(size)])
shown(output)
names = [None] * size
all_gather_object(names, rank)
print(*names)
destroy_process_group()
