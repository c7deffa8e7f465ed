"""DDP302: scripts that already use several processes."""

from __future__ import annotations

import pytest
from ddpify_codemods.rules.refuse.already_distributed import RULE

from ..checks import assert_refused, assert_silent, findings_of


@pytest.mark.parametrize(
    "source",
    [
        "import torch.distributed as dist",
        "import torch\nx = torch.distributions.Normal(0, 1)",
        "import torch.multiprocessing as mp\nmp.set_sharing_strategy('file_system')",
        "distributed = False",
        "import torch\nmodel = torch.nn.DataParallel(model)",
        "import torch.nn as nn\nif isinstance(net, nn.parallel.DistributedDataParallel):\n    net = net.module",
        "from torch.nn.parallel import DistributedDataParallel\nisinstance(net, (Net, DistributedDataParallel))",
        "from torch.nn import parallel\nmany = type(net) in (parallel.DataParallel, parallel.DistributedDataParallel)",
    ],
)
def test_one_process(source: str) -> None:
    assert_silent(RULE, source)


@pytest.mark.parametrize(
    ("source", "line"),
    [
        ("import torch.distributed as dist\n\ndist.init_process_group('nccl')\ndist.barrier()", 3),
        ("from torch.nn.parallel import DistributedDataParallel as DDP\nmodel = DDP(model)", 2),
        ("from torch.nn.parallel import DistributedDataParallel as DDP\nisinstance(DDP(net), nn.Module)", 2),
        ("import torch\ns = torch.utils.data.distributed.DistributedSampler(d)", 2),
        ("from torch.distributed.fsdp import FullyShardedDataParallel as FSDP\nmodel = FSDP(model)", 2),
        ("import torch.multiprocessing as mp\nmp.spawn(main)", 2),
        ("model.share_memory()", 1),
        ("import horovod.torch as hvd\nhvd.init()", 2),
        ("from mpi4py import MPI\nrank = MPI.COMM_WORLD.Get_rank()", 2),
        ("import mpi4py.MPI as MPI\nrank = MPI.COMM_WORLD.Get_rank()", 2),
        ("import apex\nmodel = apex.parallel.convert_syncbn_model(model)", 2),
        ("import torch_xla.core.xla_model as xm\ndevice = xm.xla_device()", 2),
    ],
)
def test_several_processes(source: str, line: int) -> None:
    assert_refused(RULE, source, line)


def test_an_option_for_synchronised_batch_norm_can_be_left_off() -> None:
    source = """\
        try:
            import apex
        except ImportError:
            pass
        if opt.syncBN:
            model = apex.parallel.convert_syncbn_model(model)
        """
    [finding] = findings_of(RULE, source)
    assert (finding.severity, finding.line) == ("note", 6)
    assert "`opt.syncBN`" in finding.remedy
