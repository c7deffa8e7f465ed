"""How many processes there are, and which is this one (DDP226)."""

from __future__ import annotations

import pytest
from ddpify_codemods.rules.backend.launcher import RULE

from tests.codemods.checks import rewritten

HEAD = "import os\nimport torch\nimport torch.multiprocessing as mp\n"


@pytest.mark.parametrize(
    ("given", "after"),
    [
        ("'--local_rank', type=int", "'--local_rank', type=int, default=int(os.environ.get(\"LOCAL_RANK\", 0))"),
        ("'--local-rank', default=-1", "'--local-rank', default=int(os.environ.get(\"LOCAL_RANK\", -1))"),
        ("'--local_rank', default=None", "'--local_rank', default=int(os.environ.get(\"LOCAL_RANK\", 0))"),
        ("'--local_rank', required=True", "'--local_rank', default=int(os.environ.get(\"LOCAL_RANK\", 0))"),
        ("'--rank', type=int", "'--rank', type=int"),
    ],
)
def test_the_local_rank_comes_from_the_environment(given: str, after: str) -> None:
    source = HEAD + "import argparse\nparser = argparse.ArgumentParser()\nparser.add_argument({})\n"
    assert rewritten(RULE, source.format(given), "cuda") == source.format(after)
    read = source + "print(os.environ['LOCAL_RANK'])\n"
    assert rewritten(RULE, read.format(given), "cuda") == read.format(given)


@pytest.mark.parametrize(("target", "is_counted"), [("cpu", False), ("cuda", True)])
def test_a_cpu_has_no_gpus_to_count(target: str, is_counted: bool) -> None:
    code = rewritten(RULE, HEAD + "mp.spawn(f, nprocs=torch.cuda.device_count())\n", target)
    assert ("nprocs=torch.cuda.device_count()" in code) is is_counted
    assert ('nprocs=int(os.environ.get("NPROC", 2))' in code) is not is_counted
