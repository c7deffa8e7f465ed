"""Loaders that are made anew for each epoch have another order each time."""

from __future__ import annotations

import pytest

from tests.codemods.plain.test_followed import HEAD, plain, refusals

MADE = "DataLoader(train_set, batch_size=8{})"
STEP = """\
    loss = F.cross_entropy(model(x), y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
"""
EPOCH = """\
def run():
    loader = {made}
    for x, y in loader:
        loss = F.cross_entropy(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
for epoch in range(3):
    run()
"""
AT_TIMES = """\
for epoch in range(4):
    if epoch % 2 == 0:
        loader = {made}
    for x, y in loader:
        loss = F.cross_entropy(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
"""


def code(program: str, options: str = ", shuffle=True") -> str:
    """What a program becomes that makes its loader so."""
    result = plain(HEAD + program.format(made=MADE.format(options)))
    assert not refusals(result)
    return result.code


def test_loaders_are_counted() -> None:
    made = code(EPOCH)
    assert "\norders = itertools.count()\n" in made and "seed=next(orders)" in made and "set_epoch" not in made


@pytest.mark.parametrize("options", ["", ", shuffle=False"])
def test_what_goes_in_order_is_not_counted(options: str) -> None:
    made = code(EPOCH, options)
    assert "orders" not in made and "itertools" not in made


def test_one_that_is_made_at_times_is_told_the_epoch_where_it_is_there() -> None:
    """At the begin of the first turn there is none."""
    assert "    loader.sampler.set_epoch(loader.sampler.epoch + 1)\n    for x, y in loader:" in code(AT_TIMES)


TRAINER = """\
from dataclasses import dataclass
@dataclass(frozen=True)
class Loaders:
    train: DataLoader
def make():
    return Loaders(train={made})
def train_one_epoch(batches):
    for x, y in batches:
        loss = F.cross_entropy(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
loaders = make()
for epoch in range(start, 3):
    train_one_epoch(loaders.train)
"""
WHILE = """\
epoch = start
loader = {made}
while epoch < 3:
    {first}
    for x, y in loader:
        loss = F.cross_entropy(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        {each}
"""


def test_the_epoch_is_told_to_a_loader_that_is_an_attribute() -> None:
    """A run that goes on begins at the epoch after the last one, not with the orders of the first."""
    assert "    loaders.train.sampler.set_epoch(epoch)\n    train_one_epoch(loaders.train)" in code(
        f"start = 1\n{TRAINER}"
    )


@pytest.mark.parametrize(
    ("before", "first"),
    [("pass", "found = loaders"), ("found = None", "if found is None:\n        found = loaders")],
)
def test_an_object_that_a_turn_binds_is_not_told_at_its_begin(before: str, first: str) -> None:
    """There would be none, or the one of the turn before."""
    source = TRAINER.replace("for epoch in", f"{before}\nfor epoch in")
    source = source.replace("    train_one_epoch(loaders.train)", f"    {first}\n    train_one_epoch(found.train)")
    assert "found.train.sampler.set_epoch(epoch)" not in code(f"start = 1\n{source}")


@pytest.mark.parametrize(
    ("first", "each", "told"),
    [
        ("epoch += 1", "pass", "epoch"),
        ("epoch += 0.5", "pass", "loader.sampler.epoch + 1"),
        ("epoch += 1; epoch = int(epoch)", "pass", "loader.sampler.epoch + 1"),
        ("pass", "epoch += 1", "loader.sampler.epoch + 1"),  # it counts steps
        ("if epoch: epoch += 1", "epoch += 0", "loader.sampler.epoch + 1"),
    ],
)
def test_the_epoch_that_a_while_loop_counts_up_is_told(first: str, each: str, told: str) -> None:
    made = code("start = 1\n" + WHILE.replace("{first}", first).replace("{each}", each))
    assert f"loader.sampler.set_epoch({told})" in made


def last_call(code: str) -> str:
    """The arguments of the last loader that a program makes."""
    return code.rpartition("\nloader = DataLoader(")[2].partition("\n)")[0]


@pytest.mark.parametrize(
    ("options", "made"),
    [
        (", shuffle=True, sampler=None", "sampler=DistributedSampler(train_set, shuffle=True)"),
        (", sampler=None", "sampler=DistributedSampler(train_set, shuffle=False)"),
        (", sampler=None, shuffle=shuffles", "sampler=DistributedSampler(train_set, shuffle=shuffles)"),
    ],
)
def test_a_sampler_of_none_is_none(options: str, made: str) -> None:
    """torch takes no shuffle=True beside the one that comes in its place."""
    found = last_call(code("shuffles = True\nloader = {made}\nfor x, y in loader:\n" + STEP, options))
    assert made in found and found.count("shuffle=") == 1


def test_a_sampler_of_none_behind_an_order_that_is_no_keyword_is_left() -> None:
    program = "loader = DataLoader(train_set, 8, True, sampler=None)\nfor x, y in loader:\n" + STEP
    assert refusals(plain(HEAD + program))


@pytest.mark.parametrize("order", ["shuffle=True, ", "sampler=None, shuffle=True, "])
def test_a_sampler_stands_behind_a_data_set_that_gets_its_name_there(order: str) -> None:
    data = "TensorDataset(torch.rand(64, 4), torch.randint(3, (64,)))"
    found = plain(HEAD + f"loader = DataLoader({order}batch_size=8, dataset={data})\nfor x, y in loader:\n" + STEP)
    assert not refusals(found)
    call = last_call(found.code)
    assert call.index("(dataset := ") < call.index("sampler=DistributedSampler(dataset, shuffle=True)")
    assert call.count("sampler=") == 1 and call.count("shuffle=") == 1
