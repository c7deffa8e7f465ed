"""Loops over the program's own generators, `for x, y in log_every(loader, 10):`, and the meters that come with them."""

from __future__ import annotations

import pytest

from .test_followed import EVALUATION, notes, plain, refusals, training

GIVES = "def batches(loader):\n    for batch in loader:\n        yield batch\n"
CHANGES = "def batches(loader):\n    for x, y in loader:\n        yield 2 * x, y\n"
HOLDS = """\
class Moved:
    def __init__(self, loader):
        self.loader = loader

    def __iter__(self):
        for x, y in self.loader:
            yield x.float(), y

    def __len__(self):
        return len(self.loader)
def batches(loader):
    return Moved(loader)
"""
LOGS = """\
class Log:
    def batches(self, loader, every):
        step = 0
        for batch in loader:
            yield batch
            if step % every == 0:
                print(step, len(loader))
            step += 1
log = Log()
"""


def over(generator: str, loop: str, step: str = "optimizer.step()", after: str = "") -> str:
    """A script that trains on what a generator of its own gives."""
    source = training(step=step, after=after).replace("for x, y in train_loader", loop)
    return source.replace("for epoch", f"{generator}for epoch", 1)


@pytest.mark.parametrize("generator", [GIVES, CHANGES, HOLDS])
@pytest.mark.parametrize(
    "loop", ["for x, y in batches(train_loader)", "for i, (x, y) in enumerate(batches(train_loader))"]
)
def test_what_a_generator_makes_of_batches_is_trained_on(generator: str, loop: str) -> None:
    step = "optimizer.step()\n        total += loss.item()"
    result = plain(over(generator, loop, step, "print(total)\n"))
    assert not refusals(result)
    assert "ddp_model(x)" in result.code and ".set_epoch(" in result.code
    assert "\ntotal = mean_over_ranks(total)\nprint(total)\n" in result.code


def test_a_method_that_logs_in_between_is_left_as_it_is() -> None:
    result = plain(over(LOGS, "for x, y in log.batches(train_loader, 10)"))
    assert not refusals(result)
    assert LOGS in result.code and "train_loader.sampler.set_epoch(epoch)" in result.code


def test_an_evaluation_by_a_generator_is_divided() -> None:
    adds = EVALUATION.format(adds="total += (model(x).argmax(1) == y).sum().item()", shown="total")
    source = over(
        GIVES, "for x, y in batches(train_loader)", after=adds.replace("in test_loader", "in batches(test_loader)")
    )
    code = plain(source).code
    assert "sampler=range(dist.get_rank(), len(test_set), dist.get_world_size())" in code
    assert "total = sum_over_ranks(total)\nprint(total)" in code


def test_an_evaluation_that_a_generator_counts_stays_whole() -> None:
    adds = EVALUATION.format(adds="total += (model(x).argmax(1) == y).sum().item()", shown="total")
    source = over(
        LOGS,
        "for x, y in log.batches(train_loader, 10)",
        after=adds.replace("test_loader", "log.batches(test_loader, 10)"),
    )
    result = plain(source)
    assert not refusals(result) and notes(result)
    assert "sum_over_ranks" not in result.code


@pytest.mark.parametrize(
    "gives",
    [
        "for i in range(len(x)):\n            yield x[i : i + 1], y[i : i + 1]",
        "yield from zip(x.split(1), y.split(1))",
        "for a, b in zip(x.split(4), y.split(4)):\n            yield a, b",
        "yield x[:4], y[:4]",
    ],
)
def test_a_generator_that_cuts_batches_is_not_divided_so(gives: str) -> None:
    generator = f"def batches(loader):\n    for x, y in loader:\n        {gives}\n"
    result = plain(over(generator, "for x, y in batches(train_loader)"))
    assert refusals(result) or "whole_batch" in result.code or "differentiable_batch" in result.code


def test_a_generator_that_goes_on_without_end_tells_the_sampler_each_pass() -> None:
    generator = "def batches(loader):\n    while True:\n        for batch in loader:\n            yield batch\n"
    step = "optimizer.step()\n        if i == 20:\n            break"
    code = plain(over(generator, "for i, (x, y) in enumerate(batches(train_loader))", step)).code
    assert "        loader.sampler.set_epoch(loader.sampler.epoch + 1)\n        for batch in loader:" in code


ENDLESS = """\
def cycle(loader):
    while True:
        for batch in loader:
            yield batch
endless = cycle(train_loader)
"""
TAKES = "for _ in range(4):\n        x, y = next(endless)"


def test_what_next_takes_of_a_generator_without_end_is_trained_on() -> None:
    step = "optimizer.step()\n        print(loss.item())"
    result = plain(over(ENDLESS, TAKES, step).replace("next(endless):", "next(endless)"))
    assert not refusals(result)
    assert "        loader.sampler.set_epoch(loader.sampler.epoch + 1)\n        for batch in loader:" in result.code
    assert "ddp_model(x)" in result.code and "print(mean_over_ranks(loss.item()))" in result.code


def test_an_evaluation_that_next_takes_batches_for_is_whole_and_has_no_sampler_to_tell() -> None:
    tests = ENDLESS + "tests = cycle(test_loader)\n"
    step = "optimizer.step()\n        x, y = next(tests)\n        print((model(x).argmax(1) == y).sum().item())"
    result = plain(over(tests, TAKES, step).replace("next(endless):", "next(endless)"))
    assert not refusals(result) and notes(result)
    assert "if isinstance(loader.sampler, DistributedSampler):" in result.code
    assert "test_loader = DataLoader(test_set, batch_size=8)" in result.code


@pytest.mark.parametrize("loop", ["for x, y in endless", "for _, (x, y) in zip(range(4), endless)"])
def test_a_loop_over_a_generator_that_was_made_before_is_refused(loop: str) -> None:
    assert refusals(plain(over(ENDLESS, loop)))


@pytest.mark.parametrize(
    "chosen",
    [
        "given = batches(train_loader) if epoch else train_loader",
        "given = train_loader\n    if epoch:\n        given = batches(train_loader)",
    ],
)
def test_a_generator_that_may_be_the_loader_itself_is_refused(chosen: str) -> None:
    source = over(GIVES, "for x, y in given").replace("    for x, y in given", f"    {chosen}\n    for x, y in given")
    assert refusals(plain(source))


def test_what_evaluates_by_the_same_loop_has_no_sampler_to_tell() -> None:
    adds = EVALUATION.format(adds="total += (model(x).argmax(1) == y).sum().item()", shown="total")
    after = adds.replace("in test_loader", "in batches(test_loader)")
    code = plain(over(f"{HOLDS}train_loader = batches(train_loader)\n", "for x, y in train_loader", after=after)).code
    told = "    train_loader.loader.sampler.set_epoch(epoch)\n    for x, y in train_loader:"
    assert told in code and code.count("set_epoch") == 1


METERS = """\
from collections import defaultdict, deque
class Smoothed:
    def __init__(self, size=20):
        self.last, self.total, self.count = None, 0.0, 0
        self.values = deque(maxlen=size)

    def update(self, value, n=1):
        self.values.append(value)
        self.total += value * n
        self.count += n

    @property
    def average(self):
        return self.total / self.count

    @property
    def median(self):
        return torch.tensor(list(self.values)).median().item()

    def __str__(self):
        return f"{self.median} ({self.average})"
class Logger:
    def __init__(self):
        self.meters = defaultdict(Smoothed)

    def update(self, **numbers):
        for name, value in numbers.items():
            self.meters[name].update(value)

    def __str__(self):
        return " ".join(f"{name} {str(meter)}" for name, meter in self.meters.items())
logger = Logger()
"""


@pytest.mark.parametrize("label", ["y[0].item()", "(y[0] > 1).item()", "y.unique().tolist()[0]"])
def test_a_meter_that_each_rank_chooses_by_its_own_samples_is_refused(label: str) -> None:
    step = f"optimizer.step()\n        meters[{label}].update(loss.item())"
    chosen = METERS + "meters = defaultdict(Smoothed)\n"
    result = plain(
        over(chosen, "for x, y in train_loader", step, "for name in meters:\n    print(meters[name].average)\n")
    )
    assert "an object that each rank chooses by its own samples" in "".join(refusals(result))


def test_a_meter_that_is_chosen_by_a_rounded_mean_is_that_of_all_ranks() -> None:
    step = "optimizer.step()\n        meters[int(10 * loss.item())].update(loss.item())"
    chosen = METERS + "meters = defaultdict(Smoothed)\n"
    result = plain(
        over(chosen, "for x, y in train_loader", step, "for name in meters:\n    print(meters[name].average)\n")
    )
    assert not refusals(result)
    assert "meters[int(mean_over_ranks(10 * loss.item()))].update(mean_over_ranks(loss.item()))" in result.code


def test_a_meter_that_a_rank_without_a_batch_has_not_leaves_an_evaluation_whole() -> None:
    adds = EVALUATION.format(adds="sums[x.dim()].add(y.sum().item())", shown="[each.sum for each in sums.values()]")
    kept = "from collections import defaultdict\n" + KEPT.replace("last", "sum")
    kept += "    def add(self, value):\n        self.sum += value\nsums = defaultdict(Kept)\n"
    result = plain(over(kept.replace("kept = Kept()\n", ""), "for x, y in train_loader", after=adds))
    assert not refusals(result) and notes(result)


KEPT = """\
class Kept:
    def __init__(self):
        self.last = 0.0

    def __str__(self):
        return f"{self.last}"
kept = Kept()
"""


@pytest.mark.parametrize("shown", ["print(logger)", "print(str(logger))", "print(f'{logger}')"])
def test_meters_that_keep_the_last_numbers_get_those_of_all_ranks(shown: str) -> None:
    step = f"optimizer.step()\n        logger.update(loss=loss.item(), rate=0.1)\n        {shown}"
    result = plain(over(METERS, "for x, y in train_loader", step))
    assert not refusals(result)
    assert "logger.update(loss=mean_over_ranks(loss.item()), rate=0.1)" in result.code
    assert METERS in result.code


def test_a_meter_gets_sums_and_sizes_of_all_ranks() -> None:
    hits = "(model(x).argmax(1) == y).sum().item()"
    step = f"optimizer.step()\n        logger.meters['hits'].update({hits}, n=len(x))"
    code = plain(over(METERS, "for x, y in train_loader", step, "print(logger.meters['hits'].average)\n")).code
    assert f"update(sum_over_ranks({hits}), n=len(x) * dist.get_world_size())" in code
    assert "print(logger.meters['hits'].average)" in code


TRAINER = """\
from collections import deque
class Trainer:
    def __init__(self):
        self.last = deque(maxlen=20)

    def learn(self, loss):
        loss.backward()
        self.last.append(loss.item())
trainer = Trainer()
"""


def test_a_loss_that_an_object_learns_from_is_its_own_rank_s() -> None:
    source = over(TRAINER, "for x, y in train_loader").replace(
        "loss.backward()\n        opt", "trainer.learn(loss)\n        opt"
    )
    result = plain(source)
    assert not refusals(result)
    assert "trainer.learn(loss)\n" in result.code and "self.last.append(mean_over_ranks(loss.item()))" in result.code


def test_a_sum_that_a_meter_gets_of_whole_batches_too_is_refused() -> None:
    update = "logger.update(hits=(model(x).argmax(1) == y).sum().item())"
    hits = f"def count(batches):\n    for x, y in batches:\n        {update}\n"
    after = "    count(train_loader)\n    count(test_loader)\n    print(logger)\n"
    result = plain(over(METERS + hits, "for x, y in train_loader", after=after))
    assert refusals(result) or "sum_over_ranks" not in result.code or "every_sample" in result.code


def test_what_str_makes_of_an_object_is_shown() -> None:
    step = "optimizer.step()\n        kept.last = loss.item()\n        print(str(kept))"
    assert "mean_over_ranks" in plain(over(KEPT, "for x, y in train_loader", step)).code
