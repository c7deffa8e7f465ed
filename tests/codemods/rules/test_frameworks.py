"""DDP301: frameworks that own the training loop."""

from __future__ import annotations

from pathlib import Path

import pytest
from ddpify_codemods import convert
from ddpify_codemods.rules.always.frameworks import RULE

from ..checks import assert_refused, assert_silent


@pytest.mark.parametrize(
    "source",
    [
        "import torch",
        "from .lightning import x",
        "import lightning_utilities",
        "from transformers import AutoModel, get_scheduler",
        "from torch import accelerator",
        "import ignited",
    ],
)
def test_other_imports(source: str) -> None:
    assert_silent(RULE, source)


@pytest.mark.parametrize(
    "source",
    [
        "import pytorch_lightning as pl",
        "from lightning.pytorch import Trainer",
        "from accelerate import Accelerator",
        "import os, ignite.engine",
        "from transformers import AutoModel, Trainer",
        "def f():\n    import deepspeed",
    ],
)
def test_frameworks(source: str) -> None:
    assert_refused(RULE, source, line=source.count("\n") + 1)


def test_without_a_loop_of_its_own() -> None:
    path = Path("train.py")
    result = convert({path: "import torch\nfrom transformers import Trainer\n"}, "cpu")[path]
    assert [finding.rule for finding in result.findings] == ["DDP301"]
