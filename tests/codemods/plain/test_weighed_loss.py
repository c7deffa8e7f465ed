"""Losses whose targets count differently: what is divided by the targets of all ranks, and what is refused (L3)."""

from __future__ import annotations

from pathlib import Path

import pytest
from ddpify_codemods import Result, convert

from .test_followed import CE, HEAD, LOOP, plain, refusals, training, undivided

MADE = "criterion = nn.CrossEntropyLoss({})\n"
WEIGHTS = "weights = torch.tensor([1.0, 2.0, 3.0])\n"
CALL = "criterion(model(x), y)"


def with_criterion(options: str, loss: str = CALL, before: str = WEIGHTS, after: str = "") -> str:
    """A script that trains with a criterion that is made with some options."""
    return HEAD + before + MADE.format(options) + LOOP.format(loss=loss, step="optimizer.step()") + after


@pytest.mark.parametrize(
    ("source", "count"),
    [
        (with_criterion("ignore_index=0"), "(y != criterion.ignore_index).sum()"),
        (with_criterion("ignore_index=0, label_smoothing=0.1"), "(y != criterion.ignore_index).sum()"),
        (
            with_criterion("ignore_index=0").replace("criterion", "CrossEntropyLoss"),
            "(y != CrossEntropyLoss.ignore_index).sum()",
        ),
        (with_criterion("weights"), "criterion.weight[y].sum()"),
        (with_criterion("weights, label_smoothing=0.1"), "criterion.weight[y].sum()"),
        (with_criterion("weight=weights.to('cpu')"), "criterion.weight[y].sum()"),
        (
            with_criterion("weight=weights, ignore_index=-1, reduction='mean'"),
            "criterion.weight[y[y != criterion.ignore_index]].sum()",
        ),
        (training("F.cross_entropy(model(x), y, ignore_index=2)"), "(y != 2).sum()"),
        (
            training("F.nll_loss(model(x).log_softmax(1), y, weight=w)").replace("total", "w = torch.rand(3)\ntotal"),
            "w[y].sum()",
        ),
        (
            training("F.cross_entropy(model(x), y[:].view(-1), weight=w)").replace(
                "total", "w = torch.rand(3)\nw /= w.sum()\nPAD = -100\ntotal"
            ),
            "w[y[:].view(-1)[y[:].view(-1) != -100]].sum()",
        ),
        (
            with_criterion("weights").replace(
                "optimizer.zero", "y[x[:, 0] < 0] = criterion.ignore_index\n        optimizer.zero"
            ),
            "criterion.weight[y[y != criterion.ignore_index]].sum()",
        ),
    ],
)
def test_a_mean_is_divided_by_the_targets_of_all_ranks(source: str, count: str) -> None:
    result = plain(source)
    assert not refusals(result)
    assert f" / mean_over_ranks({count})\n" in result.code
    assert 'reduction="sum")' in result.code and "def mean_over_ranks" in result.code


REFUSED = {
    "weights that may be None": with_criterion(
        "weights", before="weights = None\nif total:\n    weights = torch.rand(3)\n"
    ),
    "weights of unknown origin": with_criterion("weights", before="import config\nweights = config.weights\n"),
    "targets that may be probabilities": with_criterion("").replace("total = 0.0", "total = -100"),
    "smoothed ones that may be probabilities": with_criterion("label_smoothing=0.1").replace("total = 0.0", "t = -100"),
    "weights of a batch": with_criterion("").replace(
        "loss =", "criterion = nn.CrossEntropyLoss(weight=1 / (1 + torch.bincount(y, minlength=3)))\n        loss ="
    ),
    "a sum with weights of a batch": with_criterion("").replace(
        CALL, "nn.CrossEntropyLoss(torch.rand(64)[y][:3], reduction='sum')(model(x), y)"
    ),
    "targets that are computed": with_criterion("ignore_index=0", "criterion(model(x), y.random_(3))"),
    "a loss that is only computed at times": with_criterion("ignore_index=0", f"(epoch > 2 and {CALL}) or {CE}"),
    "a loss that is given away": with_criterion("ignore_index=0", before="import lib\n", after="lib.use(criterion)\n"),
    "another call that is not seen": with_criterion(
        "ignore_index=0", after="def later(model):\n    return criterion(model(train_set[0][0]), 1)\n"
    ),
    "another call that cannot be changed": with_criterion(
        "ignore_index=0", after=f"print([{CALL}.item() for x, y in test_loader])\n"
    ),
    "a reduction that is chosen": with_criterion("ignore_index=0, reduction=random.choice(['sum', 'mean'])"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_cannot_be_written_so_is_not_divided(name: str) -> None:
    assert undivided(plain(REFUSED[name]))


def test_an_evaluation_divides_by_the_targets_of_its_batch() -> None:
    after = f"for x, y in test_loader:\n    loss = {CALL}\n    total += (y == 1).sum().item()\nprint(total)\n"
    result = plain(with_criterion("ignore_index=0", after=after))
    assert not refusals(result) and "test_loader = DataLoader(test_set, batch_size=8)\n" not in result.code
    assert result.code.count("/ mean_over_ranks((y != criterion.ignore_index)") == 1
    assert result.code.count("/ (y != criterion.ignore_index).sum()") == 1


def test_an_evaluation_that_asks_all_ranks_in_each_batch_is_whole() -> None:
    both = f"def one(x, y):\n    return {CALL}\n"
    after = "for x, y in test_loader:\n    loss = one(x, y)\n    total += (y == 1).sum().item()\nprint(total)\n"
    result = plain(with_criterion("ignore_index=0", "one(x, y)", after=after, before=both))
    assert not refusals(result) and "test_loader = DataLoader(test_set, batch_size=8)\n" in result.code


def test_a_mean_over_the_targets_of_one_sample_is_that_of_all_ranks() -> None:
    loss = "sum(criterion(out[None], one[None]) for out, one in zip(model(x), y))"
    result = plain(with_criterion("ignore_index=0", loss))
    assert not refusals(result) and "(loss * dist.get_world_size()).backward()" in result.code


def test_a_sum_of_such_targets_stays_as_it_is() -> None:
    result = plain(with_criterion("ignore_index=0, reduction='sum'"))
    assert not refusals(result) and "mean_over_ranks" not in result.code
    assert "(loss * dist.get_world_size()).backward()" in result.code


@pytest.mark.parametrize("call", [CALL, "criterion.forward(model(x), y)"])
@pytest.mark.parametrize(
    ("weighed", "count"),
    [("ignore_index=2", "(y != criterion.ignore_index).sum()"), ("weights", "criterion.weight[y].sum()")],
)
def test_one_of_a_kind_is_divided_that_is_a_sum(weighed: str, count: str, call: str) -> None:
    """The other one stays a mean, whose targets may be anything."""
    makes = f"{WEIGHTS}criterion = nn.CrossEntropyLoss()\nif total:\n    criterion = nn.CrossEntropyLoss({weighed})\n"
    after = f"for x, y in test_loader:\n    total += {CALL}.item() * len(y)\nprint(total / len(test_set))\n"
    result = plain(HEAD + makes + LOOP.format(loss=call, step="optimizer.step()") + after)
    assert not refusals(result)
    assert f' / (mean_over_ranks({count}) if criterion.reduction == "sum" else 1)\n' in result.code
    assert f' / ({count} if criterion.reduction == "sum" else 1)).item() * len(y)\n' in result.code
    assert result.code.count('reduction="sum"') == 1 and "criterion = nn.CrossEntropyLoss()\n" in result.code


def test_two_that_are_counted_alike() -> None:
    makes = f"{WEIGHTS}criterion = nn.CrossEntropyLoss(weights) if total else nn.CrossEntropyLoss(torch.rand(3))\n"
    result = plain(HEAD + makes + LOOP.format(loss=CALL, step="optimizer.step()"))
    assert not refusals(result) and result.code.count('reduction="sum"') == 2
    assert " / mean_over_ranks(criterion.weight[y].sum())\n" in result.code


@pytest.mark.parametrize(
    "other",
    [
        "nn.CrossEntropyLoss(weight=torch.ones(3))",  # counted otherwise
        "nn.CrossEntropyLoss(reduction='sum')",
        "nn.CrossEntropyLoss(reduction=random.choice(['sum', 'mean']))",
        "nn.CrossEntropyLoss(weight=unknown)",
    ],
)
def test_two_of_a_kind_are_refused_by_one_name(other: str) -> None:
    """Which of them leaves targets out, or weighs them, is not seen where they are called."""
    makes = f"unknown = total\ncriterion = nn.CrossEntropyLoss(ignore_index=2) if len(__file__) > 3 else {other}\n"
    assert undivided(plain(HEAD + makes + LOOP.format(loss=CALL, step="optimizer.step()")))


@pytest.mark.parametrize("line", ["criterion.reduction = 'mean'", "print(criterion.reduction)"])
def test_a_loss_whose_reduction_is_asked_or_set(line: str) -> None:
    """It would be another one."""
    assert refusals(plain(with_criterion("ignore_index=0", before=WEIGHTS) + f"{line}\n"))


@pytest.mark.parametrize("shown", ["* len(y)", "* y.size(0)"])
def test_an_evaluation_weighs_the_means_of_whole_batches(shown: str) -> None:
    """A mean of a rank's samples, times how many they are, is no part of that of the batch."""
    after = f"for x, y in test_loader:\n    total += {CALL}.item() {shown}\nprint(total / len(test_set))\n"
    result = plain(with_criterion("weights", after=after))
    assert not refusals(result) and "range(dist.get_rank()" not in result.code


IN_MODULE = """\
class Loss(nn.Module):
    def forward(self, out, target, weight):
        return F.nll_loss(out.log_softmax(1), target, weight=weight)


weights = torch.tensor([1.0, 2.0, 3.0])
measure = Loss()
"""
EVALUATED = """\
with {}:
    for x, y in test_loader:
        total += measure(model(x), y, weights).item()
print(total / len(test_loader))
"""


def of_module(quiet: str, before: str = "", after: str = "") -> str:
    """A script whose loss is in a module that stays in training."""
    return (
        HEAD
        + before
        + IN_MODULE
        + LOOP.format(loss="measure(model(x), y, weights)", step="optimizer.step()")
        + EVALUATED.format(quiet)
        + after
    )


def test_a_module_asks_whether_gradients_are_computed() -> None:
    """For a loss that nobody sets to evaluation."""
    for quiet in ("torch.no_grad()", "torch.inference_mode()"):
        result = plain(of_module(quiet))
        assert not refusals(result) and "test_loader = DataLoader(test_set, batch_size=8)\n" not in result.code
        assert " / (mean_over_ranks(counted) if torch.is_grad_enabled() else counted)\n" in result.code


@pytest.mark.parametrize(
    ("quiet", "before"),
    [
        ("open(__file__)", ""),
        ("torch.set_grad_enabled(total > 3)", ""),
        ("torch.enable_grad()", ""),
        ("torch.no_grad(), torch.enable_grad()", ""),
        ("torch.no_grad()", "from torch.utils.checkpoint import checkpoint\n"),
    ],
)
def test_an_evaluation_with_gradients_is_whole(quiet: str, before: str) -> None:
    result = plain(of_module(quiet, before))
    assert "is_grad_enabled" not in result.code
    assert refusals(result) or "test_loader = DataLoader(test_set, batch_size=8)\n" in result.code


def test_training_that_is_measured_without_gradients() -> None:
    """All ranks are there together: they divide by what all have."""
    quietly = "        with torch.no_grad():\n            total += measure(model(x), y, weights).item()\n"
    result = plain(
        of_module("torch.no_grad()").replace("        optimizer.zero_grad", f"{quietly}        optimizer.zero_grad")
    )
    assert "if self.training else counted" in result.code or refusals(result)


def test_a_loss_that_is_called_by_its_forward() -> None:
    result = plain(with_criterion("ignore_index=0", "criterion.forward(model(x), y)"))
    assert not refusals(result)
    assert "criterion.forward(ddp_model(x), y) / mean_over_ranks((y != criterion.ignore_index).sum())" in result.code
    after = "print(criterion(torch.rand(2, 3), torch.tensor([1, 2])))\n"  # it would become a sum
    assert refusals(plain(with_criterion("ignore_index=0", "criterion.forward(model(x), y)", after=after)))


@pytest.mark.parametrize("call", ["criterion", "criterion.forward"])
@pytest.mark.parametrize(
    "after",
    [
        "measure = criterion.forward\nprint(measure(torch.rand(2, 3), torch.tensor([1, 2])))\n",
        "print(*map(criterion.forward, [torch.rand(2, 3)], [torch.tensor([1, 2])]))\n",
        "other = criterion\nmeasure = other.forward\nprint(measure(torch.rand(2, 3), torch.tensor([1, 2])))\n",
    ],
)
def test_a_forward_that_is_called_elsewhere(call: str, after: str) -> None:
    """What it gives there would become a sum."""
    assert refusals(plain(with_criterion("ignore_index=0", f"{call}(model(x), y)", after=after)))


def test_a_forward_of_something_else() -> None:
    after = "step = model.forward\n"
    assert not refusals(plain(with_criterion("ignore_index=0", "criterion(model(x), y)", after=after)))


ENGINE = """\
import torch
import torch.nn as nn


def train(model, loader, criterion, optimizer):
    for x, y in loader:
        loss = criterion(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


def distill(model, teacher, loader, criterion):
    for x, _ in loader:
        criterion(model(x), teacher(x)).backward()
"""
STARTED = "\ncriterion = nn.CrossEntropyLoss(ignore_index=0)\ntrain(model, train_loader, criterion, optimizer)\n"


def of_engine(after: str = "", engine: str = ENGINE, imports: str = "from engine import train\n") -> dict[str, Result]:
    """What is made of a script, and of the file with its loop."""
    files = {Path("train.py"): imports + HEAD + STARTED + after, Path("engine.py"): engine}
    return {path.stem: result for path, result in convert(files, "cpu", style="plain").items()}


def test_what_the_program_never_uses_calls_another_loss() -> None:
    found = of_engine()
    assert not refusals(found["train"]) and not refusals(found["engine"])
    assert " / mean_over_ranks((y != criterion.ignore_index).sum())\n" in found["engine"].code


def test_others_give_the_same_function_a_loss_of_their_own() -> None:
    """It stays a mean, which is divided already."""
    others = "\n\ndef start(model, loader, optimizer):\n    train(model, loader, nn.CrossEntropyLoss(), optimizer)\n"
    found = of_engine(engine=ENGINE + others)
    asked = 'criterion.reduction == "sum"'
    assert f" / (mean_over_ranks((y != criterion.ignore_index).sum()) if {asked} else 1)\n" in found["engine"].code


@pytest.mark.parametrize(
    ("after", "imports"),
    [
        ("engine.distill(model, model, test_loader, criterion)\n", "import engine\nfrom engine import train\n"),
        ("for step in (train, distill):\n    print(step)\n", "from engine import train, distill\n"),
        ("getattr(engine, names[0])(model)\n", "import engine\nfrom engine import train\nnames = ['distill']\n"),
        ("engine.__dict__[names[0]](model)\n", "import engine\nfrom engine import train\nnames = ['distill']\n"),
        ("eval(names[0])(model)\n", "from engine import *\nnames = ['distill']\n"),
        ("print(criterion(torch.rand(2, 3), torch.tensor([1, 2])))\n", "from engine import train\n"),
    ],
)
def test_what_the_program_may_use_calls_a_loss(after: str, imports: str) -> None:
    found = of_engine(after, imports=imports)
    assert refusals(found["train"]) or refusals(found["engine"])


def test_a_function_that_is_registered_may_be_used() -> None:
    registered = ENGINE.replace("def distill", "STEPS = {}\n\n\n@STEPS.setdefault\ndef distill")
    found = of_engine(engine=registered)
    assert refusals(found["train"]) or refusals(found["engine"])
