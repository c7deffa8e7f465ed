"""DDP208 and DDP209: files, and what has no form under XLA."""

from __future__ import annotations

import pytest

from .eager import check_noop, check_transformed, refusals, told


@pytest.mark.parametrize(
    "lines",
    [
        "torch.cuda.manual_seed_all(1)",
        "torch.backends.cudnn.benchmark = True",
        "dist.all_reduce(x, op=dist.ReduceOp.SUM)",
        "dist.all_reduce(x, group=None)",
        "x = group(process_group=1)",
        "mp.set_start_method('spawn')",
        "from torch.distributed.elastic.multiprocessing.errors import record\nrecord(show)",
    ],
)
def test_nothing_to_do(lines: str) -> None:
    check_noop(lines)


@pytest.mark.parametrize(
    "lines",
    [
        "dist.new_group([0, 1])",
        "dist.all_reduce(x, group=workers)",
        "dist.all_reduce(x, op=dist.ReduceOp.AVG)",
        "dist.send(x, 1)",
        "dist.all_gather_object(found, 1)",
        "dist.get_backend()",
        "class Sum(torch.autograd.Function):\n    def backward(_, gradient):\n        dist.all_reduce(gradient)",
        "from torch.distributed.fsdp import FullyShardedDataParallel as FSDP\nm = FSDP(net)",
        "import torch.distributed.rpc as rpc\nrpc.init_rpc('a')",
        "m = nn.SyncBatchNorm.convert_sync_batchnorm(net)",
        "m = nn.DataParallel(net)",
        "m = torch.compile(model)",
        "model.register_comm_hook(None, hook)",
        "net.share_memory()",
        "stream = torch.cuda.Stream()",
        "print(torch.cuda.memory_allocated())",
        "p = mp.Process(target=main)",
        "rank = int(os.environ['SLURM_PROCID'])",
        "try:\n    from apex import amp\nexcept ImportError:\n    pass\nm = amp.initialize(net)",
    ],
)
def test_refused(lines: str) -> None:
    assert refusals(lines) == ["DDP209"]


def test_a_file_of_a_state() -> None:
    check_transformed("torch.save(net.state_dict(), path)", "xm.save(net.state_dict(), path, master_only=False)")


@pytest.mark.parametrize("lines", ["torch.save(net, f)", "torch.save(model.module, f)", "torch.save(state, f, pickle)"])
def test_other_files(lines: str) -> None:
    assert refusals(lines) == ["DDP208"]


def test_files_are_read_onto_the_host() -> None:
    check_transformed(
        "place = {'cuda:0': 'cuda:%d' % rank}\nx = torch.load(path, map_location=place)",
        'x = torch.load(path, map_location="cpu")',
    )


def test_the_variance_of_batch_norms_is_told_once() -> None:
    line = "a, b = nn.BatchNorm1d(4), nn.BatchNorm2d(4)\nc = nn.BatchNorm1d(4)"
    assert len([each for each in told(line) if "biased variance" in each]) == 1
