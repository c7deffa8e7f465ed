"""What never runs in a program that asks for a process group, but never joins one."""

from __future__ import annotations

from dataclasses import replace

import pytest
from ddpify_codemods.facts.no_group import asks_for_group, never_run

from tests.codemods.checks import node_of, script_of

HEAD = "import torch.distributed as dist\ndef rank():\n    return dist.get_rank() if dist.is_initialized() else 0\n"


@pytest.mark.parametrize(
    ("lines", "dead", "alive"),
    [
        ("if dist.is_initialized():\n    a()\nelse:\n    b()", "a()", "b()"),
        ("x = a() if dist.is_initialized() else b()", "a()", "b()"),
        ("if rank() > 0:\n    a()\nb()", "a()", "b()"),
        ("if not dist.is_initialized() or a():\n    b()", "a()", "b()"),
        ("def f():\n    if not dist.is_initialized():\n        return b()\n    a()", "a()", "b()"),
    ],
)
def test_what_is_not_reached(lines: str, dead: str, alive: str) -> None:
    script = replace(script_of(HEAD + lines), only_asks_for_group=True)
    found = never_run(script)
    assert node_of(script, dead) in found and node_of(script, alive) not in found


def test_the_question_is_torchs() -> None:
    script = script_of("import torch.distributed as dist\nx = dist.is_initialized()\ny = is_initialized()")
    assert asks_for_group(script, node_of(script, "dist.is_initialized()"))
    assert not asks_for_group(script, node_of(script, "is_initialized()"))
