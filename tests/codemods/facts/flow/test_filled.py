"""Tensors that a collate function fills with samples, as long as the longest of them."""

from __future__ import annotations

import ast

import pytest
from ddpify_codemods.facts.flow.collate import collated
from ddpify_codemods.facts.flow.padding import Padded
from ddpify_codemods.facts.flow.values import Function

from tests.codemods.checks import script_of
from tests.codemods.facts.flow.followed import COLLATE_HEAD

FILLS = """\
PAD = 7
def c(batch, min_len=5):
    texts, labels = zip(*batch)
    lengths = [len(t) for t in texts]
    longest = max(lengths)
    padded = torch.zeros(len(texts), longest).long()
    for i, t in enumerate(texts):
        padded[i, :len(t)] = t
    return padded, torch.stack(labels)
"""


def made(source: str) -> object:
    """What the function makes of its texts; None where that is not seen."""
    script = script_of(COLLATE_HEAD + source)
    function = next(node for node in script.find(ast.FunctionDef) if node.name == "c")
    part = collated(Function(function, script))
    return part[0] if isinstance(part, tuple) else None


@pytest.mark.parametrize(
    ("before", "after", "value"),
    [
        ("", "", "0"),
        ("torch.zeros(len(texts), longest).long()", "torch.full((len(texts), max(lengths)), PAD)", "PAD"),
        (
            "torch.zeros(len(texts), longest).long()",
            "torch.zeros([len(texts), longest], dtype=torch.long).fill_(PAD)",
            "PAD",
        ),
        ("max(lengths)", "max(max(len(t) for t in texts), min_len)", "0"),
        ("padded[i, :len(t)] = t\n", "end = lengths[i]\n        padded[i][:end] = t[:end]\n", "0"),
        ("padded[i, :len(t)] = t\n", "padded[i, :lengths[i]] = torch.LongTensor(t)\n", "0"),
        ("padded[i, :len(t)] = t\n", "padded[i, :lengths[i]] = t[:lengths[i]]\n", "0"),
        ("len(t) for t", "t.shape[0] for t", "0"),
        ("torch.zeros(len(texts), longest)", "torch.zeros(len(batch), longest, texts[0].shape[1])", "0"),
        ("i, t in enumerate(texts):\n", "i in range(len(texts)):\n        t = texts[i]\n", "0"),
        (
            "i, t in enumerate(texts):\n        padded[i, :len(t)] = t\n",
            "i in range(len(batch)):\n        end = lengths[i]\n        padded[i, :end] = texts[i][:end]\n",
            "0",
        ),
    ],
)
def test_samples_that_are_padded_in_a_loop(before: str, after: str, value: str) -> None:
    assert before in FILLS
    assert made(FILLS.replace(before, after) if before else FILLS) == Padded(1, value)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("padded[i, :len(t)] = t\n", "padded[i, longest - len(t):] = t\n"),
        ("padded[i, :len(t)] = t\n", "padded[i, :len(t)] = t.flip(0)\n"),
        ("padded[i, :len(t)] = t\n", "padded[i, :3] = t[:3]\n"),
        ("padded[i, :len(t)] = t\n", "padded[i, :lengths[i]] = t[:lengths[0]]\n"),
        ("padded[i, :len(t)] = t\n", "padded[i, :len(t)] = t\n        padded[0, 0] = 1\n"),
        ("padded[i, :len(t)] = t\n", "padded[i, :len(t)] = texts[0]\n"),
        ("max(lengths)", "min(max(lengths), 9)"),
        ("i, t in enumerate(texts):\n", "i in range(len(texts) - 1):\n        t = texts[i]\n"),
        ("i, t in enumerate(texts):\n", "i in range(longest):\n        t = texts[i]\n"),
        ("i, t in enumerate(texts):\n", "i in range(len(texts)):\n        t = texts[0]\n"),
        ("i, t in enumerate(texts):\n", "i in range(len(texts)):\n        t = labels[i]\n"),
        ("i, t in enumerate(texts):\n", "i in range(len(texts)):\n        t = texts[i]\n        i = lengths[i]\n"),
        ("torch.zeros(len(texts), longest)", "torch.zeros(len(texts), longest, texts[0].shape[0])"),
        ("torch.zeros(len(texts), longest)", "torch.zeros(len(texts), longest, texts[0].size(-1))"),
        ("torch.zeros(len(texts), longest)", "torch.zeros(longest, len(texts))"),
        ("torch.zeros(len(texts), longest)", "torch.zeros(len(texts), longest, len(batch))"),
        ("torch.zeros(len(texts), longest)", "torch.zeros(len(texts) + 1, longest)"),
        ("max(lengths)", "lengths[0]"),
        ("for t in texts]", "for t in labels]"),
        ("return padded,", "padded[padded == 0] = 1\n    return padded,"),
        ("return padded,", "return padded[:, :longest // 2],"),
    ],
)
def test_what_is_padded_otherwise(before: str, after: str) -> None:
    assert before in FILLS
    assert made(FILLS.replace(before, after)) is None


def test_what_has_no_size_of_its_own_in_a_tensor_as_wide_as_the_first_sample() -> None:
    wide = FILLS.replace("longest).long()", "longest, texts[0].shape[1])")
    assert made(wide.replace("= t\n", "= 1\n")) is None and made(wide) == Padded(1, "0")
