"""Samplers that a script leaves open: `sampler = None`."""

from __future__ import annotations

import ast

import pytest
from ddpify_codemods.facts.unset_sampler import unset_sampler

from tests.codemods.checks import script_of

SCRIPT = """\
from torch.utils.data import DataLoader

def loaders(args):
    train_set = made(args)
    sampler = None
    loader = DataLoader(train_set, batch_size=8, shuffle=(sampler is None), sampler=sampler)
    return loader
"""


def of_script(text: str) -> object:
    script = script_of(text)
    return unset_sampler(script, next(each for each in script.find(ast.Call) if ast.unparse(each.func) == "DataLoader"))


def test_a_sampler_is_left_open() -> None:
    found = of_script(SCRIPT)
    assert found is not None and found.shuffles and ast.unparse(found.dataset) == "train_set"  # type: ignore[attr-defined]
    in_order = of_script(SCRIPT.replace("shuffle=(sampler is None), ", ""))
    assert in_order is not None and not in_order.shuffles  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("    return loader", "    if args.balanced:\n        sampler = weighted(train_set)\n    return loader"),
        ("sampler = None\n", "sampler = args.sampler\n"),
        ("    sampler = None\n", "    if args.plain:\n        sampler = None\n"),
        ("    train_set = made(args)\n    sampler = None\n", "    sampler = None\n    train_set = made(args)\n"),
        ("shuffle=(sampler is None)", "shuffle=args.shuffle"),
        ("shuffle=(sampler is None)", "shuffle=sampler is not None"),
        ("return loader", "return loader, DataLoader(made(args), sampler=sampler)"),
        ("sampler=sampler", "sampler=sampler, **args.more"),
        ("def loaders(args):\n", "def loaders(args):\n    global sampler\n"),
    ],
)
def test_it_is_not_known_to_be_none_or_used_elsewhere(before: str, after: str) -> None:
    assert of_script(SCRIPT.replace(before, after)) is None
