"""DistributedDataParallel on the CPU has no numbers of GPUs (DDP223)."""

from __future__ import annotations

import pytest
from ddpify_codemods.rules.backend.wrapper import RULE

from tests.codemods.checks import findings_of, rewritten

HEAD = "import torch\nimport torch.distributed as dist\nfrom torch.nn.parallel import DistributedDataParallel as DDP\n"


@pytest.mark.parametrize(
    ("line", "after"),
    [
        ("DDP(net, device_ids=[0], output_device=0)", "DDP(net)"),
        ("DDP(net, [0], 0, 0, False)", "DDP(net, dim=0, broadcast_buffers=False)"),
        ("DDP(net, [0], **given)", "DDP(net, **given)"),
        ("DDP(net, device_ids=None, dim=0)", "DDP(net, device_ids=None, dim=0)"),
    ],
)
def test_numbers_of_gpus(line: str, after: str) -> None:
    assert rewritten(RULE, HEAD + line, "cpu").endswith(f"\n{after}")
    assert rewritten(RULE, HEAD + line, "cuda").endswith(f"\n{line}")


@pytest.mark.parametrize(("target", "refused"), [("cpu", [4]), ("cuda", [])])
def test_synchronized_statistics_are_for_gpus(target: str, refused: list[int]) -> None:
    line = "net = torch.nn.SyncBatchNorm.convert_sync_batchnorm(net)"
    assert [each.line for each in findings_of(RULE, HEAD + line, target)] == refused
