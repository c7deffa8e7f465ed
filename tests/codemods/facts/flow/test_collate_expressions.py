"""The same for collate functions of nothing but expressions."""

from __future__ import annotations

import pytest

from .followed import is_stacking

STACK = [
    """\
def c(batch):
    x = torch.stack([b[0] for b in batch])
    x = x.view(x.shape[0], 1, x.shape[1])
    return x.reshape(x.size(0), x.size(2), -1), torch.stack([b[1] for b in batch])
""",
    """\
def c(batch):
    images, labels = tuple(zip(*batch))
    images = torch.stack(images, dim=0)
    labels = torch.as_tensor(labels)
    return images, labels
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
    x, y = [], []
    for i in batch:
        x.append(i["x"].float())
        y.append(i["y"])
    x = torch.unsqueeze(torch.stack(x, dim=0), dim=1)
    return torch.permute(x, (0, 2, 1)), torch.from_numpy(np.array(y)).unsqueeze(dim=1), torch.squeeze(x, 1)
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
    out = {}
    out["x"] = torch.stack([b["x"] for b in batch])
    out["y"] = torch.tensor([b["y"] for b in batch])
    return out
""",
    """\
def c(batch):
    x = torch.stack([b[0] for b in batch])
    x = x.view(x.shape[0], 1, -1)
    return x.reshape(len(x), -1), torch.stack([b[1] for b in batch]).flatten(1)
""",
    """\
def stack(xs, dtype=None):
    return torch.stack([torch.as_tensor(x, dtype=dtype) for x in xs])
def c(batch):
    xs, ys = map(list, zip(*batch))
    return stack(xs, dtype=torch.float), stack(ys)
""",
    """\
def c(batch, tokenizer, size=8):
    return torch.tensor([tokenizer(b["text"], max_length=size) for b in batch]), torch.tensor([b["y"] for b in batch])
""",
]
COUPLE = [
    "def c(batch):\n    return torch.unsqueeze(torch.stack(batch), 0)\n",
    "def c(batch):\n    return torch.unsqueeze(torch.stack(batch), dim=-2)\n",
    "def c(batch):\n    return torch.stack(batch).unsqueeze(dim=0)\n",
    "def c(batch):\n    return torch.stack(batch).squeeze()\n",
    "def c(batch):\n    return torch.squeeze(torch.stack(batch))\n",
    "def c(batch):\n    return torch.squeeze(torch.stack(batch), dim=0)\n",
    "def c(batch):\n    return torch.stack(batch).unsqueeze(dim=len(batch))\n",
    "def c(batch):\n    return torch.permute(torch.stack(batch), (1, 0))\n",
    "def c(batch):\n    return torch.permute(torch.stack(batch), dims=(2, 0, 1))\n",
    "def c(batch):\n    return torch.stack(batch).permute(1, 0)\n",
    "def c(batch):\n    return pad_sequence(sequences=torch.cat(batch), batch_first=True)\n",
    """\
def c(batch):
    x = torch.stack([b[0] for b in batch])
    return x.view(x.shape[1], x.shape[0], -1)
""",
    """\
def c(batch):
    x = torch.stack([b[0] for b in batch])
    return x.view(x.shape[0], x.shape[0], -1)
""",
    """\
def c(batch):
    x, y = torch.stack([b[0] for b in batch]), torch.stack([b[1] for b in batch])
    return x.view(x.shape[0], y.shape[0], -1)
""",
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
    a, b = batch
    return torch.stack([a, b])
""",
    """\
def c(batch):
    x = torch.stack([b[0] for b in batch])
    return F.normalize(x, dim=0)
""",
    """\
def c(batch):
    x = torch.stack([b[0] for b in batch])
    x[0] = 0
    return x
""",
    """\
def c(batch):
    xs = [b[0] for b in batch]
    mean = torch.stack(xs).mean(0)
    _ = [x.sub_(mean) for x in xs]
    return torch.stack(xs)
""",
    """\
def fix(batch):
    return batch.pop()
def c(batch):
    last = fix(batch)
    return default_collate(batch)
""",
    """\
def c(batch):
    first = batch.pop(0)
    return default_collate(batch)
""",
    """\
def c(batch):
    each = iter(batch)
    first = next(each)
    return torch.stack([b[0] for b in each])
""",
    """\
def c(batch):
    each = (b[0] for b in batch)
    first = next(each)
    return torch.stack(list(each))
""",
    """\
def c(batch):
    x0, y0 = batch[0]
    return torch.stack([x - x0 for x, y in batch])
""",
    """\
def c(batch):
    return [torch.stack([b[0] - v for b in batch]) for v in batch[0]]
""",
    """\
def c(batch):
    first = batch[0]["flip"]
    return torch.stack([b["x"] for b in batch]) if first else torch.stack([b["y"] for b in batch])
""",
    """\
def c(batch):
    longer = max(len(b[0]) for b in batch) > 3
    return torch.stack([b[0] if longer else b[1] for b in batch])
""",
    """\
LAST = {"x": 0}
def c(batch):
    out = torch.stack([b[0] - LAST["x"] for b in batch])
    LAST["x"] = batch[-1][0]
    return out
""",
    """\
def size():
    return random.choice([2, 4])
def c(batch):
    chosen = size()
    return torch.stack([F.interpolate(b[0], chosen) for b in batch])
""",
    """\
def c(batch):
    xs = sorted([b[0] for b in batch], key=len)
    return torch.stack(xs), torch.tensor([b[1] for b in batch])
""",
    """\
def c(batch):
    last = 0
    return torch.stack([b[0] - last for b in batch if (last := b[0]) is not None])
""",
    """\
def c(batch):
    last = 0
    return torch.stack([(last := last + b[0]) for b in batch])
""",
    """\
def c(batch):
    batch[0] = batch[1]
    return default_collate(batch)
""",
    """\
def c(batch):
    return torch.stack([a[0] - b[0] for a, b in zip(batch, batch[1:])])
""",
    """\
def c(batch):
    return torch.stack([a[0] - b[0] for a, b in zip(batch, reversed(batch))])
""",
    """\
def c(batch):
    xs = [b[0] for b in batch]
    return torch.stack([a - b for a, b in zip(xs, sorted(xs, key=len))])
""",
    """\
def c(batch):
    inner = lambda b: b[0] - batch[0][0]
    return torch.stack([inner(b) for b in batch])
""",
    """\
def c(batch):
    first = batch[0][0]
    return torch.stack(list(map(lambda b: b[0] - first, batch)))
""",
    """\
def c(batch, **more):
    return torch.stack([b[0] for b in batch], **more)
""",
    """\
BUFFER = torch.zeros(8, 4)
def c(batch):
    return torch.stack([b[0] for b in batch], out=BUFFER)
""",
    """\
def c(batch):
    xs = [b[0] for b in batch]
    ys = [torch.stack(xs).sum() for b in batch]
    return torch.stack(ys)
""",
    """\
def c(batch):
    return torch.stack([b[0] for b in batch]).T
""",
    """\
def c(batch):
    y = batch[0]["y"]
    return torch.stack([b["logits"][y] for b in batch])
""",
    """\
def c(batch):
    x = torch.stack([b[0] for b in batch])
    return x * x.shape[0]
""",
    """\
def c(batch):
    n = COUNTER.next()
    return torch.stack([b[0] * n for b in batch])
""",
    """\
def c(batch):
    rng = np.random.default_rng()
    return torch.stack([b[0] * rng.random() for b in batch])
""",
]


@pytest.mark.parametrize("source", STACK)
def test_expressions_that_keep_samples_apart(source: str) -> None:
    assert is_stacking(source)


@pytest.mark.parametrize("source", COUPLE)
def test_expressions_that_couple_samples(source: str) -> None:
    assert not is_stacking(source)
