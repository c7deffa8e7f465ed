"""Whether something that differs between processes becomes a seed."""

from __future__ import annotations

import pytest
from ddpify_codemods.facts.seeds import makes_a_seed

from tests.codemods.checks import node_of, script_of

HEAD = "import os, random, time, torch\n"


@pytest.mark.parametrize(
    ("lines", "call", "answer"),
    [
        ("torch.manual_seed(int(time.time()))", "time.time()", True),
        ("seed = os.getpid()\nrandom.seed(seed)", "os.getpid()", True),
        ("start = time.time()\ntorch.manual_seed(3)", "time.time()", False),
    ],
)
def test_a_clock_or_a_process_id_as_a_seed(lines: str, call: str, answer: bool) -> None:
    script = script_of(HEAD + lines)
    assert makes_a_seed(script, node_of(script, call)) is answer
