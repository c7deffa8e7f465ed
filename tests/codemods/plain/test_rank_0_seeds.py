"""Seeds that are made of the clock or of the system's entropy are those of rank 0."""

from __future__ import annotations

import re

import pytest

from tests.codemods.plain.test_seeds import FIXED

from .test_followed import plain, refusals, training

CLOCKS = [
    ("torch.manual_seed(int(time.time()))", "torch.manual_seed(int(from_rank_0(time.time())))"),
    ("seed = os.getpid()\nnp.random.seed(seed)", "seed = from_rank_0(os.getpid())\nnp.random.seed(seed)"),
    ("random.seed()", "random.seed(from_rank_0(os.urandom(16)))"),
    ("np.random.seed(None)", "np.random.seed(list(from_rank_0(os.urandom(16))))"),
    ("torch.seed()", "torch.manual_seed(from_rank_0(torch.seed()))"),
    (
        "g = torch.Generator()\ng.seed()\nprint(torch.rand(3, generator=g))",
        "g = torch.Generator()\ng.manual_seed(from_rank_0(g.seed()))\nprint(torch.rand(3, generator=g))",
    ),
]


@pytest.mark.parametrize(("begins", "expected"), CLOCKS)
def test_a_seed_of_the_clock_or_the_system_is_that_of_rank_0(begins: str, expected: str) -> None:
    source = FIXED + f"import os\nimport time\n{begins}\n" + training()
    result = plain(source)
    assert not refusals(result) and expected in result.code and "def from_rank_0" in result.code
    assert "ddpify_runtime" not in result.code
    assert len(re.findall(r"^random\.seed\(0\)$", result.code, re.MULTILINE)) == 1  # the script's own


@pytest.mark.parametrize(
    "begins",
    [
        "print(torch.seed())",
        "class Own(torch.utils.data.Dataset):\n    def __getitem__(self, i):\n        random.seed(time.time())",
    ],
)
def test_what_nobody_can_send_is_refused(begins: str) -> None:
    assert refusals(plain(FIXED + f"import os\nimport time\n{begins}\n" + training()))
