"""Methods of values that the program does not define."""

from __future__ import annotations

import pytest

from tests.codemods.facts.flow.followed import HEAD, TRAINING, followed, of_evaluation, reasons, undivided
from tests.codemods.plain.test_followed import plain


def test_numbers_are_taken_out_of_tensors() -> None:
    for method in ("item()", "detach().item()", "cpu().item()"):
        found = of_evaluation(f"total += F.cross_entropy(model(x), y, reduction='sum').{method}")
        assert found.problems == () and "sharded" in found.status.values()


NOISE = "noise = torch.distributions.uniform.Uniform(low=-1.0, high=1.0)\n" + TRAINING.replace(
    "model(x)", "model(x + {})"
)


def test_what_a_distribution_draws_for_a_ranks_samples() -> None:
    for size in ("(len(x), 4)", "[x.shape[0], 4]", "x.shape"):
        found = followed(NOISE.format(f"noise.sample({size})"))
        assert not found.problems and "torch" in found.drawn, size
    assert undivided(NOISE.format("noise.sample([4, len(x)])")) != []


def test_what_a_distribution_draws_for_all_is_not_the_same_on_ranks_that_have_noise_of_their_own() -> None:
    decides = NOISE.format("noise.sample((len(x), 4))").replace(
        "loss.backward()", "if noise.sample() > 0:\n            print(1)\n        loss.backward()"
    )
    assert "if from_rank_0(bool(noise.sample() > 0)):" in plain(HEAD + decides).code


def test_what_all_have_is_expanded_as_samples_are() -> None:
    masked = TRAINING.replace("model(x)", "model(x) * (torch.arange(3).expand_as(model(x)) > 0)")
    assert undivided(masked) == []


REPEATED = TRAINING.replace("F.cross_entropy(model(x), y)", "{}.mean()")


def test_samples_that_are_repeated_along_other_dimensions() -> None:
    for made in ("model(x).view(len(x), 3, 1).repeat(1, 1, 2)", "model(x).unsqueeze(2).repeat([1, 2, 3])"):
        assert undivided(REPEATED.format(f"torch.cat([{made}, {made}], 1)")) == [], made
    for made in (
        "model(x).view(len(x), -1).repeat(len(x), 1)",
        "model(x)[x[:, 0] > 0.5].unsqueeze(1).repeat(1, 2)",
        "model(x).repeat(1, 1, 2).softmax(1)",
        "model(x).unsqueeze(2).repeat(2, 1, 1).softmax(1)",
        "model(x).unsqueeze(1).repeat(1, 1, 2, 1).softmax(1)",
    ):
        assert undivided(REPEATED.format(made)), made


def test_samples_that_lie_behind_steps_are_not_followed_when_steps_are_counted_anew() -> None:
    for sizes, is_followed in (
        ("steps, len(x) * 2, -1", True),
        ("(steps, len(x) * 2, -1)", True),
        ("steps // 2, len(x), -1", False),  # the memory of a step holds all samples
        ("(steps // 2, len(x), -1)", False),
        ("half, len(x), -1", False),
        ("part, len(x), -1", False),
        ("twice, len(x), -1", False),
        ("pixels, len(x), -1", True),
        ("steps, len(x), -1", True),
        ("3, len(x), -1", False),  # which may be another number of steps
    ):
        made = f"model(x).unsqueeze(2).permute(1, 0, 2).view({sizes}).transpose(0, 1).softmax(1)"
        counted = "half = steps // 2\npart = int(steps / 2)\ntwice = steps\ntwice *= 2\npixels = steps * int(input())\n"
        script = REPEATED.format(made).replace("for x, y", f"steps = int(input())\n{counted}for x, y", 1)
        assert (undivided(script) == []) is is_followed, sizes


def test_what_runs_over_samples_behind_steps_couples_them() -> None:
    for along, is_followed in (("softmax(0)", True), ("softmax(1)", False), ("softmax(2)", True), ("mean(1)", True)):
        made = f"model(x).unsqueeze(2).permute(1, 0, 2).view(STEPS, len(x), -1).{along}"
        assert (undivided("STEPS = 3\n" + REPEATED.format(made)) == []) is is_followed, along


TABLE = """\
steps, table = torch.randint(0, 9, {sizes}), torch.sqrt(torch.linspace(0, 1, 9))
        loss = F.mse_loss(model(x * table.gather({dimension}, steps).reshape({shape})).sum(1), y.float())
"""


@pytest.mark.parametrize(
    ("sizes", "dimension", "shape", "fits"),
    [
        ("(len(x),)", "-1", "len(x), 1", True),
        ("(len(x),)", "0", "len(x), *((1,) * (len(x.shape) - 1))", True),
        ("(len(x), 4)", "-1", "len(x), 4", False),
        ("x.shape", "0", "len(x), 4", False),
    ],
)
def test_numbers_that_a_table_has_for_each_sample(sizes: str, dimension: str, shape: str, fits: bool) -> None:
    line = "loss = F.cross_entropy(model(x), y)\n"
    given = TABLE.format(sizes=sizes, dimension=dimension, shape=shape)
    assert bool(reasons(TRAINING.replace(line, given))) is not fits
