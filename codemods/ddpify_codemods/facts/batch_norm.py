"""Whether models keep statistics of their batches: they have layers of BatchNorm, or come from a library."""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterator, Sequence
from functools import lru_cache

from .flow.born_frozen import LOADS, WITHOUT_PARAMETERS, is_state
from .reach import all_names, inside, reached_names
from .script import Script

# What they make is not known.
_OF_ANY_NAME = frozenset({"importlib.import_module", "hydra.utils.instantiate"})
# What a program takes from others may be a network.
_KNOWN = sys.stdlib_module_names | WITHOUT_PARAMETERS | {"torch", "torchvision", "timm", "einops", "h5py", "imageio"}
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
_HELPERS = re.compile(
    r"_Weights\b|\.(losses|metrics|utils|encoders|registry|helpers)\."
    r"|\.layers\.(\w+\.)*(trunc_normal_|lecun_normal_|DropPath|drop_path|to_\dtuple|Mlp|PatchEmbed|LayerNorm\w*)$"
)
_WITHOUT = re.compile(
    r"(vit|vision_transformer$|VisionTransformer$|deit|beit|swin|convnext|mixer|alexnet|squeezenet|vgg\d+$)"
)


def normalizes(scripts: Sequence[Script], without: frozenset[ast.AST] = frozenset()) -> bool:
    """Whether a model of a program has BatchNorm, as far as its files show.

    Args: its scripts, the one that is started first; what those that it imports never use counts for nothing. The
    classes and calls that do not count either.
    """
    return _normalizes(tuple(scripts), without)


@lru_cache(maxsize=8)  # asked for each file of a program
def _normalizes(scripts: tuple[Script, ...], without: frozenset[ast.AST]) -> bool:
    asked = frozenset() if _may_get_others(scripts) else frozenset(e for script in scripts for e in asked_for(script))
    not_made = without | asked
    names = reached_names(scripts, not_made)
    if names is None:
        names = frozenset(name for script in scripts for name in all_names(script, not_made))
    return any("BatchNorm" in name or name == "batch_norm" for name in names) or any(
        _comes_with_it(script, without) for script in scripts
    )


def _may_get_others(scripts: Sequence[Script]) -> bool:
    """Whether models may come from somewhere else than the files of a program and libraries that are known: what is
    asked for, `isinstance(part, nn.BatchNorm2d)`, tells then that they have it."""
    own = {part for script in scripts for part in (script.path.stem, *script.path.parts)}
    for script in scripts:
        for node in script.imports:
            named = [alias.name for alias in node.names]
            modules = named if isinstance(node, ast.Import) else [] if node.level else [node.module or ""]
            if any(each.partition(".")[0] not in _KNOWN | own for each in modules):
                return True
    calls = ((script, call) for script in scripts for call in script.find(ast.Call))
    return any(script.qualified(call.func) in LOADS and not is_state(script, call) for script, call in calls)


def asked_for(script: Script) -> Iterator[ast.expr]:
    """The classes that something is asked for, which makes none: `isinstance(part, nn.BatchNorm2d)`."""
    for call in script.find(ast.Call):
        if len(call.args) == 2 and script.qualified(call.func) in ("isinstance", "issubclass"):
            yield call.args[1]
    for compare in script.find(ast.Compare):
        sides = [compare.left, *compare.comparators]
        if any(_is_class_of(script, each) for each in sides):
            yield from (each for each in sides if not _is_class_of(script, each))


def _is_class_of(script: Script, node: ast.expr) -> bool:
    """`type(part)`, `part.__class__`."""
    called = script.qualified(node.func) if isinstance(node, ast.Call) else ""
    return called == "type" or (isinstance(node, ast.Attribute) and node.attr == "__class__")


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
        if name == "eval" and any(_has_it(each) for each in script.imported.values()):
            return True
        last, call = name.rpartition(".")[2], script.parents[node]
        if last in ("create_model", "load") and isinstance(call, ast.Call):
            named = [each.value for each in call.args if isinstance(each, ast.Constant) and isinstance(each.value, str)]
            last = named[-1] if named else last
        if _has_it(name, last):
            return True
    return False


def _has_it(name: str, last: str = "") -> bool:
    """Whether a name is that of a library's model with BatchNorm; last: the one that its function is given, if any."""
    parts = (last or name.rpartition(".")[2], *name.split(".")[2:])
    return name.startswith(LIBRARIES) and not _HELPERS.search(name) and not any(map(_WITHOUT.match, parts))
