"""Whether models keep statistics of their batches: they have layers of BatchNorm, or come from a library."""

from __future__ import annotations

import ast
import re
from collections.abc import Sequence
from functools import lru_cache

from .reach import all_names, inside, reached_names
from .script import Script

# What they make is not known.
_OF_ANY_NAME = frozenset({"importlib.import_module", "hydra.utils.instantiate"})
# Their models have BatchNorm, but for those of these names.
LIBRARIES = (
    "torchvision.models",
    "timm.create_model",
    "timm.models",
    "torch.hub.load",
    "segmentation_models_pytorch",
    "efficientnet_pytorch",
    "pretrainedmodels",
)
_HELPERS = re.compile(r"_Weights\b|\.(losses|metrics|utils|encoders)\.")
_WITHOUT = re.compile(r"(vit|deit|beit|swin|convnext|mixer|alexnet|squeezenet|vgg\d+$)")


def normalizes(scripts: Sequence[Script], without: frozenset[ast.AST] = frozenset()) -> bool:
    """Whether a model of a program has BatchNorm, as far as its files show.

    Args: its scripts, the one that is started first; what those that it imports never use counts for nothing. The
    classes and calls that do not count either.
    """
    return _normalizes(tuple(scripts), without)


@lru_cache(maxsize=8)  # asked for each file of a program
def _normalizes(scripts: tuple[Script, ...], without: frozenset[ast.AST]) -> bool:
    names = reached_names(scripts, without)
    if names is None:
        names = frozenset(name for script in scripts for name in all_names(script, without))
    return any("BatchNorm" in name or name == "batch_norm" for name in names) or any(
        _comes_with_it(script, without) for script in scripts
    )


def _comes_with_it(script: Script, without: frozenset[ast.AST]) -> bool:
    """Whether a file takes a model from a library: `models.resnet18()`, `models.__dict__[name]`."""
    for node in script.nodes:
        if node in inside(without):
            continue
        if not isinstance(node, ast.Name | ast.Attribute) or isinstance(script.parents[node], ast.Attribute):
            continue
        name = script.qualified(node)
        if name in _OF_ANY_NAME:
            return True
        if not name.startswith(LIBRARIES):
            continue
        last, call = name.rpartition(".")[2], script.parents[node]
        if last in ("create_model", "load") and isinstance(call, ast.Call):
            named = [each.value for each in call.args if isinstance(each, ast.Constant) and isinstance(each.value, str)]
            last = named[-1] if named else last
        if not _HELPERS.search(name) and not _WITHOUT.match(last):
            return True
    return False
