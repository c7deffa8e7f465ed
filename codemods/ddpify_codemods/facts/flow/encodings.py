"""What the tokenizers and image processors of transformers make of a list of samples: tensors with a row for each."""

from __future__ import annotations

import ast
from collections.abc import Iterable

from ..script import Script

NAMES = frozenset({"input_ids", "attention_mask", "token_type_ids", "pixel_values", "input_values", "input_features"})
TOKENS = frozenset({"input_ids", "token_type_ids", "input_values"})


def is_encoding(script: Script, call: ast.Call) -> bool:
    """Whether a call is one of a tokenizer or a processor, `tokenizer(texts, padding=True, return_tensors="pt")`, whose
    result is the same for a sample whichever others there are: what pads to the longest gives attention masks, too.

    Whoever takes tokens out of it and no mask lets the model see how much was padded.
    """
    return _encodes(script, call) and (not _pads_to_longest(call) or keeps_masks(ast.walk(script.scope(call))))


def pads_to_longest(script: Script, function: ast.AST) -> bool:
    """Whether a function pads by a tokenizer or a processor, so far as the longest of its samples."""
    calls = (node for node in ast.walk(function) if isinstance(node, ast.Call))
    return any(_encodes(script, call) and _pads_to_longest(call) for call in calls)


def _encodes(script: Script, call: ast.Call) -> bool:
    returns = next((word.value for word in call.keywords if word.arg == "return_tensors"), None)
    return isinstance(returns, ast.Constant) and returns.value == "pt" and "transformers" in script.text


def _pads_to_longest(call: ast.Call) -> bool:
    padding = next((word.value for word in call.keywords if word.arg == "padding"), None)
    return padding is not None and not (isinstance(padding, ast.Constant) and padding.value in (False, "max_length"))


def keeps_masks(nodes: Iterable[ast.AST], names: frozenset[str] = NAMES) -> bool:
    """Whether code that takes something out of an encoding by its name, `batch["input_ids"]`, takes the mask, too."""
    nodes = list(nodes)
    made = {id(key) for node in nodes if isinstance(node, ast.Dict) for key in node.keys}
    named: set[object] = set()
    taken: set[object] = set()
    for node in nodes:
        name = node.value if isinstance(node, ast.Constant) else node.attr if isinstance(node, ast.Attribute) else None
        named.add(name)
        if id(node) not in made:
            taken.add(name)
    return "attention_mask" in named or not taken & names
