"""Training loaders whose collate functions pad: what is padded, with what, and where that is not known."""

from __future__ import annotations

from pathlib import Path

import pytest
from ddpify_codemods import convert
from ddpify_codemods.facts.plain_code import padded_loaders

from tests.codemods.checks import script_of

HEAD = """\
import functools
import torch
import torch.nn.functional as F
from torch.nn.utils.rnn import pad_sequence
from torch.utils.data import DataLoader
PAD = 1
data = [(torch.randint(2, 9, (n % 5 + 1,)), n % 3) for n in range(32)]
model = torch.nn.EmbeddingBag(9, 3)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
"""
TRAINS = """
for {batch} in loader:
    loss = F.cross_entropy(model({x}), {y})
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
"""
LOADER = "loader = DataLoader(data, batch_size=8, shuffle=True, collate_fn={})\n"
COLLATE = """\
def collate(batch):
    x, y = zip(*batch)
    return pad_sequence(x, batch_first=True, padding_value={}), torch.tensor(y)
"""
MADE = """\
def make(pad=3):
    def collate(batch):
        x, y = zip(*batch)
        return pad_sequence(x, batch_first=True, padding_value=pad), torch.tensor(y)
    {}
"""
PICTURES = """\
def collate(batch):
    xs, ys = zip(*batch)
    largest = tuple(max(size) for size in zip(*[x.shape for x in xs]))
    padded = xs[0].new(*((len(xs),) + largest)).fill_(PAD)
    for x, place in zip(xs, padded):
        place[..., : x.shape[-1]].copy_(x)
    return {}, torch.tensor(ys)
"""
PAIR = ("x, y", "x", "y")


def converted(source: str, batch: tuple[str, str, str] = PAIR, target: str = "cpu") -> str:
    names = dict(zip(("batch", "x", "y"), batch, strict=True))
    path = Path("train.py")
    return convert({path: HEAD + source + TRAINS.format(**names)}, target, style="plain")[path].code


@pytest.mark.parametrize(
    ("source", "padded"),
    [
        (COLLATE.format(0) + LOADER.format("collate"), "[(0, 1, 0)]"),
        (COLLATE.format("PAD") + LOADER.format("collate"), "[(0, 1, PAD)]"),
        (COLLATE.format("-1").replace("batch)", "batch, pad=3)", 1) + LOADER.format("collate"), "[(0, 1, -1)]"),
        (COLLATE.format("pad").replace("batch)", "batch, pad=3)", 1) + LOADER.format("collate"), "[(0, 1, 3)]"),
        (
            COLLATE.format("pad").replace("batch)", "batch, pad)", 1)
            + LOADER.format("functools.partial(collate, pad=PAD)"),
            "[(0, 1, PAD)]",
        ),
        (
            COLLATE.format("pad").replace("batch)", "batch, pad)", 1)
            + LOADER.format("lambda each: collate(each, PAD)"),
            "[(0, 1, PAD)]",
        ),
        (
            "class C:\n    def __init__(self, pad):\n        self.pad = pad\n"
            "    def __call__(self, batch):\n        x, y = zip(*batch)\n"
            "        return pad_sequence(x, batch_first=True, padding_value=self.pad), torch.tensor(y)\n"
            + LOADER.format("C(PAD)"),
            "[(0, 1, PAD)]",
        ),
        (
            PICTURES.format("padded") + LOADER.format("collate"),
            "[(0, -1, PAD)]",
        ),
        (
            PICTURES.format("padded[:, largest[0]:]") + LOADER.format("collate"),
            "",
        ),
        (
            "def collate(batch):\n    xs, ys = [], []\n    for x, y in sorted(batch, key=len):\n        xs.append(x)\n"
            "        ys.append(y)\n    return [pad_sequence(xs, True), torch.tensor(ys)]\n" + LOADER.format("collate"),
            "[(0, 1, 0)]",
        ),
        (
            "class B:\n    def __init__(self, p):\n        self.p = None\n        self.p = p\n"
            "    def __call__(self, batch):\n        x, y = zip(*batch)\n"
            "        return pad_sequence(x, True, self.p), torch.tensor(y)\nclass C(B):\n    pass\n"
            + LOADER.format("C(PAD)"),
            "[(0, 1, PAD)]",
        ),
        (
            "def collate(batch):\n    batch.sort(key=lambda each: len(each[0]), reverse=True)\n"
            "    xs = [torch.as_tensor(x) for x, _ in batch]\n    lengths = [len(x) for x in xs]\n"
            "    xs = pad_sequence(xs, True, 1)\n    return xs, torch.tensor([y for _, y in batch]), lengths, xs != 1\n"
            + LOADER.format("collate").replace("loader", "whole", 1)
            + "loader = ((x, y) for x, y, _, _ in whole)\n",
            "",
        ),
    ],
)
def test_what_is_padded(source: str, padded: str) -> None:
    code = converted(source)
    assert ("EquallyPaddedLoader" in code) is bool(padded)
    assert not padded or f"padded={padded}" in code


def test_parts_with_names_and_masks() -> None:
    collate = (
        "def collate(batch):\n    x = pad_sequence([each[0] for each in batch], True, PAD)\n"
        '    return {"tokens": x, "mask": x != PAD, "labels": torch.tensor([each[1] for each in batch])}\n'
    )
    code = converted(collate + LOADER.format("collate"), ("b", 'b["tokens"]', 'b["labels"]'))
    assert 'padded=[("tokens", 1, PAD), ("mask", 1, False)]' in code


def test_time_first() -> None:
    collate = COLLATE.format(0).replace("batch_first=True, ", "")
    code = converted(collate + LOADER.format("collate"), ("x, y", "x.t()", "y"))
    assert "padded=[(0, 0, 0)]" in code


def test_a_batch_that_is_one_tensor() -> None:
    collate = "def collate(batch):\n    return pad_sequence([each[0] for each in batch], batch_first=True)\n"
    code = converted(collate + LOADER.format("collate"), ("x", "x[:, 1:]", "x[:, 0]"))
    assert "padded=(1, 0)" in code and "yield torch.nn.functional.pad(batch, behind, value=value)" in code


@pytest.mark.parametrize(
    "collate",
    [
        COLLATE.format("y[0]"),
        COLLATE.format("max(y)"),
        COLLATE.format("1, padding_side='left'"),
        "def collate(batch):\n    pad = 1\n    pad_value = pad if len(batch) > 3 else 0\n"
        + COLLATE.format("pad_value")[20:],
        # a name that stands for something else where the loader is made, or for several things
        MADE.format("pad = 5\n    return collate"),
        MADE.format("return collate"),
        MADE.format("return collate") + "class O: pass\no = O()\no.p = 3\nmade = make(o.p)\no.p = 7\n",
        "def together(xs):\n    return pad_sequence(xs, True, PAD)\n"
        "def collate(batch, PAD=5):\n    x, y = zip(*batch)\n    return together(x), torch.tensor(y)\n",
        COLLATE.format("p").replace("    x,", "    p = 1\n    p += 1\n    x,", 1),
        COLLATE.format("p").replace("    x,", "    p = 1\n    p, q = 2, 3\n    x,", 1),
        COLLATE.format("p").replace("    x,", "    p = 1\n    if PAD:\n        p = 2\n    x,", 1),
        COLLATE.format("p").replace("    x,", "    p = 1\n    for _ in (1, 2):\n        p = p + 1\n    x,", 1),
        "p = 5\ndef together(xs):\n    p, q = 1, 2\n    return pad_sequence(xs, True, p)\n"
        "def collate(batch):\n    x, y = zip(*batch)\n    return together(x), torch.tensor(y)\n",
        "class C:\n    def __init__(self, p):\n        self.p = p\n    def change(self):\n        self.p = 8\n"
        "    def __call__(self, batch):\n        x, y = zip(*batch)\n"
        "        return pad_sequence(x, True, self.p), torch.tensor(y)\ndef make(p):\n    return C(p)\n",
        "class C:\n    def __init__(self, p):\n        self.p = p\n"
        "    def __call__(self, batch):\n        x, y = zip(*batch)\n"
        "        return pad_sequence(x, True, self.p), torch.tensor(y)\ndef make(p):\n    return C(p + 1)\n",
        # samples in several orders, or not all of them
        COLLATE.format("1").replace("    x,", "    other = sorted(batch, key=len)\n    z, _ = zip(*other)\n    x,", 1),
        COLLATE.format("1").replace("    x,", "    batch = [b for b in batch if b is not None]\n    x,", 1),
        COLLATE.format("1").replace("    x,", "    batch = list(filter(None, batch))\n    x,", 1),
        COLLATE.format("1").replace("    x,", "    batch = sorted(batch, key=len)[1:]\n    x,", 1),
        COLLATE.format("len(batch)"),
        "def pair(b, batch):\n    return torch.stack([b[0][:1] - o[0][:1] for o in batch])\n"
        "def collate(batch):\n    for b in batch:\n        d = pair(b, batch)\n"
        "    return d, torch.tensor([b[1] for b in batch])\n",
    ],
)
def test_what_is_not_known_is_refused(collate: str) -> None:
    name = "made" if "made = " in collate else "make(PAD)" if "def make" in collate else "collate"
    assert "DistributedDataParallel" not in converted(collate + LOADER.format(name))


def test_another_engine_refuses() -> None:
    source = COLLATE.format(0) + LOADER.format("collate")
    assert "DistributedSampler" not in converted(source, target="ignite")


def test_an_evaluation_is_divided_by_batches() -> None:
    evaluation = (
        "test_loader = DataLoader(data, batch_size=8, collate_fn=collate)\nhits = 0\nfor x, y in test_loader:\n"
        "    hits += (model(x).argmax(1) == y).sum().item()\nprint(hits)\n"
    )
    path = Path("train.py")
    source = (
        HEAD + COLLATE.format(0) + LOADER.format("collate") + TRAINS.format(batch="x, y", x="x", y="y") + evaluation
    )
    code = convert({path: source}, "cpu", style="plain")[path].code
    assert "sampler=[i for i in range(len(data)) if i // 8 % dist.get_world_size() == dist.get_rank()]" in code
    assert code.count("EquallyPaddedLoader") == 2


def test_an_evaluation_of_samples_of_training_is_whole() -> None:
    evaluation = (
        "\ndef accuracy(loader):\n    hits = 0\n    for x, y in loader:\n"
        "        hits += (model(x).argmax(1) == y).sum().item()\n    return hits\n\n\nprint(accuracy(loader))\n"
    )
    source = HEAD + COLLATE.format(0) + LOADER.format("collate") + TRAINS.format(batch="x, y", x="x", y="y")
    path = Path("train.py")
    code = convert({path: source + evaluation}, "cpu", style="plain")[path].code
    assert "for x, y in every_sample(loader):" in code  # other batches would be padded to other lengths


def test_what_pads_pictures_is_known_again() -> None:
    code = converted(PICTURES.format("padded") + LOADER.format("collate"))
    assert "(batch[key].dim() - dim % batch[key].dim() - 1)" in code
    assert padded_loaders(script_of(code)) == {"EquallyPaddedLoader"}


def test_the_lengths_of_batches_for_gpus_go_from_host_to_host() -> None:
    source = COLLATE.format(0) + 'model.to("cuda")\n' + LOADER.format("collate")
    code = converted(source, target="cuda")
    assert 'dist.init_process_group("cpu:gloo,cuda:nccl")' in code
    assert "lengths = torch.tensor([batch[key].shape[dim] for key, dim, _ in self.padded])" in code
    assert "torch.cuda.set_device(" in code
    unpadded = converted(source.replace(", collate_fn=collate", ""), target="cuda")
    assert 'dist.init_process_group("nccl")' in unpadded


def of_files(**files: str) -> str:
    """The code of a program of several files, that trains by a collate function which the first one imports."""
    main = HEAD + files.pop("main") + TRAINS.format(batch="x, y", x="x", y="y")
    others = {
        Path(f"{name}.py"): "from torch.nn.utils.rnn import pad_sequence\nimport torch\n" + text
        for name, text in files.items()
    }
    return convert({Path("train.py"): main, **others}, "cpu", style="plain")[Path("train.py")].code


SETS = "import batches\ndef later():\n    batches.END = 7\n"
IMPORTS = "from batches import collate\n" + LOADER.format("collate")


@pytest.mark.parametrize(
    ("files", "padded"),
    [
        ({"main": IMPORTS, "batches": "END = 4\n" + COLLATE.format("END")}, "[(0, 1, 4)]"),
        (
            {"main": IMPORTS, "batches": "from names import END\n" + COLLATE.format("END"), "names": "END = 5\n"},
            "[(0, 1, 5)]",
        ),
        (  # another number than that of the same name
            {
                "main": "from names import END\n" + IMPORTS,
                "batches": "END = 4\n" + COLLATE.format("END"),
                "names": "END = 5\n",
            },
            "[(0, 1, 4)]",
        ),
        (
            {"main": "from batches import END\nEND = 5\n" + IMPORTS, "batches": "END = 4\n" + COLLATE.format("END")},
            "[(0, 1, 4)]",
        ),
        (
            {"main": "import batches\nbatches.END = 9\n" + IMPORTS, "batches": "END = 4\n" + COLLATE.format("END")},
            "",
        ),
        ({"main": IMPORTS, "batches": "END = read()\n" + COLLATE.format("END")}, ""),
        (
            {
                "main": IMPORTS,
                "batches": "END = 4\ndef change():\n    global END\n    END = 5\n" + COLLATE.format("END"),
            },
            "",
        ),
        ({"main": IMPORTS, "batches": "END = 4\nEND = END + read()\n" + COLLATE.format("END")}, ""),
        ({"main": IMPORTS + "import other\n", "batches": "END = 4\n" + COLLATE.format("END"), "other": SETS}, ""),
    ],
)
def test_names_of_other_files(files: dict[str, str], padded: str) -> None:
    code = of_files(**files)
    assert ("EquallyPaddedLoader" in code) is bool(padded)
    assert not padded or f"padded={padded}" in code
