"""Modules of torch_xla from where they are now (DDP213)."""

from __future__ import annotations

import pytest
from ddpify_codemods import convert

from .test_older_xla_names import ABOVE, BELOW, PATH, modernized


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (
            "import torch_xla.experimental.xla_sharding as xs\nxs.mark_sharding(x, m, (0,))",
            "import torch_xla.distributed.spmd as xs\nxs.mark_sharding(x, m, (0,))",
        ),
        (
            "from torch_xla.experimental.xla_sharding import Mesh, mark_sharding as mark\nmark(Mesh())",
            "from torch_xla.distributed.spmd import Mesh\n"
            "from torch_xla.distributed.spmd import mark_sharding as mark\nmark(Mesh())",
        ),
    ],
)
def test_older_code(before: str, after: str) -> None:
    assert modernized(before) == after


def test_told_without_the_option() -> None:
    text = f"{ABOVE}import torch_xla.distributed.xla_dist\n{BELOW}"
    result = convert({PATH: text}, "xla")[PATH]
    assert (result.code, result.reason) == (text, "XLA code already")
    [finding] = result.findings
    assert (finding.rule, finding.severity, finding.line) == ("DDP213", "warning", 5)
    assert finding.message == "torch_xla.distributed.xla_dist is gone"


def test_an_import_that_is_still_needed() -> None:
    lines = "import torch_xla.core.xla_model as model\nd = model.xla_device(devkind='TPU')"
    assert modernized(lines) == lines
