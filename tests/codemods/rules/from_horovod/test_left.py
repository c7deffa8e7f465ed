"""What no other rule moves out of Horovod's words (DDP646)."""

from __future__ import annotations

import pytest
from ddpify_codemods.rules.from_horovod.left import RULE

from tests.codemods.checks import findings_of, rewritten

HEAD = "import torch\nimport horovod.torch as hvd\n"


def test_a_run_that_the_script_starts_ends_with_what_to_do() -> None:
    assert '\nsys.exit("torchrun starts the processes: ' in rewritten(RULE, HEAD + "hvd.run(f)\n", "cuda")


def test_batch_norms_are_torchs() -> None:
    assert rewritten(RULE, HEAD + "m = hvd.SyncBatchNorm(3)\n", "cuda") == HEAD + "m = torch.nn.SyncBatchNorm(3)\n"


@pytest.mark.parametrize(
    ("line", "is_refused"),
    [
        ("hvd.join()", True),
        ("x = hvd.run(f)", True),
        ("hvd.elastic.run(f)", True),
        ("dist = 1", True),
        ("ask = hvd.rank", True),
        ("print(hvd.rank())", False),
        ("hvd.allreduce(x)", False),
    ],
)
def test_what_has_no_form_in_torch(line: str, is_refused: bool) -> None:
    found = [(each.severity, each.line) for each in findings_of(RULE, HEAD + line, "cuda")]
    assert found == ([("refused", 3)] if is_refused else [])
