"""Whether a network may have parameters that are frozen from the start, as libraries make some."""

from __future__ import annotations

import ast
import sys
from collections.abc import Sequence

from ..script import Script

# They make no parameters.
WITHOUT_PARAMETERS = frozenset(
    {"numpy", "pandas", "scipy", "sklearn", "matplotlib", "seaborn", "PIL", "cv2", "skimage", "nltk", "seqeval", "yaml"}
    | {"tqdm", "tensorboard", "tensorboardX", "wandb", "torchmetrics", "datasets", "tokenizers"}
    | {"absl", "click", "fire", "omegaconf"}
)
_GIVES_NUMBERS = "pytorch_gan_metrics.get_"
# Of transformers, all of whose parameters are trained unless somebody freezes them.
_TRAINED = ("Albert", "Bert", "DistilBert", "Electra", "GPT2", "Roberta", "SequenceSummary", "XLNet")
_NO_MODEL = ("Tokenizer", "TokenizerFast", "Config", "AdamW", "Adafactor", "FeatureExtractor", "ImageProcessor")
LOADS = frozenset({"torch.load", "torch.jit.load", "torch.hub.load"})


def may_begin_frozen(scripts: Sequence[Script]) -> bool:
    """Whether something in a program may make parameters that are frozen, beside what sets requires_grad."""
    own = {part for script in scripts for part in (*script.path.parts, script.path.stem)}
    return any(_makes_frozen(script, call, own) for script in scripts for call in script.find(ast.Call))


def _makes_frozen(script: Script, call: ast.Call, own: set[str]) -> bool:
    if any(word.arg == "requires_grad" and not _is(word.value, True) for word in call.keywords):
        return True
    name = script.qualified(call.func)
    package, _, rest = name.partition(".")
    last = rest.rpartition(".")[2]
    if name.endswith(("Embedding.from_pretrained", "EmbeddingBag.from_pretrained")):
        return not any(word.arg == "freeze" and _is(word.value, False) for word in call.keywords)
    imported = {each.partition(".")[0] for each in script.imported.values()}
    if package not in imported or package in sys.stdlib_module_names | WITHOUT_PARAMETERS | own:
        return False
    if name.startswith(_GIVES_NUMBERS):
        return False
    if package == "torch":
        return name in LOADS and not is_state(script, call)
    if package == "torchvision":
        return rest.startswith(("models.detection", "models.quantization", "models.get_model"))
    if package == "transformers" and rest:
        made = rest.split(".")[-2 if last in ("from_pretrained", "from_config") else -1]
        return last[:1].isupper() | (made != last) and not made.endswith(_NO_MODEL) and not made.startswith(_TRAINED)
    return True


def is_state(script: Script, call: ast.Call) -> bool:
    """Whether what is loaded is numbers of a network, not one: `state = torch.load(path)`, `state["model"]`."""
    parent = script.parents[call]
    if not isinstance(parent, ast.Assign) or not isinstance(parent.targets[0], ast.Name):
        return not isinstance(parent, ast.Assign | ast.Return)
    name, scope = parent.targets[0].id, script.scope(call)
    uses = (node for node in ast.walk(scope) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load))
    return all(_takes_state(script.parents[node]) for node in uses if node.id == name)


def _takes_state(parent: ast.AST) -> bool:
    if isinstance(parent, ast.Call):
        return isinstance(parent.func, ast.Attribute) and parent.func.attr == "load_state_dict"
    return isinstance(parent, ast.Subscript | ast.Compare)


def _is(node: ast.expr, value: bool) -> bool:
    return isinstance(node, ast.Constant) and node.value is value
