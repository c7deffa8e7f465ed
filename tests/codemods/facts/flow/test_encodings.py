"""What tokenizers and image processors of transformers make of a batch's samples."""

from __future__ import annotations

import ast

import pytest
from ddpify_codemods.facts.flow.collate import stacks
from ddpify_codemods.facts.flow.encodings import is_encoding
from ddpify_codemods.facts.flow.values import Function

from tests.codemods.checks import script_of

HEAD = "import torch\nfrom transformers import AutoTokenizer\ntokenizer = AutoTokenizer.from_pretrained('x')\n"
TEXTS = "def collate(batch):\n    texts, labels = zip(*batch)\n"


@pytest.mark.parametrize(
    ("lines", "stacked"),
    [
        ("    return tokenizer(list(texts), padding=True, return_tensors='pt'), torch.tensor(labels)\n", True),
        (
            "    found = tokenizer(list(texts), padding=True, return_tensors='pt')\n"
            "    found['labels'] = torch.tensor(labels)\n    return found\n",
            True,
        ),
        (
            "    found = tokenizer(list(texts), padding='longest', return_tensors='pt')\n"
            "    return found['input_ids'], found['attention_mask'], torch.tensor(labels)\n",
            True,
        ),
        (
            "    return tokenizer(list(texts), padding=True, return_tensors='pt').input_ids, torch.tensor(labels)\n",
            False,
        ),
        (
            "    return tokenizer(texts, padding='max_length', return_tensors='pt').input_ids, torch.tensor(labels)\n",
            True,
        ),
        ("    return tokenizer(list(texts), padding=True, return_tensors='np'), labels\n", False),
        ("    return tokenizer(max(texts), return_tensors='pt').pixel_values, labels\n", False),
    ],
)
def test_what_is_padded_comes_with_masks(lines: str, stacked: bool) -> None:
    script = script_of(HEAD + TEXTS + lines)
    function = script.tree.body[-1]
    assert isinstance(function, ast.FunctionDef)
    assert stacks(Function(function, script)) is stacked


def test_a_function_of_another_library_is_none() -> None:
    script = script_of("def collate(batch):\n    return encode(batch, return_tensors='pt')\n")
    (call,) = script.find(ast.Call)
    assert not is_encoding(script, call)
