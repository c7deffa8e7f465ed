"""Loaders of classes that the program derives from DataLoader: their sampler is given to `super().__init__`."""

from __future__ import annotations

from pathlib import Path

import pytest
from ddpify_codemods import convert

from tests.codemods.plain.test_followed import CE, HEAD, LOOP, plain, refusals

CLASS = """\
class Loader(DataLoader):
    def __init__(self, dataset, size=8, shuffle=True):
        self.dataset, self.count = dataset, len(dataset)
        super().__init__(self.dataset, size, shuffle)

    def half(self):
        return self.count // 2
"""
MADE = "train_loader = Loader(train_set)\ntest_loader = Loader(test_set, 5, shuffle=False)\n"
TRAINING = LOOP.format(loss=CE, step="optimizer.step()")
COUNTED = """\
hits = 0
for x, y in test_loader:
    hits += (model(x).argmax(1) == y).sum().item()
print(hits / test_loader.count, hits / test_loader.half())
"""
PART = "batch_size=size // dist.get_world_size()"
EACH = "range(dist.get_rank(), len({0}), dist.get_world_size())"


def test_the_call_of_the_class_that_it_is_derived_from() -> None:
    code = plain(HEAD + CLASS + MADE + TRAINING + COUNTED).code
    assert "size // dist.get_world_size()," in code and "train_loader.sampler.set_epoch(epoch)" in code
    assert f"sampler=DistributedSampler(self.dataset) if shuffle else {EACH.format('self.dataset')}," in code
    assert "hits = sum_over_ranks(hits)" in code and "Loader(test_set, 5, shuffle=False)" in code


def test_the_conversion_leads_back() -> None:
    source, path = HEAD + CLASS + MADE + TRAINING + COUNTED, Path("train.py")
    back = convert({path: plain(source).code}, "none")[path].code
    assert back == source.replace("size, shuffle)", "size, shuffle=shuffle)")


@pytest.mark.parametrize("super_", ["super()", "super(Digits, self)"])
def test_classes_of_such_classes(super_: str) -> None:
    digits = f"""\
class Digits(Loader):
    classes = 3

    def __init__(self, n, shuffle=True):
        {super_}.__init__(TensorDataset(torch.rand(n, 4), torch.randint(3, (n,))), 8, shuffle)
        print(self.classes)
"""
    made = MADE.replace("train_set", "64").replace("test_set, 5", "30").replace("Loader(", "Digits(")
    code = plain(HEAD + CLASS + digits + made + TRAINING + COUNTED).code
    assert "DistributedSampler(self.dataset) if shuffle else range(" in code and "Digits(64)" in code


def test_a_class_that_is_made_as_torch_makes_it() -> None:
    named = "class Loader(torch.utils.data.DataLoader):\n    def count(self):\n        return len(self.dataset)\n"
    made = "train_loader = Loader(train_set, batch_size=8, shuffle=True)\n"
    code = plain(HEAD + named + made + TRAINING + "    print(train_loader.count())\n").code
    assert "train_loader = Loader(" in code and "sampler=DistributedSampler(train_set, shuffle=True)" in code


def test_a_class_that_a_configuration_names() -> None:
    files = {
        Path("train.py"): f"""\
import json
import torch
import torch.nn as nn
import torch.nn.functional as F
import data

with open("config.json") as file:
    config = json.load(file)
train_loader = getattr(data, config["type"])(**config["args"])
model = nn.Linear(4, 3)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
{TRAINING}
""",
        Path("data.py"): f"""\
import torch
from torch.utils.data import DataLoader, TensorDataset

{CLASS}

class Digits(Loader):
    def __init__(self, n):
        super().__init__(TensorDataset(torch.rand(n, 4), torch.randint(3, (n,))))
""",
    }
    found = convert(files, "cpu", style="plain")
    assert "train_loader.sampler.set_epoch(epoch)" in found[Path("train.py")].code
    assert "sampler=DistributedSampler(self.dataset, shuffle=shuffle)" in found[Path("data.py")].code


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("    def half(self)", "    def __iter__(self):\n        yield from super().__iter__()\n\n    def half(self)"),
        ("    def half(self)", "    def __len__(self):\n        return 3\n\n    def half(self)"),
        ("    def half(self)", "    batch_size = 3\n\n    def half(self)"),
        (
            "        self.dataset,",
            "        if dataset:\n            super().__init__(dataset, 4)\n        self.dataset,",
        ),
        ("        super().__init__", "        if shuffle:\n            super().__init__"),
        ("        super().__init__", "        object.__setattr__(self, 'sampler', dataset)\n        super().__init__"),
        ("super().__init__(", "DataLoader.__init__(self, "),
        ("(DataLoader)", "(DataLoader, metaclass=Meta)"),
        ("self.dataset, size, shuffle)", "self.dataset, size, shuffle, collate_fn=min)"),
        ("self.dataset, size, shuffle)", "self.dataset, size, sampler=sampler_of(dataset))"),
    ],
)
def test_what_is_not_seen_is_refused(old: str, new: str) -> None:
    assert refusals(plain(HEAD + CLASS.replace(old, new) + MADE + TRAINING))


def test_one_of_several_classes_that_loads_in_a_way_of_its_own() -> None:
    other = "\nclass Twice(Loader):\n    def __iter__(self):\n        yield from [*super().__iter__()] * 2\n"
    known = (
        HEAD + CLASS + "{}\nclasses = {{'loader': Loader, {}}}\ntrain_loader = classes[name](train_set)\n" + TRAINING
    )
    assert not refusals(plain(known.format("name = input", "'one': Loader")))
    found = refusals(plain(known.format(other + "name = input", "'twice': Twice")))
    assert any("Twice, which this may make, loads in a way of its own" in each for each in found)


def test_the_size_of_batches_where_one_call_makes_several_loaders() -> None:
    code = plain(HEAD + CLASS + MADE + TRAINING + COUNTED + "print(test_loader.batch_size)\n").code
    assert "size // dist.get_world_size() if shuffle else size," in code and "print(test_loader.batch_size)" in code


def test_batches_that_a_class_pads_are_refused() -> None:
    pads = """\
def collate(samples):
    x, y = zip(*samples)
    return nn.utils.rnn.pad_sequence(x, batch_first=True), torch.stack(y)


"""
    given = CLASS.replace("size, shuffle)", "size, shuffle, collate_fn=collate)")
    assert any("collate" in each for each in refusals(plain(HEAD + pads + given + MADE + TRAINING)))


@pytest.mark.parametrize(
    "asked", ["loader.count", "loader.half()", "hasattr(loader, 'count')", "isinstance(loader, Loader)"]
)
def test_what_a_loader_of_torch_does_not_have(asked: str) -> None:
    """Evaluations of the samples of training get one."""
    counts = f"""\
def count(loader):
    hits = 0
    for x, y in loader:
        hits += (model(x).argmax(1) == y).sum().item()
    print(hits, {asked})


"""
    source = HEAD + CLASS + counts + MADE + TRAINING + "count(train_loader)\ncount(test_loader)\n"
    assert "each_sample_once(train_loader)" in plain(source.replace(f", {asked}", "")).code
    assert any("loader of torch" in each for each in refusals(plain(source)))


def test_numbers_of_a_rank_that_a_loader_keeps() -> None:
    source = HEAD + CLASS + MADE + "train_loader.seen = 0\n" + TRAINING
    told = source.replace("        optimizer.step()", "        optimizer.step()\n        train_loader.seen += len(x)")
    result = plain(told + "print(train_loader.seen)\n")
    assert refusals(result) or "sum_over_ranks(train_loader.seen)" in result.code


def test_a_loop_of_the_class_itself() -> None:
    fits = """\
    def fit(self):
        for epoch in range(3):
            for x, y in self:
                loss = F.cross_entropy(model(x), y)
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
"""
    code = plain(HEAD + CLASS + fits + "Loader(train_set).fit()\n").code
    assert "self.sampler.set_epoch(epoch)" in code and "DistributedSampler(self.dataset, shuffle=shuffle)" in code


@pytest.mark.parametrize(
    ("size", "reason"),
    [("first.batch_size", "this batch size is read from a loader"), ("len(x)", ""), ("8", "")],
)
def test_a_batch_size_that_is_read_from_a_loader_of_training(size: str, reason: str) -> None:
    """It is that of a rank there: dividing it once more would make smaller batches."""
    source = HEAD.replace("train_loader =", "first =", 1) + "train_loader = first\nx = [0] * 8\n"
    source += (
        f"if len(x) > random.random():\n    train_loader = DataLoader(first.dataset, batch_size={size}, shuffle=True)\n"
    )
    found = refusals(plain(source + LOOP.format(loss=CE, step="optimizer.step()")))
    assert any(reason in each for each in found) if reason else not any("batch size" in each for each in found)
