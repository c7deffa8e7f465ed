"""Functions of torch_xla under their current names (DDP211)."""

from __future__ import annotations

from pathlib import Path
from textwrap import dedent

import pytest
from ddpify_codemods import convert

PATH = Path("train.py")
ABOVE = "import torch\nimport torch_xla\nimport torch_xla.core.xla_model as xm\nimport torch_xla.runtime as xr\n"
BELOW = "xm.wait_device_ops()\nprint(xr.device_type())\n"  # keeps the imports in use


def modernized(lines: str) -> str:
    """What becomes of lines of XLA code."""
    text = f"{ABOVE}{dedent(lines)}\n{BELOW}"
    code = convert({PATH: text}, "xla", modernize=True)[PATH].code
    assert convert({PATH: code}, "xla", modernize=True)[PATH].code == code
    assert code.endswith(BELOW)
    return code.removesuffix(BELOW).removeprefix(ABOVE).strip("\n")


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
    assert modernized(lines) == lines


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
        ("from torch_xla.amp import autocast, syncfree\nautocast(d)\nsyncfree", "from torch_xla.amp import syncfree\n"
         'torch.autocast("xla")\nsyncfree'),
        ("from torch_xla.amp import GradScaler\ns = GradScaler()", "s = torch.amp.GradScaler(enabled=False)"),
        ("import torch_xla.amp as amp\namp.autocast(d, enabled=b)", 'torch.autocast("xla", enabled=b)'),
        ("dist.init_process_group('xla', init_method='pjrt://')", "dist.init_process_group('xla', init_method=\"xla://\")"),
    ],
)  # fmt: skip
def test_older_code(before: str, after: str) -> None:
    assert modernized(before) == after


@pytest.mark.parametrize(
    ("lines", "rule", "message"),
    [
        ("d = xm.xla_device()", "DDP211", "xla_device is deprecated: use torch_xla.device"),
        ("x = xm.get_ordinal()", "DDP211", "get_ordinal is gone: use xr.global_ordinal"),
        ("d = xm.xla_device(devkind='TPU')", "DDP211", "xla_device is deprecated: use torch_xla.device"),
    ],
)
def test_told_without_the_option(lines: str, rule: str, message: str) -> None:
    text = f"{ABOVE}{lines}\n{BELOW}"
    result = convert({PATH: text}, "xla")[PATH]
    assert (result.code, result.reason) == (text, "XLA code already")
    [finding] = result.findings
    assert (finding.rule, finding.severity, finding.line, finding.message) == (rule, "warning", 5, message)


@pytest.mark.parametrize("target", ["cpu", "cuda"])
def test_other_targets_refuse_xla_code(target: str) -> None:
    text = f"{ABOVE}o = torch.optim.SGD(m.parameters(), lr=1)\nm(x).backward()\no.step()\ntorch_xla.sync()\n"
    [finding] = convert({PATH: text}, target)[PATH].findings
    assert (finding.rule, finding.severity) == ("DDP302", "refused")
