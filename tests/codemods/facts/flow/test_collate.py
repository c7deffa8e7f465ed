"""Which collate functions stack their samples: each row of what they give is made of one sample alone."""

from __future__ import annotations

import ast

import pytest
from ddpify_codemods.facts.flow.collate import stacks
from ddpify_codemods.facts.flow.values import Function

from tests.codemods.checks import script_of

HEAD = """\
import random
import numpy as np
import torch
import torch.nn.functional as F
from torch.nn.utils.rnn import pad_sequence
from torch.utils.data import default_collate
"""
STACK = [
    """\
def c(batch):
    images, labels = tuple(zip(*batch))
    images = torch.stack(images, dim=0)
    labels = torch.as_tensor(labels)
    return images, labels
""",
    """\
def c(infos):
    a, b, m = [], [], []
    for info in infos:
        a.append(info[0])
        b.append(info[1]["k"])
        m.append(info[1]["m"])
    a = torch.stack(a)
    t = {"b": torch.stack(b), "m": torch.stack(m)}
    return a, t
""",
    """\
def c(batch):
    data = [item[0] for item in batch]
    target = [item[1] for item in batch]
    target = torch.LongTensor(target)
    return [torch.stack(data), target]
""",
    """\
c = lambda b: torch.stack([x[0] for x in b])
""",
    """\
def c(batch):
    return {k: torch.stack([s[k] for s in batch]) for k in batch[0].keys()}
""",
    """\
def c(batch):
    return [torch.stack(x) for x in zip(*batch)]
""",
    """\
def c(batch):
    images = torch.cat([b[0].unsqueeze(0) for b in batch], dim=0)
    labels = torch.tensor([b[1] for b in batch], dtype=torch.long)
    return images.float() / 255, F.one_hot(labels, 10)
""",
    """\
def c(batch):
    images = []
    labels = []
    for img, label in batch:
        img = np.array(img)
        img = img[:, :, ::-1]
        images.append(img)
        labels.append(label)
    images = np.array(images)
    images = torch.from_numpy(images)
    return images, torch.from_numpy(np.array(labels)).long()
""",
    """\
def c(batch):
    out = {}
    out["x"] = torch.stack([b["x"] for b in batch])
    out["y"] = torch.tensor([b["y"] for b in batch])
    return out
""",
    """\
def stack(xs, dtype=None):
    return torch.stack([torch.as_tensor(x, dtype=dtype) for x in xs])
def c(batch):
    xs, ys = map(list, zip(*batch))
    return stack(xs, dtype=torch.float), stack(ys)
""",
    """\
def c(batch):
    batch.sort(key=lambda x: len(x[0]), reverse=True)
    return default_collate(batch)
""",
    """\
def c(batch):
    if isinstance(batch[0], dict):
        return default_collate(batch)
    x = torch.stack([b[0] for b in batch]); y = torch.stack([b[1] for b in batch])
    return x, y
""",
]
COUPLE = [
    """\
def c(batch):
    return tuple(zip(*batch))
""",
    """\
def c(batch):
    xs, ys = zip(*batch)
    return pad_sequence(xs, batch_first=True), torch.tensor(ys)
""",
    """\
def c(batch):
    batch = [b for b in batch if b is not None]
    return default_collate(batch)
""",
    """\
def c(batch):
    batch = list(filter(lambda b: b is not None, batch))
    return default_collate(batch)
""",
    """\
def c(batch):
    n = max(len(b[0]) for b in batch)
    xs = [F.pad(b[0], (0, n - len(b[0]))) for b in batch]
    return torch.stack(xs)
""",
    """\
def c(batch):
    batch.sort(key=lambda b: len(b[0]), reverse=True)
    n = batch[0][0].shape[0]
    xs = torch.stack([F.pad(b[0], (0, n - b[0].shape[0])) for b in batch])
    return xs
""",
    """\
def c(batch):
    x = torch.stack([b[0] for b in batch])
    lam = np.random.beta(1, 1)
    return x * lam + x[torch.randperm(len(x))] * (1 - lam)
""",
    """\
def c(batch):
    x = torch.stack([b[0] for b in batch])
    return (x - x.mean()) / x.std()
""",
    """\
def c(batch):
    x = torch.stack([b[0] for b in batch], 1)
    return x
""",
    """\
def c(batch):
    size = random.choice([224, 256])
    return torch.stack([F.interpolate(b[0], size) for b in batch])
""",
    """\
def c(batch):
    xs = []
    for i, b in enumerate(batch):
        b[1][:, 0] = i
        xs.append(b[1])
    return torch.stack(xs)
""",
    """\
def c(batch):
    xs = []
    for b in batch:
        if len(b[0]):
            xs.append(b[0])
    return torch.stack(xs)
""",
    """\
def c(batch):
    xs = []
    for b in batch:
        if len(b[0]) == 0:
            continue
        xs.append(b[0])
    return torch.stack(xs)
""",
    """\
def c(batch):
    xs = torch.stack([b[0] for b in batch])
    return xs, len(batch)
""",
    """\
def c(batch):
    xs = torch.stack([b[0] for b in batch[::-1][:4]])
    return xs
""",
    """\
def c(batch):
    xs = torch.stack([b[0] - batch[0][0] for b in batch])
    return xs
""",
    """\
def c(batch):
    return torch.cat([b[0] for b in batch])
""",
    """\
def c(batch):
    m = torch.stack([b[0] for b in batch])
    m -= m.mean(0)
    return m
""",
    """\
def c(batch):
    a, b = batch
    return torch.stack([a, b])
""",
    """\
def c(batch):
    xs = [b[0] for b in batch]
    xs.extend(xs)
    return torch.stack(xs)
""",
    """\
def c(batch):
    x = torch.stack([b[0] for b in batch])
    return F.normalize(x, dim=0)
""",
    """\
def c(batch):
    prev = 0
    xs = []
    for b in batch:
        xs.append(b + prev)
        prev = b
    return torch.stack(xs)
""",
    """\
def c(batch):
    total = 0
    for b in batch:
        total = total + b[0]
    return torch.stack([b[0] - total for b in batch])
""",
    """\
def c(batch):
    x = torch.stack([b[0] for b in batch])
    x[0] = 0
    return x
""",
    """\
def c(batch):
    x = torch.stack([b[0] for b in batch])
    x.zero_().add_(x.sum())
    y = x.sub(x.max())
    return y
""",
]


def is_stacking(source: str) -> bool:
    script = script_of(HEAD + source)
    kinds = ast.FunctionDef | ast.Lambda
    functions = [node for node in script.nodes if isinstance(node, kinds) and getattr(node, "name", "c") == "c"]
    return stacks(Function(functions[0], script))


@pytest.mark.parametrize("source", STACK)
def test_rows_of_one_sample_each(source: str) -> None:
    assert is_stacking(source)


@pytest.mark.parametrize("source", COUPLE)
def test_samples_that_are_padded_filtered_or_mixed(source: str) -> None:
    assert not is_stacking(source)
