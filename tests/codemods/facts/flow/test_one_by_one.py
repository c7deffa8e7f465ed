"""Batches that next() takes of an iterator of a loader are followed."""

from __future__ import annotations

import ast

import pytest

from tests.codemods.facts.flow.followed import TRAINING, followed
from tests.codemods.plain.test_followed import HEAD, plain, refusals

LOOP = "    for x, y in train_loader:\n"
TAKEN = """\
    batches = iter(train_loader)
    for _ in range(8):
        x, y = next(batches)
"""


def test_the_loop_around_next_is_a_pass_over_the_loader() -> None:
    found = followed(TRAINING.replace(LOOP, TAKEN))
    assert found.problems == ()
    ((loop, loaders),) = found.found.by_next.loops.items()
    assert isinstance(loop, ast.For) and ast.unparse(loop.iter) == "range(8)"
    assert {found.status[each] for each in loaders} == {"training"}
    (passed,) = found.found.passes
    assert isinstance(passed.epochs, ast.For) and ast.unparse(passed.epochs.iter) == "range(2)"
    assert ast.unparse(passed.loop) == "batches = iter(train_loader)"


def test_a_loop_that_calls_what_takes_a_batch() -> None:
    taking = "def take():\n    return next(batches)\nbatches = iter(train_loader)\n"
    found = followed(taking + TRAINING.replace(LOOP, "    for _ in range(4):\n        x, y = take()\n"))
    (loop,) = found.found.by_next.loops
    assert isinstance(loop, ast.For) and ast.unparse(loop.iter) == "range(4)"


@pytest.mark.parametrize("loop", [LOOP, "    for x, y in iter(train_loader):\n"])
def test_a_loop_over_batches_takes_none_by_next(loop: str) -> None:
    assert not followed(TRAINING.replace(LOOP, loop)).found.by_next.loops


EVALUATION = "for x, y in test_loader:\n    total += (model(x).argmax(1) == y).sum().item()\nprint(total)\n"


def test_an_evaluation_whose_loader_comes_to_iter_too_is_divided_all_the_same() -> None:
    found = followed(TRAINING + EVALUATION + "batches = iter(test_loader)\n")
    assert found.problems == ()
    evaluations = {loader: each for loader, each in found.status.items() if each != "training"}
    (own,) = (loader for loader, each in evaluations.items() if each == "whole")
    assert own.source is not None and evaluations[own.source] == "batches"


DRAWN = """\
class Data(torch.utils.data.Dataset):
    def __len__(self):
        return 64
    def __getitem__(self, index):
        return torch.rand(4), 0
loader = DataLoader(Data(), batch_size=8, shuffle=True)
batches = iter(loader)
for step in range(9):
    try:
        x, y = next(batches)
    except StopIteration:
        batches = iter(loader)
        x, y = next(batches)
    loss = F.cross_entropy(model(x), y)
    loss.backward()
    optimizer.step()
"""


def test_workers_are_seeded_where_the_iterator_is_made() -> None:
    result = plain(HEAD + DRAWN)
    assert not refusals(result)
    assert "noise of its own" in result.code.partition("\nbatches = iter(loader)")[0]


SHUFFLED = """\
test_loader = DataLoader(test_set, batch_size=8, shuffle=True)
model = nn.Sequential(nn.Linear(4, 3), nn.Dropout(0.1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
"""
ONE = """\
    x, y = next(iter(test_loader))
    model.eval()
    loss = F.cross_entropy(model(x), y).item()
    model.train()
    print(loss)
    if loss < 0.5:
        break
"""
EPOCHS = TRAINING.replace("epoch in range(2)", "epoch in range(3)")


@pytest.mark.parametrize(
    ("changed", "by", "apart"),
    [
        ("", "", True),
        ("next(iter(", "next(enumerate(", True),
        ("shuffle=True)\nmodel", "shuffle=bool(len(test_set))) \nmodel", True),
        ("shuffle=True)\nmodel", "shuffle=False)\nmodel", False),
        ("shuffle=True)\nmodel", "shuffle=True, generator=torch.Generator())\nmodel", False),
        ("nn.Dropout(0.1)", "nn.ReLU()", False),
        ("    x, y = next", "    torch.manual_seed(0)\n    x, y = next", False),
    ],
)
def test_a_decision_by_one_batch_that_each_rank_draws_is_that_of_rank_0(changed: str, by: str, apart: bool) -> None:
    one = ONE.replace("x, y = next", "_, (x, y) = next") if "enumerate" in by else ONE
    source = SHUFFLED + EPOCHS + one
    result = plain(HEAD + (source.replace(changed, by) if changed else source))
    assert not refusals(result)
    assert ("if from_rank_0(loss < 0.5):" in result.code) is apart
    assert any("each rank takes one that it draws for itself" in each.message for each in result.findings) is apart


def test_a_batch_that_is_taken_before_training_is_alike_on_all_ranks() -> None:
    first = "x, y = next(iter(test_loader))\nif x.sum() > 0:\n    print(len(y))\n"
    result = plain(HEAD + SHUFFLED + first + EPOCHS)
    assert not refusals(result)
    assert "from_rank_0" not in result.code


@pytest.mark.parametrize("losses", ["[0, 0]", "{0: 0, 1: 0}"])
def test_a_batch_that_each_rank_draws_in_one_list_with_numbers_of_training(losses: str) -> None:
    source = SHUFFLED + f"losses = {losses}\n" + EPOCHS + "        losses[0] += loss.item()\n"
    source += ONE.replace("    if loss < 0.5:\n        break\n", "    losses[1] += loss\n")
    result = plain(HEAD + source + "print(losses[0] / 8, losses[1] / 2)\n")
    assert not refusals(result)
    assert "print(mean_over_ranks(losses[0] / 8), losses[1] / 2)" in result.code


PREFETCHER = """\
class Prefetcher:
    def __init__(self, loader):
        self.loader, self.data = loader, iter(loader)
    def next(self):
        try:
            return next(self.data)
        except StopIteration:
            return None
    def reset(self):
        self.data = iter(self.loader)
batches = Prefetcher(train_loader)
KEPT
for epoch in range(2):
    batches.reset()
    batch = batches.next()
    while batch is not None:
        x, y = batch
        loss = F.cross_entropy(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        batch = batches.next()
"""


def test_a_class_that_keeps_iterators_of_training_and_of_an_evaluation() -> None:
    assert not refusals(plain(HEAD + PREFETCHER.replace("KEPT\n", "")))
    found = refusals(plain(HEAD + PREFETCHER.replace("KEPT", "others = Prefetcher(test_loader)")))
    assert found and all("no loop is seen that trains" in each for each in found)


def test_a_loop_over_the_samples_of_training_that_does_not_train() -> None:
    source = "batches = enumerate(train_loader)\nfor i, (x, y) in batches:\n    print(i)\n"
    assert not any("no loop is seen that trains" in each for each in refusals(plain(HEAD + TRAINING + source)))
