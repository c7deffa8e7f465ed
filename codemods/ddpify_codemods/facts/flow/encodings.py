"""What the tokenizers and image processors of transformers make of a list of samples: tensors with a row for each."""

from __future__ import annotations

import ast
from collections.abc import Iterable

from ..script import Script

NAMES = frozenset({"input_ids", "attention_mask", "token_type_ids", "pixel_values", "input_values", "input_features"})


def is_encoding(script: Script, call: ast.Call) -> bool:
    """Whether a call is one of a tokenizer or a processor, `tokenizer(texts, padding=True, return_tensors="pt")`, whose
    result is the same for a sample whichever others there are: what pads to the longest gives attention masks, too.

    Whoever takes tokens out of it and no mask lets the model see how much was padded.
    """
    words = {word.arg: word.value for word in call.keywords}
    returns = words.get("return_tensors")
    if not (isinstance(returns, ast.Constant) and returns.value == "pt") or "transformers" not in script.text:
        return False
    padding = words.get("padding")
    if padding is None or (isinstance(padding, ast.Constant) and padding.value in (False, "max_length")):
        return True
    return keeps_masks(ast.walk(script.scope(call)))


def keeps_masks(nodes: Iterable[ast.AST]) -> bool:
    """Whether code that takes something out of an encoding by its name, `batch["input_ids"]`, takes the mask, too."""
    named: set[object] = set()
    for node in nodes:
        if isinstance(node, ast.Constant):
            named.add(node.value)
        elif isinstance(node, ast.Attribute):
            named.add(node.attr)
    return "attention_mask" in named or not named & NAMES
