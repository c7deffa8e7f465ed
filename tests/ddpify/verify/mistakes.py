"""Mistakes that people make when they convert a script to DistributedDataParallel by hand; ids of docs/hazards.md."""

from __future__ import annotations

from textwrap import indent

from tests.ddpify.verify.naive import BY_HAND, Case

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

WRAP = BY_HAND["wrap"] + "\n"
PART = "data = torch.utils.data.Subset(data, range(rank, 40, world))"
AVERAGE = "\nfor p in model.parameters():\n    dist.all_reduce(p.grad)\n    p.grad.copy_(p.grad / world)"
CLIP = "torch.nn.utils.clip_grad_norm_(model.parameters(), 0.01)"
SLOPE = "x.requires_grad_()\nout = model(x)\nslope = torch.autograd.grad(out.sum(), x, create_graph=True)[0]\n"
OUTPUT = "model.eval()\nwith torch.no_grad(): print('out', model(data[:8][0]).sum().item())\nmodel.train()"
MEDIAN = "median = torch.cat([model(x).detach()[:, 0] for x, y in {}]).median()\n"
WINDOW = "if not (i % 2 or i == 4): continue"
ACCUMULATED = {
    "sets": "import contextlib",
    "batches": "enumerate(loader)",
    "share": "i, (x, y) = x, y",
    "zero": "",
    "step": "F.cross_entropy(model(x), y).backward()\n" + WINDOW,
    "after": "optimizer.zero_grad()",
}
SEARCH = {
    "optimizer": "torch.optim.LBFGS(model.parameters(), max_iter=6, line_search_fn='strong_wolfe')",
    "zero": "",
    "step": "def closure():\n    optimizer.zero_grad()\n" + indent(LOSS, "    ") + "\n    return loss",
    "steps": "optimizer.step(closure)",
}
MEAN = "loss = loss.detach()\n    dist.all_reduce(loss)\n    return loss / world"
STREAM = {
    "sets": """\
class Stream(torch.utils.data.IterableDataset):
    def __iter__(self):
        return iter(data)
stream = Stream()
""",
    "loader": "DataLoader(stream, 8)",
}
BUCKETS = {
    "sets": """\
class Buckets:
    def __iter__(self):
        return iter(torch.randperm(40).view(5, 8).tolist())
""",
    "loader": "DataLoader(data, batch_sampler=Buckets())",
}
NOISY = """\
class Noisy(torch.utils.data.Dataset):
    rows, labels = data.tensors
    def __len__(self):
        return 40
    def __getitem__(self, i):
        return self.rows[i] + torch.randn(6), self.labels[i]
data = Noisy()
"""
COUNTING = """\
class Counting(torch.utils.data.Dataset):
    rows, labels = data.tensors
    drawn = 0
    def __len__(self):
        return 40
    def __getitem__(self, i):
        self.drawn += 1
        return self.rows[i] * (1 + self.drawn / 40), self.labels[i]
data = Counting()
"""
SCALED = """\
class Scaled(nn.Linear):
    scale = 1.0
    def forward(self, x):
        return super().forward(x) * self.scale
"""
TWICE = """\
class Twice(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer, self.last = nn.Linear(6, 6), nn.Linear(6, 3)
    def forward(self, x):
        x = x.requires_grad_()
        for _ in range(2):
            x = checkpoint(self.layer, x, use_reentrant=True)
        return self.last(x)
"""
TEXT = {
    "sets": """\
class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed, self.cell, self.out = nn.Embedding(9, 5), nn.LSTM(5, 5), nn.Linear(5, 9)
    def forward(self, x, state):
        out, state = self.cell(self.embed(x), state)
        return self.out(out), state
text = torch.randint(9, (41, 8))
""",
    "loader": "None",
    "model": "Model()",
    "batches": "((text[i : i + 8], text[i + 1 : i + 9]) for i in range(0, 40, 8))",
    "epoch": "state = (torch.zeros(1, 8, 5), torch.zeros(1, 8, 5))",
    "step": "state = tuple(part.detach() for part in state)\nout, state = model(x, state)\n"
    "F.cross_entropy(out.flatten(0, 1), y.flatten()).backward()",
}

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
    "empty shard": Case(("D7",), original={"samples": "41"}),
    "a weighted sampler replaced": Case(
        ("D9",),
        {"loader": LOADER.format(4), **SAMPLED},
        {"loader": "DataLoader(data, 8, sampler=torch.utils.data.WeightedRandomSampler([1.0] * 20 + [3.0] * 20, 40))"},
    ),
    "split without a seed": Case(
        ("D11",),
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
    "a sampler given late": Case(("D4",), {"wrap": WRAP + "loader.sampler = DistributedSampler(data)"}, code=2),
    "a sampler of a stream": Case(
        ("D8",), {"loader": "DataLoader(stream, 8, sampler=DistributedSampler(data))"}, STREAM, 2
    ),
    "a stream that every rank reads": Case(("D8",), {"loader": "DataLoader(stream, 4)", "share": ""}, STREAM),
    "buckets replaced": Case(("D10",), {"loader": LOADER.format(4), **SAMPLED}, BUCKETS),
    "numbers of letters": Case(
        ("D12",),
        original={
            "sets": "number = {letter: float(i) for i, letter in enumerate(set('abcdef'))}\n"
            "numbers = torch.tensor([number[letter] for letter in 'abcdef'])\n"
            "data = TensorDataset(data[:][0] + numbers, data[:][1])"
        },
        launched=True,  # its processes hash strings differently
    ),
    "samples that count": Case(
        ("D20",),
        {
            "loader": "DataLoader(data, batch_sampler=[[*range(i + rank, i + 8, world)] for i in range(0, 40, 8)])",
            "share": "",
        },
        {"sets": COUNTING, "loader": "DataLoader(data, 8)"},
    ),
    "a batch drawn by each rank": Case(
        ("D13",),
        {
            "seed": "torch.manual_seed(rank)",
            "share": "",
            "batches": "(data[torch.randint(40, (4,))] for _ in range(5))",
        },
        {"loader": "None", "batches": "(data[torch.randint(40, (8,))] for _ in range(5))"},
    ),
    "time that is cut": Case(("D14",), {"share": "x, y = x.chunk(world)[rank], y.chunk(world)[rank]"}, TEXT),
    "nodes of a graph": Case(
        ("D16",),
        {"share": "x, y = x[rank::world], y[rank::world]\nedges = graph[rank::world, rank::world]"},
        {
            "loader": "None\ngraph = torch.rand(40, 40).round()",
            "batches": "[data[:]]",
            "share": "edges = graph",
            "step": "F.cross_entropy(edges @ model(x), y).backward()",
        },
    ),
    "the length of a part": Case(
        ("D17",),
        {"sets": PART, "loader": "DataLoader(data, 4)", "share": ""},
        {"loader": "DataLoader(data, 8)", "step": "(F.cross_entropy(model(x), y) / len(data)).backward()"},
    ),
    # Losses and gradients
    "sum": Case(("L1",), original={"step": "F.cross_entropy(model(x), y, reduction='sum').backward()"}),
    "a constant divisor": Case(
        ("L2",),
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
        ("L7",),
        {"step": "with model.no_sync():\n    out = model(x)\n    F.cross_entropy(out, y).backward()"},
    ),
    "a last window that is not reduced": Case(
        ("L7",),
        {
            "share": "i, (x, y) = x, y\nx, y = x[rank::world], y[rank::world]",
            "step": "with contextlib.nullcontext() if i % 2 else model.no_sync():\n"
            "    F.cross_entropy(model(x), y).backward()\n" + WINDOW,
        },
        ACCUMULATED,
    ),
    "clipped before the average": Case(
        ("L8",),
        {"step": "with model.no_sync():\n    F.cross_entropy(model(x), y).backward()\n" + CLIP + AVERAGE},
        {"step": "F.cross_entropy(model(x), y).backward()\n" + CLIP},
    ),
    "a sum that clipping hides": Case(
        ("L1", "L8"), original={"step": "F.cross_entropy(model(x), y, reduction='sum').backward()\n" + CLIP}
    ),
    "a sum that Adam hides": Case(
        ("L1", "L9"),
        original={
            "optimizer": "torch.optim.Adam(model.parameters())",
            "step": "F.cross_entropy(model(x), y, reduction='sum').backward()",
        },
    ),
    "gradients summed over the ranks": Case(("X9",), {"wrap": "", "step": LOSS + AVERAGE.replace("/ world", "")}),
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
    "a gradient penalty alone": Case(("L14",), original={"step": SLOPE + "slope.square().mean().backward()"}, code=2),
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
    "a line search": Case(("L18",), original=SEARCH, code=2),
    "a batch that one rank skips": Case(
        ("L20",),
        original={"step": "loss = F.cross_entropy(model(x), y)\nif loss > 1.3: continue\nloss.backward()"},
        code=2,
    ),
    "a schedule of a part": Case(
        ("L22",),
        {"sets": PART, "loader": "DataLoader(data, 4)", "share": ""},
        {
            "loader": "DataLoader(data, 8)",
            "before": "schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, len(data) // 8)",
            "end": "    schedule.step()",
        },
    ),
    # The model
    "an attribute of the wrapper": Case(("M1",), original={"step": "model[0].weight.sum().backward()"}, code=2),
    "an attribute set on the wrapper": Case(
        ("M2",), original={"sets": SCALED, "model": "Scaled(6, 3)", "epoch": "model.scale = 1.0 + epoch"}
    ),
    "the wrapper gone round": Case(("M3",), {"step": "F.cross_entropy(model.module(x), y).backward()"}),
    "a parameter without a gradient": Case(
        ("M4",), original={"model": "nn.Linear(6, 3)\nmodel.unused = nn.Linear(2, 2)"}, code=2
    ),
    "a teacher wrapped": Case(
        ("M5",),
        {"wrap": WRAP + "teacher = DistributedDataParallel(teacher)"},
        {"model": "nn.Linear(6, 3)\nteacher = nn.Linear(6, 3).requires_grad_(False)"},
        code=2,
    ),
    "unfrozen after the wrap": Case(
        ("M6",),
        original={
            "before": "",
            "model": "nn.Sequential(nn.Linear(6, 5), nn.Tanh(), nn.Linear(5, 3))\nmodel[0].requires_grad_(False)",
            "epoch": "for p in model.parameters(): p.requires_grad_(epoch > 0 or p.requires_grad)",
        },
    ),
    "local BatchNorm": Case(("M8", "M9"), original=NORM),
    "a layer replaced": Case(
        ("M7",), {"wrap": WRAP + "model.module[2] = nn.Linear(5, 3)"}, {"wrap": "model[2] = nn.Linear(5, 3)"}, code=2
    ),
    "checkpoints of one layer": Case(
        ("M12",),
        original={
            "start": "from torch.utils.checkpoint import checkpoint",
            "sets": TWICE,
            "model": "Twice()",
        },
        naive={"start": BY_HAND["start"] + "\nfrom torch.utils.checkpoint import checkpoint"},
    ),
    "a DataParallel wrapped": Case(
        ("M13",),
        original={"wrap": "model = nn.DataParallel(model)", "last": "torch.save(model.state_dict(), 'model.pt')"},
        naive={"wrap": "model = DistributedDataParallel(nn.DataParallel(model))"},
    ),
    "a mean of the wrapper": Case(
        ("M14",),
        original={
            "before": "mean = torch.optim.swa_utils.AveragedModel(model)",
            "end": "    mean.update_parameters(model)",
            "last": "torch.save(mean.state_dict(), 'mean.pt')",
        },
    ),
    "a compiled model wrapped": Case(
        ("M15",),
        original={
            "model": "torch.compile(nn.Linear(6, 3), backend='eager')",
            "last": "torch.save(model.state_dict(), 'model.pt')",
        },
        pretend="",
    ),
    "one of two models": Case(("M17",), {"wrap": "model[0] = DistributedDataParallel(model[0])"}),
    "a model of the part's size": Case(
        ("M18",),
        {"sets": PART},
        {"loader": "DataLoader(data, 8)", "model": "nn.Linear(6, 3 + sum(bool(x[0] > 0) for x, _ in data))"},
        code=2,
    ),
    # Random numbers
    "weights without a seed": Case(
        ("S1",), {"wrap": "", "step": LOSS + AVERAGE}, {"seed": "", "loader": "DataLoader(data, 8)", "step": LOSS}
    ),
    "noise of the workers": Case(
        ("S3",),
        {
            "loader": "DataLoader(data, batch_sampler=[[*range(i + rank, i + 8, world)] for i in range(0, 40, 8)],"
            " num_workers=1)",
            "share": "",
        },
        {"sets": NOISY, "loader": "DataLoader(data, 8, num_workers=1)"},
    ),
    "noise of a part": Case(
        ("S2",), original={"step": "F.cross_entropy(model(x + torch.randn_like(x)), y).backward()"}
    ),
    # Evaluation, prints and files
    "evaluation on padded shards": Case(
        ("E1",),
        {
            "last": TEST
            + HITS.format("DataLoader(test, 4, sampler=DistributedSampler(test, shuffle=False))")
            + "dist.all_reduce(hits)\nif rank == 0: print('accuracy', (hits[0] / hits[1]).item(), hits[1].item())"
        },
        {
            "last": TEST
            + HITS.format("DataLoader(test, 4)")
            + "print('accuracy', (hits[0] / hits[1]).item(), hits[1].item())"
        },
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
    "a median of medians": Case(
        ("E3",),
        {
            "last": TEST
            + MEDIAN.format("DataLoader(test, 2, sampler=range(rank, 11, world))")
            + "dist.all_reduce(median)\nif rank == 0: print('median', median.item() / world)"
        },
        {"last": TEST + MEDIAN.format("DataLoader(test, 4)") + "print('median', median.item())"},
    ),
    "an evaluation of one rank": Case(
        ("E5",), {"end": "if rank == 0:\n" + indent(OUTPUT, "    ")}, NORM | {"end": OUTPUT}, code=2
    ),
    "a long work of one rank": Case(
        ("E7",),
        {
            "start": "import datetime, time\n"
            + BY_HAND["start"].replace('"gloo"', '"gloo", timeout=datetime.timedelta(seconds=3)'),
            "epoch": "if rank == 0: time.sleep(6)",
        },
        code=2,
    ),
    "until the clock says so": Case(
        ("E8",),
        {
            "start": BY_HAND["start"] + "\nimport time\nif rank == 0: time.sleep(1)",
            "share": BY_HAND["share"] + "\ntime.sleep(0.04)\nif time.time() > begun + 2: break",
        },
        {
            "seed": "import itertools, time\ntorch.manual_seed(0)\nbegun = time.time()",
            "batches": "itertools.chain.from_iterable(itertools.repeat(loader))",
            "share": "time.sleep(0.04)\nif time.time() > begun + 2: break",
        },
        code=2,
    ),
    "a decision of one rank": Case(
        ("E4",),
        original={"step": LOSS + "\nif loss < 1.05: break"},
        code=2,
    ),
    "every rank prints": Case(("I1",), original={"end": "print('epoch', epoch)"}),
    "every rank writes": Case(("I2",), original={"end": "print(epoch, file=open('log.csv', 'a'))"}),
    "a folder for every rank": Case(("I3",), original={"last": "import os\nos.mkdir('out')"}, code=2),
    "a draw of one rank": Case(("I11",), {"end": "if rank == 0: torch.randn(3)"}, {"end": "torch.randn(3)"}),
    "keys that are not found": Case(
        ("I7",),
        original={"before": "model.load_state_dict({'0.bias': torch.ones(5), '2.bias': torch.ones(3)}, strict=False)"},
    ),
    "the wrapper's keys": Case(("I7",), original={"last": "torch.save(model.state_dict(), 'model.pt')"}),
    "the wrapper's pickle": Case(("I9",), original={"last": "torch.save(model, 'model.pt')"}),
    "a file for each rank": Case(
        ("I6",), {"last": "open(f'log{rank}.txt', 'w').write('done')"}, {"last": "open('log0.txt', 'w').write('done')"}
    ),
    # Processes
    "spawned at the top": Case(
        ("P1",),
        {"start": "from torch.multiprocessing import spawn\ndef work(index): pass\nspawn(work)\n" + BY_HAND["start"]},
        code=2,
    ),
    "a lambda spawned": Case(
        ("P2",),
        {"sets": "if __name__ == '__main__': torch.multiprocessing.spawn(lambda index: None, nprocs=2)"},
        code=2,
    ),
    "an argument that nobody gives": Case(
        ("P3",),
        {
            "sets": "import argparse\nparser = argparse.ArgumentParser()\n"
            "parser.add_argument('--local_rank', type=int, required=True)\nparser.parse_args()"
        },
        code=2,
    ),
    "the end of one rank": Case(("P7",), original={"step": LOSS + "\nif loss < 1.05: raise SystemExit"}, code=2),
    "an exception on one rank": Case(("P8",), original={"step": LOSS + "\nassert loss < 1.27 or not epoch"}, code=2),
    "an exception on one rank before the other has begun": Case(
        ("P8",),
        {"step": "if rank:\n    import time\n    time.sleep(30)\nassert rank\n" + LOSS},
        code=2,
    ),
}
