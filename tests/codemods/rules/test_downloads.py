from __future__ import annotations

from pathlib import Path

import pytest
from ddpify_codemods import convert

from .snippet import check_noop, check_transformed

IMPORTS = """\
import tarfile
from functools import partial
from urllib.request import urlretrieve
import torchtext.datasets as texts
from torchtext.experimental.datasets import IMDB
from torchtext.legacy.datasets import translation as older
from torchvision import datasets, models
"""


@pytest.mark.parametrize(
    "lines",
    [
        "data = datasets.MNIST('data', download=False)",
        "data = datasets.MNIST('data')",
        "net = models.resnet18()",
        "make = partial(models.resnet18)",
        "net = models.resnet18(pretrained=False)",
        "net = models.resnet18(weights=None)",
        "net = models.ResNet(models.resnet.BasicBlock, [2, 2, 2, 2])",
        "layer = models.resnet.conv1x1(64, 128, 2)",
        "wide = models._utils._make_divisible(32 * width, 8)",
        "@models._utils.handle_legacy_interface(weights=('pretrained', None))\ndef net(*, weights=None):\n    pass",
        "def load(download):\n    pass\ndata = load(download=True)",
        "class Set:\n    def __init__(self, download):\n        pass\ndata = Set(download=True)",
        "net = torch.load('a.pt', map_location='cpu')",
        "data = texts.TranslationDataset('a', ('.de', '.en'), fields)",
        "data = texts.LanguageModelingDataset.splits(field)",
        "field.build_vocab(data, vectors=None, max_size=99)",
        "words = torchtext.vocab.build_vocab_from_iterator(lines)",
        "data = datasets.MNIST('data', True, None, None, False)",
        "data = datasets.MNIST('data', download=False, **settings)",
        "data = datasets.ImageFolder(**settings)",
        "def load(*given):\n    pass\ndata = load('a', args.download)",
    ],
)
def test_what_downloads_nothing_stays(lines: str) -> None:
    check_noop(lines, imports=IMPORTS)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("data = datasets.MNIST('data', download=True)",
         "data = rank_zero_first(datasets.MNIST)('data', download=True)"),
        ("fetch = 1\ndata = datasets.MNIST('data', download=fetch)",
         "fetch = 1\ndata = rank_zero_first(datasets.MNIST)('data', download=fetch)"),
        ("class Digits(datasets.MNIST):\n    pass\ndata = Digits('data', download=True)",
         "class Digits(datasets.MNIST):\n    pass\ndata = rank_zero_first(Digits)('data', download=True)"),
        ("class MNIST:\n    def __init__(self):\n        self.a = datasets.MNIST('a', download=True)",
         "class MNIST:\n    def __init__(self):\n        self.a = rank_zero_first(datasets.MNIST)('a', download=True)"),
        ("settings = {'download': True}\ndata = datasets.MNIST('data', **settings)",
         "settings = {'download': True}\ndata = rank_zero_first(datasets.MNIST)('data', **settings)"),
        ("data = datasets.MNIST('data', True, None, None, True)",
         "data = rank_zero_first(datasets.MNIST)('data', True, None, None, True)"),
        ("class Digits(datasets.MNIST):\n    def __init__(self, root, download):\n"
         "        super().__init__(root, True, None, None, download)",
         "class Digits(datasets.MNIST):\n    def __init__(self, root, download):\n"
         "        rank_zero_first(super().__init__)(root, True, None, None, download)"),
        ("class Digits(datasets.MNIST):\n    def __init__(self, **kwargs):\n        super().__init__(**kwargs)\n"
         "data = Digits(root='data', download=True)",
         "class Digits(datasets.MNIST):\n    def __init__(self, **kwargs):\n        super().__init__(**kwargs)\n"
         "data = rank_zero_first(Digits)(root='data', download=True)"),
        ("net = models.resnet18(pretrained=True)", "net = rank_zero_first(models.resnet18)(pretrained=True)"),
        ("net = models.resnet18(weights='DEFAULT')", "net = rank_zero_first(models.resnet18)(weights='DEFAULT')"),
        ("net = models.resnet._resnet(Block, [2], weights, True)",
         "net = rank_zero_first(models.resnet._resnet)(Block, [2], weights, True)"),
        ("make = lambda: datasets.MNIST('data', download=True)\ndata = make()",
         "make = lambda: rank_zero_first(datasets.MNIST)('data', download=True)\ndata = make()"),
        ("make = partial(datasets.MNIST, download=True)\ndata = make('data')",
         "make = partial(rank_zero_first(datasets.MNIST), download=True)\ndata = make('data')"),
        ("make = partial(models.resnet18, weights='DEFAULT')",
         "make = partial(rank_zero_first(models.resnet18), weights='DEFAULT')"),
        ("net = torch.hub.load('a/b', 'c')", "net = rank_zero_first(torch.hub.load)('a/b', 'c')"),
        ("data = list(texts.IMDB(split='train'))", "data = list(rank_zero_first(texts.IMDB)(split='train'))"),
        ("data = texts.SST.splits(field)", "data = rank_zero_first(texts.SST.splits)(field)"),
        ("data = older.Multi30k.splits(field)", "data = rank_zero_first(older.Multi30k.splits)(field)"),
        ("data = IMDB(data_select='train')", "data = rank_zero_first(IMDB)(data_select='train')"),
        ("vectors = torchtext.vocab.GloVe('6B')", "vectors = rank_zero_first(torchtext.vocab.GloVe)('6B')"),
        ("field.build_vocab(data, vectors='charngram.100d')",
         "rank_zero_first(field.build_vocab)(data, vectors='charngram.100d')"),
    ],
)  # fmt: skip
def test_rank_zero_goes_first(before: str, after: str) -> None:
    check_transformed(before, after, imports=IMPORTS)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("urlretrieve('http://a/b', 'b')", "rank_zero_only(urlretrieve)('http://a/b', 'b')"),
        ("with tarfile.open('a.tar') as archive:\n    archive.extractall('b')",
         "with tarfile.open('a.tar') as archive:\n    rank_zero_only(archive.extractall)('b')"),
        ("path, _ = urlretrieve('http://a/b', 'b')", "path, _ = rank_zero_first(urlretrieve)('http://a/b', 'b')"),
    ],
)  # fmt: skip
def test_what_would_write_again_happens_once(before: str, after: str) -> None:
    check_transformed(before, after, imports=IMPORTS)


@pytest.mark.parametrize("imports", ["import data", "from data import Digits", "from data import Digits as Own"])
@pytest.mark.parametrize("style", ["exact", "plain"])
def test_a_class_of_another_file_has_the_download_of_its_base(imports: str, style: str) -> None:
    name = {"import data": "data.Digits", "from data import Digits": "Digits"}.get(imports, "Own")
    script = f"""\
import torch
{imports}

digits = {name}("a", download=True)
model = torch.nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for x, y in torch.utils.data.DataLoader(digits, batch_size=8, shuffle=True):
    optimizer.zero_grad()
    torch.nn.functional.mse_loss(model(x), y).backward()
    optimizer.step()
"""
    classes = "from torchvision.datasets import MNIST\n\n\nclass Digits(MNIST):\n    shown = 3\n"
    result = convert({Path("train.py"): script, Path("data.py"): classes}, "cpu", style=style)[Path("train.py")]
    guard = f"rank_zero_first({name})" if style == "exact" else "if dist.get_rank() != 0:\n    dist.barrier()\ndigits"
    assert guard in result.code
    own = f"{classes}\n    def __init__(self, root, download):\n        super().__init__(root, download=download)\n"
    result = convert({Path("train.py"): script, Path("data.py"): own}, "cpu", style=style)[Path("train.py")]
    assert guard not in result.code and not result.reason
