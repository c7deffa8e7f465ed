"""Some of the sizes of a tensor."""

from __future__ import annotations

import pytest

from tests.codemods.facts.flow.followed import TRAINING, followed

HEAD = "import math\nimport numpy as np\n"
SUM = "F.mse_loss(model(x)[:, 0], y.float(), reduction='sum')"


def training(first: str, loss: str) -> str:
    """A training loop that computes something of a batch first."""
    return HEAD + TRAINING.replace("F.cross_entropy(model(x), y)", loss).replace(
        "        loss =", f"        {first}\n        loss =", 1
    )


@pytest.mark.parametrize(
    "count",
    [
        "n, _ = x.shape[:2]",
        "n, _ = x.size()[:2]",
        "n, = x.shape[:-1]",
        "n, _ = x.shape[-2:]",
        "n = x.size(-2)",
        "n = x.shape[:1][0]",
        "n = x[None].shape[1:][0]",
        "n = x.T.shape[1]",
        "n, _ = list(x.shape)",
        "n, _ = tuple(x.size())",
        "n = torch.tensor(x.shape)[0]",
        "n = x.shape.numel()",
        "n = x.shape[:2].numel()",
        "n = float(np.prod(x.shape[:-1]))",
        "n = math.prod(x.shape)",
        "n = torch.ones(x.shape[:1] + (3,)).sum()",
        "n = x.new_ones(x.shape[:1]).sum()",
        "n = torch.ones(*x.shape[:-1], 3).sum()",
    ],
)
def test_the_number_of_samples_is_among_them(count: str) -> None:
    found = followed(training(count, f"{SUM} / n"))
    assert not found.problems
    assert list(found.found.backwards.values()) == [{"mean"}]


@pytest.mark.parametrize("count", ["n = x.shape[-1]", "n = x.shape[1:][0]", "n = x.size(1)", "n = x[None].shape[2]"])
def test_other_sizes_are_those_of_each_sample(count: str) -> None:
    assert list(followed(training(count, f"{SUM} / n")).found.backwards.values()) == [{"sum"}]


@pytest.mark.parametrize(
    "first",
    [
        "x = x.view(*x.shape[:1], -1)",
        "x = x.reshape(x.shape[:-1] + (4,))",
        "x = x * torch.rand(x.shape[:1] + (1,))",
        "x = torch.cat([x, x.new_zeros(*x.shape[:-1], 1)], -1)[:, :4]",
        "assert y.shape == x.shape[:1]",
        "assert y.shape == x.shape[:-1], f'{y.shape} {x.shape[:-1]}'",
        "print(x.shape[:1])",
    ],
)
def test_tensors_of_such_sizes(first: str) -> None:
    found = followed(training(first, "F.cross_entropy(model(x), y)"))
    assert not found.problems
    assert list(found.found.backwards.values()) == [{"mean"}]


def test_a_norm_over_them_couples_samples() -> None:
    first = "x = F.layer_norm(x.unsqueeze(0), x.unsqueeze(0).shape[1:])[0]"
    found = followed(training(first, "F.cross_entropy(model(x), y)"))
    assert found.problems or found.found.joined
