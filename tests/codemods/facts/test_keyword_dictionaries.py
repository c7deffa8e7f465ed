"""Keyword arguments from a dictionary that the file writes down."""

from __future__ import annotations

import pytest
from ddpify_codemods.facts.keyword_dictionaries import keyword_dictionary, may_say, said

from tests.codemods.checks import node_of, script_of

CALL = "DataLoader(data, **options)"
GPU = "torch.cuda.is_available()"


@pytest.mark.parametrize(
    ("made", "keys"),
    [
        ("options = dict(batch_size=8, pin_memory=True)", ["batch_size", "pin_memory"]),
        ("options = {'batch_size': 8}\nother = DataLoader(rest, **options)", ["batch_size"]),
        ("options = {'batch_size': 8}\nif workers:\n    options['prefetch_factor'] = 2", ["batch_size"]),
        ("options = {'batch_size': 8, **more}", []),
        ("options = {'batch_size': 8}\noptions['shuffle'] = True", []),
        ("options = {'batch_size': 8}\nchange(options)", []),
        ("options = {'batch_size': 8}\nif small:\n    options = {'batch_size': 4}", []),
        ("options = {'batch_size': 8}\noptions |= more", []),
        ("options = dict(more, batch_size=8)", []),
        ("from config import options", []),
        (f"options = {{'batch_size': 8}} if {GPU} else {{}}", ["batch_size"]),
        (f"options = dict() if not {GPU} else {{'batch_size': 8}}", ["batch_size"]),
        (
            f"options = {{'pin_memory': True}} if {GPU} else {{}}",
            [],
        ),  # the call may say a size
        (f"options = {{'batch_size': 8}} if {GPU} else {{'shuffle': True}}", []),
        (f"options = {{'batch_size': 8}} if {GPU} and large else {{}}", []),
        (f"options = {{}} if {GPU} else {{'batch_size': 8}}", []),
        ("options = {'batch_size': 8} if large else {}", []),
        ("options = {'batch_size': 8, 'timeout': 9} if large else {'batch_size': 4}", ["batch_size", "timeout"]),
        ("options = {'batch_size': 8} if large else {'batch_size': size}", []),
        ("options = {'batch_size': len(data)} if large else {'batch_size': 8}", []),
        ("options = {'batch_size': 8} if large else None", []),
        ("options = {'batch_size': 8} if large else {'batch_size': 1}", []),
        ("options = {'batch_size': 8} if large else {'batch_size': 4, 'shuffle': True}", []),
        ("options = {'batch_size': 8, 'shuffle': a} if large else {'batch_size': 4, 'shuffle': b}", []),
        ("options = {'batch_size': 8} if large else {'batch_size': 4, 'collate_fn': padded}", []),
        ("options = {'batch_size': 8} if large else {'batch_size': 4} if small else {'batch_size': 2}", []),
    ],
)
def test_the_entries_of_a_dictionary_that_is_only_handed_over(made: str, keys: list[str]) -> None:
    script = script_of(f"{made}\nloader = {CALL}")
    assert [*said(script, node_of(script, CALL))] == keys


def test_the_calls_that_share_it() -> None:
    script = script_of(f"options = dict(batch_size=8)\nloader = {CALL}\nother = DataLoader(rest, **options)")
    shared = keyword_dictionary(script, node_of(script, CALL))
    assert shared is not None and [each.lineno for each in shared.calls] == [2, 3]


@pytest.mark.parametrize(
    ("lines", "may"),
    [
        ("options = {'drop_last': True}", True),
        ("options = {}\nother = DataLoader(rest, drop_last=True)", False),
        ("options = {'drop_last': True} if small else {}", True),
        ("options = {}\noptions['drop_last'] = True", True),
        ("options = {}\noptions['num_workers'] = 2", False),
        ("options = read()\nother = DataLoader(rest, drop_last=True)", False),
    ],
)
def test_what_a_dictionary_may_say(lines: str, may: bool) -> None:
    script = script_of(f"{lines}\nloader = {CALL}")
    assert may_say(script, node_of(script, CALL), "drop_last") is may
