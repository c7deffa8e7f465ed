"""Samples behind which a collate function puts as much as each is shorter than the longest."""

from __future__ import annotations

import ast

import pytest
from ddpify_codemods.facts.flow.collate import collated, is_apart
from ddpify_codemods.facts.flow.collate_parts import Part
from ddpify_codemods.facts.flow.padding import Padded
from ddpify_codemods.facts.flow.values import Function

from tests.codemods.checks import script_of
from tests.codemods.facts.flow.followed import COLLATE_HEAD

HEAD = f"{COLLATE_HEAD}PAD = 7\ndef behind(x, n, value=0):\n    return x + [value] * (n - len(x))\n"
LONGEST = "n = max(len(b[0]) for b in batch)\n"
SORT = "batch = sorted(batch, key=lambda b: len(b[0]), reverse=True)\n"
IN_TURN = f"{LONGEST}xs = []\nfor x, y in batch:\n"
ROWS = "return torch.tensor([b[0] + [PAD] * (n - len(b[0])) for b in batch])"


def made(lines: str) -> Part | None:
    """What a collate function makes of its samples, if that has each by itself."""
    body = "\n".join(f"    {line}" for line in lines.splitlines())
    script = script_of(f"{HEAD}def c(batch):\n{body}\n")
    functions = [node for node in script.find(ast.FunctionDef) if node.name == "c"]
    part = collated(Function(functions[0], script))
    return part if part is not None and is_apart(part) else None


@pytest.mark.parametrize(
    ("lines", "padded"),
    [
        (LONGEST + ROWS, Padded(1, "PAD")),
        (f"n = max([len(x) for x, y in batch])\n{ROWS}", Padded(1, "PAD")),
        (f"n = max(map(len, [b[0] for b in batch]))\n{ROWS}", Padded(1, "PAD")),
        (f"n = min(max(len(b[0]) for b in batch) + 2, 512)\n{ROWS}", Padded(1, "PAD")),
        (f"n = int(torch.tensor([len(b[0]) for b in batch]).max())\n{ROWS}", Padded(1, "PAD")),
        (
            f"batch = sorted(batch, key=lambda b: len(b[0]), reverse=True)\nn = len(batch[0][0])\n{ROWS}",
            Padded(1, "PAD"),
        ),
        (f"batch.sort(key=lambda b: len(b[0]), reverse=True)\nn = len(batch[0][0])\n{ROWS}", Padded(1, "PAD")),
        (f"{LONGEST}return torch.LongTensor([behind(x, n, PAD) for x, y in batch])", Padded(1, "PAD")),
        (f"{LONGEST}return np.array([[1] * len(b[0]) + [0] * (n - len(b[0])) for b in batch])", Padded(1, "0")),
        (
            f"{LONGEST}xs = []\nfor i, (x, y) in enumerate(batch):\n    more = n - len(x)\n"
            "    xs.append(torch.tensor(x + [-100] * more))\nreturn torch.stack(xs)",
            Padded(1, "-100"),
        ),
        (
            "n = max(b[0].size(0) for b in batch)\n"
            "return torch.stack([F.pad(b[0], (0, n - b[0].size(0)), value=PAD) for b in batch])",
            Padded(1, "PAD"),
        ),
        (
            "n = max(x.shape[1] for x, _ in batch)\n"
            "return torch.stack([F.pad(x, (0, n - x.shape[1])) for x, _ in batch])",
            Padded(2, "0"),
        ),
        (
            "n = max(x.shape[0] for x, _ in batch)\nxs = []\nfor x, _ in batch:\n    more = n - x.shape[0]\n"
            "    xs.append(F.pad(x, (0, 0, 0, more), 'constant', PAD))\nreturn torch.stack(xs)",
            Padded(1, "PAD"),
        ),
        (
            f"{LONGEST}return torch.stack([torch.cat([b[0], torch.zeros(n - len(b[0]), 3)]) for b in batch])",
            Padded(1, "0"),
        ),
        (
            f"{LONGEST}return torch.stack([torch.cat((b[0], torch.full((n - len(b[0]),), PAD))) for b in batch])",
            Padded(1, "PAD"),
        ),
        (
            f"{LONGEST}xs = [np.pad(b[0], (0, n - len(b[0])), constant_values=PAD) for b in batch]\n"
            "return torch.from_numpy(np.stack(xs)).long()",
            Padded(1, "PAD"),
        ),
        (
            f"{LONGEST}return torch.tensor([np.pad(b[0], ((0, n - len(b[0])), (0, 0))) for b in batch])",
            Padded(1, "0"),
        ),
    ],
)
def test_samples_that_are_made_as_long_as_the_longest(lines: str, padded: Padded) -> None:
    assert made(lines) == padded


def test_a_dictionary_of_them() -> None:
    part = made(
        f"{LONGEST}return dict(x=torch.tensor([behind(b[0], n) for b in batch]), y=torch.tensor([b[1] for b in batch]))"
    )
    assert part == (Padded(1, "0"), "stacked")


@pytest.mark.parametrize(
    "lines",
    [
        f"{LONGEST}return torch.tensor([[PAD] * (n - len(b[0])) + b[0] for b in batch])",
        f"{LONGEST}return torch.tensor([b[0] + [PAD] * (n - len(b[0])) + [1] for b in batch])",
        f"{LONGEST}return torch.tensor([b[0] + [n] * (n - len(b[0])) for b in batch])",
        f"{LONGEST}return torch.tensor([b[0] + [b[1]] * (n - len(b[0])) for b in batch])",
        f"{LONGEST}return torch.tensor([b[0][: n // 2] + [PAD] * (n - len(b[0])) for b in batch])",
        f"{LONGEST}return torch.tensor([b[0] + [[0, 0]] * (n - len(b[0])) for b in batch])",
        f"{LONGEST}return [b[0] + [PAD] * (n - len(b[0])) for b in batch]",
        f"{LONGEST}{ROWS}, n",
        f"{LONGEST}{ROWS}[:, : n - 1]",
        f"{LONGEST}{ROWS} / n",
        f"n = len(batch[0][0])\n{ROWS}",
        f"batch.sort(key=lambda b: len(b[0]))\nn = len(batch[0][0])\n{ROWS}",
        f"n = sum(len(b[0]) for b in batch) // len(batch)\n{ROWS}",
        f"n = int(np.percentile([len(b[0]) for b in batch], 99))\n{ROWS}",
        f"{IN_TURN}    if y:\n        x = x + [PAD] * (n - len(x))\n    xs.append(x)\nreturn torch.tensor(xs)",
        f"{IN_TURN}    x += [PAD] * (n - len(x))\n    xs.append(x)\nreturn torch.tensor(xs)",
        f"{LONGEST}return torch.stack([F.pad(b[0], (1, n - len(b[0]))) for b in batch])",
        f"{LONGEST}return torch.stack([F.pad(b[0], (0, n - len(b[0])), mode='replicate') for b in batch])",
        "return torch.tensor([x + i for i, (x, y) in enumerate(batch)])",
    ],
)
def test_what_is_padded_otherwise_is_not_known(lines: str) -> None:
    assert made(lines) is None


@pytest.mark.parametrize(
    "lines",
    [
        "n = max(len(b[1]) for b in batch)\nreturn torch.stack([F.pad(b[0], (0, n - len(b[0]))) for b in batch])",
        "n = max(len(b[0]) for b in batch)\nreturn torch.stack([F.pad(b[0], (0, n - len(b[1]))) for b in batch])",
        "n = max(len(b[0]) for b in batch) - 1\nreturn torch.stack([F.pad(b[0], (0, n - len(b[0]))) for b in batch])",
        "xs = [b[0] for b in batch]\nn = max(len(b[1]) for b in batch)\n"
        "return torch.stack([F.pad(x, (0, n - len(x))) for x in xs])",
    ],
)
def test_what_may_cut_samples_by_the_longest_of_a_rank_is_not_known(lines: str) -> None:
    """`F.pad(x, (0, -2))` leaves out the last two."""
    assert made(lines) is None
