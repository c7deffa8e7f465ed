"""Ways in which programs make loaders and models, plain: what 2 and 3 ranks train and show is what one process does.

Half of the programs run at every change, by turns, on one of these numbers of ranks; by night all of them on both.
"""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from ddpify_codemods import convert

from ddpify.verify import processes
from tests.e2e.fixtures import Fixture
from tests.e2e.test_plain import differences
from tests.turns import turn

HEAD = """\
import torch
import torch.nn.functional as F
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(3)
train_set = TensorDataset(torch.rand(65, 4), torch.randint(3, (65,)))
test_set = TensorDataset(torch.rand(47, 4), torch.randint(3, (47,)))


def train(model, optimizer, loader):
    for x, y in loader:
        loss = F.cross_entropy(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        print(loss.item())


def evaluate(model, loader):
    total = correct = 0
    with torch.no_grad():
        for x, y in loader:
            out = model(x)
            total += F.cross_entropy(out, y, reduction="sum").item()
            correct += (out.argmax(1) == y).sum().item()
    print(total / len(loader.dataset), correct)


model = torch.nn.Linear(4, 3)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
"""
SCRIPTS = {
    "a loss that is multiplied by the number of a batch's parts, in the place of its samples": """\
loader = DataLoader(train_set, batch_size=12, shuffle=True, drop_last=True)
for epoch in range(2):
    total = 0.0
    for data in loader:
        x, y = data
        loss = F.cross_entropy(model(x), y, reduction="sum") / len(data)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss.item() * len(data)
    print(total)
""",
    "a model that the function which trains puts into nn.DataParallel": """\
def fit(net, optimizer, loader, epochs):
    if torch.cuda.device_count() != 1:
        net = torch.nn.DataParallel(net).to(device)
    for epoch in range(epochs):
        for x, y in loader:
            loss = F.cross_entropy(net(x), y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        print(epoch, loss.item(), net.module.weight.sum().item())
    torch.save(net.module.state_dict(), "model.pt")


device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
fit(model, optimizer, DataLoader(train_set, batch_size=12, shuffle=True, drop_last=True), 2)
evaluate(model, DataLoader(test_set, batch_size=12))
""",
    "a trainer whose step takes the parts of a batch by *args": """\
class Base:
    def __init__(self, model, loader, optimizer):
        self.model, self.loader, self.optimizer = model, loader, optimizer

    def train(self):
        for batch in self.loader:
            losses = self.step(*batch)
            total = 0
            for name, value in losses.items():
                total += value
            print(total.item(), losses["loss"].item())


class Trainer(Base):
    def step(self, *args):
        x, y = args
        loss = F.cross_entropy(self.model(x), y)
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
        return {"loss": loss}


trainer = Trainer(model, DataLoader(train_set, batch_size=12, shuffle=True, drop_last=True), optimizer)
trainer.train()
evaluate(trainer.model, DataLoader(test_set, batch_size=12))
""",
    "the sum of a list of means beside a sum over samples": """\
loader = DataLoader(train_set, batch_size=12, shuffle=True, drop_last=True)
for epoch in range(2):
    for x, y in loader:
        out = model(x)
        losses = {"ce": F.cross_entropy(out, y), "size": out.square().mean()}
        loss = sum(losses.values()) + 0.3 * sum([out.abs().mean(), out.sigmoid().mean()]) + 1e-3 * out.abs().sum()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        print(loss.item(), sum(each.item() for each in losses.values()))
""",
    "a loss that is kept at a place which a sample of the batch chooses": """\
loader = DataLoader(train_set, batch_size=12, shuffle=True, drop_last=True)
kept = [0.0] * 3
for epoch in range(2):
    for x, y in loader:
        loss = F.cross_entropy(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        kept[int(y[0])] = 2.0 * loss.item()
    print(epoch, kept)
""",
    "a batch of an evaluation whose loader is made with that of training": """\
sets = {"train": train_set, "val": test_set}
loaders = {name: DataLoader(sets[name], batch_size=12, shuffle=name == "train") for name in ["train", "val"]}
for epoch in range(2):
    for phase in ["train", "val"]:
        correct = 0
        for x, y in loaders[phase]:
            with torch.set_grad_enabled(phase == "train"):
                out = model(x)
                loss = F.cross_entropy(out, y)
            if phase == "train":
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
            correct += (out.argmax(1) == y).sum().item()
        if phase == "val":
            print(correct / len(sets[phase]))
x, y = next(iter(loaders["val"]))
for place in range(12):
    print(y[place].item())
""",
    "guesses that are made of a list of samples": """\
for epoch in range(2):
    scores, labels = [], []
    for x, y in DataLoader(train_set, batch_size=12, shuffle=True, drop_last=True):
        out = model(x)
        loss = F.cross_entropy(out, y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        scores.extend(out.softmax(1)[:, 0].detach().numpy())
        labels.extend((y == 0).int().tolist())
    guesses = [1 if score > 0.4 else 0 for score in scores]
    print(epoch, sum(guesses), guesses, [round(float(score)) for score in scores])
    print(sum([1 if score > 0.4 and label == 1 else 0 for score, label in zip(scores, labels)]))
print(labels)
evaluate(model, DataLoader(test_set, batch_size=12))
""",
    "a head of one of several networks, in the tutorial's functions": """\
import copy
import os


class Net(torch.nn.Module):
    def __init__(self, width):
        super().__init__()
        self.body = torch.nn.Linear(4, width)
        self.fc = torch.nn.Linear(width, 9)

    def forward(self, x):
        return self.fc(self.body(x).tanh())


def freeze(model, extract):
    if extract:
        for param in model.parameters():
            param.requires_grad = False


def make(name, extract):
    model = None
    if name == "wide":
        model = Net(8)
        freeze(model, extract)
        model.fc = torch.nn.Linear(8, 3)
    elif name == "narrow":
        model = Net(5)
        freeze(model, extract)
        model.fc = torch.nn.Linear(5, 3)
    else:
        exit()
    return model


def fit(model, loaders, optimizer, has_two=False):
    best, weights = 0.0, copy.deepcopy(model.state_dict())
    for epoch in range(2):
        for phase in ["train", "val"]:
            if phase == "train":
                model.train()
            else:
                model.eval()
            total, correct = 0.0, 0
            for x, y in loaders[phase]:
                optimizer.zero_grad()
                with torch.set_grad_enabled(phase == "train"):
                    if has_two and phase == "train":
                        out, aux = model(x)
                        loss = F.cross_entropy(out, y) + 0.4 * F.cross_entropy(aux, y)
                    else:
                        out = model(x)
                        loss = F.cross_entropy(out, y)
                    if phase == "train":
                        loss.backward()
                        optimizer.step()
                total += loss.item() * x.size(0)
                correct += torch.sum(out.argmax(1) == y)
            accuracy = correct.double() / len(loaders[phase].dataset)
            if phase == "val":
                print(accuracy.item(), total / len(loaders[phase].dataset))
            if phase == "val" and accuracy > best:
                best, weights = accuracy, copy.deepcopy(model.state_dict())
    model.load_state_dict(weights)
    return model


name = os.environ.get("NETWORK", "wide")
extract = os.environ.get("EXTRACT", "yes") == "yes"
model = make(name, extract)
sets = {"train": train_set, "val": test_set}
loaders = {each: DataLoader(sets[each], batch_size=12, shuffle=True) for each in ["train", "val"]}
params = model.parameters()
if extract:
    params = []
    for _, param in model.named_parameters():
        if param.requires_grad:
            params.append(param)
optimizer = torch.optim.SGD(params, lr=0.1)
model = fit(model, loaders, optimizer, has_two="wide" == "two")
evaluate(model, DataLoader(test_set, batch_size=12))
""",
    "a meter that may show its sum and its count": """\
import time


class AverageMeter(object):
    def __init__(self, name, fmt=":f", shows="average"):
        self.name, self.fmt, self.shows = name, fmt, shows
        self.val = self.avg = self.sum = self.count = 0

    def update(self, val, n=1):
        self.val = val
        self.sum += val * n
        self.count += n
        self.avg = self.sum / self.count

    def __str__(self):
        return ("{name} {val" + self.fmt + "} ({avg" + self.fmt + "})").format(**self.__dict__)

    def summary(self):
        if self.shows == "sum":
            text = "{name} {sum:.3f}"
        elif self.shows == "count":
            text = "{name} {count:.3f}"
        else:
            text = "{name} {avg:.3f}"
        return text.format(**self.__dict__)


loader = DataLoader(train_set, batch_size=12, shuffle=True, drop_last=True)
for epoch in range(2):
    times, losses, seen = AverageMeter("Time"), AverageMeter("Loss", ":.4f"), AverageMeter("Seen", ":.1f", "count")
    start = time.time()
    for x, y in loader:
        times.update(time.time() - start)
        size = x.size(0)
        loss = F.cross_entropy(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.update(loss.item(), size)
        seen.update(loss.item(), size)
        print(str(losses), seen.summary(), times.count)
        start = time.time()
    print("took less than an hour:", times.avg < 3600)
""",
    "a function that gives back a loader, or more than that": """\
def load(split, with_names=True):
    loader = DataLoader(train_set, batch_size=12, shuffle=True, drop_last=True)
    if with_names == False:
        return loader
    return loader, ["a", "b", "c"]


def start(resumes):
    if resumes:
        return load("train", False)
    loader, names = load("train", True)
    print(names)
    return loader


class Trainer:
    def __init__(self, loader):
        self.loader = loader

    def train(self, epoch):
        for x, y in self.loader:
            loss = F.cross_entropy(model(x), y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            print(loss.item())

    def run(self):
        for epoch in range(2):
            self.train(epoch)


Trainer(start(len(train_set) < 3)).run()
evaluate(model, DataLoader(test_set, batch_size=12))
""",
    "options that are others without a GPU": """\
cuda = torch.cuda.is_available()
options = dict(batch_size=24, shuffle=True, pin_memory=True) if cuda else dict(shuffle=True, batch_size=12)
train_loader = DataLoader(train_set, **options)
test_loader = DataLoader(test_set, **options)
for epoch in range(2):
    for x, y in train_loader:
        loss = F.cross_entropy(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
evaluate(model, test_loader)
""",
    "a mean and a sum in the entries of one list": """\
loader = DataLoader(train_set, batch_size=12, shuffle=True, drop_last=True)
for epoch in range(2):
    counts = [0, 0]
    for x, y in loader:
        out = model(x)
        loss = F.cross_entropy(out, y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        counts[0] += loss.item()
        counts[1] += (out.argmax(1) == y).sum().item()
    counts[0] /= len(loader)
    print(counts[0], counts[1] / 60)
evaluate(model, DataLoader(test_set, batch_size=12))
""",
    "a trainer whose model a cache keeps, and a function calls": """\
class Cache:
    def __init__(self, net):
        self.model = net

    def show(self):
        print([p.detach().double().sum().item() for p in self.model.parameters()])


def compute(network, x, y):
    return F.cross_entropy(network(x), y)


class Trainer:
    def __init__(self, net, optimizer):
        self.cache = Cache(net)
        self.model = net
        self.optimizer = optimizer

    def fit(self, loader):
        model = self.model.train()
        for x, y in loader:
            loss = compute(model, x, y)
            self.optimizer.zero_grad()
            loss.backward()
            self.optimizer.step()
        self.cache.show()


loader = DataLoader(train_set, batch_size=12, shuffle=True, drop_last=True)
trainer = Trainer(model, optimizer)
trainer.fit(loader)
evaluate(model, DataLoader(test_set, batch_size=12))
""",
    "a run of mlflow that with begins": """\
import contextlib
import sys
import types

sys.modules["mlflow"] = types.ModuleType("mlflow")
sys.modules["mlflow"].start_run = lambda run_name: contextlib.closing(open(sys.modules["os"].devnull))
sys.modules["mlflow"].log_metric = print
import mlflow

loader = DataLoader(train_set, batch_size=12, shuffle=True, drop_last=True)
with mlflow.start_run(run_name="line"):
    for x, y in loader:
        loss = F.cross_entropy(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        mlflow.log_metric("loss", loss.item())
evaluate(model, DataLoader(test_set, batch_size=12))
""",
    "a training that would begin again where an error ends it": """\
loader = DataLoader(train_set, batch_size=12, shuffle=True, drop_last=True)
for epoch in range(2):
    try:
        train(model, optimizer, loader)
    except torch.cuda.OutOfMemoryError:
        train(model, optimizer, loader)
    except RuntimeError as error:
        print(error)
evaluate(model, DataLoader(test_set, batch_size=12))
""",
    "batches that are left out by their loss": """\
train_set = TensorDataset(torch.rand(60, 4), torch.randint(3, (60,)))
train_set.tensors[0][[5, 44]] = float("nan")
loader = DataLoader(train_set, batch_size=12, drop_last=True)
for epoch in range(2):
    seen = 0.0
    for step, (x, y) in enumerate(loader, 1):
        loss = F.cross_entropy(model(x), y)
        share = loss / 2
        if not torch.isfinite(loss) or loss.item() > 1.3:
            print(f"left out: {step}")
            continue
        share.backward()
        seen += loss.item()
        if step % 2 == 0 or step == len(loader):
            torch.nn.utils.clip_grad_norm_(model.parameters(), 0.5)
            optimizer.step()
            optimizer.zero_grad(set_to_none=True)
    print(seen)
evaluate(model, DataLoader(test_set, batch_size=12))
""",
    "a criterion that is one of two": """\
import sys

loader = DataLoader(train_set, batch_size=12, shuffle=True, drop_last=True)
kind = "smooth" if len(sys.argv) < 5 else "plain"
if kind == "smooth":
    criterion = torch.nn.MultiMarginLoss()
else:
    criterion = torch.nn.CrossEntropyLoss(ignore_index=2)
for epoch in range(2):
    for x, y in loader:
        loss = criterion(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        print(loss.item())
""",
    "two criteria by one name": """\
loader = DataLoader(train_set, batch_size=12, shuffle=True, drop_last=True)


def epoch(criterion):
    for x, y in loader:
        loss = criterion(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        print(loss.item())


epoch(torch.nn.CrossEntropyLoss(ignore_index=2))
epoch(torch.nn.MultiMarginLoss())
""",
    "parts of samples that a mask sets": """\
for epoch in range(2):
    for x, y in DataLoader(train_set, batch_size=12, shuffle=True):
        mask = (x > 0.5) & ~(x > 0.8)
        x[mask] = 0.4
        out = model(x)
        y[y.eq(2)] = 1
        loss = F.cross_entropy(out, y, reduction="none")
        weight = torch.ones_like(loss)
        weight[loss > 1.0] = 0.5
        loss = (loss * weight).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        pred = out.argmax(1)
        pred[pred == 1] = -1
        print(loss.item(), (pred == y).sum().item())
""",
    "numbers in the names of files that rank 0 writes": """\
from pathlib import Path


class Meter:
    def __init__(self):
        self.avg = self.sum = self.n = 0

    def update(self, value, n):
        self.sum += value * n
        self.n += n
        self.avg = self.sum / self.n


loader = DataLoader(train_set, batch_size=12, shuffle=True, drop_last=True)
for epoch in range(2):
    meter = Meter()
    for x, y in loader:
        loss = F.cross_entropy(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        meter.update(loss.item(), len(x))
        with open(f"loss_{loss.item():.3f}.txt", "w") as f:
            f.write("a")
    with Path(f"mean_{meter.avg:.3f}.txt").open("w") as f:
        f.write("a")
    open(f"last_{meter.avg:.2f}.txt", "a").write("a")
""",
    "a meter that is read before anything was added to it": """\
class Meter:
    def __init__(self):
        self.val = 0
        self.avg = 0
        self.sum = 0
        self.count = 0

    def update(self, value, n):
        self.val = value
        self.sum += value * n
        self.count += n
        self.avg = self.sum / self.count


loader = DataLoader(train_set, batch_size=12, shuffle=True, drop_last=True)
for epoch in range(2):
    losses = Meter()
    for x, y in loader:
        print(losses.avg, losses.val)
        loss = F.cross_entropy(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.update(loss.item(), len(x))
    print(losses.avg)
""",
    "metrics of numpy, by name, and one of each row": """\
import numpy as np


def loss_of(outputs, labels):
    count = outputs.size()[0]
    return -torch.sum(F.log_softmax(outputs, dim=1)[range(count), labels]) / count


def accuracy(outputs, labels):
    outputs = np.argmax(outputs, axis=1)
    return np.sum(outputs == labels) / float(labels.size)


metrics = {"accuracy": accuracy}
loader, tests = DataLoader(train_set, batch_size=12, shuffle=True), DataLoader(test_set, batch_size=7)
by_class = {0: [], 1: [], 2: []}
for epoch in range(2):
    summary = []
    for i, (x, y) in enumerate(loader):
        out = model(x)
        loss = loss_of(out, y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if i % 2 == 0:
            out, y = out.data.cpu().numpy(), y.data.cpu().numpy()
            summary.append({name: metrics[name](out, y) for name in metrics} | {"loss": loss.item()})
    means = {name: np.mean([each[name] for each in summary]) for name in summary[0]}
    print(" ; ".join("{}: {:05.3f}".format(name, mean) for name, mean in means.items()))
    with torch.no_grad():
        for x, y in tests:
            out = model(x)
            for i in range(len(y)):
                by_class[y[i].item()].append(out[i, 0].item())
    print(len(by_class[0]), np.mean(by_class[1]))
""",
    "functions that show samples of training, and of an evaluation that every rank goes through": """\
import numpy as np


def plot(features, labels, name):
    for k in range(3):
        print(name, k, features[labels == k, 0].sum().round(4), len(features))


def report(features, labels):
    sure = []
    for n in range(len(features)):
        sure.append(float(features[n].max()) if labels[n] > 0 else 0.0)
    return np.array(sure)


loader, tests = DataLoader(train_set, batch_size=12, shuffle=True, drop_last=True), DataLoader(test_set, batch_size=7)
for epoch in range(2):
    seen, labels = [], []
    for x, y in loader:
        out = model(x)
        loss = F.cross_entropy(out, y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        seen.append(out.detach().numpy())
        labels.append(y.numpy())
        r = report(out.detach().numpy(), y.numpy())
        print(round(float(r.sum()), 5))
    seen = np.concatenate(seen, 0)
    labels = np.concatenate(labels, 0)
    plot(seen, labels, "train")
    seen, labels = [], []
    with torch.no_grad():
        for x, y in tests:
            out = model(x)
            seen.append(out.numpy())
            labels.append(y.numpy())
            r = report(out.numpy(), y.numpy())
            print(round(float(r.sum()), 5))
    seen = np.concatenate(seen, 0)
    labels = np.concatenate(labels, 0)
    plot(seen, labels, "test")
""",
    "classes that say how long they are run over, and what they give": """\
import random


class Noisy(torch.utils.data.Dataset):
    def __len__(self):
        return 65

    def __getitem__(self, index):
        x, y = train_set[index]
        return x + 0 * random.random(), y


class Steps:
    def __iter__(self):
        return self

    def __next__(self):
        if random.random() < 0.4:
            raise StopIteration
        return 0.9


class Turns:
    def __iter__(self):
        while random.random() > 0.4:
            yield 1


for epoch in range(3):
    train(model, optimizer, DataLoader(Noisy(), batch_size=12))
    for step in Steps():
        optimizer.param_groups[0]["lr"] *= step
    for turn in Turns():
        optimizer.param_groups[0]["lr"] *= 0.8
""",
    "lists that get entries for samples, and their lengths": """\
loader, tests = DataLoader(train_set, batch_size=12), DataLoader(test_set, batch_size=7)
seen, right, pair, log = [], 0, (0.0, 0.0), {}
for epoch in range(2):
    for x, y in loader:
        out = model(x)
        loss = F.cross_entropy(out, y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        labels, guesses = y.tolist(), out.argmax(1).tolist()
        seen += [label + 1 for label in labels]
        right += sum(1 for label, guess in zip(labels, guesses) if label == guess)
        right += len([1 for label, guess in zip(labels, guesses) if label != guess])
        pair = tuple(a + b for a, b in zip(pair, (loss.item(), 2 * loss.item())))
        log = {"epoch": epoch, "loss": loss.item()}
        print(log)
print(len(seen), right, pair)
kept, pairs, names = [], [], [str(place) for place in range(7)]
with torch.no_grad():
    for x, y in tests:
        guesses = model(x).argmax(1).tolist()
        kept = [*kept, *y.tolist()]
        pairs += [(label, guess) for label, guess in zip(y.tolist(), guesses)]
        pairs += names[:len(y)]
        pairs.append(0)
print(len(kept), len(pairs))
""",
    "classes derived from DataLoader, which a configuration names": """\
class Loader(DataLoader):
    def __init__(self, dataset, batch_size, shuffle):
        self.dataset, self.count = dataset, len(dataset)
        super().__init__(self.dataset, batch_size, shuffle, num_workers=1)

    def progress(self, number):
        return f"{number}/{len(self)} of {self.count}"


class Points(Loader):
    def __init__(self, count, batch_size=6, shuffle=True):
        super().__init__(TensorDataset(torch.rand(count, 4), torch.randint(3, (count,))), batch_size, shuffle)


def made(settings):
    return {"Points": Points, "Loader": Loader}[settings["type"]](**settings["args"])


config = {"type": "Points", "args": {"count": 65}}
other = {"type": "Points", "args": {"count": 47, "batch_size": 7, "shuffle": False}}
points, others = made(config), made(other)
for epoch in range(2):
    for number, (x, y) in enumerate(points):
        loss = F.cross_entropy(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        print(points.progress(number), loss.item())
    correct = 0
    with torch.no_grad():
        for x, y in others:
            correct += (model(x).argmax(1) == y).sum().item()
    print(correct / others.count, others.count)
    evaluate(model, others)
""",
    "lists of samples that are put together anew, and pairs of them": """\
train(model, optimizer, DataLoader(train_set, batch_size=6, shuffle=True))
labels, scores, worst = [], [], []
with torch.no_grad():
    for x, y in DataLoader(test_set, batch_size=7):
        loss = F.cross_entropy(model(x), y, reduction="none").tolist()
        labels = labels + y.tolist()
        scores = loss + scores
        worst += list(zip(loss, y.tolist()))
        worst += tuple(enumerate(y.tolist()))
worst.sort(reverse=True)
print([label + 1 for label in labels], len([label for label in labels if label]), round(sum(scores), 3))
print([label for _, label in worst[:20]])
""",
    "batches of two loaders that a model computes at once, and two views of each sample": """\
def contrast(features, labels):
    alike = (labels.view(-1, 1) == labels.view(1, -1)).double().repeat(2, 2)
    rows = torch.cat(torch.unbind(features, dim=1), dim=0)
    likely = (rows @ rows.t() - rows.square().sum(1).max().detach()).log_softmax(1)
    return -(alike * likely).sum(1).div(alike.sum(1)).mean()


labelled = DataLoader(train_set, batch_size=6, shuffle=True, drop_last=True)
unlabelled = DataLoader(train_set, batch_size=12, shuffle=True, drop_last=True)
for epoch in range(2):
    for (x, y), (u, _) in zip(labelled, unlabelled):
        n = x.shape[0]
        out = model(torch.cat((x, u, 1.1 * u)))
        weak, strong = out[n:].chunk(2)
        sure, guessed = weak.detach().softmax(1).max(1)
        loss = F.cross_entropy(out[:n], y)
        loss = loss + (F.cross_entropy(strong, guessed, reduction="none") * (sure > 0.34)).mean()
        first, second = torch.split(model(torch.cat([x, 0.9 * x])), [n, n])
        loss = loss + 0.1 * contrast(torch.cat([first.unsqueeze(1), second.unsqueeze(1)], dim=1), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        print(loss.item())
""",
    "numbers that numpy makes, and a rank without a batch": """\
import numpy as np


def hits(out, y):
    return np.sum(np.argmax(out.detach().numpy(), axis=1) == y.numpy())


train_loader = DataLoader(train_set, batch_size=12, shuffle=True)
test_loader = DataLoader(test_set, batch_size=40)
for epoch in range(2):
    accuracies = []
    for x, y in train_loader:
        out = model(x)
        loss = F.cross_entropy(out, y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        accuracies.append(hits(out, y) / len(y))
    print(np.mean(accuracies), len(accuracies))
    mean, correct = 0, 0
    for x, y in test_loader:
        out = model(x)
        mean += hits(out, y) / len(y)
        correct += hits(out, y)
    print(mean / len(test_loader), correct)
""",
    "samplers draw some samples of one data set": """\
from torch.utils.data import SubsetRandomSampler

indices = torch.randperm(len(train_set)).tolist()
valid_sampler = SubsetRandomSampler(indices[48:])
train_loader = DataLoader(train_set, batch_size=12, sampler=SubsetRandomSampler(indices[:48]))
valid_loader = DataLoader(train_set, batch_size=12, sampler=valid_sampler)
test_loader = DataLoader(test_set, batch_size=12)
for epoch in range(2):
    train(model, optimizer, train_loader)
    correct = 0
    for x, y in valid_loader:
        correct += (model(x).argmax(1) == y).sum().item()
    print(correct / len(valid_loader.sampler), len(valid_loader.dataset), len(valid_sampler))
    evaluate(model, test_loader)
""",
    "a sampler draws samples by their weights": """\
from torch.utils.data import WeightedRandomSampler

labels = train_set.tensors[1]
sampler = WeightedRandomSampler(1 / torch.bincount(labels)[labels], num_samples=50)
train_loader = DataLoader(train_set, batch_size=12, sampler=sampler)
test_loader = DataLoader(test_set, batch_size=12)
for epoch in range(2):
    total = count = 0
    for x, y in train_loader:
        loss = F.cross_entropy(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss.item() * len(x)
        count += len(x)
        print((y == 0).sum().item(), x.max())
    print(total / count)
    evaluate(model, test_loader)
""",
    "measures of training, and of an evaluation that is whole": """\
def accuracy(out, y, threshold=0.5):
    out = out > threshold
    y = y == torch.max(y)
    return float(torch.sum(out == y)) / float(out.size(0) * out.size(1))


def recall(out, y):
    out = out > 0.5
    y = y == torch.max(y)
    hits = ((out == 1).int() + (y == 1).int()) == 2
    return float(torch.sum(hits)) / (float(torch.sum(y)) + 1e-6)


def f1(out, y):
    return 2 * recall(out, y) * accuracy(out, y) / (recall(out, y) + accuracy(out, y))


train_loader = DataLoader(train_set, batch_size=12, shuffle=True)
test_loader = DataLoader(test_set, batch_size=12)
for epoch in range(2):
    acc, f = 0.0, 0.0
    for x, y in train_loader:
        out = model(x)
        loss = F.cross_entropy(out, y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        acc += accuracy(torch.sigmoid(out), F.one_hot(y, 3))
        f += f1(torch.sigmoid(out), F.one_hot(y, 3))
    print(acc / len(train_loader), f / len(train_loader))
    acc, f = 0.0, 0.0
    for x, y in test_loader:
        out = torch.sigmoid(model(x))
        acc += accuracy(out, F.one_hot(y, 3))
        f += f1(out, F.one_hot(y, 3))
    print(acc / len(test_loader), f / len(test_loader))
""",
    "samples are normalized by numbers of their batch": """\
train_loader = DataLoader(train_set, batch_size=12, shuffle=True)
test_loader = DataLoader(test_set, batch_size=12)
for epoch in range(2):
    for x, y in train_loader:
        mean, std = x.mean(), x.std()
        x = (x - mean) / std + x / x.max()
        loss = F.cross_entropy(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        print(loss.item())
    correct = 0
    for x, y in test_loader:
        mean, std = x.mean(), x.std()
        x = (x - mean) / std
        correct += (model(x).argmax(1) == y).sum().item()
    print(correct)
""",
    "layers in a list that is not followed, and layers that took the place of others": """\
class Wide(torch.nn.Module):
    def __init__(self, old):
        super().__init__()
        self.body = torch.nn.Sequential(torch.nn.Linear(old.in_features, 3), torch.nn.Linear(3, old.out_features))

    def forward(self, x):
        return self.body(x) / (1 + x.abs().mean(1, keepdim=True))


def widened(module):
    new = module
    if isinstance(module, torch.nn.Linear) and module.in_features > 4:
        new = Wide(module)
    for name, child in module.named_children():
        new.add_module(name, widened(child))
    return new


class Scale(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.by = torch.nn.Parameter(torch.ones(8))

    def forward(self, x, shift=None):
        return x * self.by if shift is None else x * self.by + shift


class Encoder(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.scale, self.last = torch.nn.Linear(4, 8), Scale(), torch.nn.Linear(8, 3)


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.encoder = Encoder()
        self.parts = []
        for part in self.encoder.children():
            self.parts.append(part)
        self.head = torch.nn.Sequential(torch.nn.Linear(8, 8), torch.nn.ReLU(), torch.nn.Linear(8, 3))

    def forward(self, x):
        return self.head(self.parts[1](torch.relu(self.parts[0](x))))


net = Net()
widened(net.head)
steps = torch.optim.SGD(net.parameters(), lr=0.1)
train_loader = DataLoader(train_set, batch_size=12, shuffle=True)
test_loader = DataLoader(test_set, batch_size=12)
for epoch in range(2):
    train(model, optimizer, train_loader)
    train(net, steps, train_loader)
    evaluate(net, test_loader)
""",
    "one function makes all loaders": """\
def made(data):
    return DataLoader(data, batch_size=12, shuffle=True, num_workers=0)


train_loader, test_loader = made(train_set), made(test_set)
for epoch in range(2):
    train(model, optimizer, train_loader)
    evaluate(model, test_loader)
    evaluate(model, train_loader)
""",
    "options that training and evaluations share": """\
options = dict(batch_size=12, num_workers=0)
train_loader = DataLoader(train_set, shuffle=True, **options)
test_loader = DataLoader(test_set, shuffle=False, **options)
for epoch in range(2):
    train(model, optimizer, train_loader)
    evaluate(model, test_loader)
""",
    "a loss of each sample in turn": """\
train_loader = DataLoader(train_set, batch_size=12, shuffle=True, drop_last=True)
for epoch in range(2):
    for x, y in train_loader:
        out, total, losses = model(x), 0, []
        for row, label in zip(out, y):
            total += F.cross_entropy(row, label)
            losses.append(F.mse_loss(row, torch.zeros(3)))
        loss = (total + sum(losses)) / 10
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        print(loss.item(), (sum(F.cross_entropy(row, label) for row, label in zip(out, y)) / len(x)).item())
""",
    "a sampler that is left open": """\
train_sampler = None
train_loader = DataLoader(
    train_set, batch_size=12, shuffle=(train_sampler is None), num_workers=0, sampler=train_sampler)
for epoch in range(2):
    train(model, optimizer, train_loader)
""",
    "a bar whose number is read": """\
from tqdm import tqdm

loader = DataLoader(train_set, batch_size=12, shuffle=True)
with tqdm(total=3) as bar:
    while bar.n < bar.total:
        train(model, optimizer, loader)
        bar.update(1)
""",
    "a loader and a global for all epochs": """\
total = 0.0


def train_and_count(loader):
    global total
    for x, y in loader:
        loss = F.cross_entropy(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss.item()


def show():
    print(total)


for epoch in range(2):
    train_and_count(DataLoader(train_set, batch_size=12, shuffle=True))
    show()
""",
    "two models are given to one function": """\
other = torch.nn.Sequential(torch.nn.Linear(4, 5), torch.nn.Tanh(), torch.nn.Linear(5, 3))
other_optimizer = torch.optim.SGD(other.parameters(), lr=0.1)


def penalty(net, x):
    mixed = (0.5 * x + 0.25).requires_grad_()
    out = net(mixed).pow(2)
    (slopes,) = torch.autograd.grad(out, mixed, torch.ones_like(out), create_graph=True)
    return ((slopes.norm(2, dim=1) - 1) ** 2).mean()


for epoch in range(2):
    for x, y in DataLoader(train_set, batch_size=12):
        loss = F.cross_entropy(model(x), y) + penalty(model, x)
        loss = loss + F.cross_entropy(other(x), y) + 0.1 * penalty(other, x)
        optimizer.zero_grad()
        other_optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        other_optimizer.step()
        print(loss.item())
""",
    "a dict has the loaders of all phases": """\
sets = {"train": train_set, "val": test_set}
loaders = {phase: DataLoader(sets[phase], batch_size=12, shuffle=True) for phase in ["train", "val"]}
for epoch in range(2):
    for phase in ["train", "val"]:
        total = correct = 0
        for x, y in loaders[phase]:
            with torch.set_grad_enabled(phase == "train"):
                out = model(x)
                loss = F.cross_entropy(out, y)
                if phase == "train":
                    optimizer.zero_grad()
                    loss.backward()
                    optimizer.step()
            total += loss.item() * len(x)
            correct += (out.argmax(1) == y).sum().item()
        if phase == "val":
            print(phase, total / len(sets[phase]), correct)
""",
    "evaluations of means of batches, of which there may be fewer than ranks": """\
def means(loader):
    total, hits, count = 0, 0, 0
    for x, y in loader:
        with torch.no_grad():
            out = model(x)
        total += F.cross_entropy(out, y).item()
        hits += (out.argmax(1) == y).sum().item()
        count += 1
    print(total / len(loader), hits, count)
    return total / count


best = 9.0
few = torch.utils.data.Subset(test_set, range(5))
for epoch in range(2):
    train(model, optimizer, DataLoader(train_set, batch_size=12))
    best = min(best, means(DataLoader(test_set, 6)), means(DataLoader(few, batch_size=5, shuffle=False)))
print(best)
""",
    "a cache is filled in a loop, and the last checkpoints are kept": """\
import glob
import os

for number in range(6):
    if not os.path.exists(f"part{number}.pt"):
        torch.save(torch.full((11, 4), float(number)), f"part{number}.pt")
parts = torch.cat([torch.load(f"part{number}.pt") for number in range(6)])
train_loader = DataLoader(TensorDataset(parts, torch.arange(66) % 3), batch_size=12, shuffle=True)
for epoch in range(4):
    train(model, optimizer, train_loader)
    torch.save(model.state_dict(), f"epoch{epoch}.pt")
    for old in sorted(glob.glob("epoch*.pt"))[:-2]:
        os.remove(old)
print(sorted(glob.glob("epoch*.pt")))
""",
    "one function trains a model, and then the new head of a frozen one": """\
class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.body = torch.nn.Linear(4, 5)
        self.fc = torch.nn.Linear(5, 7)

    def forward(self, x):
        return self.fc(torch.relu(self.body(x)))


sets = {"train": train_set, "val": test_set}
loaders = {phase: DataLoader(sets[phase], batch_size=12, shuffle=True) for phase in ["train", "val"]}


def fit(model, optimizer):
    best = 0.0
    for epoch in range(2):
        for phase in ["train", "val"]:
            if phase == "train":
                model.train()
            else:
                model.eval()
            hits = 0
            for x, y in loaders[phase]:
                optimizer.zero_grad()
                with torch.set_grad_enabled(phase == "train"):
                    out = model(x)
                    loss = F.cross_entropy(out, y)
                    if phase == "train":
                        loss.backward()
                        optimizer.step()
                hits += (out.argmax(1) == y).sum().item()
            if phase == "val":
                best = max(best, hits / len(sets[phase]))
    print(best)
    return model


model = fit(model, optimizer)
part = Net()
for p in part.parameters():
    p.requires_grad = False
part.fc = torch.nn.Linear(part.fc.in_features, 3)
part = fit(part, torch.optim.SGD(part.fc.parameters(), lr=0.1))
""",
    "an evaluation whose collate function couples its samples": """\
def centred(batch):
    x = torch.stack([b[0] for b in batch])
    return 9 * (x - x.mean(0)), torch.stack([b[1] for b in batch])


for epoch in range(2):
    train(model, optimizer, DataLoader(train_set, batch_size=12, shuffle=True))
    evaluate(model, DataLoader(test_set, batch_size=12, collate_fn=centred))
""",
    "questions whether a model is wrapped": """\
from torch.nn.parallel import DataParallel, DistributedDataParallel


def scaled(net, loader):
    scale = 0.1 if type(net) in (DataParallel, DistributedDataParallel) else 1.0
    for x, y in loader:
        loss = F.cross_entropy(net(x), y) * scale
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    if isinstance(net, DistributedDataParallel):
        print("wrapped")


scaled(model, DataLoader(train_set, batch_size=12, shuffle=True))
evaluate(model, DataLoader(test_set, batch_size=12))
""",
    "a collate function that stacks": """\
def collate(batch):
    xs, ys = tuple(zip(*batch))
    return {"x": torch.stack(xs, dim=0), "y": torch.as_tensor([int(y) for y in ys])}


train_loader = DataLoader(train_set, batch_size=12, shuffle=True, collate_fn=collate)
test_loader = DataLoader(test_set, batch_size=12, collate_fn=collate)
for epoch in range(2):
    for batch in train_loader:
        loss = F.cross_entropy(model(batch["x"]), batch["y"])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    correct = 0
    for batch in test_loader:
        correct += (model(batch["x"]).argmax(1) == batch["y"]).sum().item()
    print(correct)
""",
    "a tutorial that keeps its best epoch in a temporary directory, and looks at predictions": """\
import os
from tempfile import TemporaryDirectory

names = ["ant", "bee", "cat"]
sets = {"train": train_set, "val": test_set}
loaders = {x: DataLoader(sets[x], batch_size=12, shuffle=(x == "train")) for x in ["train", "val"]}
sizes = {x: len(sets[x]) for x in ["train", "val"]}
x, y = next(iter(loaders["train"]))
print(x.shape, len(y))


def train_model(model, optimizer, epochs):
    with TemporaryDirectory() as folder:
        path = os.path.join(folder, "best.pt")
        torch.save(model.state_dict(), path)
        best = 0.0
        for epoch in range(epochs):
            for phase in ["train", "val"]:
                if phase == "train":
                    model.train()
                else:
                    model.eval()
                total, correct = 0.0, 0
                for x, y in loaders[phase]:
                    optimizer.zero_grad()
                    with torch.set_grad_enabled(phase == "train"):
                        out = model(x)
                        _, predicted = torch.max(out, 1)
                        loss = F.cross_entropy(out, y)
                        if phase == "train":
                            loss.backward()
                            optimizer.step()
                    total += loss.item() * x.size(0)
                    correct += torch.sum(predicted == y.data)
                mean, accuracy = total / sizes[phase], correct.double() / sizes[phase]
                if phase == "val":
                    print(f"{mean:.4f} {accuracy:.4f}")
                if phase == "val" and accuracy > best:
                    best = accuracy
                    torch.save(model.state_dict(), path)
        model.load_state_dict(torch.load(path, weights_only=True))
    return model


def look(model, count=15):
    was_training = model.training
    model.eval()
    shown = 0
    with torch.no_grad():
        for i, (x, y) in enumerate(loaders["val"]):
            _, predicted = torch.max(model(x), 1)
            for j in range(x.size()[0]):
                shown += 1
                print(f"{names[predicted[j]]} {x[j].sum():.4f}")
                if shown == count:
                    model.train(mode=was_training)
                    return
        model.train(mode=was_training)


model = train_model(model, optimizer, 3)
look(model)
""",
    "batches and classes that are looked at beside an evaluation": """\
train_loader = DataLoader(train_set, batch_size=12, shuffle=True)
test_loader = DataLoader(test_set, batch_size=12, shuffle=False)
names = ["ant", "bee", "cat"]
for epoch in range(2):
    train(model, optimizer, train_loader)
batches = iter(test_loader)
x, y = next(batches)
print(" ".join(names[y[j]] for j in range(4)))
print(" ".join(names[each] for each in model(x).argmax(1)[:4]))
evaluate(model, test_loader)
hits = {name: 0 for name in names}
with torch.no_grad():
    for x, y in test_loader:
        for label, prediction in zip(y, model(x).argmax(1)):
            if label == prediction:
                hits[names[label]] += 1
print(hits)
evaluate(model, test_loader)
""",
    "an evaluation of all samples, and one that ends early": """\
def accuracy(loader, limit=None):
    hits = count = 0
    with torch.no_grad():
        for x, y in loader:
            hits += (model(x).argmax(1) == y).sum().item()
            count += len(y)
            if limit is not None and count >= limit:
                break
    return hits / count


def mean_loss(loader):
    losses = 0.0
    with torch.no_grad():
        for x, y in loader:
            losses += F.cross_entropy(model(x), y).item()
    return losses / len(loader)


train_loader = DataLoader(train_set, batch_size=12, shuffle=True)
test_loader = DataLoader(test_set, batch_size=12)
for epoch in range(2):
    train(model, optimizer, train_loader)
    print(mean_loss(test_loader))
print(accuracy(test_loader, 20))
""",
    "a monitor that training and an evaluation of uneven batches update": """\
from collections import defaultdict


class Monitor:
    def __init__(self):
        self.metrics = defaultdict(lambda: {"val": 0, "count": 0, "avg": 0})

    def update(self, name, val):
        metric = self.metrics[name]
        metric["val"] += val
        metric["count"] += 1
        metric["avg"] = metric["val"] / metric["count"]

    def __str__(self):
        return " | ".join("{}: {:.6f}".format(name, metric["avg"]) for name, metric in self.metrics.items())


train_loader = DataLoader(TensorDataset(*train_set[:60]), batch_size=12, shuffle=True)
test_loader = DataLoader(TensorDataset(*test_set[:17]), batch_size=8, shuffle=True)
for epoch in range(2):
    monitor = Monitor()
    for x, y in train_loader:
        loss = F.cross_entropy(model(x), y)
        monitor.update("loss", loss.item())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        print(monitor)
    monitor = Monitor()
    with torch.no_grad():
        for x, y in test_loader:
            out = model(x)
            monitor.update("loss", F.cross_entropy(out, y).item())
            monitor.update("accuracy", (out.argmax(1) == y).float().mean().item())
    print(monitor)
""",
    "a defaultdict that a function adds to": """\
from collections import defaultdict

sets = {"train": train_set, "val": test_set}
loaders = {x: DataLoader(sets[x], batch_size=12, shuffle=True) for x in ["train", "val"]}


def losses(out, y, metrics):
    entropy = F.cross_entropy(out, y)
    norm = out.pow(2).mean()
    metrics["entropy"] += entropy.data.cpu().numpy() * y.size(0)
    metrics["norm"] += norm.item() * y.size(0)
    return entropy + 0.1 * norm


def show(metrics, samples, phase):
    print(phase, ", ".join("{}: {:4f}".format(key, metrics[key] / samples) for key in metrics.keys()))


for epoch in range(2):
    for phase in ["train", "val"]:
        metrics = defaultdict(float)
        samples = 0
        for x, y in loaders[phase]:
            optimizer.zero_grad()
            with torch.set_grad_enabled(phase == "train"):
                loss = losses(model(x), y, metrics)
                if phase == "train":
                    loss.backward()
                    optimizer.step()
            samples += x.size(0)
        if phase == "val":
            show(metrics, samples, phase)
            print(metrics["entropy"] / samples < 3)
""",
    "models of one name, one after the other, and what is unfrozen of the last": """\
loader = DataLoader(train_set, batch_size=12, shuffle=True)


def fit():
    for x, y in loader:
        loss = F.cross_entropy(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


fit()
model = torch.nn.Sequential(torch.nn.Linear(4, 5), torch.nn.Linear(5, 3))
for param in model[0].parameters():
    param.requires_grad = False
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
fit()
for param in model.parameters():
    param.requires_grad = True
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
fit()
evaluate(model, DataLoader(test_set, batch_size=12))
""",
    "two functions make a model and its optimizer, and a third goes on with a model": """\
loader = DataLoader(train_set, batch_size=12, shuffle=True)


def optimizer_of(model, rate):
    return torch.optim.SGD(model.parameters(), lr=rate)


def once():
    model = torch.nn.Linear(4, 3)
    optimizer = optimizer_of(model, 0.2)
    train(model, optimizer, loader)
    evaluate(model, DataLoader(test_set, batch_size=12))
    return model


def folds():
    for fold in range(2):
        model = torch.nn.Linear(4, 3)
        optimizer = optimizer_of(model, 0.1 * (fold + 1))
        train(model, optimizer, loader)
    return model


def go_on(model):
    optimizer = optimizer_of(model, 0.05)
    train(model, optimizer, loader)
    evaluate(model, DataLoader(test_set, batch_size=12))


train(model, optimizer, loader)
model = once()
model = folds()
go_on(model)
""",
    "a function gets another model by a name that is wrapped": """\
loader = DataLoader(train_set, batch_size=12, shuffle=True)


def made():
    return torch.nn.Linear(4, 3)


def main():
    model = made()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    train(model, optimizer, loader)
    model = made()
    optimizer = optimizer_of(model, 0.2)
    train(model, optimizer, loader)
    for rate in 0.1, 0.2:
        train(model, optimizer_of(model, rate), loader)
        model = made()


def optimizer_of(model, rate):
    return torch.optim.SGD(model.parameters(), lr=rate)


train(model, optimizer, loader)
main()
""",
    "samples that are mixed with each other": """\
import numpy as np

loader = DataLoader(train_set, batch_size=12, shuffle=True)
for epoch in range(2):
    correct = seen = 0
    for x, y in loader:
        share = np.random.beta(1.0, 1.0)
        order = torch.randperm(x.size(0)).to(x.device)
        out = model(share * x + (1 - share) * x[order, :])
        loss = share * F.cross_entropy(out, y) + (1 - share) * F.cross_entropy(out, y[order])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        seen += y.size(0)
        correct += share * (out.argmax(1) == y).sum().item() + (1 - share) * (out.argmax(1) == y[order]).sum().item()
    print(correct / seen)
""",
    "tensors of the batch size": """\
size = 12
generator = torch.nn.Linear(4, 4)
optimizer_g = torch.optim.SGD(generator.parameters(), lr=0.1)
for epoch in range(2):
    for x, y in DataLoader(train_set, batch_size=size, shuffle=True, drop_last=True):
        if x.size(0) != size:
            continue
        out = model(x.reshape(size, 2, -1).view(size, -1))
        loss = F.cross_entropy(out, y) + F.mse_loss(out, torch.ones(size, 3))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        loss_g = F.mse_loss(generator(torch.randn(size, 4)), torch.full((size, 4), 0.5))
        optimizer_g.zero_grad()
        loss_g.backward()
        optimizer_g.step()
        print(loss.item(), loss_g.item())
""",
    "names and the first sample of a batch": """\
class Named(torch.utils.data.Dataset):
    def __len__(self):
        return 48

    def __getitem__(self, at):
        return {"x": train_set[at][0], "y": train_set[at][1], "name": f"{at}.png"}


for batch in DataLoader(Named(), batch_size=12, shuffle=True):
    x, y = batch["x"], batch["y"]
    loss = F.cross_entropy(model(x), y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(batch["name"][0], batch["name"][-2:], x[0], y[0].item(), x[1].mean().item())
""",
    "files that are read before they are written anew": """\
import json
import os


def record(entry):
    records = []
    if os.path.exists("log.json"):
        with open("log.json") as file:
            records = json.load(file)
    records.append(entry)
    with open("log.json", "w") as file:
        json.dump(records, file)
    return len(records)


train_loader = DataLoader(train_set, batch_size=12, shuffle=True)
for epoch in range(8):
    total = 0.0
    for x, y in train_loader:
        loss = F.cross_entropy(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss.item()
    print(record({"loss": total, "weights": model.weight.tolist()}))
    if not os.path.exists("best.json") or json.load(open("best.json"))["loss"] > total:
        print("the best so far", epoch)
        with open("best.json", "w") as file:
            json.dump({"loss": total, "weights": model.weight.tolist()}, file)
print(len(json.load(open("log.json"))), json.load(open("best.json"))["loss"])
""",
    "models that loops take from lists": """\
nets = [model, torch.nn.Sequential(torch.nn.Linear(4, 5), torch.nn.BatchNorm1d(5), torch.nn.Linear(5, 3))]
optimizers = [torch.optim.SGD(net.parameters(), lr=0.1) for net in nets]
seen = [[], []]
for epoch in range(2):
    for x, y in DataLoader(train_set, batch_size=12):
        for net, optimizer, losses in zip(nets, optimizers, seen):
            net.train()
            loss = F.cross_entropy(net(x), y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
    for net in nets:
        net.eval()
        evaluate(net, DataLoader(test_set, batch_size=12))
    print([sum(net(test_set.tensors[0])[0]).item() for net in nets])
print(seen)
""",
    "an evaluation shuffles, and adds up means of batches": """\
options = {"num_workers": 0, "pin_memory": False}
shuffled = DataLoader(test_set, batch_size=12, shuffle=True, **options)
best = 9.0
for epoch in range(3):
    model.train()
    for x, y in DataLoader(train_set, batch_size=12, shuffle=True):
        loss = F.cross_entropy(model(F.dropout(x, 0.2)), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    model.eval()
    total = hits = 0
    with torch.no_grad():
        for x, y in shuffled:
            out = model(x)
            total += F.cross_entropy(out, y).item()
            hits += (out.argmax(1) == y).sum().item()
    total /= len(shuffled)
    if total < best:
        best = total
        torch.save(model.state_dict(), "best.pt")
    print(epoch, total, hits / len(test_set), best)
""",
    "a loader that is made for each epoch": """\
def run_epoch(model, optimizer):
    loader = DataLoader(train_set, batch_size=12, shuffle=True)
    for x, y in loader:
        loss = F.cross_entropy(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        print(loss.item())


for epoch in range(3):
    run_epoch(model, optimizer)
""",
    "a loader that is made anew in some epochs": """\
for epoch in range(4):
    if epoch % 2 == 0:
        loader = DataLoader(train_set, batch_size=12 if epoch else 24, shuffle=True)
    for x, y in loader:
        loss = F.cross_entropy(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        print(loss.item())
""",
    "one loop over batches after the other": """\
loader = DataLoader(train_set, batch_size=12, shuffle=True)
for x, y in loader:
    loss = F.cross_entropy(model(x), y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
for group in optimizer.param_groups:
    group["lr"] = 0.01
for x, y in loader:
    loss = F.cross_entropy(model(x), y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(loss.item())
""",
    "loaders of both kinds that one function makes for each epoch": """\
def get_loader(data, shuffle):
    return DataLoader(data, batch_size=12, shuffle=shuffle)


for epoch in range(3):
    train(model, optimizer, get_loader(train_set, True))
    evaluate(model, get_loader(test_set, False))
""",
    "a loader that is made where it is run over, by a function that is called twice": """\
def run_epoch(rate):
    optimizer = torch.optim.SGD(model.parameters(), lr=rate)
    for x, y in DataLoader(train_set, batch_size=12, shuffle=True):
        loss = F.cross_entropy(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        print(loss.item())


run_epoch(0.1)
run_epoch(0.2)
""",
    "samplers of some samples beside options that loaders share": """\
from torch.utils.data import SubsetRandomSampler

indices = torch.randperm(65).tolist()
options = {"batch_size": 12, "num_workers": 0}
loader = DataLoader(train_set, sampler=SubsetRandomSampler(indices[:43]), **options)
other = DataLoader(train_set, sampler=SubsetRandomSampler(indices[43:]), **options)
for epoch in range(2):
    train(model, optimizer, loader)
    evaluate(model, other)
""",
    "samplers beside options that say how samples are loaded": """\
from torch.utils.data import RandomSampler, SequentialSampler

options = {"num_workers": 0, "pin_memory": False} if torch.cuda.is_available() else {}
train_sampler = RandomSampler(train_set)
loader = DataLoader(train_set, sampler=train_sampler, batch_size=12, **options)
other = DataLoader(test_set, sampler=SequentialSampler(test_set), batch_size=12, **options)
print(len(train_sampler))
for epoch in range(2):
    train(model, optimizer, loader)
    evaluate(model, other)
""",
    "a sampler beside options that drop the last batch": """\
from torch.utils.data import SubsetRandomSampler

indices = torch.randperm(65).tolist()
options = dict(batch_size=12, drop_last=True)
train_sampler = SubsetRandomSampler(indices[:43])
loader = DataLoader(train_set, sampler=train_sampler, **options)
other = DataLoader(test_set, batch_size=5)
print(len(loader.sampler), len(loader))
for epoch in range(2):
    train(model, optimizer, loader)
    evaluate(model, other)
""",
    "samplers of folds beside options that loaders share": """\
from torch.utils.data import SubsetRandomSampler

indices = torch.randperm(65).tolist()
options = {"batch_size": 12, "num_workers": 0}
for fold in range(3):
    held = indices[fold * 20:(fold + 1) * 20]
    rest = [i for i in indices if i not in held]
    train_sampler = SubsetRandomSampler(rest)
    test_sampler = SubsetRandomSampler(held)
    loader = DataLoader(train_set, sampler=train_sampler, **options)
    other = DataLoader(train_set, sampler=test_sampler, **options)
    train(model, optimizer, loader)
    evaluate(model, other)
    print(len(test_sampler))
""",
    "samplers that draw by weights beside options that loaders share": """\
from torch.utils.data import WeightedRandomSampler

options = {"batch_size": 12, "num_workers": 0, "drop_last": True}
loader = DataLoader(train_set, sampler=WeightedRandomSampler(torch.ones(65), 71), **options)
other = DataLoader(test_set, **options)
for epoch in range(2):
    train(model, optimizer, loader)
    evaluate(model, other)
""",
    "samplers that draw by weights beside options that say how samples are loaded": """\
from torch.utils.data import WeightedRandomSampler

options = {"num_workers": 0, "pin_memory": False} if torch.cuda.is_available() else {}
sampler = WeightedRandomSampler(torch.ones(65), 65)
loader = DataLoader(train_set, batch_size=12, sampler=sampler, **options)
other = DataLoader(test_set, batch_size=12, **options)
for epoch in range(2):
    train(model, optimizer, loader)
    evaluate(model, other)
""",
    "a function that measures what a list asks for": """\
import numpy as np


def measure(y_true, y_prob, wanted):
    y_pred = np.argmax(y_prob, -1)
    output = {}
    if "accuracy" in wanted:
        output["accuracy"] = np.unique(y_pred == y_true, return_counts=True)[1].max() / len(y_true)
    if "spread" in wanted:
        try:
            output["spread"] = np.percentile(y_prob, 90)
        except ValueError:
            output["spread"] = -1
    return output


loader = DataLoader(train_set, batch_size=12, shuffle=True, drop_last=True)
other = DataLoader(test_set, batch_size=12)
for epoch in range(2):
    for x, y in loader:
        out = model(x)
        loss = F.cross_entropy(out, y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        print(loss.item(), measure(y.cpu().numpy(), out.detach().numpy(), wanted=["accuracy"])["accuracy"])
    labels, outs = [], []
    for x, y in other:
        with torch.no_grad():
            outs.append(model(x).clone().cpu())
        labels.extend(y.clone().cpu())
    found = measure(np.array(labels), torch.cat(outs, 0).numpy(), wanted=["accuracy", "spread"])
    print(found["accuracy"], found["spread"])
""",
    "loaders that say that they have no sampler": """\
def make(data, trains):
    return DataLoader(data, batch_size=12, shuffle=trains, sampler=None, num_workers=0)


loader, other = make(train_set, True), make(test_set, False)
last = DataLoader(sampler=None, batch_size=12, dataset=TensorDataset(*train_set.tensors), shuffle=False)
for epoch in range(2):
    train(model, optimizer, loader)
    evaluate(model, other)
    evaluate(model, last)
more = DataLoader(shuffle=True, batch_size=12, dataset=TensorDataset(*test_set.tensors), drop_last=True)
train(model, optimizer, more)
batches = DataLoader(test_set, 12, sampler=None, shuffle=False)
losses = []
with torch.no_grad():
    for x, y in batches:
        losses.append(F.cross_entropy(model(x), y).item())
print(sum(losses) / len(losses))
""",
}

# Those that make their own model, of which there is one.
MODELS = {
    "one function that trains where it gets an optimizer, and evaluates where it gets none": """\
model = torch.nn.Linear(4, 3)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)


def run_epoch(model, loader, optimizer=None):
    model.train() if optimizer else model.eval()
    total = count = 0
    for x, y in loader:
        loss = F.cross_entropy(model(x), y)
        if optimizer:
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        total += loss.item() * len(x)
        count += len(x)
    return total / count, count


train_loader = DataLoader(train_set, batch_size=12, shuffle=True)
test_loader = DataLoader(test_set, batch_size=12)
for epoch in range(2):
    print(run_epoch(model, train_loader, optimizer)[0])
    mean, count = run_epoch(model, test_loader)
    assert count == 47, "each sample once"
    print(mean)
""",
    "an evaluation of as many samples of a batch as are drawn": """\
model = torch.nn.Linear(4, 3)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for epoch in range(2):
    for x, y in DataLoader(train_set, batch_size=12, shuffle=True):
        optimizer.zero_grad()
        F.cross_entropy(model(x), y).backward()
        optimizer.step()
    total, count = 0.0, 0
    with torch.no_grad():
        for x, y in DataLoader(test_set, batch_size=8):
            k = torch.randint(0, 4, (1,)).item()
            total += F.cross_entropy(model(x[k:]), y[k:], reduction="sum").item()
            count += len(x)
    print(total / count)
""",
    "noise of as many rows as a batch has, written as a number": """\
generator = torch.nn.Sequential(torch.nn.Linear(2, 8), torch.nn.ReLU(), torch.nn.Linear(8, 4))
critic = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.ReLU(), torch.nn.Linear(8, 1))
g = torch.optim.SGD(generator.parameters(), lr=0.1)
d = torch.optim.SGD(critic.parameters(), lr=0.1)
loader = DataLoader(train_set, batch_size=12, shuffle=True, drop_last=True)
for epoch in range(2):
    for x, _ in loader:
        d.zero_grad()
        fake = generator(torch.randn(12, 2))
        real, made = critic(x), critic(fake.detach())
        loss = F.binary_cross_entropy_with_logits(real, torch.ones_like(real))
        loss = loss + F.binary_cross_entropy_with_logits(made, torch.zeros_like(made))
        loss.backward()
        d.step()
        g.zero_grad()
        made = critic(fake)
        fooled = F.binary_cross_entropy_with_logits(made, torch.ones_like(made))
        fooled.backward()
        g.step()
        print(loss.item(), fooled.item())
""",
    "an optimizer and its schedule of one function, and one that only loads a checkpoint": """\
def make_optimizer(parameters):
    optimizer = torch.optim.SGD(parameters, lr=0.1)
    return optimizer, torch.optim.lr_scheduler.MultiStepLR(optimizer, milestones=[1], gamma=0.5)


def main(evaluates):
    if evaluates:
        model = torch.nn.Linear(4, 3)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        saved = torch.load("model.pt")
        model.load_state_dict(saved["model"])
        optimizer.load_state_dict(saved["optimizer"])
        evaluate(model, DataLoader(test_set, batch_size=12))
        return
    model = torch.nn.Linear(4, 3)
    optimizer, schedule = make_optimizer(model.parameters())
    for epoch in range(2):
        train(model, optimizer, DataLoader(train_set, batch_size=12, shuffle=True))
        schedule.step()
        evaluate(model, DataLoader(test_set, batch_size=12))
    torch.save({"model": model.state_dict(), "optimizer": optimizer.state_dict()}, "model.pt")


main(False)
main(True)
""",
    "a model, or one of a checkpoint": """\
checkpoint = None
if checkpoint is None:
    model = torch.nn.Linear(4, 3)
    optimizer = torch.optim.SGD(params=filter(lambda p: p.requires_grad, model.parameters()), lr=0.1)
else:
    checkpoint = torch.load(checkpoint)
    model = checkpoint["model"]
    optimizer = checkpoint["optimizer"]
model = model.to("cpu")
train(model, optimizer, DataLoader(train_set, batch_size=12, shuffle=True))
""",
    "models that a function takes out of a list": """\
def fit(models, loader, optimizer):
    encoder, decoder = models
    encoder.train()
    decoder.train()
    for x, y in loader:
        loss = F.cross_entropy(decoder(encoder(x)), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        print(loss.item())
    torch.save(encoder.state_dict(), "encoder.pt")
    print(encoder.weight.sum().item())


def validate(models, loader):
    encoder, decoder = models
    encoder.eval()
    hits = 0
    with torch.no_grad():
        for x, y in loader:
            hits += (decoder(encoder(x)).argmax(1) == y).sum().item()
    print(hits)


encoder = torch.nn.Linear(4, 8)
decoder = torch.nn.Linear(8, 3)
params = list(encoder.parameters()) + list(decoder.parameters())
optimizer = torch.optim.SGD(params, lr=0.1)
for epoch in range(2):
    fit([encoder, decoder], DataLoader(train_set, batch_size=12, shuffle=True), optimizer)
    validate([encoder, decoder], DataLoader(test_set, batch_size=7))
""",
    "a pool of earlier samples": """\
import random


class ReplayBuffer:
    def __init__(self, max_size=50):
        self.max_size = max_size
        self.data = []

    def push_and_pop(self, data):
        to_return = []
        for element in data.data:
            element = torch.unsqueeze(element, 0)
            if len(self.data) < self.max_size:
                self.data.append(element)
                to_return.append(element)
            else:
                if random.uniform(0, 1) > 0.5:
                    i = random.randint(0, self.max_size - 1)
                    to_return.append(self.data[i].clone())
                    self.data[i] = element
                else:
                    to_return.append(element)
        return torch.cat(to_return)


G = torch.nn.Linear(4, 4)
D = torch.nn.Linear(4, 1)
og = torch.optim.SGD(G.parameters(), lr=0.1)
od = torch.optim.SGD(D.parameters(), lr=0.1)
buffer = ReplayBuffer(10)
for epoch in range(2):
    for x, y in DataLoader(train_set, batch_size=12, shuffle=True):
        og.zero_grad()
        fake = G(x)
        loss_g = F.mse_loss(D(fake), torch.ones(x.size(0), 1))
        loss_g.backward()
        og.step()
        od.zero_grad()
        old = buffer.push_and_pop(fake)
        loss = F.mse_loss(D(x), torch.ones(x.size(0), 1)) + F.mse_loss(D(old.detach()), torch.zeros(x.size(0), 1))
        loss.backward()
        od.step()
        print(loss.item(), loss_g.item())
""",
    "parts of two networks that one function makes": """\
import itertools
def block(n):
    return [torch.nn.Linear(4, n), torch.nn.ReLU(), torch.nn.Linear(n, 4)]

class Net(torch.nn.Module):
    def __init__(self, n):
        super().__init__()
        self.body = torch.nn.Sequential(*block(n), *block(n + 1))

    def forward(self, x):
        return self.body(x)

def make(n):
    return torch.nn.Sequential(torch.nn.Linear(4, n), torch.nn.ReLU(), torch.nn.Linear(n, 4))

G = Net(5)
D = Net(6)
og = torch.optim.SGD(itertools.chain(G.parameters(), D.parameters()), lr=0.1)
for epoch in range(2):
    for x, y in DataLoader(train_set, batch_size=12, shuffle=True):
        og.zero_grad()
        loss = F.mse_loss(D(G(x)), x)
        loss.backward()
        og.step()
        print(loss.item())
""",
    "a network that is laid out by the batch size": """\
batch_size = 12


class Net(torch.nn.Module):
    def __init__(self, size):
        super().__init__()
        self.size = size
        self.layer, self.head = torch.nn.Linear(4, 6), torch.nn.Linear(6, 3)

    def forward(self, x):
        x = self.layer(x).relu().view(batch_size, 2, 3)
        x = x.view(self.size, -1)
        return self.head(x)


model = Net(12)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for epoch in range(2):
    train(model, optimizer, DataLoader(train_set, batch_size=batch_size, shuffle=True, drop_last=True))
    evaluate(model, DataLoader(test_set, batch_size=batch_size, drop_last=True))
""",
    "trainers that are given back their models, and a student": """\
def load_state(path, model=None, optim=None):
    obj = torch.load(path)
    if model is not None:
        model.load_state_dict(obj["model"])
    if optim is not None:
        optim.load_state_dict(obj["optim"])
    return model, optim


class Trainer:
    def __init__(self, model, optim, loss_fn):
        self.model = model
        self.optim = optim
        self.loss_fn = loss_fn

    def fit(self, epochs, data):
        loader = DataLoader(data, batch_size=12, shuffle=True)
        for epoch in range(epochs):
            print(self.train_epoch(loader))
            torch.save({"model": self.model.state_dict(), "optim": self.optim.state_dict()}, "x.pt")
        self.model, self.optim = load_state("x.pt", self.model, self.optim)

    def train_epoch(self, loader):
        self.model.train()
        losses = 0
        for x, y in loader:
            self.optim.zero_grad()
            out = self.model(x)
            loss = self.loss_fn(out, y)
            loss.backward()
            self.optim.step()
            losses += loss.item()
        return losses / len(loader)


class Distiller:
    def __init__(self, teacher, student, optim):
        self.model = teacher
        self.student = student
        self.optim = optim

    def fit(self, epochs, data):
        loader = DataLoader(data, batch_size=12, shuffle=True)
        for epoch in range(epochs):
            for x, y in loader:
                with torch.no_grad():
                    t = self.model(x)
                out = self.student(x)
                loss = F.cross_entropy(out, y) + F.kl_div(F.log_softmax(out, 1), F.softmax(t, 1), reduction="batchmean")
                self.optim.zero_grad()
                loss.backward()
                self.optim.step()
                print(loss.item())


def run(model):
    optim = torch.optim.SGD(model.parameters(), lr=0.1)
    trainer = Trainer(model, optim, torch.nn.CrossEntropyLoss())
    trainer.fit(2, train_set)


def distill(teacher, student):
    optim = torch.optim.SGD(student.parameters(), lr=0.1)
    distiller = Distiller(teacher, student, optim)
    distiller.fit(2, train_set)


teacher = torch.nn.Linear(4, 3)
run(teacher)
run(torch.nn.Sequential(torch.nn.Linear(4, 5), torch.nn.Linear(5, 3)))
distill(teacher, torch.nn.Sequential(torch.nn.Linear(4, 7), torch.nn.Linear(7, 3)))
""",
    "loops over iter(loader), whose steps are counted": """\
train_loader = DataLoader(train_set, batch_size=12, shuffle=True)
test_loader = DataLoader(test_set, batch_size=12)
model = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.Tanh(), torch.nn.Linear(8, 3))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
steps = 0
optimizer.zero_grad()
for epoch in range(2):
    model.train()
    losses = []
    for x, y in iter(train_loader):
        steps += 1
        loss = F.cross_entropy(model(x), y) / 2
        loss.backward()
        if steps % 2 == 0:
            optimizer.step()
            optimizer.zero_grad()
        losses.append(loss.item())
    print(sum(losses) / len(losses))
    model.eval()
    hits = 0
    for i, (x, y) in enumerate(iter(test_loader)):
        with torch.no_grad():
            hits += (model(x).argmax(1) == y).sum().item()
    print(epoch, hits / len(test_set))
""",
    "folds, each with a loader of its own": """\
def fit(model, optimizer, loader):
    for x, y in loader:
        loss = F.cross_entropy(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        print(loss.item())


def run(loader):
    model = torch.nn.Linear(4, 3)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for epoch in range(3):
        fit(model, optimizer, loader)


for fold in range(2):
    run(DataLoader(train_set, batch_size=12, shuffle=True))
loaders = []
for fold in range(2):
    loaders.append(DataLoader(train_set, batch_size=12, shuffle=True))
for loader in loaders:
    run(loader)
""",
    "folds whose models have one name, and get a type": """\
class Net(torch.nn.Module):
    def __init__(self, width):
        super().__init__()
        self.body = torch.nn.Linear(4, width)
        self.head = torch.nn.Linear(width, 3)

    def forward(self, x):
        return self.head(self.body(x).relu())


def fit():
    for x, y in DataLoader(train_set, batch_size=12, shuffle=True, drop_last=True):
        loss = F.cross_entropy(model(x.to(device)), y.to(device))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        print(loss.item())


device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
model = Net(5)
model.to(device=device, dtype=torch.float32)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for fold in range(2):
    fit()
    torch.save(model.state_dict(), "model.pt")
    model = Net(5)
    model.to(device=device, dtype=torch.float32)
    model.load_state_dict(torch.load("model.pt"))
    evaluate(model, DataLoader(test_set, batch_size=12))
    model = Net(5)
    model.to(device=device, dtype=torch.float32)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
""",
    "a token that each sample gets": """\
class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.token = torch.nn.Parameter(torch.randn(1, 1, 4))
        self.attend = torch.nn.MultiheadAttention(4, 2, batch_first=True)
        self.head = torch.nn.Linear(4, 3)

    def forward(self, x):
        h = torch.cat((torch.repeat_interleave(self.token, x.shape[0], 0), x[:, None]), dim=1)
        return self.head(self.attend(h, h, h)[0][:, 0])


model = Net()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
train(model, optimizer, DataLoader(train_set, batch_size=12, shuffle=True, drop_last=True))
evaluate(model, DataLoader(test_set, batch_size=12))
""",
    "trainers in a list, each with a loader that has had the same name": """\
class Trainer:
    def __init__(self, train_loader):
        self.train_loader = train_loader
        self.model = torch.nn.Linear(4, 3)
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=0.1)

    def train(self):
        for epoch in range(2):
            self.train_epoch()

    def train_epoch(self):
        for x, y in self.train_loader:
            loss = F.cross_entropy(self.model(x), y)
            self.optimizer.zero_grad()
            loss.backward()
            self.optimizer.step()
            print(loss.item())


if __name__ == "__main__":
    trainers = []
    for fold in range(2):
        train_loader = DataLoader(train_set, batch_size=12, shuffle=True)
        trainers.append(Trainer(train_loader))
    for trainer in trainers:
        trainer.train()
""",
    "two networks of one function, each trained by an optimizer of its own": """\
import torch.nn as nn


def network(width):
    net = nn.Sequential(nn.Linear(4, width), nn.ReLU(), nn.Linear(width, 3))
    return net


class Net(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.body = network(width)

    def forward(self, x):
        return self.body(x)


def build(width):
    return Net(width)


first = build(5)
second = build(6)
loader = DataLoader(train_set, batch_size=12, shuffle=True)
one = torch.optim.SGD(first.parameters(), lr=0.1)
two = torch.optim.SGD(second.parameters(), lr=0.2)
for epoch in range(2):
    for x, y in loader:
        loss = F.cross_entropy(first(x), y)
        one.zero_grad()
        loss.backward()
        one.step()
        other = F.cross_entropy(second(x), y)
        two.zero_grad()
        other.backward()
        two.step()
        print(loss.item(), other.item())
""",
    "a trainer that holds the network, a generator of pictures, and an average of it": """\
import copy

import torch.nn as nn


def pictures(loader):
    while True:
        for x, y in iter(loader):
            yield x


def extract(table, steps, shape):
    return torch.gather(table, index=steps, dim=0).float().view([steps.shape[0]] + [1] * (len(shape) - 1))


class Block(nn.Module):
    def __init__(self, size, grows):
        super().__init__()
        self.equal = not grows
        self.layer = nn.Linear(4, size)
        self.shortcut = (not self.equal) and nn.Linear(4, size) or None
        self.scale = nn.Linear(size, size) if grows else None

    def forward(self, x):
        out = torch.add(x if self.equal else self.shortcut(x), self.layer(x))
        return out if self.scale is None else self.scale(out)


class Diffusion(nn.Module):
    def __init__(self, network, steps):
        super().__init__()
        self.network, self.steps = network, steps
        self.register_buffer("betas", torch.linspace(0.1, 0.2, steps).double())

    def forward(self, x):
        steps = (x[:, 0] * self.steps).long()
        noisy = extract(self.betas, steps, x.shape) * x + 0.5 * x
        return F.mse_loss(self.network(noisy), 0.5 * x, reduction="none")


def average(source, target, decay):
    source, target = source.state_dict(), target.state_dict()
    for key in source.keys():
        target[key].data.copy_(target[key].data * decay + source[key].data * (1 - decay))


loader = DataLoader(train_set, batch_size=12, shuffle=True, drop_last=True)
batches = pictures(loader)
network = nn.Sequential(Block(4, False), Block(4, True))
averaged = copy.deepcopy(network)
optimizer = torch.optim.SGD(network.parameters(), lr=0.1)
device = torch.device("cpu")
trainer = Diffusion(network, 10).to(device)
for step in range(11):
    optimizer.zero_grad()
    loss = trainer(next(batches)).mean()
    loss.backward()
    optimizer.step()
    average(network, averaged, 0.9)
    print(loss.item())
with torch.no_grad():
    print(sum(p.sum().item() for p in averaged.parameters()))
""",
    "a loss with centers that are trained": """\
import torch.nn as nn


class CenterLoss(nn.Module):
    def __init__(self, classes, size):
        super().__init__()
        self.classes = classes
        self.centers = nn.Parameter(torch.randn(classes, size))

    def forward(self, x, labels):
        size = x.size(0)
        distances = torch.pow(x, 2).sum(dim=1, keepdim=True).expand(size, self.classes) + torch.pow(
            self.centers, 2
        ).sum(dim=1, keepdim=True).expand(self.classes, size).t()
        distances.addmm_(x, self.centers.t(), beta=1, alpha=-2)
        classes = torch.arange(self.classes).long()
        mask = labels.unsqueeze(1).expand(size, self.classes).eq(classes.expand(size, self.classes))
        return (distances * mask.float()).clamp(min=1e-12, max=1e12).sum() / size


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.features, self.head = nn.Linear(4, 2), nn.Linear(2, 3)

    def forward(self, x):
        features = self.features(x)
        return features, self.head(features)


net, centers = Net(), CenterLoss(3, 2)
first = torch.optim.SGD(net.parameters(), lr=0.1)
second = torch.optim.SGD(centers.parameters(), lr=0.5)
loader = DataLoader(train_set, batch_size=12, shuffle=True, drop_last=True)
for epoch in range(2):
    for x, y in loader:
        features, out = net(x)
        loss = F.cross_entropy(out, y) + 0.3 * centers(features, y)
        first.zero_grad()
        second.zero_grad()
        loss.backward()
        first.step()
        for parameter in centers.parameters():
            parameter.grad.data *= 1 / 0.3
        second.step()
        print(loss.item())
""",
    "one of two networks, of which a call in a branch gives more than the other takes": """\
import sys


class Mlp(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.out = torch.nn.Linear(4, 3)

    def forward(self, x, steps):
        return self.out(x) * steps


class Rnn(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.out = torch.nn.Linear(4, 3)

    def forward(self, x, steps, burn_in=False):
        return self.out(x) * (steps + burn_in)


kind = "rnn" if len(sys.argv) < 5 else "mlp"
if kind == "mlp":
    model = Mlp()
else:
    model = Rnn()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for epoch in range(2):
    for x, y in DataLoader(train_set, batch_size=12, shuffle=True, drop_last=True):
        optimizer.zero_grad()
        if kind == "rnn":
            out = model(x, 2, burn_in=True)
        else:
            out = model(x, 1)
        loss = F.cross_entropy(out, y)
        loss.backward()
        optimizer.step()
        print(loss.item())
""",
    "what a loop over drawn numbers counts": """\
class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.out = torch.nn.Linear(4, 3)

    def forward(self, x):
        return self.out(F.dropout(x, p=0.2))


model = Net()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for epoch in range(2):
    for x, y in DataLoader(train_set, batch_size=12, shuffle=True, drop_last=True):
        loss = F.cross_entropy(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    errors = batches = 0
    with torch.no_grad():
        for x, y in DataLoader(test_set, batch_size=6):
            errors += (model(x) - y[:, None]).pow(2).mean(dim=0).numpy()
            batches += 1
    n, text = 0, "["
    for error in errors / batches:
        n += 1
        text += " {:.0f}".format(0 * error)
    print(n, text + "]")
""",
    "the last step of a recurrent network, whose samples lie second": """\
class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.rnn = torch.nn.LSTM(4, 8, 2)
        self.out = torch.nn.Linear(8, 3)

    def forward(self, x):
        outputs, hidden = self.rnn(x.unsqueeze(0).repeat(3, 1, 1))
        h = self.out(outputs[-1, :, :])
        return h.view(x.size(0), -1)


model = Net()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
train(model, optimizer, DataLoader(train_set, batch_size=12, shuffle=True, drop_last=True))
evaluate(model, DataLoader(test_set, batch_size=7))
""",
    "a loss that is one of several, or ends the run": """\
import sys

model = torch.nn.Linear(4, 3)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
kind = "margin" if len(sys.argv) < 5 else "entropy"
for epoch in range(2):
    for x, y in DataLoader(train_set, batch_size=12, shuffle=True, drop_last=True):
        optimizer.zero_grad()
        if kind == "entropy":
            loss = F.cross_entropy(model(x), y)
        elif kind == "margin":
            loss = F.multi_margin_loss(model(x), y)
        else:
            raise ValueError(kind)
        loss.backward()
        optimizer.step()
        print(loss.item())
""",
    "parameters that are taken layer by layer, and one by one": """\
class Body(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(4, 8)
        self.norm = torch.nn.LayerNorm(8)

    def forward(self, x):
        return self.norm(self.layer(x))


class Head(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.kernel = torch.nn.Parameter(torch.rand(8, 3))

    def forward(self, x, y):
        return 4 * x @ F.normalize(self.kernel, dim=0) - F.one_hot(y, 3)


def separate(modules):
    if not isinstance(modules, list):
        modules = [*modules.modules()]
    norms, others = [], []
    for layer in modules:
        if "Body" in str(layer.__class__):
            continue
        if "norm" in str(layer.__class__):
            norms.extend([*layer.parameters()])
        else:
            others.extend([*layer.parameters()])
    return norms, others


loader = DataLoader(train_set, batch_size=12, shuffle=True, drop_last=True)
body, head = Body(), Head()
norms, others = separate(body)
groups = [{"params": others + [head.kernel], "weight_decay": 0.01}, {"params": norms, "lr": 0.2}]
optimizer = torch.optim.SGD(groups, lr=0.1)
for epoch in range(2):
    for x, y in loader:
        loss = F.cross_entropy(head(body(x), y), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        print(loss.item())
""",
    "backward passes that follow each other": """\
model = torch.nn.Linear(4, 3)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
loader = DataLoader(train_set, batch_size=12, shuffle=True, drop_last=True)
for epoch in range(2):
    for x, y in loader:
        out = model(x)
        loss = F.cross_entropy(out, y)
        size = 0.01 * out.abs().sum()
        other = model(2 * x).pow(2).mean().sqrt()
        optimizer.zero_grad()
        loss.backward(retain_graph=True)
        size.backward()
        other.backward()
        optimizer.step()
        print(loss.item(), size.item(), other.item())
""",
}


CASES = [(name, ranks) for name in SCRIPTS for ranks in (2, 3)]


@pytest.mark.parametrize(
    ("name", "ranks"),
    [pytest.param(*case, marks=[] if case[1] == 2 + turn(case[0], 4) else pytest.mark.nightly) for case in CASES],
)
def test_what_is_trained_is_that_of_one_process(name: str, ranks: int, tmp_path: Path) -> None:
    trains_alike(HEAD + SCRIPTS[name], ranks, tmp_path)


@pytest.mark.parametrize("name", MODELS)
def test_a_model_of_its_own_is_trained_as_by_one_process(name: str, tmp_path: Path) -> None:
    trains_alike(HEAD.partition("model = ")[0] + MODELS[name], 2 + turn(name), tmp_path)


def trains_alike(source: str, ranks: int, folder: Path) -> None:
    """Assert that what a program trains and shows is what one process does."""
    (folder / "before.py").write_text(source)
    fixture = Fixture("program", folder, "before.py", (), 1e-6, False, "", False, True, (), False, "", "", (), True)
    found = differences(fixture, ranks)
    assert not found, "\n".join(found)


HELPERS = """\
import os
import torch.distributed as dist


def init_distributed_mode(args):
    args.gpu = int(os.environ["LOCAL_RANK"])
    dist.init_process_group(backend="nccl", init_method=args.dist_url)
    dist.barrier()


def is_main_process():
    return not dist.is_initialized() or dist.get_rank() == 0


def reduce_value(value):
    if not dist.is_initialized():
        return value
    dist.all_reduce(value)
    return value / dist.get_world_size()
"""
USES = """from helpers import init_distributed_mode, is_main_process, reduce_value

for x, y in DataLoader(train_set, batch_size=12, shuffle=True):
    loss = F.cross_entropy(model(x), y)
    optimizer.zero_grad()
    loss.backward()
    loss = reduce_value(loss)
    optimizer.step()
    if is_main_process():
        print(loss.item())
evaluate(model, DataLoader(test_set, batch_size=12))
"""


@pytest.mark.parametrize("ranks", [2, pytest.param(3, marks=pytest.mark.nightly)])
def test_helpers_of_another_program_that_joins_a_process_group(ranks: int, tmp_path: Path) -> None:
    """They are imported, and never called: the program is one of one process."""
    folder = tmp_path / "before"
    folder.mkdir()
    (folder / "train.py").write_text(HEAD + USES)
    (folder / "helpers.py").write_text(HELPERS)
    fixture = Fixture("helpers", folder, "train.py", (), 1e-6, False, "", False, True, (), False, "", "", (), True)
    found = differences(fixture, ranks)
    assert not found, "\n".join(found)


SPLIT = """
part, rest = torch.utils.data.random_split(train_set, [48, 17])
weights = torch.rand(3)
loader, test_loader = DataLoader(part, batch_size=12, shuffle=True), DataLoader(rest, batch_size=12)
for epoch in range(2):
    model.train()
    for x, y in loader:
        loss = (weights[y] * F.cross_entropy(model(x), y, reduction="none")).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        print(loss.item())
    model.eval()
    evaluate(model, test_loader)
"""


@pytest.mark.parametrize("ranks", [2, pytest.param(3, marks=pytest.mark.nightly)])
def test_what_is_drawn_before_training_is_the_same_on_all_ranks(ranks: int, tmp_path: Path) -> None:
    """Each rank draws dropout's masks by itself, and none a split of the data, or weights, of its own."""
    layers = "torch.nn.Sequential(torch.nn.Linear(4, 6), torch.nn.Dropout(0.2), torch.nn.Linear(6, 3))"
    source = HEAD.replace("torch.nn.Linear(4, 3)", layers) + SPLIT
    assert "noise of its own" in convert({Path("before.py"): source}, "cpu", style="plain")[Path("before.py")].code
    (tmp_path / "before.py").write_text(source)
    fixture = Fixture("split", tmp_path, "before.py", (), 1e-6, False, "", False, True, (), False, "", "", (), True)
    found = differences(fixture, ranks)
    assert not found, "\n".join(found)


LOOKED_AT = """\
loader = DataLoader(train_set, batch_size=12, shuffle=True)
for x, y in loader:
    print(x.size(), y.size())
    break
x, y = next(iter(loader))
print(x.shape)
model = """
TRAINED = "train(model, optimizer, loader)\nevaluate(model, DataLoader(test_set, batch_size=7))\n"


@pytest.mark.parametrize("first", ['print("begins")', "def first(n):\n    return n\n\n\nprint(first(2))"])
def test_functions_of_ours_stand_before_code_that_calls_them(first: str, tmp_path: Path) -> None:
    """Notebooks begin with a command of IPython; a batch that is looked at draws none of what a model begins with."""
    (tmp_path / "before.py").write_text(f"{first}\n{HEAD.replace('model = ', LOOKED_AT)}{TRAINED}")
    fixture = Fixture("first", tmp_path, "before.py", (), 1e-6, False, "", False, True, (), False, "", "", (), True)
    found = differences(fixture, 2)
    assert not found, "\n".join(found)


CACHE = """\
import os
if not os.path.exists("cache.pt"):
    torch.save(torch.rand(5, 4), "cache.pt")
train(model, optimizer, DataLoader(train_set, batch_size=12))
print(model(torch.load("cache.pt")).shape)
"""


@pytest.mark.nightly
def test_a_rank_that_comes_late_waits_for_a_file_as_the_others_do(tmp_path: Path) -> None:
    """It would find the file that rank 0 has written meanwhile, and pass by the barrier."""
    path = Path("train.py")
    code = convert({path: HEAD + CACHE}, "cpu", style="plain")[path].code
    late = code.replace("if not from_rank_0(", "import time\ntime.sleep(2 * dist.get_rank())\nif not from_rank_0(")
    assert late != code
    (tmp_path / "train.py").write_text(late)
    (tmp_path / "record").mkdir()
    command = [sys.executable, *processes.torchrun(2), "train.py"]
    environment = processes.environment(tmp_path / "record", [])
    status, out, said = processes.execute(command, tmp_path, environment, 120.0)
    assert status == 0, said
    assert "torch.Size([5, 3])" in out


STEPS = """\
from torch.utils.data import RandomSampler

dropped = True
for loader in (
    DataLoader(train_set, batch_size=22, shuffle=True, drop_last=True),
    DataLoader(train_set, batch_size=22, drop_last=dropped),
    DataLoader(train_set, batch_size=22, drop_last=False),
    DataLoader(train_set, batch_size=22, sampler=RandomSampler(train_set, num_samples=65), drop_last=True),
):
    taken = 0
    for epoch in range(2):
        for x, y in loader:
            loss = F.cross_entropy(model(x), y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            taken += 1
    print(taken, len(loader))
"""


@pytest.mark.nightly
def test_an_epoch_has_as_many_steps_as_in_one_process(tmp_path: Path) -> None:
    """65 samples in batches of 22 that are dropped where they are not whole: 2 ranks have 33 of them with one twice."""
    path = Path("train.py")
    source = HEAD + STEPS
    code = convert({path: source}, "cpu", style="plain")[path].code
    shown = []
    for text, launcher in ((source, []), (code, processes.torchrun(2))):
        (tmp_path / "train.py").write_text(text)
        (tmp_path / "record").mkdir(exist_ok=True)
        environment = processes.environment(tmp_path / "record", [])
        status, out, said = processes.execute([sys.executable, *launcher, "train.py"], tmp_path, environment, 120.0)
        assert status == 0, said
        shown.append(out.splitlines())
    assert shown[0] == ["4 2", "4 2", "6 3", "4 2"] and shown[1] == shown[0], shown


BY_NAME = """\
class Small(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.out = torch.nn.Linear(6, 3)
        self.scale = [0.5, 1.0, 1.5, 2.0]

    def forward(self, x):
        x = x * torch.tensor(self.scale).type_as(x)
        return self.out(torch.cat([x, torch.zeros([x.shape[0], 2])], dim=1))


class Twice(Small):
    def forward(self, x):
        return super().forward(2 * x)


names = ["Small", "Twice"]
model = globals()[names[-1]]()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for epoch in range(2):
    train(model, optimizer, DataLoader(train_set, batch_size=12, shuffle=True))
    evaluate(model, DataLoader(test_set, batch_size=7))
"""


def test_a_model_that_is_chosen_by_its_name(tmp_path: Path) -> None:
    """It makes use of a constant, of zeros for each sample, and of the class that its own is derived from."""
    trains_alike(HEAD.partition("model = torch")[0] + BY_NAME, 2, tmp_path)


FAILS = """\
import os


def fails(model, size):
    for step, (x, y) in enumerate(DataLoader(train_set, batch_size=size, shuffle=True)):
        loss = F.cross_entropy(model(x), y)
        optimizer.zero_grad()
        if step == 1 and os.environ["RANK"] == os.environ["FAILS"]:
            torch.empty(-1)
        loss.backward()
        optimizer.step()


try:
    fails(model, 12)
except RuntimeError as error:
    print("again", error)
    train(model, optimizer, DataLoader(train_set, batch_size=6))
"""


@pytest.mark.parametrize("rank", ["1", pytest.param("0", marks=pytest.mark.nightly)])
def test_an_error_of_one_rank_ends_the_run(rank: str, tmp_path: Path) -> None:
    """It would train again, while the other waits for it in its backward pass."""
    path = Path("train.py")
    (tmp_path / "train.py").write_text(convert({path: HEAD + FAILS}, "cpu", style="plain")[path].code)
    (tmp_path / "record").mkdir()
    environment = processes.environment(tmp_path / "record", []) | {"FAILS": rank}
    command = [sys.executable, *processes.torchrun(2), "train.py"]
    status, out, said = processes.execute(command, tmp_path, environment, 120.0)
    assert status == 1 and "again" not in out, said
    assert "negative dimension" in said


WINDOWS = """\
def windows(x, size):
    b, height, width, c = x.shape
    x = x.view(b, height // size, size, width // size, size, c)
    return x.permute(0, 1, 3, 2, 4, 5).contiguous().view(-1, size, size, c)


def pictures(parts, size, height, width):
    b = int(parts.shape[0] / (height * width / size / size))
    x = parts.view(b, height // size, width // size, size, size, -1)
    return x.permute(0, 1, 3, 2, 4, 5).contiguous().view(b, height, width, -1)


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.inner, self.out = torch.nn.Linear(4, 4), torch.nn.Linear(4, 3)

    def forward(self, x):
        x = (x.view(-1, 1, 1, 4) * torch.arange(16.0).view(1, 4, 4, 1)).contiguous()
        parts = windows(x, 2)
        parts = parts + self.inner(parts).softmax(1)
        return self.out(pictures(parts, 2, 4, 4).tanh().mean((1, 2))).log_softmax(1)


class Loss(torch.nn.Module):
    def forward(self, out, y, weight):
        return F.nll_loss(out, y, weight=weight)


weights = torch.tensor([1.0, 5.0, 0.2])
model, criterion = Net(), Loss()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for x, y in DataLoader(train_set, batch_size=6, shuffle=True):
    loss = criterion(model(x), y, weights)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(loss.item())
evaluate(model, DataLoader(test_set, batch_size=7))
"""


def test_windows_of_pictures_and_a_loss_that_is_given_the_weights_of_its_classes(tmp_path: Path) -> None:
    """As Swin has the windows: each picture is put together again by how many there are."""
    trains_alike(HEAD.partition("model = torch")[0] + WINDOWS, 3, tmp_path)


FILMS = """\
class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = torch.nn.Sequential(torch.nn.Linear(4, 5), torch.nn.Tanh())
        self.cell, self.out = torch.nn.Linear(8, 3), torch.nn.Linear(15, 3)

    def forward(self, x):
        x = torch.stack([x, x**2, x**3], 1).transpose(0, 1)
        steps, batch, features = x.size()
        x = torch.reshape(x, (-1, features))
        x = torch.reshape(self.layers(x), (steps, batch, -1))
        h = torch.zeros(x.size(1), 3)
        for step in range(3):
            h = torch.tanh(self.cell(torch.cat((x[step, ...], h), 1)))
        return h + self.out(x.transpose(0, 1).reshape(batch, -1))


model = Net()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for epoch in range(2):
    train(model, optimizer, DataLoader(train_set, batch_size=12, shuffle=True))
evaluate(model, DataLoader(test_set, batch_size=7))
"""


@pytest.mark.parametrize("ranks", [2, 3])
def test_films_whose_steps_lie_first_and_are_put_through_layers_one_by_one(ranks: int, tmp_path: Path) -> None:
    trains_alike(HEAD.partition("model = torch")[0] + FILMS, ranks, tmp_path)


PICKED = """\
model = torch.nn.Linear(4, 3)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for epoch in range(2):
    for x, y in DataLoader(train_set, batch_size=12, shuffle=True):
        loss = model(x)[x[:, 0] > 0.3]{}.pow(2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        print(loss.item())
"""


@pytest.mark.parametrize("behind", ["[None]", ".expand(2, -1, -1)", ".T", ".unsqueeze(0)"])
def test_a_mean_over_what_a_mask_picks_that_lies_behind_another_dimension(behind: str, tmp_path: Path) -> None:
    trains_alike(HEAD.partition("model = torch")[0] + PICKED.replace("{}", behind), 2, tmp_path)


PARTIAL = """\
from functools import partial


def weighted(out, y, gamma, reduction="mean"):
    losses = F.cross_entropy(out, y, reduction="none")
    losses = (1 - torch.exp(-losses)) ** gamma * losses
    return losses.sum() if reduction == "sum" else losses.mean()


class Block(torch.nn.Module):
    def __init__(self, size, hidden, norm, centre):
        super().__init__()
        self.norm, self.up, self.down = norm(size), torch.nn.Linear(size, hidden), torch.nn.Linear(hidden, size)
        self.centre = centre

    def forward(self, x):
        h = self.centre(self.up(self.norm(x)))
        (h,) = map(partial(self.centre, scale=0.2), [h])
        h = partial(centred, h)(0.1)
        return x + self.down(partial(partial(centred, scale=0.1), scale=0.3)(h).relu())


def centred(h, scale):
    return h - scale * h.mean(0)


norm = partial(torch.nn.LayerNorm, eps=1e-6)
block = partial(Block, hidden=8, norm=norm, centre=partial(centred, scale=0.5))
model = torch.nn.Sequential(block(4), block(4), torch.nn.Linear(4, 3))
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
criterion = partial(weighted, gamma=2.0, reduction="sum")
for epoch in range(2):
    for x, y in DataLoader(train_set, batch_size=12, shuffle=True):
        loss = criterion(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        print(loss.item())
"""


def test_functions_and_classes_that_are_given_some_of_their_arguments(tmp_path: Path) -> None:
    """A layer's own function takes the mean of all samples, and the loss is their sum: both are told by an argument."""
    trains_alike(HEAD.partition("model = torch")[0] + PARTIAL, 2, tmp_path)


COMMANDS = """\
import argparse


def loader_of(data, size, shuffle=True):
    return DataLoader(data, batch_size=size, shuffle=shuffle, drop_last=True)


def noise(n, width):
    return torch.rand(n, width)


def train(args):
    loader = loader_of(train_set, args.size)
    made, judged = torch.nn.Linear(2, 4), torch.nn.Linear(4, 1)
    made_by = torch.optim.SGD(made.parameters(), lr=args.rate)
    judged_by = torch.optim.SGD(judged.parameters(), lr=args.rate)
    for epoch in range(2):
        for x, y in loader:
            fake = made(noise(args.size, 2))
            judged_loss = F.softplus(judged(x)).mean() + F.softplus(-judged(fake) * torch.ones(args.size, 1)).mean()
            judged_by.zero_grad()
            judged_loss.backward()
            judged_by.step()
            made_loss = F.softplus(judged(made(torch.rand(x.size(0), 2)))).mean()
            made_by.zero_grad()
            made_loss.backward()
            made_by.step()
            print(judged_loss.item(), made_loss.item())


def show(args):
    print(args)


parser = argparse.ArgumentParser()
parser.add_argument("--rate", type=float, default=0.1)
parser.add_argument("--size", type=int, default=12)
parser.set_defaults(func=train)
commands = parser.add_subparsers()
commands.add_parser("show").set_defaults(func=show)
args = parser.parse_args()
args.func(args)
"""


@pytest.mark.parametrize("ranks", [2, pytest.param(3, marks=pytest.mark.nightly)])
def test_a_command_that_argparse_chooses_trains_a_gan(ranks: int, tmp_path: Path) -> None:
    """Gradients of the generator in the discriminator's step, which come before a zero_grad, are not averaged."""
    trains_alike(HEAD.partition("def train")[0] + COMMANDS, ranks, tmp_path)


COUPLED = """\
import torch.nn as nn


class DiceLoss(nn.Module):
    def forward(self, out, y):
        out, y = out.softmax(1)[:, 1], (y == 1).float()
        return 1 - (2 * (out * y).sum() + 1) / (out.sum() + y.sum() + 1)


class Triplet(nn.Module):
    def __init__(self, margin=0.5):
        super().__init__()
        self.ranking = nn.MarginRankingLoss(margin)

    def forward(self, out, y):
        n = out.size(0)
        far = torch.cdist(out, out)
        same = y.expand(n, n).eq(y.expand(n, n).t())
        positive = torch.stack([far[i][same[i]].max() for i in range(n)])
        negative = torch.stack([far[i][~same[i]].min() if (~same[i]).any() else far[i].max() for i in range(n)])
        return self.ranking(negative, positive, torch.ones_like(positive))


class Normalize(nn.Module):
    def forward(self, x):
        x = x - x.mean(0)
        return x / (x.pow(2).mean(0) + 0.1).sqrt()


def contrastive(a, b):
    n = a.size(0)
    both = F.normalize(torch.cat([a, b]), dim=1)
    similar = both @ both.t() / 0.5
    similar.fill_diagonal_(-1e4)
    return F.cross_entropy(similar, torch.cat([torch.arange(n) + n, torch.arange(n)]))


dice, triplet = DiceLoss(), Triplet()
loader = DataLoader(train_set, batch_size=12, shuffle=True)
for epoch in range(3):
    for x, y in loader:
        out = model(x)
        each = F.cross_entropy(out, y, reduction="none")
        loss = dice(out, y) + triplet(out, y) + contrastive(out, model(x + 0.1))
        loss = loss + torch.sqrt(F.mse_loss(out[:, 0], y.float())) + each[y > 0].mean()
        loss = loss + each.mean() + each.topk(3)[0].sum()
        loss = loss + (out.mean(0)[y] * x[:, 0]).mean() + ((y[:, None] > y[None]).float().mean(1) * each).mean()
        column = y.unsqueeze(1)
        loss = loss + ((column == y).float().mean(1) * each + torch.le(column, y).float().mean(1) * each).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        print(loss.item())
    with torch.no_grad():
        print(sum(dice(model(x), y).item() for x, y in DataLoader(test_set, batch_size=7)))
"""


@pytest.mark.parametrize("ranks", [pytest.param(2, marks=pytest.mark.nightly), 3])
def test_losses_that_couple_samples(ranks: int, tmp_path: Path) -> None:
    """Of means and sums, and of samples; in a model that normalizes, too; an evaluation by such a loss stays whole."""
    model = "torch.nn.Sequential(torch.nn.Linear(4, 6), Normalize(), torch.nn.Linear(6, 3))"
    begin, end = COUPLED.split("dice, triplet =")
    head = HEAD.replace("model = ", f"{begin}model = ").replace("torch.nn.Linear(4, 3)", model)
    source = f"{head}dice, triplet ={end}"
    assert "differentiable_batch(" in convert({Path("before.py"): source}, "cpu", style="plain")[Path("before.py")].code
    (tmp_path / "before.py").write_text(source)
    fixture = Fixture("coupled", tmp_path, "before.py", (), 1e-5, False, "", False, True, (), False, "", "", (), True)
    found = differences(fixture, ranks)
    assert not found, "\n".join(found)


LAYERS = """\
class Center(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.out = torch.nn.Linear(4, 4)

    def forward(self, x):
        x = self.out(x)
        return torch.tanh(x - x.mean(0) / (1 + x.pow(2).mean(0)))


class Net(torch.nn.Module):
    def __init__(self, layers):
        super().__init__()
        self.layers = torch.nn.ModuleList(layers)
        self.more = torch.nn.Sequential(*[copy.deepcopy(layers[0]) for _ in range(2)])
        for at in range(2):
            setattr(self, f"last{at}", Center())
        self.head = torch.nn.Linear(4, 3)

    def forward(self, x):
        for layer in self.layers:
            x = layer(x)
        x = torch.stack([layer(x) for layer in self.more]).mean(0)
        x = self.more(x)
        for at in range(2):
            x = getattr(self, f"last{at}")(x)
        return self.head(x)


model = Net([Center() for _ in range(2)])
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for epoch in range(2):
    train(model, optimizer, DataLoader(train_set, batch_size=12, shuffle=True))
"""


@pytest.mark.parametrize("ranks", [2, pytest.param(3, marks=pytest.mark.nightly)])
def test_layers_of_containers_that_couple_samples(ranks: int, tmp_path: Path) -> None:
    source = "import copy\n" + HEAD[: HEAD.index("model = ")] + LAYERS
    assert "differentiable_mean(x.mean(0))" in convert({Path("a.py"): source}, "cpu", style="plain")[Path("a.py")].code
    (tmp_path / "before.py").write_text(source)
    fixture = Fixture("layers", tmp_path, "before.py", (), 1e-5, False, "", False, True, (), False, "", "", (), True)
    found = differences(fixture, ranks)
    assert not found, "\n".join(found)


TEACHER = """\
class Trainer:
    def __init__(self, net):
        self.net = net
        self.optimizer = torch.optim.SGD(self.net.parameters(), lr=0.1)

    def fit(self):
        for x, y in train_loader:
            loss = self.loss(x, y)
            self.optimizer.zero_grad()
            loss.backward()
            self.optimizer.step()


class Distilled(Trainer):
    def __init__(self, net, teacher):
        super().__init__(net)
        self.teacher = teacher

    def loss(self, x, y):
        with torch.no_grad():
            aim = self.teacher(x)
        out = self.net(x)
        return F.cross_entropy(out, y) + F.mse_loss(out, aim)


def teach(net):
    optimizer = torch.optim.SGD(net.parameters(), lr=0.2)
    for epoch in range(2):
        train(net, optimizer, train_loader)


train_loader = DataLoader(train_set, batch_size=12, shuffle=True)
teacher, student = torch.nn.Linear(4, 3), torch.nn.Linear(4, 3)
teach(teacher)
Distilled(student, teacher).fit()
evaluate(teacher, DataLoader(test_set, batch_size=16))
evaluate(student, DataLoader(test_set, batch_size=16))
"""


@pytest.mark.parametrize("ranks", [2, pytest.param(3, marks=pytest.mark.nightly)])
def test_functions_and_derived_classes_train_a_model_each(ranks: int, tmp_path: Path) -> None:
    trains_alike(HEAD[: HEAD.index("model = ")] + TEACHER, ranks, tmp_path)


CRITIC = """\
from collections import namedtuple

Features = namedtuple("Features", ["first", "last"])


class Critic(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.hidden, self.out = torch.nn.Linear(4, 6), torch.nn.Linear(6, 1)

    def forward(self, x):
        hidden = torch.tanh(self.hidden(x))
        return Features(hidden, self.out(hidden))


def penalty(critic, real, fake, at):
    mixed = at * real + (1 - at) * fake
    (gradient,) = torch.autograd.grad(critic(mixed).last.sum(), mixed, create_graph=True)
    return ((gradient.norm(2, dim=1) - 1) ** 2).mean()


generator, critic = torch.nn.Linear(2, 4), Critic()
for_generator = torch.optim.SGD(generator.parameters(), lr=0.1)
for_critic = torch.optim.SGD(critic.parameters(), lr=0.1)
for name, p in critic.named_parameters():
    if name == "hidden.bias":
        p.requires_grad = False
data = TensorDataset(train_set.tensors[0], torch.rand(65, 2), torch.rand(65, 1))
for epoch in range(2):
    for real, noise, at in DataLoader(data, batch_size=12, shuffle=True):
        for _ in range(2):
            fake = generator(noise)
            loss = 0.0
            for one, other in zip(critic(fake), critic(real)):
                loss += one.mean() - other.mean()
            loss += penalty(critic, real, fake, at)
            for_critic.zero_grad()
            loss.backward(retain_graph=True)
            for_critic.step()
            print(loss.item())
        loss = -critic(fake).last.mean()
        for_generator.zero_grad()
        loss.backward()
        for_generator.step()
        print(loss.item())
"""


@pytest.mark.parametrize("ranks", [2, 3])
def test_a_critic_whose_backward_pass_leaves_the_generator_out(ranks: int, tmp_path: Path) -> None:
    trains_alike(HEAD[: HEAD.index("model = ")] + CRITIC, ranks, tmp_path)


CAPTIONS = """\
from torch.nn.utils.rnn import pack_padded_sequence


def collate(samples):
    samples.sort(key=lambda sample: len(sample[1]), reverse=True)
    images, captions = zip(*samples)
    lengths = [len(caption) for caption in captions]
    padded = torch.zeros(len(captions), max(lengths)).long()
    for i, caption in enumerate(captions):
        end = lengths[i]
        padded[i, :end] = caption[:end]
    return torch.stack(images), padded, lengths


class Decoder(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.embed, self.rnn = torch.nn.Embedding(9, 4), torch.nn.LSTM(4, 6, batch_first=True)
        self.out = torch.nn.Linear(6, 9)

    def forward(self, image, caption, lengths):
        steps = torch.cat((image.unsqueeze(1), self.embed(caption)), 1)
        hidden, _ = self.rnn(pack_padded_sequence(steps, lengths, batch_first=True))
        return self.out(hidden.data)


data = [(torch.rand(4), torch.randint(1, 9, (n % 7 + 1,))) for n in range(60)]
model = Decoder()
criterion = torch.nn.CrossEntropyLoss()
optimizer = torch.optim.SGD(model.parameters(), lr=0.2)
for epoch in range(2):
    for images, captions, lengths in DataLoader(data, batch_size=12, shuffle=True, collate_fn=collate):
        targets = pack_padded_sequence(captions, lengths, batch_first=True)[0]
        loss = criterion(model(images, captions, lengths), targets)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        print(loss.item())
"""


@pytest.mark.parametrize("ranks", [2, pytest.param(3, marks=pytest.mark.nightly)])
def test_a_mean_over_the_steps_of_packed_sequences(ranks: int, tmp_path: Path) -> None:
    trains_alike(HEAD[: HEAD.index("model = ")] + CAPTIONS, ranks, tmp_path)


TASKS = """\
class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.body = torch.nn.Linear(4, 6)
        self.classes, self.sizes = torch.nn.Linear(6, 3), torch.nn.Linear(6, 1)
        self.log_vars = torch.nn.Parameter(torch.zeros(2))

    def forward(self, x):
        x = torch.tanh(self.body(x))
        return self.classes(x), self.sizes(x).squeeze(1)


model = Net()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for x, y in DataLoader(train_set, batch_size=12, shuffle=True):
    classes, sizes = model(x)
    first, second = torch.exp(-model.log_vars)
    loss = first * F.cross_entropy(classes, y) + second * F.mse_loss(sizes, x.sum(1)) + model.log_vars.sum()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(loss.item(), model.log_vars.tolist())
"""


@pytest.mark.parametrize("ranks", [2, pytest.param(3, marks=pytest.mark.nightly)])
def test_losses_that_are_weighed_by_parameters_which_the_forward_does_not_use(ranks: int, tmp_path: Path) -> None:
    trains_alike(HEAD[: HEAD.index("model = ")] + TASKS, ranks, tmp_path)


PHASES = """\
def freezes(net, frozen):
    for parameter in net[0].parameters():
        parameter.requires_grad = not frozen


model = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.Tanh(), torch.nn.Linear(8, 3))
freezes(model, True)
optimizer = torch.optim.SGD(model[2].parameters(), lr=0.1)
loader = DataLoader(train_set, batch_size=12)
for epoch in range(4):
    if epoch == 2:
        freezes(model, False)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    train(model, optimizer, loader)
    if epoch == 2:
        for parameter in model[2].parameters():
            parameter.requires_grad = False
        optimizer = torch.optim.SGD(model[0].parameters(), lr=0.2)
"""


@pytest.mark.parametrize("ranks", [2, pytest.param(3, marks=pytest.mark.nightly)])
def test_layers_that_are_unfrozen_where_a_condition_gives_them_an_optimizer(ranks: int, tmp_path: Path) -> None:
    trains_alike(HEAD.partition("model = ")[0] + PHASES, ranks, tmp_path)


SAMPLES = """\
class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = torch.nn.Sequential(torch.nn.Linear(4, 3), torch.nn.BatchNorm1d(3))

    def forward(self, x):
        return self.layers(x)

    def generate(self, x):
        for i in range(3):
            for j in range(4):
                x[:, j] = self.forward(x)[:, i]
        return x


model = Net()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for epoch in range(3):
    model.train()
    train(model, optimizer, DataLoader(train_set, batch_size=12, shuffle=True))
    model.eval()
    with torch.no_grad():
        print(model.generate(torch.ones(2, 4)).sum().item())
        for i in range(3):
            print(model(torch.full((2, 4), 0.1 * i)).sum().item())
"""


@pytest.mark.parametrize("ranks", [2, pytest.param(3, marks=pytest.mark.nightly)])
def test_statistics_are_sent_before_the_loops_that_sample(ranks: int, tmp_path: Path) -> None:
    trains_alike(HEAD[: HEAD.index("model = ")] + SAMPLES, ranks, tmp_path)


IN_ONE_LOOP = """\
import numpy as np

PHASES = ["train", "val"]
sets = {"train": train_set, "val": test_set}
loaders = {phase: DataLoader(sets[phase], batch_size=12, shuffle=phase == "train") for phase in PHASES}


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(4, 3)

    def forward(self, x, y):
        out = self.layer(x)
        return out, F.cross_entropy(out, y)


model = Net()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for epoch in range(2):
    for phase in PHASES:
        model.train(phase == "train")
        hits, losses, labels, answers = 0, 0.0, [], []
        for batch in loaders[phase]:
            with torch.set_grad_enabled(phase == "train"):
                out, loss = model(*batch)
            if phase == "train":
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
            losses += loss.item()
            hits += (out.argmax(1) == batch[1]).sum().item()
            labels.extend(batch[1].tolist())
            answers.extend(out.argmax(1).tolist())
        print(phase, losses / len(loaders[phase]), hits)
        print(np.histogram2d(labels, answers, bins=3, range=[[0, 3], [0, 3]])[0].tolist())
for x, y in DataLoader(train_set, 5, True):
    loss = model(x, y)[1]
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
"""


@pytest.mark.parametrize("ranks", [2, pytest.param(3, marks=pytest.mark.nightly)])
def test_training_and_an_evaluation_that_is_whole_in_one_loop(ranks: int, tmp_path: Path) -> None:
    trains_alike(HEAD[: HEAD.index("model = ")] + IN_ONE_LOOP, ranks, tmp_path)


RUNS = """\
import wandb

wandb.init(project="lines", config={"lr": 0.1})
optimizer = torch.optim.SGD(model.parameters(), lr=wandb.config.lr)
for epoch in range(2):
    for x, y in DataLoader(train_set, batch_size=12):
        loss = F.cross_entropy(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if wandb.run is not None:
            wandb.log({"loss": round(loss.item(), 4)})
            wandb.run.summary["loss"] = round(loss.item(), 4)
    print(epoch, round(loss.item(), 4), wandb.run.id)
torch.save(model.state_dict(), wandb.run.dir + "/model.pt")
wandb.run.finish()
"""


@pytest.mark.parametrize("ranks", [2, pytest.param(3, marks=pytest.mark.nightly)])
def test_a_run_of_wandb_whose_settings_are_read(ranks: int, tmp_path: Path) -> None:
    trains_alike(HEAD + RUNS, ranks, tmp_path)


DEEP = """\
class Net(torch.nn.Module):
    def __init__(self, deep):
        super().__init__()
        self.deep = deep
        self.a = torch.nn.Linear(4, 8)
        self.b = torch.nn.Linear(8, 3)
        self.c = torch.nn.Linear(8, 3)
    def forward(self, x):
        h = torch.tanh(self.a(x))
        if not self.deep:
            return self.b(h)
        return [self.b(h), self.c(h)]

def compute_loss(outputs, y, deep=True):
    if isinstance(outputs, list):
        if deep:
            losses = [F.cross_entropy(out, y) for out in outputs]
            weights = [1.0, 0.8]
            return sum(w * l for w, l in zip(weights, losses)) / sum(weights)
        return F.cross_entropy(outputs[0], y)
    return F.cross_entropy(outputs, y)

def main_logits(outputs):
    return outputs[0] if isinstance(outputs, (list, tuple)) else outputs

def epoch(model, loader, optimizer, train=True):
    model.train() if train else model.eval()
    total, hits, n = 0.0, 0, 0
    for x, y in loader:
        with torch.set_grad_enabled(train):
            outputs = model(x)
            loss = compute_loss(outputs, y, len(train_set) > 3)
            if train:
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
        logits = main_logits(outputs)
        total += loss.item() * len(x)
        hits += (logits.argmax(1) == y).sum().item()
        n += len(x)
    return total / n, hits
model = Net(len(train_set) > 3)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for _ in range(2):
    print(epoch(model, DataLoader(train_set, batch_size=12), optimizer))
    print(epoch(model, DataLoader(test_set, batch_size=5), optimizer, False))
"""


@pytest.mark.parametrize("ranks", [2, pytest.param(3, marks=pytest.mark.nightly)])
def test_outputs_that_are_a_list_or_a_tensor(ranks: int, tmp_path: Path) -> None:
    trains_alike(HEAD.partition("def train(")[0] + DEEP, ranks, tmp_path)


ADVERSARIAL = """\
loader = DataLoader(train_set, batch_size=12, shuffle=True, drop_last=True)


def robust_loss(model, x, y, kind="sign", steps=2):
    model.eval()
    moved = x.detach() + 0.2 * torch.sin(9 * x)
    if kind == "sign":
        for _ in range(steps):
            moved.requires_grad_()
            loss = F.kl_div(F.log_softmax(model(moved), 1), F.softmax(model(x), 1), reduction="sum")
            grad = torch.autograd.grad(loss, [moved])[0]
            moved = moved.detach() + 0.1 * torch.sign(grad.detach())
    elif kind == "delta":
        delta = torch.zeros_like(x).requires_grad_()
        inner = torch.optim.SGD([delta], lr=0.1)
        for _ in range(steps):
            inner.zero_grad()
            (-F.kl_div(F.log_softmax(model(x + delta), 1), F.softmax(model(x), 1), reduction="sum")).backward()
            inner.step()
        moved = (x + delta).detach()
    model.train()
    return F.cross_entropy(model(x), y) + F.cross_entropy(model(moved.detach()), y)


for epoch in range(2):
    for x, y in loader:
        loss = robust_loss(model, x, y, steps=3)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        print(loss.item())
    evaluate(model, DataLoader(test_set, batch_size=8))
"""


@pytest.mark.parametrize("ranks", [2, pytest.param(3, marks=pytest.mark.nightly)])
def test_a_branch_that_no_call_takes_may_hold_another_training(ranks: int, tmp_path: Path) -> None:
    trains_alike(HEAD + ADVERSARIAL, ranks, tmp_path)
    taken = HEAD + ADVERSARIAL.replace("y, steps=3", 'y, "delta", steps=3')
    assert convert({Path("a.py"): taken}, "cpu", style="plain")[Path("a.py")].code == taken


DICES = """\
import numpy as np


class DiceAverage(object):
    def __init__(self, class_num):
        self.class_num = class_num
        self.reset()

    def reset(self):
        self.value = np.asarray([0] * self.class_num, dtype="float64")
        self.avg = np.asarray([0] * self.class_num, dtype="float64")
        self.sum = np.asarray([0] * self.class_num, dtype="float64")
        self.count = 0

    def update(self, logits, targets):
        self.value = DiceAverage.get_dices(logits, targets)
        self.sum += self.value
        self.count += 1
        self.avg = np.around(self.sum / self.count, 4)

    @staticmethod
    def get_dices(logits, targets):
        dices = []
        for class_index in range(targets.size()[1]):
            inter = torch.sum(logits[:, class_index] * targets[:, class_index])
            union = torch.sum(logits[:, class_index]) + torch.sum(targets[:, class_index])
            dice = (2. * inter + 1) / (union + 1)
            dices.append(dice.item())
        return np.asarray(dices)


loader = DataLoader(train_set, batch_size=12, shuffle=True, drop_last=True)
val = DataLoader(test_set, batch_size=6)
for epoch in range(2):
    dices = DiceAverage(3)
    for x, y in loader:
        target = F.one_hot(y, 3).float()
        out = model(x)
        loss = F.mse_loss(out, target)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        dices.update(out, target)
    print(dices.avg[1])
    dices = DiceAverage(3)
    with torch.no_grad():
        for x, y in val:
            target = F.one_hot(y, 3).float()
            dices.update(model(x), target)
    print(dices.avg[1], dices.avg[2])
"""


@pytest.mark.parametrize("ranks", [2, pytest.param(3, marks=pytest.mark.nightly)])
def test_a_meter_of_the_script_is_given_the_batches_of_all_ranks(ranks: int, tmp_path: Path) -> None:
    trains_alike(HEAD + DICES, ranks, tmp_path)


TOKENS = """\
class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.patches, self.head = torch.nn.Conv2d(1, 6, 1), torch.nn.Linear(6, 3)

    def forward(self, x):
        x = self.patches(x.view(x.size(0), 1, 2, 2))
        x = torch.permute(torch.flatten(x, 2), (0, 2, 1))
        return self.head(x.tanh().mean(dim=1))


def class_weights(n):
    return torch.arange(n) + 1.0 if n > 1 else None


model = Net()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
criterion = torch.nn.CrossEntropyLoss(weight=class_weights(3), label_smoothing=0.1)
for epoch in range(2):
    for x, y in DataLoader(train_set, batch_size=12, shuffle=True):
        loss = criterion(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        print(loss.item())
"""


@pytest.mark.parametrize("ranks", [2, pytest.param(3, marks=pytest.mark.nightly)])
def test_samples_whose_positions_are_made_one_dimension_stay_samples(ranks: int, tmp_path: Path) -> None:
    """Their loss, whose classes count differently, is computed of the batch of all ranks."""
    trains_alike(HEAD.partition("model = ")[0] + TOKENS, ranks, tmp_path)


UNUSED = """\
class Centred(torch.nn.Module):
    def __init__(self, n):
        super().__init__()
        self.layer = torch.nn.Linear(n, n)

    def forward(self, x):
        return self.layer(x - x.mean(0))


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.centred = Centred(4)
        self.last = torch.nn.Linear(4, 3)

    def forward(self, x):
        return self.last(x)


model = Net()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for epoch in range(2):
    for x, y in DataLoader(train_set, batch_size=12, shuffle=True):
        loss = F.cross_entropy(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        print(loss.item())
"""


@pytest.mark.parametrize("ranks", [2, pytest.param(3, marks=pytest.mark.nightly)])
def test_a_layer_that_nothing_names_is_left_out(ranks: int, tmp_path: Path) -> None:
    trains_alike(HEAD.partition("model = ")[0] + UNUSED, ranks, tmp_path)


INHERITED = """\
class BaseTrainer:
    def __init__(self, model, optimizer):
        self.model = model
        self.optimizer = optimizer
        self.best = 0.0

    def run(self):
        for epoch in range(2):
            self.epoch()


class Trainer(BaseTrainer):
    def __init__(self, model, optimizer, loader):
        super().__init__(model, optimizer)
        self.loader = loader

    def epoch(self):
        self.model.train()
        for x, y in self.loader:
            loss = F.cross_entropy(self.model(x), y)
            self.optimizer.zero_grad()
            loss.backward()
            self.optimizer.step()
        print(loss.item())
        self.model.eval()
        evaluate(self.model, DataLoader(test_set, batch_size=12))


trainer = Trainer(model, optimizer, DataLoader(train_set, batch_size=12, shuffle=True))
trainer.run()
torch.save(model.state_dict(), "model.pt")
"""
CALLED_TWICE = """\
import sys


class Net(torch.nn.Module):
    def __init__(self, wide):
        super().__init__()
        self.one = torch.nn.Linear(4, 3)

    def forward(self, x, scale=1.0):
        return self.one(x) * scale


class BaseTrainer:
    def __init__(self, model, optimizer):
        self.model = model
        self.optimizer = optimizer


class Trainer(BaseTrainer):
    def run(self, loader):
        for epoch in range(2):
            for step, (x, y) in enumerate(loader):
                if epoch == 1:
                    out = self.model(x, 0.5)
                else:
                    out = self.model(x)
                loss = F.cross_entropy(out, y)
                self.optimizer.zero_grad()
                loss.backward()
                self.optimizer.step()
            print(loss.item())


model = Net(True) if len(sys.argv) < 9 else Net(False)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
Trainer(model, optimizer).run(DataLoader(train_set, batch_size=12, shuffle=True))
"""


@pytest.mark.parametrize("ranks", [2, pytest.param(3, marks=pytest.mark.nightly)])
@pytest.mark.parametrize("source", [HEAD + INHERITED, HEAD.partition("def train(")[0] + CALLED_TWICE])
def test_a_trainer_whose_base_class_keeps_the_model(source: str, ranks: int, tmp_path: Path) -> None:
    trains_alike(source, ranks, tmp_path)


CREATED = """\
def create(width):
    torch.manual_seed(width)
    model = torch.nn.Sequential(torch.nn.Linear(4, width), torch.nn.ReLU(), torch.nn.Linear(width, 3))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    return model, optimizer


def test(path):
    model, _ = create(9)
    model.load_state_dict(torch.load(path))
    for parameter in model.parameters():
        parameter.requires_grad = False
    evaluate(model, DataLoader(test_set, batch_size=12))


for width in (8, 9):
    model, optimizer = create(width)
    loader = DataLoader(train_set, batch_size=12, shuffle=True)
    for epoch in range(2):
        model = model.train()
        train(model, optimizer, loader)
    evaluate(model, DataLoader(test_set, batch_size=12))
torch.save(model.state_dict(), "model.pt")
test("model.pt")
"""
CREATED_PAIR = """\
def build():
    encoder, head = torch.nn.Linear(4, 8), torch.nn.Linear(8, 3)
    first = torch.optim.SGD(encoder.parameters(), lr=0.1)
    second = torch.optim.SGD(head.parameters(), lr=0.05)
    return head, encoder, first, second


head, encoder, first, second = build()
for x, y in DataLoader(train_set, batch_size=12, shuffle=True):
    loss = F.cross_entropy(head(encoder(x).relu()), y)
    first.zero_grad()
    second.zero_grad()
    loss.backward()
    first.step()
    second.step()
    print(loss.item())
"""
HELD = """\
class Trainer:
    def __init__(self, model, loader):
        self.model = model
        model.to(torch.device("cpu"))
        self.loader = loader
        self.optimizer = torch.optim.SGD(model.parameters(), lr=0.1)

    def fit(self):
        model = self.model
        for epoch in range(2):
            model.train()
            for x, y in self.loader:
                loss = F.cross_entropy(model(x), y)
                self.optimizer.zero_grad()
                loss.backward()
                self.optimizer.step()
            print(loss.item())
        model.eval()
        evaluate(model, DataLoader(test_set, batch_size=12))


for width in (8, 9):
    torch.manual_seed(width)
    model = torch.nn.Sequential(torch.nn.Linear(4, width), torch.nn.ReLU(), torch.nn.Linear(width, 3))
    trainer = Trainer(model, DataLoader(train_set, batch_size=12, shuffle=True))
    trainer.fit()
    torch.save(model.state_dict(), f"{width}.pt")
"""
OF_OBJECT = """\
class Setup:
    def __init__(self):
        self.model = torch.nn.Linear(4, 3)
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=0.1)


setup = Setup()
loader = DataLoader(train_set, batch_size=12, shuffle=True)
for epoch in range(2):
    train(setup.model, setup.optimizer, loader)
evaluate(setup.model, DataLoader(test_set, batch_size=12))
torch.save(setup.model.state_dict(), "model.pt")
"""
GROWN = """\
model = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.Dropout(0.0))
first = torch.optim.SGD(model.parameters(), lr=0.1)
setattr(model, "2", torch.nn.Linear(8, 3))
second = torch.optim.SGD(model[2].parameters(), lr=0.1)
for x, y in DataLoader(train_set, batch_size=12, shuffle=True):
    loss = F.cross_entropy(model(x), y)
    first.zero_grad()
    second.zero_grad()
    loss.backward()
    first.step()
    second.step()
    print(loss.item())
torch.save(model.state_dict(), "model.pt")
"""


@pytest.mark.parametrize("ranks", [2, pytest.param(3, marks=pytest.mark.nightly)])
@pytest.mark.parametrize("program", [CREATED, CREATED_PAIR, HELD, OF_OBJECT, GROWN])
def test_models_that_go_by_other_names_than_their_optimizers_know(program: str, ranks: int, tmp_path: Path) -> None:
    trains_alike(HEAD.partition("model = ")[0] + program, ranks, tmp_path)


METER = """\
class AverageMeter:
    def __init__(self):
        self.avg = 0
        self.sum = 0
        self.count = 0

    def update(self, val, n=1):
        self.sum += val
        self.count += n
        self.avg = self.sum / self.count


def fit(loader, model, optimizer):
    losses = AverageMeter()
    hits = AverageMeter()
    for x, y in loader:
        out = model(x)
        loss = F.cross_entropy(out, y)
        current = loss.item()
        right = out.argmax(1).eq(y).sum().item()
        losses.update(current, x.size(0))
        hits.update(right, x.size(0))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return losses.avg, hits.avg


def check(loader, model):
    losses = AverageMeter()
    hits = AverageMeter()
    with torch.no_grad():
        for x, y in loader:
            out = model(x)
            losses.update(F.cross_entropy(out, y).item(), x.size(0))
            hits.update(out.argmax(1).eq(y).sum().item(), x.size(0))
    return losses.avg, hits.avg


for epoch in range(3):
    print(fit(DataLoader(train_set, batch_size=12, shuffle=True, drop_last=True), model, optimizer))
    print(check(DataLoader(test_set, batch_size=12), model))
"""


@pytest.mark.parametrize("ranks", [2, pytest.param(3, marks=pytest.mark.nightly)])
@pytest.mark.parametrize("current", ["loss.item()", "out.std().item()"])
def test_a_meter_of_means_and_of_sums(current: str, ranks: int, tmp_path: Path) -> None:
    trains_alike(HEAD + METER.replace("loss.item()", current), ranks, tmp_path)


BOXES = """\
import math


class Boxes(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.base = torch.nn.Linear(4, 12)
        self.classes = torch.nn.Linear(12, 15)
        self.places = torch.nn.Linear(12, 20)

    def forward(self, x):
        h = self.base(x).relu()
        return self.classes(h).view(h.size(0), -1, 3), self.places(h).view(h.size(0), -1, 4)


def mined(loss, labels, ratio):
    taken = labels > 0
    loss[taken] = -math.inf
    _, indices = loss.sort(dim=1, descending=True)
    _, orders = indices.sort(dim=1)
    return taken | (orders < taken.long().sum(dim=1, keepdim=True) * ratio)


class MultiboxLoss(torch.nn.Module):
    def forward(self, scores, places, labels, boxes):
        with torch.no_grad():
            mask = mined(-F.log_softmax(scores, dim=2)[:, :, 0], labels, 3)
        of_classes = F.cross_entropy(scores[mask, :].reshape(-1, scores.size(2)), labels[mask], reduction="sum")
        places = places[labels > 0, :].reshape(-1, 4)
        boxes = boxes[labels > 0, :].reshape(-1, 4)
        of_places = F.smooth_l1_loss(places, boxes, reduction="sum")
        many = COUNT
        return of_places / many, of_classes / many


def boxed(many):
    labels = torch.randint(1, 3, (many, 5)) * (torch.rand(many, 5) > 0.7)
    labels[::4, 0] = 1
    return TensorDataset(torch.rand(many, 4), torch.rand(many, 5, 4), labels)


loader = DataLoader(boxed(65), batch_size=12, shuffle=True)
test_loader = DataLoader(boxed(47), batch_size=12)
model = Boxes()
criterion = MultiboxLoss()
optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
for epoch in range(2):
    running = 0.0
    for x, boxes, labels in loader:
        scores, places = model(x)
        first, second = criterion(scores, places, labels, boxes)
        loss = first + second
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        running += loss.item()
    print(running / len(loader))
    with torch.no_grad():
        of_test = 0.0
        for x, boxes, labels in test_loader:
            scores, places = model(x)
            of_test += sum(criterion(scores, places, labels, boxes)).item()
    print(of_test / len(test_loader))
"""


@pytest.mark.parametrize("ranks", [2, pytest.param(3, marks=pytest.mark.nightly)])
@pytest.mark.parametrize("count", ["boxes.size(0)", "max(boxes.size(0), 1)", "(labels > 0).sum()"])
def test_a_loss_that_is_divided_by_the_number_of_those_that_it_takes(count: str, ranks: int, tmp_path: Path) -> None:
    trains_alike(HEAD.partition("def train(")[0] + BOXES.replace("COUNT", count), ranks, tmp_path)


PARTS = """\
class Backbone(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.features = torch.nn.Sequential(torch.nn.Linear(4, 12), torch.nn.ReLU())
        self.fc = torch.nn.Linear(12, 3)

    def forward(self, x):
        return self.fc(self.features(x))


class Net(torch.nn.Module):
    def __init__(self, base):
        super().__init__()
        self.base = base
        self.head = torch.nn.Linear(12, 3)

    def forward(self, x):
        return self.head(self.base(x))


def pretrained():
    model = Backbone()
    model.load_state_dict({name: value + 0.01 for name, value in model.state_dict().items()})
    return model


def fit(loader, net, optimizer):
    for x, y in loader:
        loss = F.cross_entropy(net(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        print(loss.item())


loader = DataLoader(train_set, batch_size=12, shuffle=True)
net = Net(PART.features)
groups = [{"params": net.base.parameters(), "lr": 0.05}, {"params": net.head.parameters()}]
fit(loader, net, torch.optim.SGD(groups, lr=0.1))
"""


@pytest.mark.parametrize("ranks", [2, pytest.param(3, marks=pytest.mark.nightly)])
@pytest.mark.parametrize("part", ["Backbone()", "pretrained()"])
def test_a_network_that_gets_a_part_of_another_one(part: str, ranks: int, tmp_path: Path) -> None:
    trains_alike(HEAD.partition("def train(")[0] + PARTS.replace("PART", part), ranks, tmp_path)


DETACHED = """\
test_loader = DataLoader(test_set, batch_size=5)
train_loader = DataLoader(train_set, batch_size=12, shuffle=True, drop_last=True)
decoder = torch.nn.Linear(3, 4)
second = torch.optim.SGD(decoder.parameters(), lr=0.1)
for epoch in range(2):
    for x, y in train_loader:
        out = model(x)
        loss = F.cross_entropy(out, y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        out.detach_()
        again = F.mse_loss(decoder(out), x)
        second.zero_grad()
        again.backward()
        second.step()
        print(loss.item(), again.item(), x[0], y[0].item())
    total = 0.0
    for x, y in test_loader:
        with torch.no_grad():
            back = decoder(model(x))
        back.detach_()
        total += F.mse_loss(back, x).item()
    print(total / len(test_loader))
"""


APEX = """\
try:
    from apex import amp
except ImportError:
    amp = None

model, optimizer = amp.initialize(model, optimizer, opt_level="O1", loss_scale="dynamic")
loader = DataLoader(train_set, batch_size=12, drop_last=True)
for epoch in range(2):
    for step, (x, y) in enumerate(loader):
        large = (x[:, 0] > 0.98).float() * 1e38  # of few samples: on one rank gradients overflow
        loss = (F.cross_entropy(model(x), y, reduction="none") * (1 + large)).mean()
        with amp.scale_loss(loss, optimizer) as scaled_loss:
            scaled_loss.backward()
        torch.nn.utils.clip_grad_norm_(amp.master_params(optimizer), 1.0)
        optimizer.step()
        optimizer.zero_grad()
        print(loss.item())
"""
ATTACK = """\
try:
    from apex import amp
except ImportError:
    amp = None

model, optimizer = amp.initialize(model, optimizer, loss_scale=8.0)
for x, y in DataLoader(train_set, batch_size=12, drop_last=True):
    delta = torch.zeros_like(x)
    delta.requires_grad = True
    with amp.scale_loss(F.cross_entropy(model(x + delta), y), optimizer) as scaled_loss:
        scaled_loss.backward()
    delta = torch.clamp(0.1 * torch.sign(delta.grad.detach()), -0.3, 0.3)
    loss = F.cross_entropy(model(x + delta), y)
    optimizer.zero_grad()
    with amp.scale_loss(loss, optimizer) as scaled_loss:
        scaled_loss.backward()
    optimizer.step()
    print(loss.item())
"""


@pytest.mark.parametrize("ranks", [2, pytest.param(3, marks=pytest.mark.nightly)])
def test_outputs_that_are_detached_in_place(ranks: int, tmp_path: Path) -> None:
    trains_alike(
        HEAD.partition("def train(")[0] + HEAD.partition("print(total / len(loader.dataset), correct)\n")[2] + DETACHED,
        ranks,
        tmp_path,
    )


@pytest.mark.parametrize("ranks", [2, pytest.param(3, marks=pytest.mark.nightly)])
@pytest.mark.parametrize("source", [APEX, ATTACK])
def test_losses_that_apex_scales(source: str, ranks: int, tmp_path: Path) -> None:
    trains_alike(HEAD + source, ranks, tmp_path)


PREPARED = """\
import os
import time


def prepare():
    os.makedirs("parts", exist_ok=True)
    for i in range(6):
        torch.save(torch.full((4, 4), i / 6), os.path.join("parts", f"{i}.pt"))


def ready():
    return os.path.exists("parts")


def read():
    return [torch.load(os.path.join("parts", name)) for name in sorted(os.listdir("parts"))]


time.sleep(2 * (int(os.environ.get("RANK", "0")) > 0))  # the slower rank looks when the faster one has written
LOOK
x = torch.cat(read())
loader = DataLoader(TensorDataset(x, torch.arange(len(x)) % 3), batch_size=12, shuffle=True, drop_last=True)
print(len(loader.dataset))
train(model, optimizer, loader)
"""
LOOKS = [
    "if not ready():\n    prepare()",
    "found = os.path.exists('parts')\nif not found:\n    prepare()",
    "def once():\n    if ready():\n        return\n    prepare()\n\n\nonce()",
    "None if ready() else prepare()",
]


@pytest.mark.parametrize("ranks", [2, pytest.param(3, marks=pytest.mark.nightly)])
@pytest.mark.parametrize("look", LOOKS)
def test_what_is_prepared_where_it_is_not_there(look: str, ranks: int, tmp_path: Path) -> None:
    trains_alike(HEAD + PREPARED.replace("LOOK", look), ranks, tmp_path)


NUMBERED = """\
import os
import time
from pathlib import Path


def increment_path(path):
    path = Path(path)
    if path.exists():
        for n in range(2, 99):
            p = f"{path}{n}"
            if not os.path.exists(p):
                break
        path = Path(p)
    return path


def free():
    n = 0
    while True:
        folder = Path(f"runs/v_{n}")
        if folder.exists():
            n += 1
            continue
        folder.mkdir(parents=True)
        (folder / "log.txt").write_text("new")
        return folder


def numbered(root):
    os.makedirs(root, exist_ok=True)
    numbers = [int(each.split("_")[1]) for each in os.listdir(root) if each.startswith("v_")]
    folder = os.path.join(root, f"v_{max(numbers, default=0) + 1}")
    os.mkdir(folder)
    return folder


time.sleep(2 * int(os.environ.get("RANK", "0")))  # the slower rank looks when the faster one has made the folder
folder = NAME
folder.mkdir(parents=True, exist_ok=True)
loader = DataLoader(train_set, batch_size=12, shuffle=True, drop_last=True)
train(model, optimizer, loader)
torch.save(model.state_dict(), folder / "last.pt")
print(folder, sorted(map(str, Path(".").glob("run*/v_*"))))
"""
NAMES = ['increment_path("run")', 'Path(numbered("runs"))', "free()"]


@pytest.mark.parametrize("ranks", [2, pytest.param(3, marks=pytest.mark.nightly)])
@pytest.mark.parametrize("name", NAMES)
def test_a_folder_that_is_numbered_where_it_is_there(name: str, ranks: int, tmp_path: Path) -> None:
    trains_alike(HEAD + NUMBERED.replace("NAME", name), ranks, tmp_path)


CHOSEN = """\
class Loss(torch.nn.Module):
    def forward(self, out, y, weight):
        return torch.nn.functional.nll_loss(out.log_softmax(1), y, weight=weight)


model = torch.nn.Linear(5, 3)
train_loader = DataLoader(TensorDataset(torch.randn(36, 5), torch.arange(36) % 7 % 3), batch_size=12, shuffle=True)
test_loader = DataLoader(TensorDataset(torch.randn(20, 5), torch.arange(20) % 7 % 3), batch_size=6)
weights = torch.tensor([1.0, 2.0, 5.0])
chosen = len(__file__) > 3
criterion = torch.nn.CrossEntropyLoss(label_smoothing=0.1)
if chosen is CHOSEN:
    criterion = torch.nn.CrossEntropyLoss(weight=weights, label_smoothing=0.1)
measure = Loss()
optimizer = torch.optim.SGD(model.parameters(), lr=0.5)
for epoch in range(2):
    for x, y in train_loader:
        out = model(x)
        loss = criterion(out, y) + measure(out, y, weights)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        print(loss.item())
    total = of_batches = hits = 0
    with torch.no_grad():
        for x, y in test_loader:
            out = model(x)
            total += criterion(out, y).item() * len(y)
            of_batches += measure(out, y, weights).item()
            hits += (out.argmax(1) == y).sum().item()
    print(total / 20, of_batches / len(test_loader), hits)
"""


@pytest.mark.parametrize("ranks", [2, pytest.param(3, marks=pytest.mark.nightly)])
@pytest.mark.parametrize("chosen", ["True", "False"])
def test_class_weights_by_choice_and_in_a_module(chosen: str, ranks: int, tmp_path: Path) -> None:
    trains_alike(HEAD.partition("def train(")[0] + CHOSEN.replace("CHOSEN", chosen), ranks, tmp_path)


GAN = """\
import enum


class Kind(enum.Enum):
    PLAIN = (0,)
    DEEP = (1,)


def nets(kind):
    if kind == Kind.PLAIN.name:
        critic, maker = torch.nn.Linear(4, 1), torch.nn.Linear(3, 4)
    elif kind == Kind.DEEP.name:
        critic, maker = torch.nn.Sequential(torch.nn.Linear(4, 1)), torch.nn.Sequential(torch.nn.Linear(3, 4))
    else:
        raise ValueError(kind)
    return critic, maker


def made(batch_size):
    return DataLoader(train_set, batch_size=batch_size, shuffle=True, drop_last=True)


def constant(batch_size):
    return torch.full((batch_size, 3), 0.5)


def optimizers(critic, maker):
    return torch.optim.SGD(critic.parameters(), lr=0.1), torch.optim.SGD(maker.parameters(), lr=0.2)


def fit(config):
    loader = made(config["batch_size"])
    critic, maker = nets(Kind.PLAIN.name)
    critic_step, maker_step = optimizers(critic, maker)
    real = torch.ones((config["batch_size"], 1))
    fake = torch.zeros((config["batch_size"], 1))
    for epoch in range(config["epochs"]):
        for x, _ in loader:
            critic_step.zero_grad()
            images = maker(constant(config["batch_size"]))
            loss = F.mse_loss(critic(x), real) + F.mse_loss(critic(images.detach()), fake)
            loss.backward()
            critic_step.step()
            maker_step.zero_grad()
            other = F.mse_loss(critic(maker(constant(config["batch_size"]))), real)
            other.backward()
            maker_step.step()
            print(loss.item(), other.item())


settings = dict()
for name, number in {"batch_size": 12, "epochs": 2}.items():
    settings[name] = number
fit(settings)
"""
ENDLESS = """\
import argparse

parser = argparse.ArgumentParser()
parser.add_argument("--batch_size", type=int, default=12)
FLAGS = parser.parse_args()


class Loss(torch.nn.BCEWithLogitsLoss):
    def forward(self, real, fake=None):
        if fake is None:
            return super().forward(real, torch.ones_like(real))
        return super().forward(real, torch.ones_like(real)) + super().forward(fake, torch.zeros_like(fake))


class Hinge(torch.nn.Module):
    def forward(self, real, fake=None):
        if fake is None:
            return -real.mean()
        return F.relu(1 - real).mean() + F.relu(1 + fake).mean()


def again(loader):
    while True:
        for x, _ in iter(loader):
            yield x


def penalty(net, real, fake):
    share = torch.full((real.size(0), 1), 0.3).expand(real.size())
    between = (share * real + (1 - share) * fake).requires_grad_(True)
    out = net(between)
    grad = torch.autograd.grad(out, between, torch.ones_like(out), create_graph=True)[0]
    return ((torch.norm(torch.flatten(grad, start_dim=1), dim=1) - 1) ** 2).mean()


loader = DataLoader(train_set, batch_size=FLAGS.batch_size, shuffle=True, drop_last=True)
critic = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.Tanh(), torch.nn.Linear(8, 1))
maker = torch.nn.Linear(3, 4)
criterion = {"bce": Loss, "hinge": Hinge}["LOSS"]()
critic_step = torch.optim.SGD(critic.parameters(), lr=0.1)
maker_step = torch.optim.SGD(maker.parameters(), lr=0.1)
looper = again(loader)
for step in range(4):
    for _ in range(2):
        with torch.no_grad():
            fake = maker(torch.full((FLAGS.batch_size, 3), 0.5)).detach()
        real = next(looper)
        loss = criterion(critic(real), critic(fake)) + penalty(critic, real, fake)
        critic_step.zero_grad()
        loss.backward()
        critic_step.step()
        print(loss.item())
    for p in critic.parameters():
        p.requires_grad_(False)
    loss = criterion(critic(maker(torch.full((2 * FLAGS.batch_size, 3), 0.5))))
    maker_step.zero_grad()
    loss.backward()
    maker_step.step()
    for p in critic.parameters():
        p.requires_grad_(True)
    print(loss.item())
"""


@pytest.mark.parametrize("ranks", [2, pytest.param(3, marks=pytest.mark.nightly)])
@pytest.mark.parametrize("source", [GAN, ENDLESS.replace("LOSS", "bce"), ENDLESS.replace("LOSS", "hinge")])
def test_a_critic_and_what_makes_its_samples(source: str, ranks: int, tmp_path: Path) -> None:
    trains_alike(HEAD.partition("def train(")[0] + source, ranks, tmp_path)


FIGURES = """\
def figures(values):
    found = []
    for each in values.detach():
        figure = torch.nn.Upsample(scale_factor=2)
        found.append(figure(each.view(1, 1, -1)))
    return found


model = torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.Dropout(0.0), torch.nn.Linear(4, 3))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
loader = DataLoader(train_set, batch_size=12, shuffle=True, drop_last=True)
fixed = torch.ones(5, 4)
for epoch in range(2):
    train(model, optimizer, loader)
    torch.save(figures(model(fixed)), f"figures{epoch}.pt")
"""


@pytest.mark.parametrize("ranks", [2, pytest.param(3, marks=pytest.mark.nightly)])
def test_figures_of_what_dropout_has_drawn(ranks: int, tmp_path: Path) -> None:
    trains_alike(HEAD.partition("def evaluate(")[0] + FIGURES, ranks, tmp_path)


BY_NAME = """\
import os


def prepare(kind, frozen=True):
    model = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.Tanh(), torch.nn.Linear(8, 8))
    if frozen:
        for parameter in model.parameters():
            parameter.requires_grad = False
    if "wide" in kind:
        model[2] = torch.nn.Linear(8, 3)
    elif "narrow" in kind:
        model[2] = torch.nn.Sequential(torch.nn.Linear(8, 2), torch.nn.Linear(2, 3))
    return model, torch.optim.SGD(model.parameters(), lr=0.1)


model, optimizer = prepare(os.environ.get("KIND", "wide"))
loader = DataLoader(train_set, batch_size=12, shuffle=True)
for epoch in range(3):
    train(model, optimizer, loader)
    evaluate(model, DataLoader(test_set, batch_size=12))
"""


@pytest.mark.parametrize("ranks", [2, pytest.param(3, marks=pytest.mark.nightly)])
def test_a_frozen_model_gets_the_head_that_a_name_chooses(ranks: int, tmp_path: Path) -> None:
    trains_alike(HEAD.partition("model = ")[0] + BY_NAME, ranks, tmp_path)


EVALUATED_FIRST = """\
def loss_of(model, x, y):
    return F.cross_entropy(model(x), y)


def mean_loss(model, loader):
    model.eval()
    with torch.no_grad():
        found = sum(loss_of(model, x, y).item() for x, y in loader) / len(loader)
    model.train()
    return found


def main():
    loader = DataLoader(train_set, batch_size=12, shuffle=True, drop_last=True)
    test_loader = DataLoader(test_set, batch_size=12)
    model = torch.nn.Linear(4, 3)
    print(mean_loss(model, test_loader))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for epoch in range(2):
        for x, y in loader:
            loss = loss_of(model, x, y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        print(mean_loss(model, test_loader))


main()
"""


@pytest.mark.parametrize("ranks", [2, pytest.param(3, marks=pytest.mark.nightly)])
def test_an_evaluation_before_training_by_what_training_calls(ranks: int, tmp_path: Path) -> None:
    trains_alike(HEAD.partition("def train(")[0] + EVALUATED_FIRST, ranks, tmp_path)


ENGINE = """\
import torch


def train(model, optimizer, loader, criterion):
    for x, y in loader:
        loss = criterion(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        print(loss.item())


def distill(model, optimizer, loader, teacher):
    criterion = torch.nn.MSELoss()
    for x, _ in loader:
        criterion(model(x), teacher(x)).backward()
    train(model, optimizer, loader, torch.nn.CrossEntropyLoss(ignore_index=2))
"""


@pytest.mark.parametrize("ranks", [2, pytest.param(3, marks=pytest.mark.nightly)])
def test_a_loss_by_whose_name_other_programs_call_theirs(ranks: int, tmp_path: Path) -> None:
    folder = tmp_path / "before"
    folder.mkdir()
    calls = "loader = DataLoader(train_set, batch_size=12, shuffle=True, drop_last=True)\n"
    calls += "engine.train(model, optimizer, loader, torch.nn.CrossEntropyLoss(ignore_index=1))\n"
    (folder / "engine.py").write_text(ENGINE)
    made = HEAD.partition("    print(total / len(loader.dataset), correct)\n")[2]
    (folder / "train.py").write_text("import engine\n" + HEAD.partition("def train(")[0] + made + calls)
    fixture = Fixture("engine", folder, "train.py", (), 1e-6, False, "", False, True, (), False, "", "", (), True)
    found = differences(fixture, ranks)
    assert not found, "\n".join(found)


BY_NUMBER = """\
import numpy as np

names = ["a", "b", "c"]


def chances(model, x):
    out = model(x)
    return np.squeeze(out.argmax(1).numpy()), F.softmax(out, dim=1)


def brightest(image):
    return image.mean(dim=0).item()


def show(model, x, y):
    guesses, found = chances(model, x)
    for i in np.arange(4):
        right = "right" if guesses[i] == y[i].item() else "wrong"
        print(names[guesses[i]], round(found[i].max().item(), 3), names[y[i]], round(brightest(x[i]), 3), right)


loader = DataLoader(train_set, batch_size=12, shuffle=True, drop_last=True)
for epoch in range(2):
    for step, data in enumerate(loader):
        x, y = data
        out = model(x)
        loss = F.cross_entropy(out, y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 2:
            show(model, x, y)
    print(loss.item())
"""


@pytest.mark.parametrize("ranks", [2, pytest.param(3, marks=pytest.mark.nightly)])
def test_samples_that_a_function_takes_by_number(ranks: int, tmp_path: Path) -> None:
    trains_alike(
        HEAD.partition("def train(")[0]
        + HEAD.partition("    print(total / len(loader.dataset), correct)\n")[2]
        + BY_NUMBER,
        ranks,
        tmp_path,
    )


IN_STEPS = """\
loader = DataLoader(train_set, batch_size=12, shuffle=True, drop_last=True)
groups = [{"params": model.parameters(), "lr": 0.1}]
optimizer = torch.optim.SGD(groups, momentum=0.5)
state = {"loss": 1.0}


def slower(optimizer, args, kwargs):
    for group in optimizer.param_groups:
        group["momentum"] = min(0.9, 0.5 * state["loss"])


optimizer.register_step_pre_hook(slower)
scheduler = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda epoch: min(1.0, state["loss"]))
for epoch in range(3):
    for x, y in loader:
        loss = F.cross_entropy(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        state["loss"] = loss.item()
        optimizer.step()
        groups[0]["weight_decay"] = 0.01 * loss.item()
        print(loss.item())
    scheduler.step()
    print(groups[0]["lr"])
"""


@pytest.mark.parametrize("ranks", [2, pytest.param(3, marks=pytest.mark.nightly)])
def test_what_steps_call_and_groups_that_are_kept(ranks: int, tmp_path: Path) -> None:
    trains_alike(HEAD + IN_STEPS, ranks, tmp_path)


COUNTED = """\
from tqdm import tqdm


def show(epochs, loader, test_loader):
    for epoch in range(epochs):
        total = hits = far = 0
        for x, y in tqdm(loader):
            out = model(x)
            loss = F.cross_entropy(out, y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total += loss.item()
            for i in range(len(out)):
                if torch.argmax(out[i]) == y[i]:
                    hits += 1
                elif out[i].max() > 0.5 and y[i] != 1:
                    far += 1
        print(total / len(loader), hits, far)
        test_bar = tqdm(test_loader)
        total = hits = 0
        with torch.no_grad():
            for x, y in test_bar:
                out = model(x)
                total += F.cross_entropy(out, y).item()
                for o, t in zip(out.argmax(1), y):
                    if o == t:
                        hits += 1
        print(total / len(test_bar), hits)


show(2, DataLoader(train_set, batch_size=12, shuffle=True, drop_last=True), DataLoader(test_set, batch_size=7))
"""


@pytest.mark.parametrize("ranks", [2, pytest.param(3, marks=pytest.mark.nightly)])
def test_samples_that_are_counted_one_by_one(ranks: int, tmp_path: Path) -> None:
    source = HEAD.partition("def train(")[0]
    source += HEAD.partition("    print(total / len(loader.dataset), correct)\n")[2] + COUNTED
    result = convert({Path("train.py"): source}, "cpu", style="plain")[Path("train.py")]
    assert "total / sum_over_ranks(len(test_bar))" in result.code and "sampler=[i for i" in result.code
    trains_alike(source, ranks, tmp_path)


HALVED = (
    HEAD.partition("def train(")[0]
    + """\
def halve(model, optimizer):
    model.load_state_dict({key: value / 2 for key, value in model.state_dict().items()})
    return model, optimizer, 1


"""
)
GIVEN_BACK = """\
def one_epoch(model, optimizer, loader):
    for x, y in loader:
        loss = F.cross_entropy(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        print(loss.item())
    return model


def fit(model, optimizer, loader, epochs):
    model, optimizer, start = halve(model, optimizer)
    for epoch in range(start, epochs):
        model = one_epoch(model, optimizer, loader)
    torch.save(model.state_dict(), "model.pt")
    print(sorted(model.state_dict()))
    return model


model = torch.nn.Linear(4, 3)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
model = fit(model, optimizer, DataLoader(train_set, batch_size=12, shuffle=True, drop_last=True), 3)
print(model.weight.sum().item())
"""


@pytest.mark.parametrize("ranks", [2, pytest.param(3, marks=pytest.mark.nightly)])
def test_functions_that_give_back_the_model(ranks: int, tmp_path: Path) -> None:
    trains_alike(HALVED + GIVEN_BACK, ranks, tmp_path)


@pytest.mark.parametrize("loads", ["model.bias = None", "model.double()", "model = torch.nn.Linear(4, 3)"])
def test_models_that_are_not_given_back_as_they_were(loads: str) -> None:
    source = (HALVED + GIVEN_BACK).replace(
        "    return model, optimizer, 1", f"    {loads}\n    return model, optimizer, 1"
    )
    (result,) = convert({Path("train.py"): source}, "cpu", style="plain").values()
    assert any(each.severity == "refused" for each in result.findings)


TWO_NAMES = """\
from collections import Counter, defaultdict


def add(value, kept=[0]):
    kept.append(value)
    return kept


def run(loader, training=True):
    for epoch in range(2):
        for x, y in loader:
            loss = F.cross_entropy(model(x), y)
            if training:
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
    print(epoch)


counts = torch.zeros(3)
seen, hits, rest = counts.unbind(0)
table = counts.clone().numpy()
shown = table[:2]
guesses = {label: Counter() for label in range(3)}
others = defaultdict(Counter)
run(DataLoader(train_set, batch_size=12, shuffle=True, drop_last=True))
test_loader = DataLoader(test_set, batch_size=7)
run(test_loader, training=False)
with torch.no_grad():
    for x, y in test_loader:
        guess = model(x).argmax(1)
        seen += len(x)
        hits += (guess == y).sum()
        shown += (guess == 0).sum().item()
        add((guess == 1).sum().item())
        for label, one in zip(y.tolist(), guess.tolist()):
            guesses[label][one] += 1
            others[label][one] += 1
print(counts.tolist(), table.tolist(), sum(add(0)), sorted(guesses[0].items()), sorted(others[1].items()))
"""


@pytest.mark.parametrize("ranks", [2, pytest.param(3, marks=pytest.mark.nightly)])
def test_tensors_by_two_names_and_a_loader_of_an_evaluation(ranks: int, tmp_path: Path) -> None:
    trains_alike(HEAD + TWO_NAMES, ranks, tmp_path)
