"""verify can fail: conversions as people write them, each wrong in one way, are found out and named."""

from __future__ import annotations

import pytest

from ddpify.verify.command import CouldNotRun
from tests.verify import naive
from tests.verify.naive import Case

SAMPLED = {"epoch": "loader.sampler.set_epoch(epoch)", "share": ""}
LOADER = "DataLoader(data, batch_size={}, sampler=DistributedSampler(data))"
NORM = {"model": "nn.Sequential(nn.Linear(6, 5), nn.BatchNorm1d(5), nn.Tanh(), nn.Linear(5, 3))"}
LOSS = "loss = F.cross_entropy(model(x), y)\nloss.backward()"
TEST = "test = TensorDataset(torch.randn(11, 6), torch.randint(3, (11,)))\n"
HITS = """\
hits = torch.zeros(2)
with torch.no_grad():
    for x, y in {}:
        hits += torch.tensor([float((model(x).argmax(1) == y).sum()), float(len(y))])
"""
ADDED = "with torch.no_grad():\n    loss = F.cross_entropy(model(x), y)\n"

CASES = {
    # Data
    "the order of DistributedSampler": Case(("D1",), {"loader": LOADER.format(4), **SAMPLED}),
    "no sampler, no seed": Case(("D1",), {"share": ""}, {"seed": ""}),
    "set_epoch forgotten": Case(("D1", "D2"), {"loader": LOADER.format(4), "share": ""}),
    "shuffle beside a sampler": Case(
        ("D3",), {"loader": "DataLoader(data, 8, shuffle=True, sampler=DistributedSampler(data))"}, code=2
    ),
    "batch size kept per rank": Case(("D5",), {"loader": LOADER.format(8), **SAMPLED}),
    "ragged last batch": Case(("D6",), original={"samples": "43"}),
    "shards of odd batches": Case(
        ("D6",), original={"loader": "DataLoader(data, batch_size=9, shuffle=True, drop_last=True)"}
    ),
    "empty shard": Case(("D6",), original={"samples": "41"}),
    "a weighted sampler replaced": Case(
        ("D1",),
        {"loader": LOADER.format(4), **SAMPLED},
        {"loader": "DataLoader(data, 8, sampler=torch.utils.data.WeightedRandomSampler([1.0] * 20 + [3.0] * 20, 40))"},
    ),
    "split without a seed": Case(
        ("D1",),
        original={"seed": "", "loader": "DataLoader(torch.utils.data.random_split(data, [32, 8])[0], batch_size=8)"},
    ),
    "every other batch": Case(
        ("D5",), {"share": "step = globals().get('step', -1) + 1\nif step % world != rank: continue"}
    ),
    "every other batch of an odd number": Case(
        ("D19",), {"epoch": "step = -1", "share": "step += 1\nif step % world != rank: continue"}, code=2
    ),
    "a size of the global batch": Case(
        ("D15",),
        original={
            "model": "nn.GRU(6, 3)",
            "step": "F.cross_entropy(model(x[None], torch.zeros(1, 8, 3))[0][0], y).backward()",
        },
        code=2,
    ),
    # Losses and gradients
    "sum": Case(("L1",), original={"step": "F.cross_entropy(model(x), y, reduction='sum').backward()"}),
    "a constant divisor": Case(
        ("L1",),
        original={"before": "B = 8", "step": "(F.cross_entropy(model(x), y, reduction='sum') / B).backward()"},
    ),
    "masked mean": Case(("L3",), original={"step": "F.cross_entropy(model(x), y, ignore_index=0).backward()"}),
    "class weights": Case(
        ("L4",), original={"step": "F.cross_entropy(model(x), y, weight=torch.tensor([1.0, 2.0, 5.0])).backward()"}
    ),
    "contrastive loss": Case(
        ("L5",),
        original={"step": "z = model(x)\nF.cross_entropy(z @ torch.tanh(z).t(), torch.arange(len(z))).backward()"},
    ),
    "a penalty scaled with the loss": Case(
        ("L6",),
        {
            "step": "penalty = sum((p**2).sum() for p in model.parameters())\n"
            "(world * (F.cross_entropy(model(x), y, reduction='sum') + 5 * penalty)).backward()"
        },
        {
            "step": "penalty = sum((p**2).sum() for p in model.parameters())\n"
            "(F.cross_entropy(model(x), y, reduction='sum') + 5 * penalty).backward()"
        },
    ),
    "an accumulation that is never reduced": Case(
        ("L15",),
        {"step": "with model.no_sync():\n    out = model(x)\n    F.cross_entropy(out, y).backward()"},
    ),
    "one forward, two backwards": Case(
        ("L10",),
        original={
            "step": "out = model(x)\nF.cross_entropy(out, y).backward(retain_graph=True)\nout.abs().mean().backward()"
        },
    ),
    "two forwards, two backwards": Case(
        ("L11",),
        original={
            "step": "one, two = F.cross_entropy(model(x), y), model(x.flip(1)).square().mean()\n"
            "one.backward()\ntwo.backward()"
        },
    ),
    "gradients by autograd.grad": Case(
        ("L15",),
        original={
            "step": "grads = torch.autograd.grad(F.cross_entropy(model(x), y), list(model.parameters()))\n"
            "for p, g in zip(model.parameters(), grads): p.grad = g"
        },
    ),
    "a bare tensor": Case(
        ("L16",),
        original={
            "before": "scale = torch.ones(3, requires_grad=True)\noptimizer.add_param_group({'params': [scale]})",
            "step": "F.cross_entropy(model(x) * scale, y).backward()",
        },
    ),
    "a loss with parameters": Case(
        ("L17",),
        original={
            "before": "loss = nn.Bilinear(3, 3, 1)\noptimizer.add_param_group({'params': loss.parameters()})",
            "step": "out = model(x)\n(F.cross_entropy(out, y) + loss(out, out).mean()).backward()",
        },
    ),
    "plateau on a local metric": Case(
        ("L19",),
        original={
            "before": "plateau = torch.optim.lr_scheduler.ReduceLROnPlateau(optimizer, factor=0.5, patience=0)",
            "step": LOSS,
            "end": "    plateau.step(loss.item())",
        },
    ),
    # The model
    "an attribute of the wrapper": Case(("M1",), original={"step": "model[0].weight.sum().backward()"}, code=2),
    "the wrapper gone round": Case(("M3",), {"step": "F.cross_entropy(model.module(x), y).backward()"}),
    "a parameter without a gradient": Case(
        ("M4",), original={"model": "nn.Linear(6, 3)\nmodel.unused = nn.Linear(2, 2)"}, code=2
    ),
    "unfrozen after the wrap": Case(
        ("M6",),
        original={
            "before": "",
            "model": "nn.Sequential(nn.Linear(6, 5), nn.Tanh(), nn.Linear(5, 3))\nmodel[0].requires_grad_(False)",
            "epoch": "for p in model.parameters(): p.requires_grad_(epoch > 0 or p.requires_grad)",
        },
    ),
    "local BatchNorm": Case(("M8",), original=NORM),
    "noise of a part": Case(
        ("S2",), original={"step": "F.cross_entropy(model(x + torch.randn_like(x)), y).backward()"}
    ),
    # Evaluation, prints and files
    "evaluation on padded shards": Case(
        ("E1",),
        {"last": TEST + HITS.format("DataLoader(test, 4, sampler=DistributedSampler(test, shuffle=False))")
         + "dist.all_reduce(hits)\nif rank == 0: print('accuracy', (hits[0] / hits[1]).item(), hits[1].item())"},
        {"last": TEST + HITS.format("DataLoader(test, 4)")
         + "print('accuracy', (hits[0] / hits[1]).item(), hits[1].item())"},
    ),
    "a count of one rank": Case(
        ("E2",),
        {"end": "if rank == 0: print('seen', seen)"},
        {"epoch": "seen = 0.0", "step": "seen += len(x)\n" + LOSS, "end": "print('seen', seen)"},
    ),
    "the loss of one rank": Case(
        ("E6",),
        {"end": "if rank == 0: print('loss', loss.item())"},
        {"step": LOSS, "end": "print('loss', loss.item())"},
    ),
    "a decision of one rank": Case(
        ("D19",),
        original={"step": LOSS + "\nif loss < 1.05: break"},
        code=2,
    ),
    "every rank prints": Case(("I1",), original={"end": "print('epoch', epoch)"}),
    "every rank writes": Case(("I2",), original={"end": "print(epoch, file=open('log.csv', 'a'))"}),
    "the wrapper's keys": Case(("I7",), original={"last": "torch.save(model.state_dict(), 'model.pt')"}),
    "the wrapper's pickle": Case(("I9",), original={"last": "torch.save(model, 'model.pt')"}),
    "a file for each rank": Case(
        ("I6",), {"last": "open(f'log{rank}.txt', 'w').write('done')"}, {"last": "open('log0.txt', 'w').write('done')"}
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_mistake_is_found_and_named(name: str) -> None:
    case = CASES[name]
    if case.code == 2:
        with pytest.raises(CouldNotRun) as caught:
            naive.verify(case)
        assert f"likely {case.hazards[0]}:" in "\n".join(caught.value.lines)
        return
    found = naive.verify(case)
    assert found.differences, "taken for equal"
    named = [difference.hazard.id for difference in found.differences]
    assert named[0] == case.hazards[0], found.differences
    assert set(case.hazards) <= set(named), found.differences


@pytest.mark.parametrize("share", ["", naive.BY_HAND["share"]], ids=["whole", "divided"])
def test_exact_conversion_is_equal(share: str) -> None:
    found = naive.verify(Case((), {"share": share}))
    assert not found.differences
    assert max(found.parameters) <= 1e-6
