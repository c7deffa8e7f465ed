"""Whole scripts of eager DDP, for xla: the form of the DDP tutorial, and those of torchrun and of older launchers."""

from __future__ import annotations

from pathlib import Path
from textwrap import dedent

import pytest
from ddpify_codemods import convert

ENTRY, MODEL = Path("train.py"), Path("net.py")

# The documented example of DistributedDataParallel under XLA is the one of the DDP tutorial, changed in five places.
TUTORIAL = """\
import os
import torch
import torch.distributed as dist
import torch.multiprocessing as mp
import torch.nn as nn
import torch.optim as optim

from torch.nn.parallel import DistributedDataParallel as DDP


def setup(rank, world_size):
    os.environ['MASTER_ADDR'] = 'localhost'
    os.environ['MASTER_PORT'] = '12355'

    # join the others
    dist.init_process_group("gloo", rank=rank, world_size=world_size)


def cleanup():
    dist.destroy_process_group()


class Toy(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = nn.Linear(10, 10)
        self.second = nn.Linear(10, 5)

    def forward(self, x):
        return self.second(torch.relu(self.first(x)))


def demo(rank, world_size):
    print(f"Demo on rank {rank}.")
    setup(rank, world_size)

    # the model lies on GPU number rank
    model = Toy().to(rank)
    ddp_model = DDP(model, device_ids=[rank])

    loss_fn = nn.MSELoss()
    optimizer = optim.SGD(ddp_model.parameters(), lr=0.001)

    optimizer.zero_grad()
    outputs = ddp_model(torch.randn(20, 10))
    labels = torch.randn(20, 5).to(rank)
    loss_fn(outputs, labels).backward()
    optimizer.step()

    cleanup()


def run(demo_fn, world_size):
    mp.spawn(demo_fn,
             args=(world_size,),
             nprocs=world_size,
             join=True)


if __name__ == "__main__":
    gpus = torch.cuda.device_count()
    assert gpus >= 2, f"needs 2 GPUs, there are {gpus}"
    world_size = gpus
    run(demo, world_size)
"""
DOCUMENTED = """\
import os
import torch
import torch.distributed as dist
import torch.nn as nn
import torch.optim as optim

from torch.nn.parallel import DistributedDataParallel as DDP
import torch_xla
import torch_xla.distributed.xla_backend
import torch_xla.runtime as xr


def setup(rank, world_size):
    # join the others
    dist.init_process_group("xla", init_method="xla://")


def cleanup():
    dist.destroy_process_group()


class Toy(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = nn.Linear(10, 10)
        self.second = nn.Linear(10, 5)

    def forward(self, x):
        return self.second(torch.relu(self.first(x)))


def demo(rank):
    world_size = xr.world_size()
    print(f"Demo on rank {rank}.")
    setup(rank, world_size)

    # the model lies on GPU number rank
    model = Toy().to(torch_xla.device())
    ddp_model = DDP(model, gradient_as_bucket_view=True)

    loss_fn = nn.MSELoss()
    optimizer = optim.SGD(ddp_model.parameters(), lr=0.001)

    optimizer.zero_grad()
    outputs = ddp_model(torch.randn(20, 10).to(torch_xla.device()))
    labels = torch.randn(20, 5).to(torch_xla.device())
    loss_fn(outputs, labels).backward()
    optimizer.step()
    torch_xla.sync()

    cleanup()


def run(demo_fn):
    torch_xla.launch(demo_fn)


if __name__ == "__main__":
    run(demo)
"""


def converted(text: str, target: str = "xla") -> str:
    result = convert({ENTRY: dedent(text)}, target)[ENTRY]
    assert not result.findings, result.findings
    return result.code


def test_the_tutorial_becomes_the_documented_example() -> None:
    assert converted(TUTORIAL) == DOCUMENTED


def test_twice_is_once() -> None:
    result = convert({ENTRY: DOCUMENTED}, "xla")[ENTRY]
    assert (result.code, result.reason, result.findings) == (DOCUMENTED, "XLA code already", ())


def test_it_is_started_by_python() -> None:
    assert convert({ENTRY: TUTORIAL}, "xla")[ENTRY].launch == "python {module}{script}"


def test_for_gpus_it_changes_its_backend_alone() -> None:
    result = convert({ENTRY: TUTORIAL}, "cuda")[ENTRY]
    assert result.code == TUTORIAL.replace('"gloo"', '"nccl"')
    assert [finding.rule for finding in result.findings] == ["DDP513"]  # a fixed port, as before


def test_old_launcher_of_torch() -> None:
    before = """\
    import argparse
    import torch
    from torch import distributed
    from torch.nn.parallel import DistributedDataParallel


    def main():
        parser = argparse.ArgumentParser()
        parser.add_argument("--local_rank", type=int, default=0)
        args = parser.parse_args()
        torch.cuda.set_device(args.local_rank)
        distributed.init_process_group(backend="nccl", init_method="env://")
        model = torch.nn.Linear(4, 1)
        model.cuda(args.local_rank)
        model = DistributedDataParallel(model, [args.local_rank], args.local_rank, broadcast_buffers=False)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        model(torch.rand(8, 4).cuda(args.local_rank)).mean().backward()
        optimizer.step()
        if args.local_rank == 0:
            print("done")


    if __name__ == "__main__":
        main()
    """
    after = """\
    import argparse
    import torch
    from torch import distributed
    from torch.nn.parallel import DistributedDataParallel
    import torch_xla
    import torch_xla.distributed.xla_backend
    import torch_xla.runtime as xr


    def main(index):
        parser = argparse.ArgumentParser()
        parser.add_argument("--local_rank", type=int, default=0)
        args = parser.parse_args()
        args.local_rank = xr.local_ordinal()
        distributed.init_process_group("xla", init_method="xla://")
        model = torch.nn.Linear(4, 1)
        model.to(torch_xla.device())
        model = DistributedDataParallel(model, broadcast_buffers=False, gradient_as_bucket_view=True)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        model(torch.rand(8, 4).to(torch_xla.device())).mean().backward()
        optimizer.step()
        torch_xla.sync()
        if args.local_rank == 0:
            print("done")


    if __name__ == "__main__":
        torch_xla.launch(main)
    """
    assert converted(before) == dedent(after)


def test_names_made_under_the_guard_stay_global() -> None:
    code = converted("""\
    import torch
    import torch.distributed as dist
    from torch.nn.parallel import DistributedDataParallel as DDP


    def train(model):
        optimizer = torch.optim.SGD(model.parameters(), lr=rate)
        model(torch.rand(8, 4).cuda()).mean().backward()
        optimizer.step()


    # the start
    if __name__ == "__main__":
        dist.init_process_group("nccl")
        rate, other = 0.1, 1
        train(DDP(torch.nn.Linear(4, 1).cuda()))
    """)
    assert code.endswith(
        dedent("""\


        # the start
        def _mp_fn(index):
            global rate
            dist.init_process_group("xla", init_method="xla://")
            rate, other = 0.1, 1
            train(DDP(torch.nn.Linear(4, 1).to(torch_xla.device()), gradient_as_bucket_view=True))


        if __name__ == "__main__":
            torch_xla.launch(_mp_fn)
        """)
    )


def test_modules_of_the_program_are_converted_with_it() -> None:
    net = dedent("""\
    import torch


    def build(device):
        model = torch.nn.Linear(4, 1).cuda()
        return model, torch.optim.SGD(model.parameters(), lr=0.1)


    def save(state, path):
        torch.save(state, path)
    """)
    entry = dedent("""\
    import torch
    import torch.distributed as dist
    from torch.nn.parallel import DistributedDataParallel as DDP
    from net import build, save


    def main():
        dist.init_process_group("nccl")
        model, optimizer = build("cuda")
        model = DDP(model)
        model(torch.rand(8, 4).cuda()).mean().backward()
        optimizer.step()
        if dist.get_rank() == 0:
            save(model.module.state_dict(), "model.pt")


    if __name__ == "__main__":
        main()
    """)
    results = convert({ENTRY: entry, MODEL: net}, "xla")
    assert "DDP(model.to(torch_xla.device()), gradient_as_bucket_view=True)" in results[ENTRY].code
    assert "model = torch.nn.Linear(4, 1).to(torch_xla.device())" in results[MODEL].code
    assert "xm.save(state, path, master_only=False)" in results[MODEL].code
    assert results[MODEL].code.startswith(
        "import torch\nimport torch_xla\nimport torch_xla.core.xla_model as xm\n\n\ndef build"
    )


_SAVES = """\
import torch
import torch.distributed as dist


def keep(state, path):
    if dist.get_rank() == 0:
        torch.save(state, path)
"""


def _saving(line: str) -> dict[Path, str]:
    """A program in which the ranks agree on the buffers, and then save by a function of another file."""
    entry = f"""\
    import torch
    import torch.distributed as dist
    import net
    from torch.nn.parallel import DistributedDataParallel as DDP
    from net import keep


    def main():
        dist.init_process_group("nccl")
        model = torch.nn.BatchNorm1d(4).cuda()
        ddp_model = DDP(model)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        ddp_model(torch.rand(8, 4).cuda()).mean().backward()
        optimizer.step()
        for buffer in model.buffers():
            dist.broadcast(buffer, 0)
        {line}


    if __name__ == "__main__":
        main()
    """
    results = convert({ENTRY: dedent(entry), MODEL: _SAVES}, "xla")
    return {path: result.code for path, result in results.items()}


@pytest.mark.parametrize("name", ["keep", "net.keep"])
def test_a_function_of_another_file_saves_after_what_all_ranks_have_recorded(name: str) -> None:
    code = _saving(f'{name}(model.state_dict(), "m.pt")')[MODEL]
    assert "    torch_xla.sync()\n    if dist.get_rank() == 0:\n        xm.save(" in code


def test_a_branch_calls_a_function_of_another_file_that_reads() -> None:
    code = _saving('if dist.get_rank() == 0:\n            keep(model.buffers(), "m.pt")')
    assert "\n    torch_xla.sync()\n    if dist.get_rank() == 0:\n        keep(" in code[ENTRY]
    assert "torch_xla.sync()" not in code[MODEL]


_NOISY = """\
import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel as DDP
{above}

def main():
    dist.init_process_group("nccl")
    rank = dist.get_rank()
{lines}    model = DDP(torch.nn.Sequential(torch.nn.Linear(4, 1), {layer}).cuda())
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    model(torch.rand(8, 4).cuda()).mean().backward()
    optimizer.step()


if __name__ == "__main__":
    main()
"""
_JOINED = '("xla", init_method="xla://")\n'
_OF_TORCH = "    torch_xla.manual_seed(torch.initial_seed())\n"


def _seeded(lines: str, above: str = "", layer: str = "torch.nn.Dropout(0.5)") -> str:
    return converted(_NOISY.format(lines=lines, above=above, layer=layer))


@pytest.mark.parametrize(
    ("lines", "above"),
    [
        ("", ""),
        ("    if rank > 9:\n        torch.manual_seed(rank)\n", ""),
        ("", "def seed():\n    torch.manual_seed(1)\n\n\nif __name__ == '__main__':\n    seed()\n"),
        ("    if rank > 9:\n        seed()\n", "def seed():\n    torch.manual_seed(1)\n"),
        ("", "torch.manual_seed(0)"),  # where there are no processes yet
    ],
)
def test_processes_that_may_have_no_seed_draw_noise_of_their_own(lines: str, above: str) -> None:
    assert f"{_JOINED}{_OF_TORCH}" in _seeded(lines, above)


@pytest.mark.parametrize(
    ("line", "above"), [("torch.manual_seed(3 + rank)", ""), ("seed()", "def seed():\n    torch.manual_seed(1)\n")]
)
def test_devices_are_seeded_as_the_processes_are(line: str, above: str) -> None:
    code = _seeded(f"    {line}\n", above)
    assert f"{line}\n    torch_xla.manual_seed(3 + rank)\n" in code or "(1)\n    torch_xla.manual_seed(1)\n" in code
    assert _OF_TORCH not in code


def test_no_seed_where_nothing_is_drawn() -> None:
    assert "manual_seed" not in _seeded("", layer="torch.nn.ReLU()")


def test_no_device_is_seeded_before_there_are_processes() -> None:
    assert "torch_xla" not in _seeded("", "torch.manual_seed(0)").partition("manual_seed(0)")[2].partition("def ")[0]
