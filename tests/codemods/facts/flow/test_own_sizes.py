"""Which expressions of a loop over a training loader are its batch size, given to tensors."""

from __future__ import annotations

import ast

import pytest
from ddpify_codemods.facts.flow.frames import FlowFacts
from ddpify_codemods.facts.flow.own_sizes import batch_sizes, own_sizes
from ddpify_codemods.facts.flow.values import Loader

from tests.codemods.checks import node_of, script_of
from tests.codemods.plain.test_followed import CE, plain, refusals, training

SCRIPT = """\
import torch
from torch.utils.data import DataLoader
{before}
loader = DataLoader(data, args.size, shuffle=True)
for x in loader:
    {line}
"""


@pytest.mark.parametrize(
    ("line", "number"),
    [
        ("torch.zeros(2, args.size, 3)", 1),
        ("torch.normal(0, args.size, (args.size, 3))", 1),
        ("np.random.normal(0, 1, [args.size, 3])", 1),
        ("np.random.normal(0, 1, size=(args.size, 3))", 1),
        ("torch.randint(0, args.size, (args.size,))", 1),
        ("torch.full((args.size,), args.size)", 1),
        ("x.new_full((args.size,), args.size).view(args.size, 1)", 2),
        ("torch.LongTensor(args.size)", 1),
        ("torch.LongTensor([args.size])", 0),
        ("print(args.size)", 0),
        ("args.size = len(x); torch.zeros(args.size)", 0),
    ],
)
@pytest.mark.parametrize("before", ["args = parser.parse_args()", "args = first()\nargs = second()"])
def test_sizes_of_tensors_that_are_the_batch_size(before: str, line: str, number: int) -> None:
    script = script_of(SCRIPT.format(before=before, line=line))
    (loop,) = script.find(ast.For)
    call = next(node for node in script.find(ast.Call) if ast.unparse(node.func) == "DataLoader")
    loader, found = Loader(call, script), FlowFacts()
    found.loops[loop] = {loader}
    sizes = own_sizes([script], found, {loader: "training"})
    assert len(sizes) == number
    assert all(each == (loader, "second" not in before) for each in sizes.values())
    assert not own_sizes([script], found, {loader: "sharded"})


@pytest.mark.parametrize(
    ("line", "number"),
    [
        ("net(torch.randn(16, 3))", 1),
        ("net(torch.rand((16, 16)).to(x.device))", 1),
        ("z = torch.randn(16, 3).cuda(); net(z); other(z.detach())", 1),
        ("net(torch.rand(size=(16, 3)))", 0),
        ("net(torch.randn(3, 16))", 0),
        ("net(torch.randn(8, 3))", 0),
        ("net(torch.randn(16))", 0),  # one for each class, as likely
        ("net(torch.zeros(16, 3))", 0),
        ("torch.nn.functional.linear(x, torch.randn(16, 16))", 0),  # a matrix, as likely
        ("net(x + torch.randn(16, 16))", 0),  # one for each pixel, as likely
        ("z = torch.randn(16, 16); net(x + z)", 0),
        ("net(torch.add(x, torch.randn(16, 16)))", 0),
    ],
)
def test_noise_of_as_many_rows_as_a_batch_has(line: str, number: int) -> None:
    script = script_of(SCRIPT.format(before="", line=line).replace("args.size, sh", "16, sh"))
    (loop,) = script.find(ast.For)
    call = next(node for node in script.find(ast.Call) if ast.unparse(node.func) == "DataLoader")
    loader, found = Loader(call, script), FlowFacts()
    found.loops[loop] = {loader}
    assert list(own_sizes([script], found, {loader: "training"}).values()) == [(loader, True)] * number


@pytest.mark.parametrize(
    ("call", "sizes"),
    [
        ("DataLoader(d, 4)", ["4"]),
        ("DataLoader(d, batch_size=n)", ["n"]),
        ("DataLoader(d, **options)", ["m"]),
        ("DataLoader(d)", []),
    ],
)
def test_the_batch_size_of_a_loader(call: str, sizes: list[str]) -> None:
    script = script_of(f"options = dict(batch_size=m)\nloader = {call}")
    loader = Loader(node_of(script, call), script)
    assert [ast.unparse(size) for size in batch_sizes(loader)] == sizes


@pytest.mark.parametrize(
    ("size", "said"), [("2 * batch_size", True), ("batch_size * 2", True), ("len(all_of)", False), ("2 * width", False)]
)
def test_a_multiple_of_the_batch_size_in_a_loss_of_all_samples_is_said(size: str, said: bool) -> None:
    loss = f"""\
out = model(x)
        all_of = torch.cat([out, out + 0.1], dim=0)
        near = torch.exp(torch.mm(all_of, all_of.t()))
        near = near.masked_select((torch.ones_like(near) - torch.eye({size})).bool()).view({size}, -1)
        loss = torch.log(near.sum(dim=-1)).mean()"""
    source = training().replace(f"loss = {CE}", loss).replace("batch_size=8, shuffle", "batch_size=batch_size, shuffle")
    source = source.replace("train_set =", "batch_size, width = 8, 8\ntrain_set =", 1)
    result = plain(source)
    assert not refusals(result)
    assert any("gives tensors the batch size" in each.message for each in result.findings) is said


BY_NEXT = """\
import argparse
import torch
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
parser = argparse.ArgumentParser()
parser.add_argument("--batch_size", type=int, default=8)
args = parser.parse_args()


def again(loader):
    while True:
        for x, _ in loader:
            yield x


loader = DataLoader(TensorDataset(torch.zeros(24, 4), torch.zeros(24)), args.batch_size, shuffle=True, drop_last=True)
first, second = torch.nn.Linear(4, 1), torch.nn.Linear(3, 4)
first_step = torch.optim.SGD(first.parameters(), lr=0.1)
second_step = torch.optim.SGD(second.parameters(), lr=0.1)
batches = again(loader)
for step in range(4):
    for _ in range(2):
        loss = (first(next(batches)) - torch.ones(args.batch_size, 1)).pow(2).mean()
        first_step.zero_grad()
        loss.backward()
        first_step.step()
    z = torch.randn(2 * args.batch_size, 3)
    out = first(second(z))
    loss = out.mean()
    second_step.zero_grad()
    loss.backward()
    second_step.step()
"""


def test_a_loop_around_next_that_trains_too() -> None:
    result = plain(BY_NEXT)
    assert not refusals(result)
    assert "torch.randn(2 * (args.batch_size // dist.get_world_size()), 3)" in result.code


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("    z =", "    args.batch_size = 4\n    z ="),
        ("loss = out.mean()", "loss = out[:args.batch_size].mean()"),
        ("loss = out.mean()", "loss = (out - out.t()).abs().mean()"),
        ("    z = torch.randn", "    z = torch.randn(args.batch_size * 0 + 4, 3) if step else torch.randn"),
    ],
)
def test_what_is_no_part_of_the_batch_in_such_a_loop(old: str, new: str) -> None:
    result = plain(BY_NEXT.replace(old, new))
    assert refusals(result) or "differentiable" in result.code
