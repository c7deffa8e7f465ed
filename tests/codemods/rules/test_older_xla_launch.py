"""Processes and loaders of torch_xla in their current form (DDP212)."""

from __future__ import annotations

import pytest
from ddpify_codemods.rules.modernize.older_xla_launch import RULE

from tests.codemods.checks import edits_of, findings_of

from .test_older_xla_names import modernized


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("import torch_xla.distributed.xla_multiprocessing as xmp\nxmp.spawn(f)", "torch_xla.launch(f)"),
        (
            "import torch_xla.distributed.xla_multiprocessing as xmp\nxmp.spawn(f, (1,), 8, True, False, 'fork')",
            "torch_xla.launch(f, args=(1,), start_method='fork')",
        ),
        (
            "import torch_xla.distributed.xla_multiprocessing as xmp\nxmp.spawn(f, nprocs=1)",
            "torch_xla.launch(f, debug_single_process=True)",
        ),
        (
            "import torch_xla.distributed.parallel_loader as pl\np = pl.ParallelLoader(l, [d]).per_device_loader(d)",
            "import torch_xla.distributed.parallel_loader as pl\np = iter(pl.MpDeviceLoader(l, d))",
        ),
    ],
)
def test_older_code(before: str, after: str) -> None:
    assert modernized(before) == after


@pytest.mark.parametrize(
    "lines",
    [
        "import torch_xla.distributed.xla_multiprocessing as xmp\nxmp.spawn(f, **given)",
        "import torch_xla.distributed.xla_multiprocessing as xmp\nxmp.spawn(*given)",
        "import torch_xla.distributed.xla_multiprocessing as xmp\nxmp.spawn(f, *given, nprocs=8)",
        "import torch_xla.distributed.parallel_loader as pl\np = pl.ParallelLoader(l, [d, e])",
        "import torch_xla.distributed.parallel_loader as pl\np = pl.ParallelLoader(*given, [d])",
        "import torch_xla.distributed.parallel_loader as pl\np = pl.ParallelLoader(l, [*d])",
        "import torch_xla.distributed.parallel_loader as pl\np = pl.ParallelLoader(l, [d], **given)",
    ],
)
def test_what_is_not_known_stays_and_is_told(lines: str) -> None:
    assert not edits_of(RULE, lines, "xla")
    assert [finding.line for finding in findings_of(RULE, lines, "xla")] == [2]
