"""Samplers that draw each sample once: `SubsetRandomSampler(indices)`, `RandomSampler(data)`."""

from __future__ import annotations

import ast

import pytest
from ddpify_codemods.facts.known_sampler import KnownSampler, draws_each_once, known_sampler

from tests.codemods.checks import script_of

SCRIPT = """\
from torch.utils.data import DataLoader, SubsetRandomSampler

def loaders(args):
    data = made(args)
    sampler = SubsetRandomSampler(args.indices)
    loader = DataLoader(data, batch_size=8, sampler=sampler)
    return loader
"""


def of_script(text: str) -> tuple[KnownSampler | None, bool]:
    script = script_of(text)
    call = next(each for each in script.find(ast.Call) if ast.unparse(each.func) == "DataLoader")
    return known_sampler(script, call), draws_each_once(script, call)


def test_a_sampler_of_indices_has_a_name() -> None:
    found, _ = of_script(SCRIPT)
    assert found is not None and found.assigned is not None
    assert ast.unparse(found.indices) == "args.indices" and found.assigned.id == "sampler"


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("sampler=sampler", "sampler=SubsetRandomSampler(args.indices)"),
        ("    data = made(args)\n    sampler", "    sampler"),
    ],
)
def test_it_is_made_in_the_call_or_its_data_set_is_one_of_the_file(before: str, after: str) -> None:
    text = SCRIPT.replace(before, after)
    found, each_once = of_script(text if "data = " in text else text.replace("def ", "data = made()\n\ndef "))
    assert found is not None and each_once


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("SubsetRandomSampler(args.indices)", "SubsetRandomSampler(args.indices, generator=args.generator)"),
        ("SubsetRandomSampler(args.indices)", "RandomSampler(args.indices)"),
        ("    return loader", "    return loader, sampler"),
        ("    return loader", "    return loader, sampler.indices"),
        ("    return loader", "    return loader, DataLoader(data, sampler=sampler)"),
        ("    return loader", "    sampler = SubsetRandomSampler(args.others)\n    return loader"),
        ("    sampler = ", "    if args.some:\n        sampler = "),
        ("    data = made(args)\n", ""),
        (
            "    data = made(args)\n    sampler = SubsetRandomSampler(args.indices)\n",
            "    sampler = SubsetRandomSampler(args.indices)\n    data = made(args)\n",
        ),
        ("sampler=sampler", "sampler=sampler, **args.more"),
        ("def loaders(args):\n", "def loaders(args):\n    global sampler\n"),
    ],
)
def test_it_draws_otherwise_or_something_else_uses_it(before: str, after: str) -> None:
    assert before in SCRIPT and of_script(SCRIPT.replace(before, after))[0] is None


def test_without_a_sampler_each_sample_is_drawn_once() -> None:
    assert of_script(SCRIPT.replace(", sampler=sampler", ""))[1]
    assert not of_script(SCRIPT.replace("SubsetRandomSampler(args.indices)", "weighted(data)"))[1]


@pytest.mark.parametrize(
    ("options", "is_known"),
    [
        ("dict(num_workers=2)", True),
        ("{'num_workers': 2} if args.gpu else {}", True),
        ("{'drop_last': True, 'collate_fn': args.collate}", True),  # which others look at
        ("dict(shuffle=args.shuffle)", False),
        ("dict(batch_sampler=args.other) if args.gpu else {}", False),
        ("args.options", False),
        ("dict(num_workers=2)\n    change(options)", False),
    ],
)
def test_options_beside_it(options: str, is_known: bool) -> None:
    text = SCRIPT.replace("    loader =", f"    options = {options}\n    loader =")
    found, each_once = of_script(text.replace("sampler=sampler)", "sampler=sampler, **options)"))
    assert (found is not None) is each_once is is_known
    text = text.replace("def loaders(args)", "def loaders(args, **options)").replace(f"    options = {options}\n", "")
    assert of_script(text.replace("sampler=sampler)", "sampler=sampler, **options)")) == (None, False)
