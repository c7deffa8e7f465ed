"""Bars whose number is read."""

from __future__ import annotations

from tests.codemods.plain.test_followed import HEAD, LOOP, notes, plain, refusals

TRAINING = LOOP.format(loss="F.cross_entropy(model(x), y)", step="optimizer.step()")


def test_a_bar_that_counts_the_batches_of_an_evaluation() -> None:
    head = HEAD + "from tqdm import tqdm\n" + TRAINING
    loop = "bar = tqdm(total=8)\nn = 0\nfor x, y in test_loader:\n    n += (model(x).argmax(1) == y).sum().item()\n"
    read = plain(head + loop + "    bar.update()\nprint(n, bar.n)\n")
    assert any("every rank evaluates all of it" in each for each in notes(read)) and not refusals(read)
    unread = plain(head + loop + "    bar.update()\nprint(n)\n")
    assert not notes(unread) and not refusals(unread)


def test_a_bar_whose_last_number_is_read_counts_on_each_rank() -> None:
    source = HEAD + "from tqdm import tqdm\nbar = tqdm(total=8)\n" + TRAINING + "print(bar.last_print_n)\n"
    assert "tqdm(total=8, file=" in plain(source).code
