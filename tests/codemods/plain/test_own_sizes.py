"""Tensors that are as long as the batch of all ranks, and pictures that are put together sample by sample."""

from __future__ import annotations

from pathlib import Path

import pytest
from ddpify_codemods import convert

from .test_followed import CE, plain, refusals, training, undivided

SOURCE = training().replace("batch_size=8", "batch_size=size").replace("train_set =", "size = 8\ntrain_set =", 1)


DIVIDED = "size // dist.get_world_size()"


@pytest.mark.parametrize(
    ("target", "divided"),
    [
        ("torch.ones(len(x), 3)", ""),
        ("torch.ones(1, 3)", ""),
        ("torch.ones(size, 3)", "torch.ones({}, 3)"),
        ("torch.ones((size, 3)).to(x.device)", "torch.ones(({}, 3)).to(x.device)"),
        ("torch.full((size, 3), size)", "torch.full(({}, 3), size)"),
        ("torch.FloatTensor(size, 3).fill_(1.0)", "torch.FloatTensor({}, 3).fill_(1.0)"),
        ("torch.ones(1, 3).repeat(size, 1)", "torch.ones(1, 3).repeat({}, 1)"),
        ("torch.ones(3, size).t()", "torch.ones(3, {}).t()"),
        ("y.view(size, -1).float()", "y.view(y.size(0), -1).float()"),
        ("(2 * y).view(size, 1).float()", "(2 * y).view(-1, 1).float()"),
        ("y.view(8, -1).float()", "y.view(y.size(0), -1).float()"),
    ],
)
def test_sizes_of_the_scripts_own_are_divided_in_the_loop(target: str, divided: str) -> None:
    for loss in (f"F.mse_loss(model(x), {target})", f"((model(x) - {target}) ** 2).mean()"):
        result = plain(SOURCE.replace(f"loss = {CE}", f"loss = {loss}"))
        assert not refusals(result)
        assert (divided.format(DIVIDED) or target) in result.code


@pytest.mark.parametrize(
    "loss",
    [
        "F.mse_loss(model(x), torch.FloatTensor([size]))",
        "F.cross_entropy(model(x.view(-1, size).t()), y)",
        "F.cross_entropy(model(x), y) + torch.zeros(size, size).mean()",
        "F.cross_entropy(model(x).unsqueeze(1).repeat(1, size, 1).mean(1), y)",
        "F.cross_entropy(model(x), torch.randint(0, size, (8,)))",
    ],
)
def test_a_size_that_is_none_of_samples_is_refused(loss: str) -> None:
    assert undivided(plain(SOURCE.replace(f"loss = {CE}", f"loss = {loss}")))


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("for epoch", "target = torch.rand(size, 3)\nfor epoch"),  # the same for all ranks
        ("for epoch", "target = torch.ones(size, 3)\nprint(target)\nfor epoch"),
        ("for epoch", "target = torch.ones(size, 3)\nother = target[0]\nfor epoch"),
        ("for epoch", "target = torch.ones(size, 3) * torch.rand(1)\nfor epoch"),
        ("for epoch", "target = torch.ones(size, 3)\ntarget = target.sum(0)\nfor epoch"),
        ("for epoch", "def ones():\n    return torch.ones(size, 3)\n\n\nfor epoch"),
        ("    for x, y", "    size = 8\n    for x, y"),  # it may be another one
        ("size = 8\n", "from settings import size\nsize = 8\n"),
    ],
)
def test_a_size_that_is_given_elsewhere_is_refused(before: str, after: str) -> None:
    target = "target" if "target" in after else "ones()" if "def ones" in after else "torch.ones(size, 3)"
    source = SOURCE.replace(f"loss = {CE}", f"loss = F.mse_loss(model(x), {target})")
    assert refusals(plain(source.replace(before, after, 1)))


@pytest.mark.parametrize(
    ("before", "made"),
    [
        ("target = torch.ones(size, 3)\nfor epoch", "target = torch.ones({}, 3)\n"),
        ("target = torch.zeros([size, 3])\ntarget = target.cuda()\nfor epoch", "torch.zeros([{}, 3])\n"),
        ("target = Variable(torch.FloatTensor(size, 3).fill_(1)).cuda()\nfor epoch", "torch.FloatTensor({}, 3)"),
        ("target, a = None, 1\ntarget = torch.full((size, 3), 2.0)\nfor epoch", "torch.full(({}, 3), 2.0)\n"),
    ],
)
def test_a_constant_that_is_made_before_the_loop_has_the_size_of_a_rank(before: str, made: str) -> None:
    source = SOURCE.replace(f"loss = {CE}", "loss = F.mse_loss(model(x), target)").replace("for epoch", before, 1)
    result = plain("from torch.autograd import Variable\n" + source)
    assert not refusals(result)
    assert made.format(DIVIDED) in result.code


STEPS = """\
import torch
import torch.nn.functional as F


def train(args, model, loader, optimizer):
    for x, y in loader:
        loss = F.mse_loss(model(x), torch.ones(args.size, 3))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
"""
ENTRY = """\
import argparse
import torch
from steps import train
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
parser = argparse.ArgumentParser()
parser.add_argument("--size", type=int, default=8)
args = parser.parse_args()
data = TensorDataset(torch.rand(64, 4), torch.rand(64, 3))
loader = DataLoader(data, batch_size=args.size, shuffle=True)
model = torch.nn.Linear(4, 3)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
train(args, model, loader, optimizer)
"""


@pytest.mark.parametrize(
    ("before", "after", "divided"),
    [
        ("", "", True),
        ("train(args, model", "train(parser.parse_args(['--size', '4']), model", False),
        ("data =", "args.size = 16\ndata =", False),
    ],
)
def test_an_option_that_a_function_is_given_is_the_same_one(before: str, after: str, divided: bool) -> None:
    files = {Path("train.py"): ENTRY.replace(before, after, 1) if before else ENTRY, Path("steps.py"): STEPS}
    results = convert(files, "cpu", style="plain")
    assert any(map(refusals, results.values())) is not divided
    assert ("torch.ones(args.size // dist.get_world_size(), 3)" in results[Path("steps.py")].code) is divided


def test_a_batch_size_for_each_process_stays_as_it_is() -> None:
    source = SOURCE.replace(f"loss = {CE}", "loss = F.mse_loss(model(x), torch.ones(size, 3))")
    result = convert({Path("train.py"): source}, "cpu", style="plain", per_process=True)[Path("train.py")]
    assert not refusals(result) and "torch.ones(size, 3)" in result.code


def test_what_is_brought_together_before_a_statement_has_the_size_of_a_rank() -> None:
    result = plain(SOURCE.replace("optimizer.step()", "torch.save(x.view(size, 2, 2), 'x.pt')"))
    assert f"= whole_batch(x.view({DIVIDED}, 2, 2))" in result.code


def test_noise_that_only_shows_what_a_model_makes_may_have_that_length() -> None:
    source = SOURCE.replace("for epoch", "fixed = torch.rand(size, 4)\nfor epoch", 1)
    assert not refusals(plain(source + "    print(model(fixed))\n"))


MERGED = """\
def merged(images):
    whole = torch.zeros(4, 8)
    for place, (image, other) in enumerate(zip(images, images)):
        whole[{at}] = image
    return whole


"""


@pytest.mark.parametrize("at", [":, place", "place // 2, place % 2", "2 * place"])
def test_a_picture_is_put_together_of_the_samples_of_all_ranks(at: str) -> None:
    """`enumerate(zip(…))` was taken for something that all ranks have alike."""
    source = training(step="optimizer.step()\n        picture = merged(x)\n        torch.save(picture, 'picture.pt')")
    result = plain(source.replace("for epoch", MERGED.format(at=at) + "for epoch", 1))
    assert refusals(result) or "merged(whole_batch(x))" in result.code


def test_a_picture_that_is_turned_afterwards_is_put_together_of_the_samples_of_all_ranks() -> None:
    """Where it is turned, samples are at places of it already: the batches of all ranks are wanted before."""
    merged = MERGED.format(at=":, place : place + 2").replace("return whole", "return whole.t()")
    step = "optimizer.step()\n        picture = merged(x)\n        imsave('picture.png', picture)"
    source = training(step=step).replace("for epoch", merged + "for epoch", 1)
    result = plain("from matplotlib.pyplot import imsave\n" + source)
    assert not refusals(result) and "picture = merged(whole_batch(x))" in result.code


def test_what_is_trained_on_such_a_picture_is_not_divided() -> None:
    source = training(f"{CE} + merged(x).t().mean() * model(x).mean()")
    assert undivided(plain(source.replace("for epoch", MERGED.format(at=":, place // 2") + "for epoch", 1)))


MADE_BY = """\
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, TensorDataset


def loader_of(data, size=4):
    return DataLoader(data, batch_size=size, shuffle=True, drop_last=True)


def noise(n, width):
    return torch.randn(n, width)


def options():
    args = parser.parse_args()
    return args


args = options()
loader = loader_of(TensorDataset(torch.rand(64, 4)), args.size)
model = nn.Linear(4, 4)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for (x,) in loader:
    loss = F.mse_loss(model(x + TARGET), TARGET)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
"""
OF_RANK = "args.size // dist.get_world_size()"


@pytest.mark.parametrize("target", ["torch.ones({}, 4)", "noise({}, 4)", "noise(width=4, n={})"])
def test_the_size_that_a_function_makes_the_loader_with(target: str) -> None:
    result = plain(MADE_BY.replace("TARGET", target.format("args.size")))
    assert not refusals(result) and result.code.count(target.format(OF_RANK)) == 2
    assert "batch_size=size // dist.get_world_size()" in result.code


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("    return DataLoader(", "    size *= 2\n    return DataLoader("),
        ("batch_size=size", "batch_size=size * 2"),
        (", args.size)", ", args.size * 2)"),
        (", args.size)", ", *args.size)"),
        (", args.size)", ")"),
        ("model =", "args.size = 8\nmodel ="),
        ("model =", "args = other()\nmodel ="),
        ("for (x,)", "args = other()\nfor (x,)"),
        ("loader = loader_of", "def sized(n):\n    global args\n    args = n\n\n\nsized(other)\nloader = loader_of"),
        ("torch.randn(n, width)", "torch.randn(2, width, n)[:, :, 0] * n"),
    ],
)
def test_another_size_than_that_of_the_loader(before: str, after: str) -> None:
    source = MADE_BY.replace("TARGET", "noise(args.size, 4)")
    assert before in source
    assert OF_RANK not in plain(source.replace(before, after, 1)).code


def test_a_function_of_the_same_words_has_a_size_of_its_own() -> None:
    inner = MADE_BY.replace("TARGET", "torch.ones(args.size, 4)")
    head, tail = inner.split("for (x,) in loader:")
    source = f"{head}def run(args):\n    for (x,) in loader:{tail.replace(chr(10), chr(10) + '    ')}\n\nrun(other)\n"
    assert OF_RANK not in plain(source).code
