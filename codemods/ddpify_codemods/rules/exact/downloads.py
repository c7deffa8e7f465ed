"""DDP107: downloads happen once; the other processes find what rank 0 has fetched."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from ...facts.called_modules import last_name
from ...facts.effects import FETCHERS, fetches, sample_code, under_rank_guard, unpacks
from ...facts.partials import partial_of
from ...facts.script import Script
from ...rule import Edit, Finding, Replace, Rule
from ...targets import Target

# They look whether it is there already.
_CACHED = {
    *("torch.hub.load", "torch.hub.load_state_dict_from_url", "torch.utils.model_zoo.load_url", "nltk.download"),
    *("torchvision.datasets.utils.download_url", "torchvision.datasets.utils.download_and_extract_archive"),
    *("gdown.download", "wget.download", "kagglehub.dataset_download"),
}
_WEIGHTS = {"pretrained", "weights"}
# Of torchvision's models: what they are built of. Private builders, as `_resnet`, get weights and do download.
_BUILD = {
    *("conv1x1", "conv3x3", "make_layers", "channel_shuffle", "handle_legacy_interface", "kwonly_to_pos_or_kw"),
    *("_make_divisible", "_ovewrite_named_param", "_ovewrite_value_param", "_efficientnet_conf", "_mobilenet_v3_conf"),
    *("register_model", "list_models", "get_weight", "get_model_weights", "get_model_builder"),
    *("create_feature_extractor", "get_graph_node_names"),
}
# Data sets and vectors of words, which are fetched and unpacked where they are not there; not those of own files.
_TEXTS = re.compile(
    r"torchtext\.((legacy|experimental)\.)?"
    r"(datasets\.(\w+\.)?(?!\w+Dataset\b)[A-Z]\w*(\.splits|\.iters)?|vocab\.(\w+\.)?(GloVe|FastText|CharNGram))"
)
# With `download` behind four others; what reads folders, or makes its samples up, has none.
_DATA_SETS = re.compile(r"(torchvision|torchaudio)\.datasets\.(?!ImageFolder|DatasetFolder|FakeData)[A-Z]\w*")
_LIBRARIES = {"torchvision", "torchaudio", "torchtext", "torch_geometric", "medmnist"}


def check(script: Script, target: Target) -> Iterator[Edit | Finding]:
    """Wrap what downloads."""
    per_sample = sample_code(script)
    for call in script.find(ast.Call):
        partial = partial_of(script, call)
        called, given = (call.func, call.args) if partial is None else (partial, call.args[1:])
        name = script.qualified(called)
        again = name in FETCHERS or unpacks(script, called)
        first = name in _CACHED or _fetches_weights(name, given, call.keywords) or _may_download(script, called, call)
        first |= _TEXTS.fullmatch(name) is not None or _fetches_vectors(script, called, call)
        if not (again or first) or fetches(script, call) or call in per_sample or under_rank_guard(script, call):
            continue
        what = name or ast.unparse(called)
        yield Replace(called, "rank_zero_first({})", f"call {what} on rank 0 first", ("rank_zero_first",))


def _fetches_weights(name: str, given: list[ast.expr], keywords: list[ast.keyword]) -> bool:
    if not name.startswith("torchvision.models.") and name != "timm.create_model":
        return False
    last = name.rpartition(".")[2]
    if last in _BUILD or last[:1].isupper():  # a class has its weights drawn, or gets them afterwards
        return False
    positional = bool(given) and name != "timm.create_model"
    return positional or any(keyword.arg in _WEIGHTS and not _is_off(keyword.value) for keyword in keywords)


def _fetches_vectors(script: Script, called: ast.expr, call: ast.Call) -> bool:
    """Whether a vocabulary of torchtext gets vectors by their name: `field.build_vocab(data, vectors="glove.6B")`."""
    named = any(
        word.arg == "vectors" and isinstance(word.value, ast.Constant) and word.value.value for word in call.keywords
    )
    builds = isinstance(called, ast.Attribute) and called.attr == "build_vocab"
    return builds and named and any(each.split(".")[0] == "torchtext" for each in script.imported.values())


def _may_download(script: Script, called: ast.expr, call: ast.Call) -> bool:
    downloads = any(keyword.arg == "download" and not _is_off(keyword.value) for keyword in call.keywords)
    return (downloads or _may_be_told(script, called, call)) and not _is_own(script, called)


def _may_be_told(script: Script, called: ast.expr, call: ast.Call) -> bool:
    """Whether a data set may be told to download by its place, `super().__init__(root, True, None, None, download)`, or
    by a dict, `CIFAR10(**settings)`."""
    known = _DATA_SETS.fullmatch(script.qualified(called)) is not None
    if not known and not (isinstance(called, ast.Attribute) and called.attr == "__init__"):
        return False
    in_dict = any(word.arg is None for word in call.keywords) and all(word.arg != "download" for word in call.keywords)
    is_on = any(isinstance(each, ast.Constant) and each.value is True for each in call.args[4:])
    return "download" in map(last_name, call.args) or (known and (in_dict or is_on))


def _is_own(script: Script, func: ast.expr) -> bool:
    """Whether the program defines it, so that the download stands in its body; a class without an __init__ has none."""
    package, _, name = script.qualified(func).rpartition(".")
    return name in script.defined - script.inheriting and package.split(".")[0] not in _LIBRARIES


def _is_off(value: ast.expr) -> bool:
    return isinstance(value, ast.Constant) and not value.value


RULE = Rule(
    id="DDP107",
    title="Download once",
    why="""Processes that download the same file at the same time write over each other, and unpack archives that
are only half there (I4). Rank 0 goes first; the others then find the file. What would fetch or unpack a second time
happens on rank 0 only.""",
    before="""\
import torch
from torchvision import datasets, transforms

train_set = datasets.MNIST("data", train=True, download=True, transform=transforms.ToTensor())
images = train_set.data.float().view(-1, 784)
model = torch.nn.Linear(784, 10)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for x, y in zip(images.split(100), train_set.targets.split(100)):
    optimizer.zero_grad()
    torch.nn.functional.cross_entropy(model(x), y).backward()
    optimizer.step()
""",
    after="""\
import torch
from ddpify_runtime import (
    DistributedDataParallel,
    destroy_process_group,
    init_process_group,
    rank_zero_first,
)
from torchvision import datasets, transforms

init_process_group("gloo")

train_set = rank_zero_first(datasets.MNIST)("data", train=True, download=True, transform=transforms.ToTensor())
images = train_set.data.float().view(-1, 784)
model = torch.nn.Linear(784, 10)
model = DistributedDataParallel(model)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for x, y in zip(images.split(100), train_set.targets.split(100)):
    optimizer.zero_grad()
    torch.nn.functional.cross_entropy(model(x), y).backward()
    optimizer.step()

destroy_process_group()
""",
    check=check,
    target="cpu",
)
