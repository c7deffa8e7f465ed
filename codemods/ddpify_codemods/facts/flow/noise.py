"""Noise in a step: masks of dropout, and what else the layers and transforms of a program draw for their samples."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from ..called_modules import last_name
from ..reach import all_names, inside
from ..script import Script

# Those of torch.distributions.
SAMPLING = frozenset({"sample", "rsample", "sample_n"})
_OF_TRANSFORMERS = re.compile(r"\.(?:Auto|[A-Z][a-zA-Z0-9]*)(?:Model|For[A-Z])")
_OF_TORCHVISION = (
    *("alexnet", "vgg", "squeezenet", "googlenet", "inception", "mobilenet", "mnasnet", "efficientnet", "swin"),
    *("convnext", "maxvit", "fcn", "deeplab"),
)
_DROPS_BEHIND_FEATURES = ("alexnet", "vgg", "squeezenet", "mobilenet")
_LIKE = frozenset(
    {"randn_like", "rand_like", "bernoulli", "bernoulli_", "rsample", "reparameterize", "gumbel_softmax", "RReLU"}
    | {"rrelu", "FractionalMaxPool2d", "FractionalMaxPool3d", "fractional_max_pool2d", "fractional_max_pool3d"}
    | {"StochasticDepth", "stochastic_depth", "DropBlock2d", "DropBlock3d", "drop_block2d", "drop_block3d"}
    | {"FrequencyMasking", "TimeMasking"}
)
_TRANSFORMS = frozenset({"ColorJitter", "AutoAugment", "RandAugment", "TrivialAugmentWide", "AugMix", "GaussianBlur"})
_AUGMENTATIONS = ("albumentations.", "kornia.augmentation.", "audiomentations.", "torch_audiomentations.", "imgaug.")
# Of albumentations: what composes others, and what is always done, and alike, unless it is given a `p`.
_WITHOUT_CHANCE = frozenset(
    {"Compose", "Sequential", "ReplayCompose", "BboxParams", "KeypointParams", "Normalize", "ToTensor", "ToTensorV2"}
    | {"ToFloat", "FromFloat", "Resize", "LongestMaxSize", "SmallestMaxSize", "PadIfNeeded", "CenterCrop", "Crop"}
)
# Transforms that drop parts of pictures, which are no masks of dropout.
_OF_PICTURES = frozenset({"CoarseDropout", "ChannelDropout", "GridDropout", "MaskDropout", "PixelDropout"})
# How arguments are called that say how much is dropped, and where they stand without a name.
_RATES = re.compile(r"dropout|drop_(?:rate|path|prob)|stochastic_depth")
_PLACES = {
    **dict.fromkeys(("torch.nn.RNN", "torch.nn.LSTM", "torch.nn.GRU", "torch.nn.Transformer"), 5),
    **dict.fromkeys(("torch.nn.TransformerEncoderLayer", "torch.nn.TransformerDecoderLayer"), 3),
    "torch.nn.MultiheadAttention": 2,
}
# 0.1 of it, where nothing else is said.
_WITH_DROPOUT = ("torch.nn.Transformer", "torch.nn.TransformerEncoderLayer", "torch.nn.TransformerDecoderLayer")


def has_noise(script: Script, without: frozenset[ast.AST], unused: frozenset[ast.AST]) -> bool:
    """Whether a file draws in a step, for its samples.

    Args: the file; the classes and calls of networks that are only evaluated; those that the program never uses.
    """
    names = {*all_names(script, unused)}
    if names & _LIKE or any("dropout" in name.lower() for name in all_names(script, without | unused)):
        return True
    if comes_with_dropout(script, without | unused):
        return True
    calls = {script.qualified(call.func) for call in script.find(ast.Call)}
    if names & SAMPLING and any(name.startswith("torch.distributions.") for name in calls):
        return True
    if any(name.startswith("kornia.augmentation.") for name in calls):
        return True
    return any(name.startswith("torchvision.transforms") and _is_random(name.rpartition(".")[2]) for name in calls)


def is_random_transform(name: str, made: ast.AST) -> bool:
    """Whether a transform of torchvision, albumentations or the like draws, or one that it is composed of.

    Args: its class; the call that makes it.
    """
    if name.startswith(_AUGMENTATIONS):
        return name.rpartition(".")[2] not in _WITHOUT_CHANCE
    calls = (each for each in ast.walk(made) if isinstance(each, ast.Call))
    return name.startswith("torchvision.transforms.") and any(_is_random(last_name(each.func)) for each in calls)


def _is_random(transform: str) -> bool:
    return transform.startswith("Random") or transform in _TRANSFORMS


def names_dropout(script: Script, without: frozenset[ast.AST]) -> bool:
    """Whether a file names dropout; `without` what does not count."""
    names = (name for name in all_names(script, without) if name not in _OF_PICTURES)
    return any("dropout" in name or "Dropout" in name for name in names)


def comes_with_dropout(script: Script, without: frozenset[ast.AST] = frozenset()) -> bool:
    """Whether a file makes a layer or a model of a library that has dropout; `without` the calls that do not count."""
    calls = (call for call in script.find(ast.Call) if call not in inside(without))
    made = (call for call in calls if makes_dropout(script.qualified(call.func), call))
    return any(not takes_features(script, call) for call in made)


def takes_features(script: Script, call: ast.Call) -> bool:
    """Whether a file takes no more of a model of torchvision than its `features`, which drop nothing."""
    name = script.qualified(call.func)
    if not (name.startswith("torchvision.models.") and name.rpartition(".")[2].startswith(_DROPS_BEHIND_FEATURES)):
        return False
    parent = script.parents[call]
    if not isinstance(parent, ast.Assign) or len(parent.targets) != 1:
        return isinstance(parent, ast.Attribute) and parent.attr == "features"
    target = parent.targets[0]
    known = target.attr if isinstance(target, ast.Attribute) else ast.unparse(target)
    named = (each for each in script.find(type(target)) if isinstance(each, ast.Name | ast.Attribute))
    uses = (each for each in named if known == (each.attr if isinstance(each, ast.Attribute) else each.id))
    owners = [script.parents[each] for each in uses if isinstance(each.ctx, ast.Load)]
    taken = {each.attr if isinstance(each, ast.Attribute) else "" for each in owners}
    return "features" in taken <= {"features", "parameters"}


def makes_dropout(name: str, call: ast.Call) -> bool:
    """Whether a call of a library's function or class, by its full name, drops numbers or makes what does."""
    rates = [*_rates(name, call)]
    always = name in _WITH_DROPOUT or library_has_dropout(name)
    return any(not _is_none(each) for each in rates) or (always and not rates)


def library_has_dropout(name: str) -> bool:
    """Whether what makes a library's model, by its full name, makes one with dropout or stochastic depth, as a rule."""
    if name.startswith(("transformers.", "pytorch_transformers.")):
        return bool(_OF_TRANSFORMERS.search(name)) and "Collator" not in name
    return name.startswith("torchvision.models.") and name.rpartition(".")[2].startswith(_OF_TORCHVISION)


def _rates(name: str, call: ast.Call) -> Iterator[ast.expr]:
    """What a call says of how much is dropped."""
    yield from call.args[_PLACES[name] : _PLACES[name] + 1] if name in _PLACES else ()
    yield from (word.value for word in call.keywords if word.arg and _RATES.search(word.arg))


def _is_none(rate: ast.expr) -> bool:
    return isinstance(rate, ast.Constant) and not rate.value
