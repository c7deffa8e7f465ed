"""Which collate functions stack their samples: each row of what they give is made of one sample alone."""

from __future__ import annotations

import pytest

from .followed import is_stacking

STACK = [
    """\
def c(batch):
    xs = [torch.unsqueeze(b[0], dim=0) for b in batch]
    return torch.cat(xs, dim=0), torch.cat([b[1].unsqueeze(dim=0) for b in batch], 0)
""",
    """\
def c(batch, n=9):
    return torch.stack([F.pad(b[0], (0, n - len(b[0])), value=1) for b in batch])
""",
    """\
def c(batch):
    a, b = map(torch.stack, zip(*batch))
    return a, b.float()
""",
    """\
def c(batch):
    a, b = [torch.stack(each) for each in zip(*batch)]
    return a, b.float()
""",
    """\
def c(batch):
    ordered = sorted(batch, key=lambda b: b[1], reverse=True)
    return torch.stack([b[0] for b in ordered]), torch.tensor([b[1] for b in ordered])
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
    """\
def c(batch):
    out = {}
    for key in batch[0].keys():
        out[key] = torch.stack([torch.as_tensor(b[key]) for b in batch])
    return out
""",
    """\
def c(batch):
    out = {}
    for key in batch[0]:
        values = []
        for b in batch:
            values.append(b[key])
        out[key] = torch.stack(values)
    return out
""",
    """\
def c(batch):
    elem = batch[0]
    if isinstance(elem, dict):
        return {key: torch.stack([d[key] for d in batch]) for key in elem}
    return torch.stack(batch)
""",
    """\
def c(batch):
    xs, ys = [], []
    for x, y in batch:
        if x.dim() == 2:
            x = x.unsqueeze(0)
        x = (x - MEAN) / STD
        xs.append(x)
        ys.append(torch.tensor([y, 1 - y]))
    return torch.stack(xs), torch.stack(ys, 0)
""",
    """\
def c(batch):
    xs = torch.stack([torch.from_numpy(b["x"]) for b in batch]).float().div_(255)
    xs.sub_(0.5)
    xs /= 0.5
    return xs, torch.tensor([b["y"] for b in batch]).unsqueeze(1)
""",
]
COUPLE = [
    """\
def c(batch):
    a, b = torch.stack([b[0] for b in batch])
    return torch.stack([a, b])
""",
    """\
def c(batch):
    ordered = sorted(batch, key=lambda b: b[1], reverse=True)
    return torch.stack([b[0] for b in ordered]), torch.tensor([b[1] for b in batch])
""",
    """\
def c(batch):
    x = torch.stack([b[0] for b in batch])
    ordered = sorted(batch, key=lambda b: b[1], reverse=True)
    return x, torch.tensor([b[1] for b in ordered])
""",
    """\
def c(batch):
    return torch.stack([b[0] * len(batch) for b in batch])
""",
    """\
def c(batch):
    n = len(batch)
    return torch.stack([b[0] for b in batch]) / n
""",
    """\
def c(batch):
    return torch.cat([torch.unsqueeze(b[0], dim=1) for b in batch], dim=0)
""",
    """\
def c(batch):
    n = batch[0][0].shape[0]
    return torch.stack([F.pad(b[0], (0, n - len(b[0])), value=1) for b in batch])
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
    m = torch.stack([b[0] for b in batch])
    m -= m.mean(0)
    return m
""",
    """\
def c(batch):
    xs = [b[0] for b in batch]
    xs.extend(xs)
    return torch.stack(xs)
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
    x.zero_().add_(x.sum())
    y = x.sub(x.max())
    return y
""",
    """\
def c(batch):
    xs = [b[0] for b in batch]
    mean = torch.stack(xs).mean(0)
    for x in xs:
        x.sub_(mean)
    return torch.stack(xs)
""",
    """\
def c(batch):
    mean = torch.stack([b[0] for b in batch]).mean(0)
    for b in batch:
        x = b[0]
        x -= mean
    return default_collate(batch)
""",
    """\
def c(batch):
    mean = torch.stack([b[0] for b in batch]).mean(0)
    for b in batch:
        b[0][:] = b[0] - mean
    return default_collate(batch)
""",
    """\
def fix(batch):
    batch.pop()
def c(batch):
    fix(batch)
    return default_collate(batch)
""",
    """\
def c(batch):
    del batch[0]
    return default_collate(batch)
""",
    """\
def c(batch):
    if batch[0]["flip"]:
        return torch.stack([b["x"].flip(0) for b in batch])
    return torch.stack([b["x"] for b in batch])
""",
    """\
KEPT = []
def c(batch):
    out = torch.stack([b[0] - len(KEPT) for b in batch])
    for b in batch:
        KEPT.append(b[0])
    return out
""",
    """\
def c(batch, kept=[]):
    kept.append(batch)
    return torch.stack([b[0] + len(kept[0]) for b in batch])
""",
    """\
def c(batch):
    batch += batch
    return default_collate(batch)
""",
    """\
def c(batch):
    xs = [b[0] for b in batch]
    xs.reverse()
    return torch.stack(xs), torch.tensor([b[1] for b in batch])
""",
    """\
def c(batch):
    y = torch.tensor([b[1] for b in batch])
    batch.sort(key=lambda b: len(b[0]))
    return torch.stack([b[0] for b in batch]), y
""",
    """\
def c(batch):
    for b in batch:
        batch[0] = b
    return default_collate(batch)
""",
    """\
def c(batch):
    xs = []
    for b in batch:
        xs.append(b[0])
        xs[0] = b[0]
    return torch.stack(xs)
""",
    """\
def c(batch):
    xs = []
    for b in batch:
        xs.append(b[0])
    for b in batch:
        xs.append(b[1])
    return torch.stack(xs)
""",
    """\
def c(batch):
    def inner(b):
        return b[0] - batch[0][0]
    return torch.stack([inner(b) for b in batch])
""",
    """\
def c(batch):
    for b in batch:
        b.update(n=len(batch))
    return default_collate(batch)
""",
    """\
def c(batch):
    for b in batch:
        b["n"] = len(batch)
    return default_collate(batch)
""",
    """\
def c(batch):
    for b in batch:
        setattr(b, "n", len(batch))
    return torch.stack([b.n for b in batch])
""",
    """\
def c(batch):
    for b in batch:
        d = [o[0] - b[0] for o in batch]
    return torch.stack(d)
""",
    """\
def c(batch):
    for b in batch:
        d = list(map(lambda o: o[0] - b[0], batch))
    return torch.stack(d)
""",
    """\
def c(batch):
    for b in batch:
        d = {"a": b[0], "b": 1}
    return torch.stack([o[0] - d["a"] for o in batch])
""",
    """\
def c(batch):
    xs = []
    for key in ("a", "b"):
        for b in batch:
            xs.append(b[key])
    return torch.stack(xs)
""",
    """\
def c(batch):
    xs = []
    for b in batch:
        try:
            xs.append(b[0])
        except ValueError:
            pass
    return torch.stack(xs)
""",
    """\
def c(batch):
    xs = []
    for b in batch:
        xs.append(b[0])
        if b[1]:
            break
    return torch.stack(xs)
""",
    """\
seen = 0
def c(batch):
    global seen
    seen = seen + 1
    return torch.stack([b[0] * seen for b in batch])
""",
    """\
def c(batch):
    for b in batch:
        last = b[0]
    return torch.stack([b[0] - last for b in batch])
""",
]


@pytest.mark.parametrize("source", STACK)
def test_rows_of_one_sample_each(source: str) -> None:
    assert is_stacking(source)


@pytest.mark.parametrize("source", COUPLE)
def test_samples_that_are_padded_filtered_or_mixed(source: str) -> None:
    assert not is_stacking(source)
