"""Loaders whose samplers draw some samples more than once: each rank takes a part of what rank 0 draws."""

from __future__ import annotations

from pathlib import Path

import pytest
from ddpify_codemods import convert

from tests.codemods.plain.test_followed import CE, plain, refusals

HEAD = """\
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, RandomSampler, TensorDataset, WeightedRandomSampler

torch.manual_seed(0)
labels = torch.randint(3, (80,))
data = TensorDataset(torch.rand(80, 4), labels)
model = nn.Linear(4, 3)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
weights = torch.ones(80, dtype=torch.double)
sampler = WeightedRandomSampler(weights, 60)
train_loader = DataLoader(data, batch_size=8, sampler=sampler)
test_loader = DataLoader(data, batch_size=8)
"""
TRAINING = f"""\
for epoch in range(3):
    for x, y in train_loader:
        loss = {CE}
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
"""


def test_the_sampler_is_wrapped_and_told_no_epoch() -> None:
    code = plain(HEAD + TRAINING).code
    assert "sampler=DistributedSamplerWrapper(sampler)" in code and "batch_size=8 // dist.get_world_size()" in code
    assert "set_epoch" not in code and code.count("class DistributedSamplerWrapper") == 1


def test_a_sampler_without_a_name() -> None:
    made = "RandomSampler(data, replacement=True, num_samples=40)"
    code = plain(HEAD.replace("sampler=sampler", f"sampler={made}") + TRAINING).code
    assert f"sampler=DistributedSamplerWrapper({made})" in code


def test_the_conversion_is_stable_and_leads_back() -> None:
    source = HEAD + TRAINING
    path = Path("train.py")
    once = convert({path: source}, "cpu", style="plain")[path].code
    assert convert({path: once}, "cpu", style="plain")[path].code == once
    back = convert({path: once}, "none")[path].code
    assert "sampler=sampler)" in back and "DistributedSamplerWrapper" not in back and "batch_size=8," in back


@pytest.mark.parametrize(("drops", "told"), [("True", ", drop_last=True"), ("False", "")])
def test_a_loader_that_drops_its_last_batch_has_as_many_as_in_one_process(drops: str, told: str) -> None:
    """2 ranks took 36 of 71 samples each, one of them twice: 6 batches of 6, where one process had 5 of 12."""
    source = HEAD.replace("sampler=sampler", f"sampler=sampler, drop_last={drops}") + TRAINING
    code = plain(source).code
    assert f"super().__init__(sampler, shuffle=False{told})\n" in code
    path = Path("train.py")
    assert "DistributedSamplerWrapper" not in convert({path: code}, "none")[path].code


@pytest.mark.parametrize(
    "lines",
    [
        "train_loader = DataLoader(data, batch_size=8, sampler=sampler, drop_last=len(data) > 9)\n",
        "options = {'drop_last': True} if len(data) > 9 else {}\n"
        "train_loader = DataLoader(data, batch_size=8, sampler=sampler, **options)\n",
        "other = DataLoader(data, batch_size=8, sampler=sampler, drop_last=True)\n"
        "for x, y in other:\n    loss = F.cross_entropy(model(x), y)\n    optimizer.zero_grad()\n    loss.backward()\n"
        "    optimizer.step()\n",
    ],
)
def test_loaders_that_may_drop_their_last_batch_are_refused(lines: str) -> None:
    assert any("drop their last batch" in each for each in refusals(plain(HEAD + lines + TRAINING)))


@pytest.mark.parametrize(
    ("more", "reason"),
    [
        ("        weights[y] = loss.item()\n", "may be changed while it is used"),
        ("        weights.mul_(2)\n", "may be changed while it is used"),
        ("    sampler.weights = torch.rand(80)\n", "a sampler of its own"),
        ("    train_loader.sampler.weights = torch.rand(80)\n", "another one on the ranks"),
        ("    print(len(train_loader.sampler))\n", "another one"),
        ("    for x, y in train_loader:\n        print((model(x).argmax(1) == y).sum().item())\n", "does not train"),
        ("    x, y = next(iter(train_loader))\n    print(x.mean())\n", "does not train"),
    ],
)
def test_what_asks_more_of_the_sampler(more: str, reason: str) -> None:
    assert any(reason in each for each in refusals(plain(HEAD + TRAINING + more)))


def test_an_evaluation_that_draws_where_ranks_have_noise() -> None:
    tested = "    for x, y in test_loader:\n        print((model(x).argmax(1) == y).sum().item())\n"
    drawn = HEAD.replace(
        "test_loader = DataLoader(data, batch_size=8",
        "test_loader = DataLoader(data, batch_size=8, sampler=RandomSampler(data, num_samples=20)",
    )
    noisy = drawn.replace("nn.Linear(4, 3)", "nn.Sequential(nn.Dropout(), nn.Linear(4, 3))")
    assert not refusals(plain(drawn + TRAINING + tested))
    decides = tested.replace("print(", "total += ") + "    if total > 9:\n        break\n"
    apart = plain(
        noisy.replace("\nmodel =", "\ntotal = 0\nmodel =") + TRAINING + decides.replace(").item())", ").item()")
    )
    assert not refusals(apart) and "if from_rank_0(total > 9):" in apart.code


@pytest.mark.parametrize(
    ("options", "draws"),
    [
        ("sampler=made(data)", True),
        ("sampler=splits.valid", True),
        ("batch_sampler=batches", True),
        ("**splits.options", True),
        ("sampler=[0, 1, 2, 3]", False),
        ("sampler=some", False),
        ("batch_size=8", False),
    ],
)
def test_an_evaluation_in_an_order_that_is_not_seen(options: str, draws: bool) -> None:
    """Each rank would compute other batches, and stop by other numbers, where it has drawn its dropout before."""
    tested = f"""\
    some = range(9) if epoch else None
    total = 0.0
    for x, y in DataLoader(data, {options}):
        total += {CE}.item() ** 2
    if total < 0.1:
        break
"""
    known = f"from splits import batches, made, splits\nprint('shuffle')\n{HEAD}".replace(
        "sampler=sampler", "shuffle=True"
    )
    noisy = known.replace("nn.Linear(4, 3)", "nn.Sequential(nn.Dropout(), nn.Linear(4, 3))")
    evaluated = TRAINING.replace("    for x", "    model.train()\n    for x", 1) + "    model.eval()\n" + tested
    assert "from_rank_0(" not in plain(known + evaluated).code
    apart = plain(noisy + evaluated)
    assert not refusals(apart) and ("if from_rank_0(" in apart.code) is draws


def test_a_class_of_the_same_name() -> None:
    own = HEAD.replace("labels =", "class DistributedSamplerWrapper:\n    pass\n\n\nlabels =", 1)
    assert any("of its own" in each for each in refusals(plain(own + TRAINING)))


@pytest.mark.parametrize(
    "lines",
    [
        "options = {'batch_size': 8, 'shuffle': len(data) > 90}\n",
        "options = {'batch_size': 8}\noptions['batch_size'] = 4\n",
        "options = {'num_workers': 0}\n",
        "options = {'batch_size': 8, 'collate_fn': len}\n",
        "options = {'batch_size': 8} if len(data) > 9 else {'batch_size': 4, 'drop_last': True}\n",
    ],
)
def test_what_options_beside_a_sampler_hide_is_refused(lines: str) -> None:
    lines += "train_loader = DataLoader(data, sampler=sampler, **options)\n"
    assert refusals(plain(HEAD + lines + TRAINING))


def test_options_of_loaders_that_share_a_batch_size() -> None:
    lines = "options = dict(batch_size=8)\ntrain_loader = DataLoader(data, sampler=sampler, **options)\n"
    result = plain(HEAD + lines + "other = DataLoader(data, **options)\n" + TRAINING)
    assert not refusals(result) and "options = dict(batch_size=8)\n" in result.code
    assert '**dict(options, batch_size=options["batch_size"] // dist.get_world_size())' in result.code
