"""DDP211 to DDP213: XLA code in older spellings."""

from __future__ import annotations

from pathlib import Path
from textwrap import dedent

import pytest
from ddpify_codemods import convert

PATH = Path("train.py")
_ABOVE = "import torch\nimport torch_xla\nimport torch_xla.core.xla_model as xm\nimport torch_xla.runtime as xr\n"
_BELOW = "xm.wait_device_ops()\nprint(xr.device_type())\n"  # keeps the imports in use


def _modernized(lines: str) -> str:
    text = f"{_ABOVE}{dedent(lines)}\n{_BELOW}"
    code = convert({PATH: text}, "xla", modernize=True)[PATH].code
    assert convert({PATH: code}, "xla", modernize=True)[PATH].code == code
    assert code.endswith(_BELOW)
    return code.removesuffix(_BELOW).removeprefix(_ABOVE).strip("\n")


@pytest.mark.parametrize(
    "lines",
    [
        "x = torch_xla.device()",
        "xm.optimizer_step(optimizer)",
        "xm.rendezvous('a')",
        "if xm.is_master_ordinal():\n    print(1)",
        "xm.save(state, path)",
        "x = model.get_ordinal()",
        "def mark_step():\n    pass\n\n\nmark_step()",
    ],
)
def test_current_code(lines: str) -> None:
    assert _modernized(lines) == lines


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("d = xm.xla_device()", "d = torch_xla.device()"),
        ("d = xm.xla_device(1)", "d = torch_xla.device(1)"),
        ("xm.mark_step()", "torch_xla.sync()"),
        ("print(f'{xm.get_ordinal()}/{xm.xrt_world_size():d}')", "print(f'{xr.global_ordinal()}/{xr.world_size():d}')"),
        ("xm.mark_step(wait=True)", "torch_xla.sync(wait=True)"),
        ("xm.add_step_closure(xm.mark_step)", "xm.add_step_closure(torch_xla.sync)"),
        ("x = xm.get_ordinal()", "x = xr.global_ordinal()"),
        ("x = xm.get_ordinal(0)", "x = xr.global_ordinal()"),
        ("x = xm.get_local_ordinal()", "x = xr.local_ordinal()"),
        ("x = xm.xrt_world_size()", "x = xr.world_size()"),
        ("xm.set_rng_state(1, d)", "torch_xla.manual_seed(1, d)"),
        ("from torch_xla.experimental import pjrt\nx = pjrt.world_size()", "x = xr.world_size()"),
        ("import torch_xla.experimental.pjrt as p\nx = p.device_type()", "x = xr.device_type()"),
        (
            "import torch_xla.experimental.xla_sharding as xs\nxs.mark_sharding(x, m, (0,))",
            "import torch_xla.distributed.spmd as xs\nxs.mark_sharding(x, m, (0,))",
        ),
        (
            "from torch_xla.experimental.xla_sharding import Mesh, mark_sharding as mark\nmark(Mesh())",
            "from torch_xla.distributed.spmd import Mesh\n"
            "from torch_xla.distributed.spmd import mark_sharding as mark\nmark(Mesh())",
        ),
        ("from torch_xla.amp import autocast, syncfree\nautocast(d)\nsyncfree", "from torch_xla.amp import syncfree\n"
         'torch.autocast("xla")\nsyncfree'),
        ("from torch_xla.amp import GradScaler\ns = GradScaler()", "s = torch.amp.GradScaler(enabled=False)"),
        ("import torch_xla.amp as amp\namp.autocast(d, enabled=b)", 'torch.autocast("xla", enabled=b)'),
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
        ("dist.init_process_group('xla', init_method='pjrt://')", "dist.init_process_group('xla', init_method=\"xla://\")"),
    ],
)  # fmt: skip
def test_older_code(before: str, after: str) -> None:
    assert _modernized(before) == after


@pytest.mark.parametrize(
    ("lines", "rule", "message"),
    [
        ("d = xm.xla_device()", "DDP211", "xla_device is deprecated: use torch_xla.device"),
        ("x = xm.get_ordinal()", "DDP211", "get_ordinal is gone: use xr.global_ordinal"),
        ("d = xm.xla_device(devkind='TPU')", "DDP211", "xla_device is deprecated: use torch_xla.device"),
        ("import torch_xla.distributed.xla_dist", "DDP213", "torch_xla.distributed.xla_dist is gone"),
    ],
)
def test_told_without_the_option(lines: str, rule: str, message: str) -> None:
    text = f"{_ABOVE}{lines}\n{_BELOW}"
    result = convert({PATH: text}, "xla")[PATH]
    assert (result.code, result.reason) == (text, "XLA code already")
    [finding] = result.findings
    assert (finding.rule, finding.severity, finding.line, finding.message) == (rule, "warning", 5, message)


def test_an_import_that_is_still_needed() -> None:
    lines = "import torch_xla.core.xla_model as model\nd = model.xla_device(devkind='TPU')"
    assert _modernized(lines) == lines


@pytest.mark.parametrize("target", ["cpu", "cuda"])
def test_other_targets_refuse_xla_code(target: str) -> None:
    text = f"{_ABOVE}o = torch.optim.SGD(m.parameters(), lr=1)\nm(x).backward()\no.step()\ntorch_xla.sync()\n"
    [finding] = convert({PATH: text}, target)[PATH].findings
    assert (finding.rule, finding.severity) == ("DDP302", "refused")
