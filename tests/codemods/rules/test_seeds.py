"""DDP108: where seeds come from."""

from __future__ import annotations

import pytest
from ddpify_codemods.rules.exact.seeds import RULE

from ..checks import assert_refused, assert_silent, rewritten
from .snippet import check_transformed

HEAD = "import os, random, secrets, time\nimport numpy as np\nimport torch\n"


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
        "env.seed()",
        "class Rows:\n    def __getitem__(self, i):\n        return os.urandom(i)",
        "key = hash('a')",
        "torch.seed(777)",
        "used = torch.random.seed(seed=777)",
        "started = time.time()\nprint(time.time() - started)",
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
        ("rng = np.random.default_rng(None)", "rng = np.random.default_rng(list(rank_zero_value(os.urandom)(16)))"),
        ("bits = np.random.PCG64()", "bits = np.random.PCG64(list(rank_zero_value(os.urandom)(16)))"),
        ("seed = torch.Generator().seed()", "seed = rank_zero_value(torch.Generator().seed)()"),
        ("rng = random.SystemRandom()", "rng = random.Random(rank_zero_value(os.urandom)(16))"),
        ("key = secrets.token_hex(8)", "key = rank_zero_value(secrets.token_hex)(8)"),
        ("torch.manual_seed(hash('name') % 100)", "torch.manual_seed(rank_zero_value(hash)('name') % 100)"),
    ],
)  # fmt: skip
def test_entropy_is_drawn_once(before: str, after: str) -> None:
    assert rewritten(RULE, f"{HEAD}{before}\n").splitlines()[-1] == after


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("t = 1000 * time.time()\nnp.random.seed(int(t) % 2**32)", "t = 1000 * rank_zero_value(time.time)()"),
        ("def now():\n    return int(time.time())\nn = now()\nm = n + 1\ntorch.manual_seed(m)",
         "    return int(rank_zero_value(time.time)())"),
        ("p.add_argument('--seed', default=int(time.time()))",
         "p.add_argument('--seed', default=int(rank_zero_value(time.time)()))"),
        ("class A:\n    def __init__(self):\n        self.n = os.getpid()\na = A()\ntorch.manual_seed(a.n)",
         "        self.n = rank_zero_value(os.getpid)()"),
        ("g = torch.Generator()\ng.seed()", "g.manual_seed(rank_zero_value(g.seed)())"),
        ("class A:\n    def f(self):\n        self.g = torch.Generator()\n        self.g.seed()",
         "        self.g.manual_seed(rank_zero_value(self.g.seed)())"),
        ("r = random.Random(0)\nr.seed()", "r.seed(rank_zero_value(os.urandom)(16))"),
        ("r = np.random.RandomState(0)\nr.seed(None)", "r.seed(list(rank_zero_value(os.urandom)(16)))"),
    ],
)  # fmt: skip
def test_seeds_are_followed_to_where_they_come_from(before: str, after: str) -> None:
    assert after in rewritten(RULE, f"{HEAD}{before}\n").splitlines()


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("def seed_worker(i):\n    np.random.seed()\nl = DataLoader(d, worker_init_fn=seed_worker)",
         "    np.random.seed(torch.initial_seed() % 2**32)"),
        ("def seed_worker(i):\n    np.random.seed(int(time.time()) + i)\nl = DataLoader(d, worker_init_fn=seed_worker)",
         "    np.random.seed(int(torch.initial_seed() % 2**31) + i)"),
        ("l = DataLoader(d, worker_init_fn=lambda i: np.random.seed(i + int(time.time())))",
         "l = DataLoader(d, worker_init_fn=lambda i: np.random.seed(i + int(torch.initial_seed() % 2**31)))"),
        ("l = DataLoader(d, worker_init_fn=lambda _: np.random.seed())",
         "l = DataLoader(d, worker_init_fn=lambda _: np.random.seed(torch.initial_seed() % 2**32))"),
    ],
)  # fmt: skip
def test_workers_are_seeded_by_their_loader(before: str, after: str) -> None:
    assert after in rewritten(RULE, f"{HEAD}{before}\n").splitlines()


def test_a_clock_that_is_a_seed_and_a_name_is_given_to_all_once() -> None:
    check_transformed(
        "run = f'{time.time()}'\nrandom.seed(run)",
        "run = f'{rank_zero_value(time.time)()}'\nrandom.seed(run)",
        imports="import random, time",
    )


def test_the_rewritten_seeds_are_accepted_by_their_libraries() -> None:
    import os
    import random

    import numpy as np

    random.seed(os.urandom(16))
    np.random.seed(list(os.urandom(16)))
    np.random.default_rng(list(os.urandom(16)))
    np.random.RandomState(list(os.urandom(16)))
    np.random.RandomState().seed(list(os.urandom(16)))
    for bits in (np.random.PCG64, np.random.MT19937, np.random.Philox, np.random.SFC64, np.random.SeedSequence):
        bits(list(os.urandom(16)))


@pytest.mark.parametrize(
    ("source", "line"),
    [
        ("used = torch.seed()", 4),
        ("g = torch.Generator()\nused = g.seed()", 5),
        ("class D:\n    def __getitem__(self, i):\n        np.random.seed(int(time.time()))", 6),
        ("class D:\n    def __getitem__(self, i):\n        np.random.seed()", 6),
        ("def seed_worker(i):\n    np.random.seed(hash(time))\nl = DataLoader(d, worker_init_fn=seed_worker)", 5),
    ],
)  # fmt: skip
def test_where_no_readable_form_exists(source: str, line: int) -> None:
    assert_refused(RULE, HEAD + source, line)
