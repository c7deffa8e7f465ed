"""Loops that change each sample by itself, and loops that do not."""

from __future__ import annotations

import ast

import pytest
from ddpify_codemods.facts.flow.own_changes import changes_alone

from tests.codemods.checks import script_of
from tests.codemods.facts.flow.followed import TRAINING, undivided

HEAD = "import random\nimport numpy as np\nscale, table = 0.5, torch.rand(64, 4)\n"


def augmented(loop: str) -> str:
    """Training whose batches go through a loop before."""
    body = loop.replace("\n", "\n        ")
    return HEAD + TRAINING.replace("        optimizer.zero", f"        {body}\n        optimizer.zero", 1)


ALONE = [
    "for i in range(len(x)):\n    x[i, :] *= np.random.uniform(0.8, 1.2)",
    "for i in range(x.shape[0]):\n    if random.random() < 0.5:\n        x[i] = x[i].flip(0)",
    "s = torch.rand(len(x))\nfor i in range(x.size(0)):\n    x[i, :] = x[i, :] * s[i] + scale",
    "x = x.numpy()\nz = np.zeros(x.shape, dtype=np.float32)\nfor i in range(x.shape[0]):\n"
    "    angle = np.random.uniform() * 2 * np.pi\n    row = x[i, ...]\n"
    "    z[i, ...] = row.reshape(-1) * np.cos(angle)\n"
    "x = torch.from_numpy(z)",
    "x = x.data.numpy()\nfor b in range(x.shape[0]):\n    ratio = np.random.random() * scale\n"
    "    drop = np.where(np.random.random(x.shape[1]) <= ratio)[0]\n"
    "    if len(drop) > 0:\n        x[b, drop] = x[b, 0]\n"
    "x = torch.Tensor(x)",
]
TOGETHER = [
    "for i in range(len(x)):\n    x[i, :] = x[i, :] - x.mean()",
    "for i in range(len(x)):\n    x[i, :] = x[i - 1, :]",
    "for i in range(len(x)):\n    x[i, :] = x[0, :]",
    "for i in range(len(x)):\n    x[i, :] *= i",
    "for i in range(len(x)):\n    x[i, :] += table[i]",  # of the samples of all ranks
    "for i in range(len(x) - 1):\n    x[i, :] *= 2",
    "for i in range(1, len(x)):\n    x[i, :] *= 2",
    "last = 0\nfor i in range(len(x)):\n    x[i, :] += last\n    last = x[i, 0] * 2",
    "for i in range(len(x)):\n    row = table\n    row[0] += 1\n    x[i, :] *= row[0, 0]",
    "for i in range(len(x)):\n    x[i, :] *= 2\n    if random.random() < 0.5: break",
    "for i in range(len(x)):\n    x[i, :] = model(x[i, :])[:1] * x[i, :]",
]


@pytest.mark.parametrize("loop", ALONE)
def test_each_rank_changes_its_own_samples(loop: str) -> None:
    assert undivided(augmented(loop)) == []


@pytest.mark.parametrize("loop", TOGETHER)
def test_a_loop_that_computes_with_more_than_a_sample_is_followed_as_any_other(loop: str) -> None:
    assert undivided(augmented(loop)) != []


@pytest.mark.parametrize(
    ("body", "draws"),
    [
        ("x[i] *= np.random.uniform()", {"numpy"}),
        ("x[i] *= random.random() + torch.rand(1)", {"random", "torch"}),
        ("x[i] = x[i].clone().normal_()", {"torch"}),
        ("x[i] *= 2", set()),
    ],
)
def test_what_it_draws_is_told(body: str, draws: set[str]) -> None:
    script = script_of(f"import random\nimport numpy as np\nimport torch\nfor i in range(len(x)):\n    {body}\n")
    (loop,) = (node for node in script.nodes if isinstance(node, ast.For))
    found = changes_alone(script, loop)
    assert found is not None and found.draws == draws and set(found.changed) == {"x"}
