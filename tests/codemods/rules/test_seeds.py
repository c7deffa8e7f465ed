"""DDP108: where seeds come from."""

from __future__ import annotations

import pytest
from ddpify_codemods.rules.seeds import RULE

from ..checks import assert_refused, assert_silent, rewritten

HEAD = "import os, random, time\nimport numpy as np\nimport torch\n"


@pytest.mark.parametrize(
    "source",
    [
        "torch.manual_seed(0)",
        "random.seed(args.seed)",
        "seed = random.randint(1, 10000)",
        "start = time.time()",
        "np.random.default_rng(1)",
        "seed = torch.initial_seed()",
        "print(time.time(), os.getpid())",
        "generator.seed()",
    ],
)
def test_seeds_that_are_common(source: str) -> None:
    assert_silent(RULE, HEAD + source)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("torch.manual_seed(int(time.time()))", "torch.manual_seed(int(rank_zero_value(time.time)()))"),
        ("seed = int(time.time() * 1000) % 2**32", "seed = int(rank_zero_value(time.time)() * 1000) % 2**32"),
        ("args.seed = os.getpid()", "args.seed = rank_zero_value(os.getpid)()"),
        ("np.random.seed(int.from_bytes(os.urandom(4), 'big'))",
         "np.random.seed(int.from_bytes(rank_zero_value(os.urandom)(4), 'big'))"),
        ("random.seed()", "random.seed(rank_zero_value(os.urandom)(16))"),
        ("rng = np.random.default_rng()", "rng = np.random.default_rng(list(rank_zero_value(os.urandom)(16)))"),
        ("torch.seed()", "torch.manual_seed(rank_zero_value(torch.seed)())"),
    ],
)  # fmt: skip
def test_entropy_is_drawn_once(before: str, after: str) -> None:
    assert rewritten(RULE, f"{HEAD}{before}\n").splitlines()[-1] == after


def test_the_rewritten_seeds_are_accepted_by_their_libraries() -> None:
    import os
    import random

    import numpy as np

    random.seed(os.urandom(16))
    np.random.seed(list(os.urandom(16)))
    np.random.default_rng(list(os.urandom(16)))
    np.random.RandomState(list(os.urandom(16)))


@pytest.mark.parametrize(
    ("source", "line"),
    [
        ("used = torch.seed()", 4),
        ("def seed_worker(i):\n    np.random.seed()\nl = DataLoader(d, worker_init_fn=seed_worker)", 5),
        ("l = DataLoader(d, worker_init_fn=lambda _: np.random.seed())", 4),
    ],
)
def test_where_no_readable_form_exists(source: str, line: int) -> None:
    assert_refused(RULE, HEAD + source, line)
