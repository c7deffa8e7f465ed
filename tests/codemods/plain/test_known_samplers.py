"""Loaders of some samples of a data set, and the lengths of their samplers."""

from __future__ import annotations

from pathlib import Path

import pytest
from ddpify_codemods import convert

from tests.codemods.plain.test_followed import CE, plain, refusals

HEAD = """\
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, SubsetRandomSampler, TensorDataset

torch.manual_seed(0)
data = TensorDataset(torch.rand(80, 4), torch.randint(3, (80,)))
indices = torch.randperm(80).tolist()
model = nn.Linear(4, 3)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
"""
TRAINING = f"""\
for epoch in range(3):
    total = 0.0
    for x, y in train_loader:
        loss = {CE}
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss.item() * len(x)
    print(total / len(train_loader.sampler))
    hits = 0
    for x, y in valid_loader:
        hits += (model(x).argmax(1) == y).sum().item()
    print(hits / len(valid_loader.sampler), len(valid_loader.dataset))
"""
TRAIN = "train_loader = DataLoader(data, batch_size=8, sampler=SubsetRandomSampler(indices[:60]))\n"
VALID = "valid_loader = DataLoader(data, batch_size=8, sampler=SubsetRandomSampler(indices[60:]))\n"


def test_samplers_that_calls_make() -> None:
    code = plain(HEAD + TRAIN + VALID + TRAINING).code
    assert "train_set := Subset(data, indices[:60])" in code and "DistributedSampler(train_set, shuffle=True)" in code
    assert "range(dist.get_rank(), len(valid_set), dist.get_world_size())" in code
    assert "hits / len(valid_loader.dataset), len(valid_loader.dataset.dataset)" in code
    assert "train_loader.sampler.set_epoch(epoch)" in code and "SubsetRandomSampler" not in code


def test_two_names_in_one_function() -> None:
    made = """\
def made():
    a = SubsetRandomSampler(indices[:60])
    b = SubsetRandomSampler(indices[60:])
    return DataLoader(data, batch_size=8, sampler=a), DataLoader(dataset=data, batch_size=8, sampler=b)


train_loader, valid_loader = made()
"""
    code = plain(HEAD + made + TRAINING).code
    assert "a_set = Subset(data, indices[:60])" in code and "b_set = Subset(data, indices[60:])" in code
    assert "sampler=DistributedSampler(a_set, shuffle=True)" in code and "dataset=b_set" in code


@pytest.mark.parametrize("options", [", drop_last=True", ""])
def test_an_evaluation_that_is_not_divided_and_one_that_nobody_runs(options: str) -> None:
    unused = VALID.replace("valid_loader", "other")
    code = plain(HEAD + TRAIN + VALID.replace("))", f"){options})") + unused + TRAINING).code
    assert code.count("sampler=") == (2 if not options else 1) and "other = DataLoader(Subset(data, indices" in code
    assert "SubsetRandomSampler" not in code


@pytest.mark.parametrize(
    "train_loader",
    [
        TRAIN.replace("SubsetRandomSampler(indices[:60])", "made(indices)"),
        "s = SubsetRandomSampler(indices[:60])\nprint(s.indices)\n"
        + TRAIN.replace("SubsetRandomSampler(indices[:60])", "s"),
        TRAIN.replace("data, batch_size=8, sampler=SubsetRandomSampler(indices[:60])", "data, batch_sampler=batches"),
    ],
)
def test_other_samplers_are_refused(train_loader: str) -> None:
    assert "this loader has a sampler of its own, which DistributedSampler cannot stand in for" in refusals(
        plain(HEAD + train_loader + VALID + TRAINING)
    )


def test_the_length_of_a_sampler_of_another_kind_is_not_that_of_a_data_set() -> None:
    weighted = VALID.replace(
        "SubsetRandomSampler(indices[60:])", "torch.utils.data.WeightedRandomSampler([1.0] * 80, 40)"
    )
    assert "hits / len(valid_loader.sampler)" in plain(HEAD + TRAIN + weighted + TRAINING).code


def test_a_function_gets_loaders_of_some_samples_and_of_all() -> None:
    function = """\
def show(loader):
    for x, y in loader:
        pass
    print(len(loader.dataset))


show(valid_loader)
show(DataLoader(data, batch_size=8))
"""
    assert any(
        "draw some of its samples, and all" in each
        for each in refusals(plain(HEAD + TRAIN + VALID + TRAINING + function))
    )


def test_a_sampler_is_made_before_its_data_set() -> None:
    made = """\
train_indices = indices[:60]
train_sampler = SubsetRandomSampler(train_indices)
more = TensorDataset(torch.rand(80, 4), torch.randint(3, (80,)))
train_loader = DataLoader(more, batch_size=8, sampler=train_sampler)
print(len(train_sampler), train_loader.sampler.indices)
"""
    code = plain(HEAD + made + VALID + TRAINING).code
    assert "train_set := Subset(more, train_indices)" in code and "train_sampler" not in code
    assert "print(len(train_indices), train_loader.dataset.indices)" in code


def test_the_parts_of_a_batch_are_looked_at() -> None:
    look = "for part in next(iter(train_loader)):\n    print(part.shape)\n"
    assert "for part in next(iter(every_sample(train_loader))):" in plain(HEAD + TRAIN + VALID + look + TRAINING).code


@pytest.mark.parametrize(
    ("loader", "shuffle"),
    [
        ("DataLoader(data, sampler=RandomSampler(data), batch_size=8)", "True"),
        ("DataLoader(data, 8, sampler=RandomSampler(data))", "True"),
        ("DataLoader(data, 8, shuffle=False, sampler=RandomSampler(data))", "True"),
        ("DataLoader(data, batch_size=8, shuffle=False, sampler=RandomSampler(data))", "True"),
        ("DataLoader(data, batch_size=8, sampler=SequentialSampler(data))", "False"),
    ],
)
def test_samplers_of_all_samples_say_the_order(loader: str, shuffle: str) -> None:
    imports = "from torch.utils.data import RandomSampler, SequentialSampler\n"
    script = imports + HEAD + f"train_loader = {loader}\n" + VALID + TRAINING
    code = plain(script).code
    assert f"sampler=DistributedSampler(data, shuffle={shuffle})" in code
    assert ("set_epoch" in code) is (shuffle == "True")
    by_engine = convert({Path("train.py"): script}, "ignite", style="plain")[Path("train.py")].code
    made = by_engine.partition("auto_dataloader(")[2].partition("valid_loader")[0]
    assert f"shuffle={shuffle}" in made and "sampler" not in made and made.count("shuffle") == 1


def test_an_evaluation_by_batches_that_names_its_order() -> None:
    valid = "valid_sampler = torch.utils.data.SequentialSampler(data)\n"
    valid += "valid_loader = DataLoader(data, sampler=valid_sampler, batch_size=8)\n"
    adds = TRAINING.replace("(model(x).argmax(1) == y).sum().item()", f"{CE}.item()")
    code = plain(HEAD + TRAIN + valid + adds.replace("len(valid_loader.sampler)", "len(valid_loader)")).code
    assert "i // 8 % dist.get_world_size() == dist.get_rank()" in code and "valid_sampler" not in code


def test_two_functions_have_a_sampler_each() -> None:
    made = """\
def training_loader():
    sampler = SubsetRandomSampler(indices[:60])
    print(len(sampler))
    return DataLoader(data, batch_size=8, sampler=sampler)


def validation_loader():
    sampler = SubsetRandomSampler(indices[60:])
    return DataLoader(data, batch_size=8, sampler=sampler)


train_loader, valid_loader = training_loader(), validation_loader()
"""
    code = plain(HEAD + made + TRAINING).code
    assert "subset = Subset(data, indices[:60])\n    print(len(subset))" in code
    assert "sampler_subset = Subset(data, indices[60:])" in code and "SubsetRandomSampler" not in code


def test_a_sampler_of_the_file_that_a_function_reads() -> None:
    reads = "train_sampler = SubsetRandomSampler(indices[:60])\n\n\ndef show():\n    print({})\n\n\n"
    loader = "train_loader = DataLoader(data, batch_size=8, sampler=train_sampler)\nshow()\n"
    code = plain(HEAD + reads.format("len(train_sampler)") + loader + VALID + TRAINING).code
    assert "    print(len(train_set))" in code
    assert refusals(plain(HEAD + reads.format("train_sampler.indices") + loader + VALID + TRAINING))
