"""What training loops and evaluations show, plain: prints and files of 2 and 3 ranks are those of one process.

Each script is one form: a meter, a metric of a batch, an evaluation of the samples of training. 65 and 47 samples in
batches of 12 leave the ranks unequal parts.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.e2e.fixtures import Fixture
from tests.e2e.test_plain import differences

HEAD = """\
import numpy as np
import torch
import torch.nn.functional as F
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(3)
train_set = TensorDataset(torch.rand(65, 4), torch.randint(3, (65,)))
test_set = TensorDataset(torch.rand(47, 4), torch.randint(3, (47,)))
train_loader = DataLoader(train_set, batch_size=12, shuffle=True)
test_loader = DataLoader(test_set, batch_size=12)
model = torch.nn.Linear(4, 3)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)


class AverageMeter:
    def __init__(self):
        self.val = self.avg = self.sum = self.count = 0

    def update(self, val, n=1):
        self.val = val
        self.sum += val * n
        self.count += n
        self.avg = self.sum / self.count


def accuracy(output, target, topk=(1,)):
    pred = output.topk(max(topk), 1, True, True)[1].t()
    correct = pred.eq(target.view(1, -1).expand_as(pred))
    res = []
    for k in topk:
        correct_k = correct[:k].reshape(-1).float().sum(0)
        res.append(correct_k.mul_(100.0 / target.size(0)))
    return res


"""
STEP = """\
    for i, (x, y) in enumerate(train_loader):
        out = model(x)
        loss = F.cross_entropy(out, y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
"""
SCRIPTS = {
    "a meter": f"""\
for epoch in range(2):
    losses, top1 = AverageMeter(), AverageMeter()
{STEP}\
        losses.update(loss.item(), x.size(0))
        top1.update(accuracy(out.data, y, topk=(1, 2))[1].item(), x.size(0))
        text = "{{0}} {{loss.val:.5f}} {{loss.avg:.5f}} {{top1.val:.3f}} {{top1.avg:.3f}}"
        print(text.format(i, loss=losses, top1=top1))
    top1 = AverageMeter()
    with torch.no_grad():
        for x, y in test_loader:
            top1.update(accuracy(model(x), y)[0].item(), x.size(0))
    print(top1.avg)
""",
    "metrics of a batch": f"""\
for epoch in range(2):
    correct = total = 0
    seen = []
{STEP}\
        seen.append(y.numpy())
        correct += (out.argmax(1) == y).sum()
        total += len(y)
        print(np.bincount(out.argmax(1).numpy() * 3 + y.numpy(), minlength=9), out.norm().item(), correct / total)
        torch.save(out.detach(), "last.pt")
    print(np.bincount(np.concatenate(seen)[:30]), y[:5], 100.0 / len(y))
""",
    "arrays of numpy": f"""\
for epoch in range(2):
    sums, both = [], np.zeros(2)
{STEP}\
        sums.append(F.one_hot(y, 3).numpy().sum(0))
        both += [loss.item(), 2 * loss.item()]
        print(np.sum(x.numpy(), 0).round(4), x.numpy().sum(axis=0).sum().round(4), F.one_hot(y, 3).numpy().sum(0))
    print(sum(sums), sums[0] / sums[0].sum(), both.round(5))
    hits, matrix, loss_sum, drawn = 0, np.zeros((3, 3), dtype=int), 0.0, np.zeros(3)
    with torch.no_grad():
        for x, y in test_loader:
            out = model(x)
            loss_sum += F.cross_entropy(out, y).item()
            hits = hits + np.sum(F.one_hot(y, 3).numpy(), axis=0)
            matrix += np.bincount(3 * y.numpy() + out.argmax(1).numpy(), minlength=9).reshape(3, 3)
            for each in range(3):
                drawn[each] += (out.argmax(1) == each).sum().item()
    print(round(loss_sum / len(test_loader), 5), hits, hits / hits.sum(), drawn)
    print(matrix, matrix.diagonal() / matrix.sum(1))
""",
    "what training and an evaluation keep and measure": f"""\
class Ranks:
    def __init__(self):
        self.outs, self.ys, self.count = [], [], 0

    def update(self, out, y):
        self.outs.append(out.detach().cpu())
        self.ys.append(y)
        self.count += len(y)

    def compute(self):
        outs, ys = torch.cat(self.outs).numpy(), torch.cat(self.ys).numpy()
        print(self.count)
        return area(outs[:, 1].ravel(), ys.ravel())


def area(scores, ys):
    places = np.empty(len(scores))
    places[np.argsort(scores)] = np.arange(1, len(scores) + 1)
    count = (ys == 1).sum()
    return (places[ys == 1].sum() - count * (count + 1) / 2) / (count * (len(ys) - count))


def rates(trues, guesses):
    trues, guesses = np.array(trues), np.array(guesses)
    return max((guesses[trues == each] == each).mean() for each in np.unique(trues))


for epoch in range(2):
    ranks, trues, guesses = Ranks(), [], []
{STEP}\
        ranks.update(out, y)
        trues.extend(y.numpy())
        guesses.extend(out.argmax(1).numpy())
    print(ranks.compute(), rates(trues, guesses))
    ranks, trues, guesses = Ranks(), [], []
    with torch.no_grad():
        for x, y in test_loader:
            ranks.update(model(x), y)
            trues.extend(y.numpy())
            guesses.extend(model(x).argmax(1).numpy())
    print(ranks.compute(), rates(trues, guesses))
""",
    "training is evaluated": f"""\
def rate(loader):
    hits = 0
    for x, y in loader:
        hits += (model(x).argmax(1) == y).sum().item()
    return hits / len(loader.dataset)


for epoch in range(2):
{STEP}\
    print(rate(train_loader), rate(test_loader))
print(sum(len(x) for x, _ in train_loader))
""",
    "a logger that answers": f"""\
from visdom import Visdom

viz = Visdom()


def train(epoch, logger, window):
{STEP}\
        if logger.check_connection():
            window = logger.line([loss.item()], [i], win=window, update="append" if window is not None else None)
    return window


def largest(model):
    return max(each.abs().max().item() for each in model.parameters())


window = None
for epoch in range(2):
    window = train(epoch, viz, window)
    viz.text("%s %.3f" % (window, largest(model)))
    print("%.3f" % largest(model), file=open("largest.txt", "w"))
""",
    "an object that keeps its model": """\
class Trainer:
    def __init__(self, model, optimizer):
        self.model = model.double().float()
        self.optimizer = optimizer

    def fit(self):
        for x, y in train_loader:
            loss = F.cross_entropy(self.model(x), y)
            self.optimizer.zero_grad()
            loss.backward()
            self.optimizer.step()
            print("%.5f" % loss.item())
        torch.save(self.model.state_dict(), "model.pt")


trainer = Trainer(model, optimizer)
for epoch in range(2):
    trainer.fit()
""",
    "one function that trains and evaluates, and shows ratios": """\
def run(model, loader, optimizer):
    total, hits, count = 0.0, 0.0, 0
    for x, y in loader:
        out = model(x)
        loss = F.cross_entropy(out, y)
        if optimizer is not None:
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        count += x.size(0)
        total += loss.item() * x.size(0)
        hits += (out.argmax(1) == y).float().sum().item()
        print("%.4f %.4f" % (total / count, hits / count * 100))
    return total / count, hits / count * 100


best = 0.0
for epoch in range(2):
    print("%.4f %.4f" % run(model, train_loader, optimizer))
    loss, rate = run(model, test_loader, None)
    best = max(best, rate)
    print("%.4f %.4f" % (loss, best))
""",
    "a softmax that names no dimension": """\
teacher = torch.nn.Linear(4, 3)
for epoch in range(2):
    for x, y in train_loader:
        out = model(x.view(-1, 2 * 2))
        goal = F.softmax(teacher(x.view(-1, 4)).detach() / 2.0)
        loss = F.kl_div(F.log_softmax(out / 2.0), goal) + F.nll_loss(F.log_softmax(out), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        print(loss.item())
""",
    "means over a mask": """\
for epoch in range(2):
    for x, y in train_loader:
        out = model(x)
        mask = (y != 1).float()
        each = F.cross_entropy(out, y, reduction="none")
        loss = (each * mask).sum() / mask.sum()
        hits = ((out.argmax(1) == y) * mask).sum() / mask.sum()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        print("%.5f %.4f" % (loss.item(), hits))
""",
    "buffers that are filled in each step": """\
data, label = torch.FloatTensor(12, 4), torch.FloatTensor(12)
for epoch in range(2):
    for x, y in train_loader:
        if x.size(0) != 12:
            continue
        data.resize_(x.size()).copy_(x).mul_(2)
        label.resize_(x.size(0)).fill_(0.25)
        loss = F.mse_loss(model(data)[:, 0], label, size_average=False).div(x.size(0))
        loss = loss + torch.sum(model(x) ** 2).mul_(0.5).div_(x.size(0))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        print(loss.item())
""",
    "batches that next() takes": """\
batches = iter(train_loader)
log = []
for step in range(14):
    try:
        x, y = next(batches)
    except StopIteration:
        batches = iter(train_loader)
        x, y = next(batches)
    loss = F.cross_entropy(model(x), y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    log.append([loss.item(), 2 * loss.item()])
    print(np.asarray(log)[-2:].mean(0))
""",
    "an attack on the samples": """\
for epoch in range(2):
    for x, y in train_loader:
        attacked = x.detach() + 0.0
        attacked.requires_grad_()
        gradient = torch.autograd.grad(F.cross_entropy(model(attacked), y), [attacked])[0]
        attacked = torch.min(torch.max(attacked.detach() + 0.1 * torch.sign(gradient), x - 0.05), x + 0.05)
        loss = F.cross_entropy(model(attacked), y)
        mixed = (0.5 * x + 0.25).requires_grad_()
        out = model(mixed).pow(2)
        (slopes,) = torch.autograd.grad(out, mixed, torch.ones_like(out), create_graph=True)
        loss = loss + ((slopes.norm(2, dim=1) - 1) ** 2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        print(loss.item())
""",
}
# What has got a name, a test of its own or brackets does not lose them on the way back.
NAMED = {
    "one function that trains and evaluates, and divides means by samples": """\
def run(loader, optimizer):
    total, count = 0.0, 0
    for x, y in loader:
        loss = F.cross_entropy(model(x), y)
        if optimizer is not None:
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        count += x.size(0)
        total += loss.item()
        print("%.5f" % (total / count))
    return total / count


for epoch in range(2):
    print("%.5f" % run(train_loader, optimizer))
    print("%.5f" % run(test_loader, None))
""",
    "a meter that divides by a count or by 1, of training and of an evaluation that is not divided": """\
class Meter:
    def __init__(self):
        self.total = 0.0
        self.seen = self.hits = self.samples = self.right = self.batches = 0

    def update(self, loss, out, y, ignored=2):
        self.total += loss
        self.batches += 1
        seen = y != ignored
        hit = (out.argmax(-1) == y) & seen
        self.hits += hit.sum().item()
        self.seen += seen.sum().item()
        self.right += (out.argmax(-1) == y).sum().item()
        self.samples += y.size(0)

    def get(self):
        rate = 100.0 * self.hits / max(self.seen, 1)
        return self.total / max(self.batches, 1), rate, self.right / max(self.samples, 1)


def weighed(out, y):
    mask = (y != 0).float()
    return (F.cross_entropy(out, y, reduction="none") * mask).sum() / mask.sum()


def train():
    meter = Meter()
    for x, y in train_loader:
        out = model(x)
        loss = weighed(out, y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        meter.update(loss.item(), out, y)
    return meter.get()


@torch.no_grad()
def test():
    meter = Meter()
    for x, y in test_loader:
        out = model(x)
        meter.update(weighed(out, y).item(), out, y)
    return meter.get()


best = 0.0
for epoch in range(2):
    print("%.5f %.3f %.3f" % train())
    loss, rate, right = test()
    best = max(best, rate)
    print("%.5f %.3f %.3f %.3f" % (loss, rate, right, best))
""",
    "targets that count differently": """\
PAD = 0
weights = torch.tensor([0.0, 1.0, 3.0])
weights = weights / weights.sum()
criterion = torch.nn.CrossEntropyLoss(weights)
padded = torch.nn.NLLLoss(ignore_index=PAD, reduction="mean")


def both_left_out(out, y):
    return F.cross_entropy(out.view(-1, out.size(-1)), y.view(-1), weight=weights, ignore_index=1)


def test():
    total = 0.0
    with torch.no_grad():
        for x, y in test_loader:
            total += criterion(model(x), y).item()
    return total / len(test_loader)


for epoch in range(2):
    losses = AverageMeter()
    for x, y in train_loader:
        out = model(x)
        loss = both_left_out(out, y) + criterion(out, y) * 0.5
        loss = loss + padded(F.log_softmax(out, dim=1), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.update(loss.item(), x.size(0))
        print("%.5f %.5f" % (loss.item(), losses.avg))
    print("%.5f" % test())
""",
    "rank 0 saves what all compute": f"""\
class Summed(torch.nn.Module):
    def forward(self, x):
        return x.sum(1)


summed = Summed()
for epoch in range(2):
{STEP}\
    np.savetxt("weights%d.txt" % epoch, summed(model.weight).detach().numpy(), header=str(len(test_set)))
""",
}


@pytest.mark.parametrize("ranks", [2, pytest.param(3, marks=pytest.mark.nightly)])
@pytest.mark.parametrize("name", SCRIPTS | NAMED)
def test_what_is_shown_is_that_of_one_process(name: str, ranks: int, tmp_path: Path) -> None:
    (tmp_path / "before.py").write_text(HEAD + (SCRIPTS | NAMED)[name])
    fixture = Fixture(name, tmp_path, "before.py", (), 1e-6, False, "", False, True, (), False, "", "", (), True)
    found = differences(fixture, ranks)
    assert not found, "\n".join(found)
