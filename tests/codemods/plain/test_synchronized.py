"""Scripts that may synchronise BatchNorm by apex themselves, in plain torch, where nothing else does."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from ddpify_codemods import convert

from tests.codemods.plain.test_followed import training

MODEL = "model = nn.Linear(4, 3)\n"
SYNCHRONIZED = """\
try:
    import apex
except ImportError:
    pass
model = nn.Sequential(nn.Linear(4, 3), nn.BatchNorm1d(3)).cuda()
if options.sync:
    model = apex.parallel.convert_syncbn_model(model)
"""


@pytest.mark.parametrize(
    ("target", "options", "says"),
    [
        ("cuda", {"style": "plain"}, "convert with --sync-batchnorm"),
        ("cuda", {"style": "plain", "sync_batchnorm": True}, "leave `options.sync` off"),
        ("cpu", {"style": "plain"}, "--style exact takes those of the whole batch"),
        ("cuda", {}, "leave `options.sync` off"),
    ],
)
def test_what_takes_the_place_of_apex(target: str, options: dict[str, Any], says: str) -> None:
    path = Path("train.py")
    source = "import argparse\noptions = argparse.ArgumentParser().parse_args()\n" + training()
    result = convert({path: source.replace(MODEL, SYNCHRONIZED, 1)}, target, **options)[path]
    [note] = [each for each in result.findings if each.rule == "DDP302"]
    assert note.severity == "note" and says in note.remedy
