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


@pytest.mark.parametrize(
    "lines",
    [
        "import torch_xla.distributed.xla_multiprocessing as xmp\nxmp.spawn(f, **given)",
        "import torch_xla.distributed.xla_multiprocessing as xmp\nxmp.spawn(*given)",
        "from torch_xla.distributed.xla_multiprocessing import spawn\nspawn(*given, nprocs=8)",
        "from torch_xla.distributed.parallel_loader import ParallelLoader\np = ParallelLoader(l, [d, e])",
        "from torch_xla.distributed.parallel_loader import ParallelLoader\np = partial(ParallelLoader, l, [d])",
        "from torch_xla.amp import autocast\nwith autocast(**given):\n    pass",
        "from torch_xla.amp import autocast\nwith autocast(*given):\n    pass",
    ],
)
def test_an_import_of_what_a_call_with_unknown_arguments_needs(lines: str) -> None:
    assert modernized(lines) == lines


def test_an_import_that_another_call_does_without() -> None:
    lines = "import torch_xla.distributed.xla_multiprocessing as xmp\nxmp.spawn(f)\nxmp.spawn(f, **given)"
    assert modernized(lines) == lines.replace("xmp.spawn(f)\n", "torch_xla.launch(f)\n")
