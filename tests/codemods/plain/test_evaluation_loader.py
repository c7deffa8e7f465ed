"""Evaluations take every W-th sample on each rank, where what they measure can be added up (DDP604)."""

from __future__ import annotations

import pytest

from tests.codemods.plain.test_followed import CE, EVALUATION, HEAD, LOOP, notes, plain, refusals, training


def test_a_sum_over_an_evaluation_is_divided() -> None:
    adds = "total += (model(x).argmax(1) == y).sum().item()"
    result = plain(training(after=EVALUATION.format(adds=adds, shown="total / len(test_set)")))
    assert not refusals(result) and not notes(result)
    assert "sampler=range(dist.get_rank(), len(test_set), dist.get_world_size())" in result.code
    assert "total = sum_over_ranks(total)" in result.code


@pytest.mark.parametrize(
    ("adds", "shown"),
    [
        ("total = max(total, (model(x).argmax(1) == y).float().mean().item())", "total"),
        ("total += (model(x).argmax(1) == y).sum().item() ** 2", "total"),
        ("total += (model(x).argmax(1) == y).sum().item(); print(y[0])", "total"),
    ],
)
def test_what_cannot_be_added_up_is_evaluated_whole(adds: str, shown: str) -> None:
    result = plain(training(after=EVALUATION.format(adds=adds, shown=shown)))
    assert not refusals(result)
    assert notes(result)
    assert "range(dist.get_rank()" not in result.code and "_over_ranks" not in result.code


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("DataLoader(test_set, batch_size=8)", "DataLoader(test_set, batch_size=8, drop_last=True)"),
        ("DataLoader(test_set, batch_size=8)", "DataLoader(test_set, batch_size=8, **{'drop_last': True})"),
        ("total += (m", "total += len(y); break; total += (m"),
        ("total = 0.0\n", "from somewhere import roc\ntotal = roc(model, [test_loader])\n"),
    ],
)
def test_an_evaluation_that_is_not_of_every_sample_is_whole(before: str, after: str) -> None:
    """Ranks that each leave out their last samples leave out more than one process does."""
    adds = "total += (model(x).argmax(1) == y).sum().item()"
    result = plain(training(after=EVALUATION.format(adds=adds, shown="total")).replace(before, after))
    assert not refusals(result) and notes(result)
    assert "range(dist.get_rank()" not in result.code


@pytest.mark.parametrize(
    "batches",
    [
        "islice(test_loader, 3)",
        "[x_y for _, x_y in zip(range(3), test_loader)]",
        "(x_y for x_y, name in zip(test_loader, ['a', 'b']))",
        "(x_y for x_y, _ in zip(test_loader, DataLoader(train_set, 8)))",
    ],
)
def test_an_evaluation_of_the_first_batches_is_whole(batches: str) -> None:
    """Each rank would take as many of its own."""
    adds = "total += (model(x).argmax(1) == y).sum().item()"
    after = "from itertools import islice\n" + EVALUATION.format(adds=adds, shown="total").replace(
        "test_loader", batches
    )
    result = plain(training(after=after))
    assert not refusals(result) and notes(result)
    assert "sum_over_ranks" not in result.code


@pytest.mark.parametrize("condition", ["", "if quick: "])
def test_an_evaluation_that_a_function_leaves_early_is_whole(condition: str) -> None:
    """Each rank would count the first batch of its own."""
    function = "quick = True\ndef hits(loader):\n    count = 0\n    for x, y in loader:\n"
    function += f"        count += (model(x).argmax(1) == y).sum().item()\n        {condition}return count\n"
    result = plain(training(after=function + "    return count\nprint(hits(test_loader))\n"))
    assert not refusals(result) and "ends before its end" in notes(result)[0]
    assert "print(hits(test_loader))" in result.code


def test_what_an_unknown_function_evaluates_is_whole_beside_an_evaluation_that_is_divided() -> None:
    adds = "total += (model(x).argmax(1) == y).sum().item()"
    after = "from somewhere import roc\nprint(roc(model, test_loader))\n" + EVALUATION.format(adds=adds, shown="total")
    result = plain(training(after=after))
    assert not refusals(result) and not notes(result)
    assert "print(roc(model, every_batch(test_loader)))" in result.code
    assert "dist.get_world_size() == dist.get_rank()" in result.code


@pytest.mark.parametrize(
    ("adds", "in_order"),
    [
        ("total += F.cross_entropy(model(x), y).item()", "[i for i in range(len(test_set)) if i // 8 % dist."),
        ("total = max(total, F.cross_entropy(model(x), y).item())", "DataLoader(test_set, 8, shuffle=False)"),
    ],
)
def test_an_evaluation_in_random_order_has_the_same_order_on_all_ranks(adds: str, in_order: str) -> None:
    """A best model, or an early stop, would be another one on each rank."""
    after = EVALUATION.format(adds=adds, shown="total / len(test_loader)")
    source = training(after=after).replace(
        "DataLoader(test_set, batch_size=8)", "DataLoader(test_set, 8, shuffle=True)"
    )
    assert in_order.replace("False", "True") in plain(source).code
    noise = source.replace("nn.Linear(4, 3)", "nn.Sequential(nn.Dropout(), nn.Linear(4, 3))")
    assert in_order in plain(noise).code


@pytest.mark.parametrize(
    ("adds", "reason"),
    [("total = max(total, model(x).norm().item())", True), ("total += model(x).sum().item()", False)],
)
def test_an_evaluation_that_stays_whole_is_said_where_one_call_makes_all_loaders(adds: str, reason: bool) -> None:
    made = "\n\ndef build(data, shuffle):\n    return DataLoader(data, batch_size=8, shuffle=shuffle)\n\n\n"
    head = HEAD.replace(
        "train_loader = DataLoader(train_set, batch_size=8, shuffle=True)",
        f"{made}train_loader = build(train_set, True)",
    )
    head = head.replace("DataLoader(test_set, batch_size=8)", "build(test_set, False)")
    result = plain(head + LOOP.format(loss=CE, step="optimizer.step()") + EVALUATION.format(adds=adds, shown="total"))
    assert not refusals(result)
    assert any("every rank evaluates all of it" in each for each in notes(result)) is reason


FEW = "fewer samples than ranks"


@pytest.mark.parametrize(
    ("begins", "added", "shown", "said"),
    [
        ("0.0", "torch.sum(model(x).argmax(1) == y)", "correct.double() / 2", True),
        ("0", "F.cross_entropy(model(x), y, reduction='sum')", "correct / 2", True),
        ("0", "(model(x).argmax(1) == y).sum()", "correct / 2", False),
        ("0", "(model(x).argmax(1) == y).sum().item()", "correct / 2", False),
        ("torch.zeros(1)", "(model(x).argmax(1) == y).sum()", "correct.item()", False),
    ],
)
def test_a_rank_without_samples_that_would_have_no_tensor(begins: str, added: str, shown: str, said: bool) -> None:
    """Training goes on as before: each of its ranks has samples."""
    adds = f"correct = {begins}\nfor x, y in test_loader:\n    correct += {added}\nprint({shown})\n"
    result = plain(training(after=adds))
    found = [each for each in result.findings if each.rule == "DDP604"]
    assert [FEW in each.message and "`correct`" in each.message for each in found] == [True] * said
    assert "sampler=range(dist.get_rank()" in result.code and not refusals(result)
