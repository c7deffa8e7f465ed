"""Ranks are seeded alike before anything is drawn that has to be the same on all of them (S1, D11)."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from ddpify_codemods import convert

from .test_followed import plain, refusals, training

FIXED = "import argparse\nimport random\nimport numpy as np\nimport pandas as pd\nimport torch\n"
PARSED = """\
parser = argparse.ArgumentParser()
parser.add_argument("--seed", type=int, default={})
args = parser.parse_args()
"""
NAMES = ["torch", "numpy", "random"]


def seeded(begins: str, draws: str = "") -> list[str]:
    """The libraries that a conversion seeds."""
    body = training().replace("torch.manual_seed(0)\nrandom.seed(0)\n", "")
    result = plain(FIXED + begins + draws + body)
    joined = result.code.partition("init_process_group")[2]
    inserted = joined[: joined.index("parser =" if "parser" in begins + draws else "train_set =")]
    return re.findall(r"^(\w+(?:\.random)?)\.(?:manual_)?seed\(0\)$", inserted, re.MULTILINE)


@pytest.mark.parametrize(
    ("begins", "inserted"),
    [
        ("", ["torch"]),
        ("torch.manual_seed(1)\n", []),
        ("if len(__file__) > 3:\n    torch.manual_seed(1)\n", ["torch"]),
        ("def seed():\n    torch.manual_seed(1)\n", ["torch"]),
        ("def seed(number):\n    torch.manual_seed(number)\n\n\nseed(3)\n", []),
        ("from transformers import set_seed\nset_seed(3)\n", []),
        (PARSED.format(None) + "if args.seed is not None:\n    torch.manual_seed(args.seed)\n", ["torch"]),
        (PARSED.format(3) + "if args.seed:\n    torch.manual_seed(args.seed)\n", ["torch"]),
        (PARSED.format(3) + "torch.manual_seed(args.seed)\n", []),
        (PARSED.format(None) + "args.seed is not None and torch.manual_seed(args.seed)\n", ["torch"]),
        ("x = torch.rand(3)\ntorch.manual_seed(1)\n", ["torch"]),
    ],
)
def test_what_may_not_be_seeded_is(begins: str, inserted: list[str]) -> None:
    assert seeded(begins) == inserted


@pytest.mark.parametrize(
    ("draws", "inserted"),
    [
        ("order = np.random.permutation(64)\n", ["np.random"]),
        ("np.random.seed(1)\norder = np.random.permutation(64)\n", []),
        ("order = np.random.permutation(64)\nnp.random.seed(1)\n", ["np.random"]),
        ("from sklearn.model_selection import train_test_split\na, b = train_test_split(range(9))\n", ["np.random"]),
        (
            "from sklearn.model_selection import train_test_split\n"
            "a, b = train_test_split(range(9), random_state=None)\n",
            ["np.random"],
        ),
        (
            "from sklearn.model_selection import train_test_split\na, b = train_test_split(range(9), random_state=3)\n",
            [],
        ),
        (
            "SEED = 3\nfrom sklearn.model_selection import train_test_split\n"
            "a, b = train_test_split(range(9), random_state=SEED)\n",
            [],
        ),
        (
            PARSED.format(3) + "from sklearn.model_selection import train_test_split\n"
            "a, b = train_test_split(range(9), random_state=args.seed)\n",
            [],
        ),
        (
            PARSED.format(None) + "from sklearn.model_selection import train_test_split\n"
            "a, b = train_test_split(range(9), random_state=args.seed)\n",
            ["np.random"],
        ),
        ("from sklearn.model_selection import KFold\nfolds = KFold(5, shuffle=True)\n", ["np.random"]),
        ("from sklearn.model_selection import KFold\nfolds = KFold(5)\n", []),
        ("def KFold(count, shuffle):\n    return count\n\n\nfolds = KFold(5, shuffle=True)\n", []),
        ("from sklearn.metrics import f1_score\nprint(f1_score([1], [1]))\n", []),
        ("frame = pd.DataFrame({'a': [1, 2]}).sample(frac=1)\n", ["np.random"]),
        ("frame = pd.DataFrame({'a': [1, 2]}).sample(frac=1, random_state=1)\n", []),
        ("random.shuffle(order := list(range(9)))\n", ["random"]),
    ],
)
def test_generators_that_are_drawn_from_are_seeded(draws: str, inserted: list[str]) -> None:
    assert seeded("torch.manual_seed(1)\n", draws) == inserted


@pytest.mark.parametrize(
    ("default", "seeds", "refused"),
    [
        (None, "np.random.seed(args.seed)\n", True),
        (None, "random.seed(args.seed)\n", True),
        (None, "if __name__ == '__main__':\n    random.seed(args.seed)\n", True),
        (3, "np.random.seed(args.seed)\n", False),
        (None, "if args.seed is not None:\n    np.random.seed(args.seed)\n", False),
        (None, "torch.manual_seed(args.seed)\n", False),  # it raises
        (None, "if args.seed is None:\n    args.seed = 3\nrandom.seed(args.seed)\n", False),
        (None, "if args.seed is None:\n    args.seed = random.randint(1, 9)\nrandom.seed(args.seed)\n", False),
        (None, "if args.seed is None:\n    args.seed = uuid.uuid4().int % 9\nrandom.seed(args.seed)\n", True),
        (
            None,
            "if args.seed is None:\n    args.seed = random.SystemRandom().random()\nrandom.seed(args.seed)\n",
            True,
        ),
        (None, "if args.seed:\n    args.seed = 3\nrandom.seed(args.seed)\n", True),
        (None, "if args.seed is None:\n    args.seed = None\nrandom.seed(args.seed)\n", True),
        (None, "random.seed(args.seed)\nif args.seed is None:\n    args.seed = 3\n", True),
    ],
)
def test_a_seed_that_may_be_none_is_refused(default: int | None, seeds: str, refused: bool) -> None:
    found = refusals(plain(FIXED + PARSED.format(default) + seeds + training()))
    assert any("seeds each process otherwise" in message for message in found) is refused


def test_the_group_is_joined_before_a_seed_is_drawn_by_an_import() -> None:
    own = "import time\nimport torch\ntorch.manual_seed(int(time.time()))\n"
    path, other = Path("train.py"), Path("seeds.py")
    found = convert({path: "import seeds\n" + training(), other: own}, "cpu", style="plain")
    code = found[path].code
    assert code.index("init_process_group") < code.index("import seeds")
    assert "torch.manual_seed(int(from_rank_0(time.time())))" in found[other].code
