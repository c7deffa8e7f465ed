"""One training script in the forms in which people distribute it by hand, or not at all."""

from __future__ import annotations

_HEAD = """\
import torch
from torch.utils.data import DataLoader, TensorDataset
"""
_DDP = """\
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data.distributed import DistributedSampler
"""
ONE_DEVICE = f"""\
{_HEAD}

def main():
    torch.manual_seed(0)
    train_set = TensorDataset(torch.rand(64, 4), torch.randint(2, (64,)))
    train_loader = DataLoader(train_set, batch_size=8, shuffle=True)
    model = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.ReLU(), torch.nn.Linear(8, 2)).cuda()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for epoch in range(3):
        for x, y in train_loader:
            x, y = x.cuda(), y.cuda()
            loss = torch.nn.functional.cross_entropy(model(x), y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        print(epoch, loss.item())
    torch.save(model.state_dict(), "model.pt")


if __name__ == "__main__":
    main()
"""
_PARALLEL = "    model = torch.nn.DataParallel(model)\n    optimizer = "
DATA_PARALLEL = ONE_DEVICE.replace("    optimizer = ", _PARALLEL, 1).replace(
    "model.state_dict", "model.module.state_dict"
)

_JOIN = '    dist.init_process_group("nccl")\n    local_rank = int(os.environ["LOCAL_RANK"])\n'
TORCHRUN = f"""\
import os

{_HEAD}{_DDP}

def main():
{_JOIN}    torch.cuda.set_device(local_rank)
    torch.manual_seed(0)
    train_set = TensorDataset(torch.rand(64, 4), torch.randint(2, (64,)))
    sampler = DistributedSampler(train_set)
    train_loader = DataLoader(train_set, batch_size=8, sampler=sampler)
    model = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.ReLU(), torch.nn.Linear(8, 2)).cuda(local_rank)
    model = DDP(model, device_ids=[local_rank])
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for epoch in range(3):
        sampler.set_epoch(epoch)
        for x, y in train_loader:
            x, y = x.cuda(local_rank), y.cuda(local_rank)
            loss = torch.nn.functional.cross_entropy(model(x), y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        if dist.get_rank() == 0:
            print(epoch, loss.item())
    if dist.get_rank() == 0:
        torch.save(model.module.state_dict(), "model.pt")
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
"""


def _changed(text: str, *changes: str) -> str:
    for old, new in zip(changes[::2], changes[1::2], strict=True):
        assert old in text, old
        text = text.replace(old, new)
    return text


GLOO = _changed(
    TORCHRUN,
    *(_JOIN + "    torch.cuda.set_device(local_rank)\n", '    dist.init_process_group("gloo")\n'),
    *(".cuda(local_rank)\n    model = DDP(model, device_ids=[local_rank])", "\n    model = DDP(model)"),
    *("            x, y = x.cuda(local_rank), y.cuda(local_rank)\n", ""),
    *("import os\n\n", ""),
)
SPAWN = _changed(
    TORCHRUN,
    f"def main():\n{_JOIN}",
    """\
def train(local_rank, world_size):
    os.environ["MASTER_ADDR"] = "localhost"
    os.environ["MASTER_PORT"] = "29500"
    dist.init_process_group("nccl", rank=local_rank, world_size=world_size)
""",
    *("import torch\n", "import torch\nimport torch.multiprocessing as mp\n"),
    "    main()\n",
    "    world_size = torch.cuda.device_count()\n    mp.spawn(train, args=(world_size,), nprocs=world_size)\n",
)
LAUNCH = _changed(
    TORCHRUN,
    _JOIN,
    """\
    parser = argparse.ArgumentParser()
    parser.add_argument("--local_rank", type=int, default=0)
    local_rank = parser.parse_args().local_rank
    dist.init_process_group(backend="nccl", init_method="env://")
""",
    *("import os\n", "import argparse\n"),
)
HOROVOD = _changed(
    ONE_DEVICE,
    *("import torch\nfrom", "import horovod.torch as hvd\nimport torch\nfrom"),
    *("TensorDataset\n\n", "TensorDataset\nfrom torch.utils.data.distributed import DistributedSampler\n\n"),
    *("    torch.manual_seed", "    hvd.init()\n    torch.cuda.set_device(hvd.local_rank())\n    torch.manual_seed"),
    "    train_loader = DataLoader(train_set, batch_size=8, shuffle=True)\n",
    "    sampler = DistributedSampler(train_set, num_replicas=hvd.size(), rank=hvd.rank())\n"
    "    train_loader = DataLoader(train_set, batch_size=8, sampler=sampler)\n",
    "lr=0.1)\n",
    """lr=0.1)
    hvd.broadcast_parameters(model.state_dict(), root_rank=0)
    hvd.broadcast_optimizer_state(optimizer, root_rank=0)
    optimizer = hvd.DistributedOptimizer(optimizer, named_parameters=model.named_parameters())
""",
    *("        for x, y", "        sampler.set_epoch(epoch)\n        for x, y"),
    *("        print(", "        if hvd.rank() == 0:\n            print("),
    *("    torch.save", "    if hvd.rank() == 0:\n        torch.save"),
)
BY_HAND = {
    "one device": ONE_DEVICE,
    "DataParallel": DATA_PARALLEL,
    "torchrun, nccl": TORCHRUN,
    "torchrun, gloo": GLOO,
    "spawn": SPAWN,
    "launch": LAUNCH,
    "Horovod": HOROVOD,
}
