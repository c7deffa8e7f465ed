"""Workers of one process have the seeds of one process (DDP710)."""

from __future__ import annotations

import pytest
from ddpify_codemods.rules.from_plain.worker_seeds import RULE

from tests.codemods.checks import rewritten


@pytest.mark.parametrize(
    ("seed", "becomes"),
    [
        ('3 + worker + 1000 * int(os.environ["RANK"])', "3 + worker"),
        ('worker + 1000 * int(os.environ["LOCAL_RANK"])', 'worker + 1000 * int(os.environ["LOCAL_RANK"])'),
        ('worker - 1000 * int(os.environ["RANK"])', 'worker - 1000 * int(os.environ["RANK"])'),
        ('1000 * int(os.environ["RANK"])', '1000 * int(os.environ["RANK"])'),
    ],
)
def test_what_is_added_goes(seed: str, becomes: str) -> None:
    source = "import os\nimport random\nrandom.seed({})\n"
    assert rewritten(RULE, source.format(seed)) == source.format(becomes)
