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
def test_a_sum_that_is_read_by_itself_is_brought_together_where_the_loop_trains(after: str) -> None:
    result = plain(HEAD + RUN.format(after=after))
    assert not refusals(result)
    told = "    is_divided = isinstance(loader.sampler, DistributedSampler)\n    for x, y in loader:\n"
    assert told in result.code
    assert "    if is_divided:\n        total = sum_over_ranks(total)\n" in result.code
    assert "print(sum_over_ranks(total) / sum_over_ranks(count))" in result.code


def test_a_sum_of_samples_that_are_drawn_by_weights_is_refused() -> None:
    sampler = "torch.utils.data.WeightedRandomSampler(torch.ones(64), 64)"
    source = HEAD.replace("batch_size=8, shuffle=True", f"batch_size=8, sampler={sampler}")
    found = refusals(plain(source + RUN.format(after="return total")))
    assert "are one loop: a sum over ranks is right for one only" in " ".join(found)


def test_a_sum_that_another_function_reads_is_refused() -> None:
    source = HEAD + RUN.format(after="return total / count").replace("def run", "seen = 0.0\n\n\ndef run")
    source = source.replace("    total, count", "    global total\n    total, count")
    assert refusals(plain(source + "print(total)\n"))


def test_a_batch_is_shown_of_divided_and_of_whole_evaluations() -> None:
    shown = RUN.replace("print(total / count)", "print(y[:3] / x.size(0))")
    result = plain(HEAD + shown.format(after="return total / count"))
    assert not refusals(result)
    assert "(whole_batch(y) if is_divided else y)[:3]" in result.code
    assert "(x.size(0) * dist.get_world_size()) if is_divided else x.size(0)" in result.code


def test_what_the_turn_before_has_left_is_refused() -> None:
    source = RUN.format(after="return total / count").replace("        print(total / count)\n", "")
    source = source.replace("    for x, y in loader", "    global seen\n    print(seen)\n    for x, y in loader")
    source = source.replace("    return", "    seen = y\n    return")
    assert refusals(plain(HEAD + "seen = torch.zeros(1)\n" + source))


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
    result = plain(HEAD + "epoch = 0\n" + source)
    assert not refusals(result)
    assert ("sum_over_ranks(total) if is_divided else total" in result.code) is not fits


def test_a_mean_that_a_sum_divides_is_no_ratio_of_sums() -> None:
    source = RUN.format(after="return total / count").replace("loss.item() * x.size(0)", "loss.item()")
    result = plain(HEAD + source)
    assert not refusals(result)
    assert "sum_over_ranks(count) if is_divided else count" in result.code


METER = """\
class Meter:
    def __init__(self):
        self.total = self.hits = self.count = self.seen = 0

    def update(self, loss, out, y):
        seen = y != 2
        hit = (out.argmax(1) == y) & seen
        self.total += loss
        self.hits += hit.sum().item()
        self.seen += seen.sum().item()
        self.count += y.size(0)

    def get(self):
        return {shown}


def weighed(out, y):
    weight = (y != 0).float()
    return (F.cross_entropy(out, y, reduction="none") * weight).sum() / weight.sum()


def train():
    meter = Meter()
    for x, y in train_loader:
        out = model(x)
        loss = F.cross_entropy(out, y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        meter.update(loss.item(), out, y)
    return meter.get()


@torch.no_grad()
def test():
    meter = Meter()
    for x, y in test_loader:
        out = model(x)
        meter.update(weighed(out, y).item(), out, y)
    return meter.get()


for epoch in range(2):
    print(train())
    print(test())
"""


@pytest.mark.parametrize(
    "shown",
    ["self.hits / self.seen", "100.0 * self.hits / max(self.seen, 1)", "self.hits / max(1, self.seen)", "self.total"],
)
def test_a_meter_of_training_and_of_an_evaluation_that_is_not_divided(shown: str) -> None:
    assert not refusals(plain(HEAD + METER.format(shown=shown)))


@pytest.mark.parametrize(
    ("shown", "read"),
    [
        ("self.total / self.count", "self.count"),
        ("self.hits + 1", "self.hits"),
        ("self.hits / max(self.seen, 2)", "self.seen"),
        ("self.hits / max(self.seen, 1, 2)", "self.seen"),
        ("(self.hits + self.seen) / max(self.seen, 1)", "self.seen"),
        ("self.seen / max(self.hits, 1)", "self.hits"),
        ("self.total / max(self.count, 1)", "self.count"),
    ],
)
def test_a_number_of_such_a_meter_that_is_no_ratio_of_sums(shown: str, read: str) -> None:
    found = refusals(plain(HEAD + METER.format(shown=shown)))
    assert any(f"`{read}` is read here of divided batches and of whole ones" in each for each in found)
