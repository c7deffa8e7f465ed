"""What plain code cannot promise is said, once for a program (DDP611)."""

from __future__ import annotations

from pathlib import Path

import pytest
from ddpify_codemods import convert

from .test_followed import training

PATH = Path("train.py")
SOURCE = training()
MADE = "train_loader = DataLoader(train_set, batch_size=8, shuffle=True)"


def _said(source: str, target: str = "cpu", per_process: bool = False) -> list[str]:
    """What is said beside the order of samples, at the training loader."""
    found = convert({PATH: source}, target, style="plain", per_process=per_process)[PATH].findings
    order, *others = [each for each in found if each.rule == "DDP611"]
    assert "the order of DistributedSampler" in order.message
    assert {each.line for each in (order, *others)} == {source[: source.index(MADE[:30])].count("\n") + 1}
    return [each.message for each in others]


@pytest.mark.parametrize(
    ("model", "said"),
    [
        ("nn.Linear(4, 3)", []),
        ("nn.Sequential(nn.Dropout(), nn.Linear(4, 3))", ["dropout draws"]),
        ("nn.Sequential(nn.LayerNorm(4), nn.Linear(4, 3))", []),
        ("nn.Sequential(nn.BatchNorm1d(4), nn.Linear(4, 3))", ["BatchNorm takes", "where a rank's last batch"]),
    ],
)
def test_what_a_model_draws_or_measures(model: str, said: list[str]) -> None:
    found = _said(SOURCE.replace("nn.Linear(4, 3)", model))
    assert len(found) == len(said)
    assert all(each.startswith(begin) for each, begin in zip(found, said, strict=True))


def test_a_last_batch_that_is_left_out_has_enough_samples() -> None:
    source = SOURCE.replace("nn.Linear(4, 3)", "nn.Sequential(nn.BatchNorm1d(4), nn.Linear(4, 3))")
    [statistics] = _said(source.replace("batch_size=8, shuffle=True", "batch_size=8, shuffle=True, drop_last=True"))
    assert statistics.startswith("BatchNorm takes")


@pytest.mark.parametrize(
    ("given", "target", "twice"),
    [
        ("shuffle=True, drop_last=True", "cpu", False),
        ("shuffle=True, **dict(drop_last=True)", "cpu", True),
        ("shuffle=True, drop_last=False", "cpu", True),
        ("shuffle=True, drop_last=len(sys.argv) > 1", "cpu", True),
        ("shuffle=True, drop_last=True", "ignite", True),
    ],
)
def test_samples_come_twice_unless_the_sampler_leaves_the_last_ones_out(given: str, target: str, twice: bool) -> None:
    source = "import sys\n" + SOURCE.replace("shuffle=True", given)
    found = convert({PATH: source}, target, style="plain")[PATH]
    said = next(each.message for each in found.findings if each.rule == "DDP611")
    assert ("come twice in an epoch" in said) is twice and ("none comes twice" in said) is not twice
    assert twice or "shuffle=True, drop_last=True)" in found.code


@pytest.mark.parametrize(("size", "is_said"), [("2", True), ("64", False)])
def test_a_batch_that_many_ranks_divide_to_nothing(size: str, is_said: bool) -> None:
    source = SOURCE.replace("batch_size=8, shuffle", f"batch_size={size}, shuffle")
    assert any(each.startswith("the batch size is 2: with W larger") for each in _said(source)) is is_said
    assert [each[:34] for each in _said(source, per_process=True)] == ["the batch size is that of each pro"]


@pytest.mark.parametrize(("lines", "is_said"), [("", True), ("model.cuda()\n", False)])
def test_a_gpu_that_nobody_names(lines: str, is_said: bool) -> None:
    source = SOURCE.replace("optimizer = ", f"{lines}optimizer = ", 1)
    assert any(each.startswith("no cuda device is named") for each in _said(source, "cuda")) is is_said


def test_runs_that_begin_alike() -> None:
    unseeded = SOURCE.replace("torch.manual_seed(0)\n", "")
    assert unseeded != SOURCE
    found = convert({PATH: unseeded}, "cpu", style="plain")[PATH].findings
    assert [each.line for each in found if each.message.startswith("each run begins with the same")]
    assert not any(each.startswith("each run begins with the same") for each in _said(SOURCE))
