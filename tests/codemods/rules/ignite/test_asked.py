"""What torch.distributed is asked is asked of Ignite (DDP632)."""

from __future__ import annotations

import pytest
from ddpify_codemods.rules.ignite.asked import RULE

from tests.codemods.checks import findings_of, rewritten

HEAD = "import torch\nimport torch.distributed as dist\nfrom torch.nn.parallel import DistributedDataParallel as DDP\n"


@pytest.mark.parametrize(
    ("line", "after"),
    [
        ("print(dist.get_rank())", "print(idist.get_rank())"),
        ("print(dist.get_world_size())", "print(idist.get_world_size())"),
        ("dist.barrier()", "idist.barrier()"),
        ("print(dist.get_world_size(group))", "print(dist.get_world_size(group))"),
        ("print(f'{dist.get_rank()}')", "print(f'{dist.get_rank()}')"),
        ("print(own.get_rank())", "print(own.get_rank())"),
    ],
)
def test_what_is_asked(line: str, after: str) -> None:
    assert rewritten(RULE, HEAD + line, "ignite").endswith(after)


def test_the_first_collective_that_stays_is_told() -> None:
    [note] = findings_of(RULE, HEAD + "dist.all_reduce(x)\ndist.broadcast(x, 0)\n", "ignite")
    assert (note.severity, note.line) == ("note", 4) and note.message.startswith("dist.all_reduce stays")
    assert not findings_of(RULE, HEAD + "dist.barrier()\n", "ignite")
