"""A loop that trains in one call and evaluates the whole set in another: sums of it are right where they are divided
by each other, and nowhere else."""

from __future__ import annotations

import pytest

from .test_followed import HEAD, plain, refusals

RUN = """\
def run(loader, optimizer):
    total, count = 0.0, 0
    for x, y in loader:
        loss = F.cross_entropy(model(x), y)
        if optimizer is not None:
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        count += x.size(0)
        total += loss.item() * x.size(0)
        print(total / count)
    {after}


for epoch in range(2):
    run(train_loader, optimizer)
    print(run(test_loader, None))
"""


def test_ratios_of_sums_are_read_of_divided_batches_and_of_whole_ones() -> None:
    result = plain(HEAD + RUN.format(after="return total / count"))
    assert not refusals(result)
    assert "print(sum_over_ranks(total) / sum_over_ranks(count))" in result.code
    assert "    total = sum_over_ranks(total)\n    return total / count" in result.code


@pytest.mark.parametrize(
    "after",
    [
        "return total",
        "return total / len(loader.dataset)",
        "return total / count, total",
        "print(total)\n    return total / count",
        "return (total + 1) / count",
        "return total / 2 / count",
        "return {'sum': total}['sum'] / count",
        "return count / total + count",
    ],
)
def test_a_sum_that_is_read_by_itself_is_refused(after: str) -> None:
    assert "are one loop: a sum over ranks is right for one only" in " ".join(
        refusals(plain(HEAD + RUN.format(after=after)))
    )


def test_a_sum_that_another_function_reads_is_refused() -> None:
    source = HEAD + RUN.format(after="return total / count").replace("def run", "seen = 0.0\n\n\ndef run")
    source = source.replace("    total, count", "    global total\n    total, count")
    assert refusals(plain(source + "print(total)\n"))


def test_a_batch_that_is_shown_of_divided_and_of_whole_evaluations_is_refused() -> None:
    shown = RUN.replace("print(total / count)", "print(y[:3] / x.size(0))")
    assert refusals(plain(HEAD + shown.format(after="return total / count")))


@pytest.mark.parametrize(
    ("shown", "fits"),
    [
        ("100.0 * total / count", True),
        ("2 * total / (count + float(count))", True),
        ("-total / 3 / count", True),
        ("(total + 1) / (count + 1)", False),
        ("(total * total) / count", False),
        ("total / (count - 0.5)", False),
        ("(total + epoch) / count", False),
    ],
)
def test_sums_that_something_is_added_to_leave_no_ratio(shown: str, fits: bool) -> None:
    source = RUN.format(after="return total / count").replace("print(total / count)", f"print({shown})")
    found = refusals(plain(HEAD + "epoch = 0\n" + source))
    assert any("of divided batches and of whole ones" in each for each in found) is not fits
    assert fits is not bool(found)
