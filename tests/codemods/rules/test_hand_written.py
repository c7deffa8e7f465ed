"""DDP501 to DDP523: what goes wrong in scripts that are distributed already, and what does not."""

from __future__ import annotations

from textwrap import dedent, indent

import pytest
from ddpify_codemods import RULES, TARGETS, Finding, convert

from ..checks import script_of
from ..test_rules import PATH

ADVICE = {rule.id: rule for rule in RULES if rule.folder == "lint"}
PRELUDE = """\
import argparse
import os
import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, Subset, random_split
from torch.utils.data.distributed import DistributedSampler

dist.init_process_group("nccl")
rank, world_size = dist.get_rank(), dist.get_world_size()
parser = argparse.ArgumentParser()
parser.add_argument("--local_rank")
args = parser.parse_args()
args.gpu_id = rank % torch.cuda.device_count()
def is_main_process():
    return not dist.is_initialized() or rank == 0
def is_main():
    return rank == 0
"""
LINES = PRELUDE.count("\n")


def lines(rule: str, body: str) -> list[int]:
    """The lines of `body`, from 1, on which a rule has something to say."""
    items = ADVICE[rule].check(script_of(PRELUDE + dedent(body)), TARGETS["cuda"])
    findings = [item for item in items if isinstance(item, Finding)]
    assert {finding.severity for finding in findings} <= {"warning", "note"}
    assert {finding.rule for finding in findings} <= {rule}
    return [finding.line - LINES for finding in findings]


def step(loss: str = "F.mse_loss(model(x), y)", after: str = "") -> str:
    """A training loop."""
    body = f"optimizer.zero_grad()\nloss = {loss}\nloss.backward()\noptimizer.step()\n{after}"
    return f"for x, y in loader:\n{indent(body, '    ')}"


WRAPPED = "model = DDP(net)\noptimizer = torch.optim.SGD(model.parameters(), lr=0.1)\n"
SAMPLED = "sampler = DistributedSampler(data)\nloader = DataLoader(data, 8, sampler=sampler)\n"
SEEDED = "loader = DataLoader(data, 8, sampler=DistributedSampler(data, seed={}))\n"
EPOCHS = "for epoch in range(9):\n" + indent(step(), "    ")
PLATEAU = WRAPPED + "plateau = torch.optim.lr_scheduler.ReduceLROnPlateau(optimizer)\n"
WHOLE = "val_loader = DataLoader(val, 8)\n" + WRAPPED
OFF, ON = (f"for p in critic.parameters():\n    p.requires_grad = {value}\n" for value in (False, True))
GAN = """\
for x, y in loader:
    loss = judge(model.module(x)).sum()
    loss.backward()
    judge_optimizer.step()
    optimizer.zero_grad()
    loss = model(x).sum()
    loss.backward()
    optimizer.step()
"""
SHARED = "s = DistributedSampler(d)\nloader = DataLoader(d, batch_size=args.batch_size, sampler=s)\n" + WRAPPED + step()


REPORTED = [
    ("DDP506", SAMPLED + WRAPPED + step(after="if loss < 1:\n    break\n"), 11),
    ("DDP506", SAMPLED + WRAPPED + EPOCHS + "    if loss > best_loss:\n        break\n", None),
    (
        "DDP506",
        SAMPLED
        + WHOLE
        + EPOCHS
        + "    best = test(model, loader) + test(model, val_loader)\n    if best > 1:\n        break\n",
        14,
    ),
    ("DDP501", SAMPLED + WRAPPED + "for epoch in range(9):\n" + indent(step(), "    "), 1),
    ("DDP501", SAMPLED + WRAPPED + f"def fit():\n{indent(step(), '    ')}\nfor e in range(9):\n    fit()\n", None),
    (
        "DDP501",
        f"{SAMPLED}{WRAPPED}def fit(loader):\n{indent(step(), '    ')}\nfor e in range(9):\n    fit(loader)\n",
        1,
    ),
    (
        "DDP501",
        "for fold in range(3):\n"
        + indent(SEEDED.format("fold") + WRAPPED + "for epoch in range(9):\n" + indent(step(), "    "), "    "),
        2,
    ),
    ("DDP502", "loader = DataLoader(data, batch_size=8, shuffle=True)\n" + WRAPPED + step(), 1),
    ("DDP503", "loader = DataLoader(data, shuffle=True, sampler=DistributedSampler(data))\n", 1),
    (
        "DDP503",
        "s = DistributedSampler(data) if many else None\nloader = DataLoader(data, shuffle=True, sampler=s)\n",
        2,
    ),
    ("DDP504", SAMPLED + "with torch.no_grad():\n    for x, y in loader:\n        right += hits(net(x), y)\n", 1),
    (
        "DDP504",
        SAMPLED + "def test(l):\n    with torch.no_grad():\n        for x, y in l:\n            pass\ntest(loader)\n",
        1,
    ),
    ("DDP505", "if rank == 0:\n    dist.barrier()\n", 2),
    ("DDP505", "if not args.local_rank:\n    dist.all_reduce(loss)\n", 2),
    ("DDP505", "if epoch > 3 and is_main_process():\n    print(dist.all_gather_object(found, mine))\n", 2),
    ("DDP505", "is_chief = dist.get_rank() == 0\nif is_chief:\n    dist.all_reduce(x)\n", 3),
    ("DDP505", "nn.BatchNorm2d(3)\nmodel = DDP(net)\nif dist.get_rank() == 0:\n    out = model(x)\n", 4),
    (
        "DDP506",
        SAMPLED + PLATEAU + "plateau.step(loss)\n",
        6,
    ),
    ("DDP507", SAMPLED + WRAPPED + "print(right / len(loader.dataset))\n", 5),
    ("DDP508", WRAPPED + step("model.module(x).sum()"), 5),
    ("DDP508", WRAPPED + step("model.module.loss(x, y)"), 5),
    ("DDP508", WRAPPED + step("model.module(x).sum() + model(x).sum()"), 5),
    ("DDP508", WRAPPED + "for x, y in loader:\n    z = model.module.encode(x)\n    F.mse_loss(z, y).backward()\n", 4),
    ("DDP509", WRAPPED + step(after="").replace("backward()", "backward(retain_graph=True)\n    other.backward()"), 7),
    ("DDP510", WRAPPED + "with model.no_sync():\n    loss.backward()\n", 3),
    ("DDP512", WRAPPED + "net.fc = nn.Linear(2, 2)\nb = torch.optim.SGD(net.fc.parameters(), lr=1)\n", 4),
    ("DDP512", "head = nn.Linear(2, 2).cuda()\n" + WRAPPED + "b = torch.optim.SGD(head.parameters(), lr=1)\n", 4),
    ("DDP513", WRAPPED + "os.environ['MASTER_PORT'] = '29500'\n", 3),
    ("DDP514", WRAPPED + "torch.save(model.module.state_dict(), 'a.pt')\n", 3),
    ("DDP514", WRAPPED + "def save():\n    torch.save(model.module.state_dict(), 'a.pt')\nsave()\n", 4),
    ("DDP515", WRAPPED + "net.cuda().load_state_dict(torch.load('a.pt'))\n", 3),
    ("DDP516", WRAPPED + "torch.save({'model': model.state_dict()}, 'a.pt')\n", 3),
    ("DDP517", "net = nn.Sequential(nn.BatchNorm2d(3), nn.BatchNorm2d(3))\nmodel = DDP(net)\n", 1),
    ("DDP518", WRAPPED + "torch.manual_seed(args.seed)\n" + step("F.mse_loss(model(torch.randn(8, 2)), y)"), 6),
    ("DDP519", WRAPPED + "train, val = random_split(data, [8, 2])\n", 3),
    ("DDP519", WRAPPED + "torch.manual_seed(1 + rank)\ntrain, val = random_split(data, [8, 2])\n", 4),
    (
        "DDP520",
        SHARED,
        2,
    ),
    ("DDP521", WRAPPED + "loader = DataLoader(Subset(data, order[rank::world_size]))\n" + step(), 3),
    ("DDP522", WRAPPED + step("F.mse_loss(model(x), y, reduction='sum')"), 5),
    ("DDP522", "criterion = nn.BCELoss(size_average=False)\n" + WRAPPED + step("criterion(model(x), y)"), 6),
    (
        "DDP523",
        WRAPPED + step(after="").replace("loss.back", "if torch.isnan(loss):\n        continue\n    loss.back"),
        6,
    ),
]

OF_GRADIENTS = """\
class Gather(torch.autograd.Function):
    @staticmethod
    def backward(context, gradient):
        return gradient[rank::world_size]
"""

SILENT = [
    ("DDP501", "for _ in range(3):\n" + indent(SEEDED.format("next(orders)") + WRAPPED + step(), "    ")),
    ("DDP501", "for e in range(3):\n" + indent(SEEDED.format("e") + WRAPPED + step(), "    ")),
    ("DDP506", SAMPLED + WRAPPED + EPOCHS + "    dist.all_reduce(loss)\n    if loss > best_loss:\n        break\n"),
    ("DDP506", SAMPLED + WRAPPED + EPOCHS + "    if epoch > 5:\n        break\n"),
    ("DDP506", SAMPLED + WHOLE + EPOCHS + "    auc = test(model, val_loader)\n    if auc > best_auc:\n        break\n"),
    ("DDP501", SAMPLED + WRAPPED + EPOCHS + "    loader.sampler.set_epoch(epoch)\n"),
    ("DDP501", SAMPLED + WRAPPED + step()),  # one pass over the data
    ("DDP501", "loader = DataLoader(d, sampler=DistributedSampler(d, shuffle=False))\n" + EPOCHS),
    ("DDP502", SAMPLED + WRAPPED + step()),
    ("DDP502", "loader = DataLoader(data, batch_size=8, shuffle=True)\n" + step()),  # nothing is wrapped
    ("DDP502", "loader = DataLoader(Subset(data, mine(rank)), shuffle=True)\n" + WRAPPED + step()),
    ("DDP502", "loader = DataLoader(data, shuffle=(world_size == 1))\n" + WRAPPED + step()),
    ("DDP502", "loader = DataLoader(data, shuffle=True)\n" + WRAPPED + "for x, y in loader:\n    print(x)\n"),
    ("DDP503", "s = DistributedSampler(data)\nloader = DataLoader(data, shuffle=(s is None), sampler=s)\n"),
    ("DDP504", "loader = DataLoader(d, sampler=DistributedSampler(d, drop_last=True))\n"),
    ("DDP504", SAMPLED + WRAPPED + step()),
    ("DDP505", "maintain = len(os.environ) > 3\nif maintain:\n    dist.all_reduce(x)\n"),
    ("DDP505", "if rank == 0:\n    print(1)\ndist.barrier()\n"),
    ("DDP505", "if rank != 0:\n    dist.barrier()\nload()\nif rank == 0:\n    dist.barrier()\n"),
    ("DDP505", "if rank == 0:\n    dist.gather(x, list)\nelse:\n    dist.gather(x)\n"),
    ("DDP505", "if rank == 0:\n    dist.broadcast(x, 0, group=pair)\n"),
    ("DDP505", "nn.BatchNorm2d(3)\nmodel = DDP(net)\nif rank == 0:\n    out = model.module(x)\n"),
    ("DDP506", SAMPLED + PLATEAU + "dist.all_reduce(loss)\nplateau.step(loss)\n"),
    ("DDP506", SAMPLED + WRAPPED + "scheduler.step()\noptimizer.step(closure)\n"),
    ("DDP507", SAMPLED + WRAPPED + "right = reduce_tensor(right)\nprint(right / len(loader.dataset))\n"),
    ("DDP507", "loader = DataLoader(data)\n" + WRAPPED + "print(right / len(loader.dataset))\n"),
    ("DDP508", WRAPPED + GAN),
    ("DDP508", WRAPPED + step(after="ema.update(model.module.state_dict())\n")),
    ("DDP508", WRAPPED + step("F.mse_loss(model(x), y) + sum(p.norm() for p in model.module.parameters())")),
    ("DDP508", WRAPPED + step().replace("    loss", "    with torch.no_grad(): y = model.module(x)\n    loss", 1)),
    ("DDP509", WRAPPED + step() + step()),
    ("DDP510", f"{WRAPPED}with model.no_sync():\n    loss = F.mse_loss(model(x), y)\n    loss.backward()\n"),
    ("DDP511", "for p in net.parameters():\n    p.requires_grad = False\nmodel = DDP(net)\n"),
    ("DDP511", WRAPPED + OFF + ON),
    ("DDP511", WRAPPED + "x.requires_grad_()\n"),
    ("DDP512", "optimizer = torch.optim.SGD(net.parameters(), lr=1)\nmodel = DDP(net)\n"),
    ("DDP512", "a = nn.Linear(2, 2)\nnet = nn.Sequential(a)\n" + WRAPPED + "b = torch.optim.SGD(a.parameters())\n"),
    ("DDP512", "net.fc = nn.Linear(2, 2)\n" + WRAPPED + "b = torch.optim.SGD(net.fc.parameters(), lr=1)\n"),
    ("DDP512", "def build():\n    a = nn.Linear(2, 2)\n    return a, torch.optim.SGD(a.parameters())\n" + WRAPPED),
    ("DDP513", WRAPPED + "os.environ.setdefault('MASTER_PORT', '29500')\nos.environ['MASTER_PORT'] = args.port\n"),
    ("DDP514", WRAPPED + "if args.gpu_id == 0:\n    torch.save(net, 'a.pt')\n"),
    ("DDP514", WRAPPED + "def save():\n    if rank > 0:\n        return\n    torch.save(net, 'a.pt')\nsave()\n"),
    ("DDP514", WRAPPED + "def save():\n    torch.save(net, 'a.pt')\nif is_main_process():\n    save()\n"),
    ("DDP514", WRAPPED + "def save(*args):\n    if is_main():\n        torch.save(*args)\nsave(net, 'a')\n"),
    ("DDP514", WRAPPED + "torch.save(net, f'rank{rank}.pt')\n"),
    ("DDP515", WRAPPED + "a = torch.load('a.pt', map_location='cpu').cuda()\n"),
    ("DDP515", WRAPPED + "if any:\n    a = torch.load(p)\nelse:\n    a = torch.load(p, map_location='cuda:1')\n"),
    ("DDP516", WRAPPED + "torch.save(model.state_dict(), 'a.pt')\nmodel.load_state_dict(torch.load('a.pt'))\n"),
    ("DDP516", WRAPPED + "torch.save(net.state_dict(), 'a.pt')\n"),
    ("DDP517", "net = nn.SyncBatchNorm.convert_sync_batchnorm(nn.BatchNorm2d(3))\nmodel = DDP(net)\n"),
    ("DDP518", WRAPPED + "torch.manual_seed(seed + rank)\n" + step("F.mse_loss(model(torch.randn(8, 2)), y)")),
    ("DDP518", WRAPPED + "torch.manual_seed(0)\nfixed = torch.randn(8, 2)\n" + step()),
    ("DDP519", WRAPPED + "torch.manual_seed(0)\ntrain, val = random_split(data, [8, 2])\n"),
    ("DDP520", "batch_size = args.batch_size // world_size\n" + SHARED),
    ("DDP520", "# size: samples per GPU\n" + SHARED),
    ("DDP521", WRAPPED + "loader = DataLoader(Subset(data, order[rank::world_size]), drop_last=True)\n" + step()),
    ("DDP521", WRAPPED + "first = items[rank]\n" + step()),
    ("DDP521", WRAPPED + OF_GRADIENTS + step()),
    ("DDP522", WRAPPED + step() + "print(F.nll_loss(model(x), y, reduction='sum').item())\n"),
    ("DDP522", WRAPPED + step("F.mse_loss(model(x), y, reduction='sum') * world_size")),
    ("DDP523", WRAPPED + step(after="if torch.isnan(loss):\n    raise SystemExit\n")),
    ("DDP523", WRAPPED + step().replace("loss.b", "dist.all_reduce(n)\n    if n.isnan(): continue\n    loss.b")),
]  # fmt: skip


@pytest.mark.parametrize(
    ("rule", "body", "line"), REPORTED, ids=[f"{case[0]}-{at}" for at, case in enumerate(REPORTED)]
)
def test_reported(rule: str, body: str, line: int | None) -> None:
    found = lines(rule, body)
    assert found == [line] if line else found


@pytest.mark.parametrize(("rule", "body"), SILENT, ids=[f"{case[0]}-{at}" for at, case in enumerate(SILENT)])
def test_silent(rule: str, body: str) -> None:
    assert lines(rule, body) == []


@pytest.mark.parametrize("rule", ADVICE)
def test_scripts_for_one_device_are_not_looked_at(rule: str) -> None:
    one = ADVICE[rule].after.replace("import torch.distributed as dist\n", "").replace("DDP(", "str(")
    one = one.replace("DistributedSampler", "print").replace(
        "from torch.nn.parallel import DistributedDataParallel", "#"
    )
    assert list(ADVICE[rule].check(script_of(one), TARGETS["cuda"])) == []


def test_a_distributed_script_is_refused_with_its_hazards() -> None:
    text = ADVICE["DDP501"].before
    result = convert({PATH: text}, "cpu")[PATH]
    assert result.code == text
    assert [finding.rule for finding in result.findings if finding.severity == "refused"] == ["DDP302"]
    assert [finding.rule for finding in result.findings if finding.severity != "refused"] == ["DDP501"]


def test_a_hazard_can_be_ignored_on_its_line() -> None:
    text = ADVICE["DDP501"].before.replace("(dataset)\n", "(dataset)  # ddpify: ignore[DDP501]\n", 1)
    assert "DDP501" not in {finding.rule for finding in convert({PATH: text}, "cuda")[PATH].findings}


def test_every_rule_of_the_family_is_tried_here() -> None:
    in_examples_only = {"DDP511"}  # too long for a line
    assert {case[0] for case in REPORTED} | in_examples_only == set(ADVICE)
    assert {case[0] for case in SILENT} == set(ADVICE)
