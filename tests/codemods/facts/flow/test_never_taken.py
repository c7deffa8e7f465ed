"""A branch is never taken where all calls of its function write out what it asks for; other ways to call it may be."""

from __future__ import annotations

import ast

import pytest
from ddpify_codemods.facts.flow.never_taken import never_taken
from ddpify_codemods.styles import in_program

from tests.codemods.checks import script_of
from tests.codemods.facts.flow.followed import HEAD

FUNCTION = """\
def loss_of(model, x, y, kind="plain", *, scale=1.0):
    if kind == "plain":
        return F.cross_entropy(model(x), y)
    elif kind == "moved":
        F.cross_entropy(model(x), y).backward()
        never()
    return F.cross_entropy(model(x), y) * scale
"""
LOOP = """\
for x, y in train_loader:
    optimizer.zero_grad()
    loss = loss_of(model, x, y)
    loss.backward()
    optimizer.step()
"""


def is_never_taken(source: str, head: str = HEAD) -> bool:
    (script,) = in_program([script_of(head + source)])
    assert script.program is not None
    calls = script.find(ast.Call)
    (statement,) = (each for each in calls if isinstance(each.func, ast.Name) and each.func.id == "never")
    return never_taken(script.program, script, statement)


@pytest.mark.parametrize(
    ("call", "test"),
    [
        ("loss_of(model, x, y)", 'kind == "moved"'),
        ('loss_of(model, x, y, "plain")', 'kind == "moved"'),
        ('loss_of(model, x, y, kind="plain", scale=len(x))', 'kind == "moved"'),
        ('loss_of(model, x, y, "other")', 'kind == "moved"'),
        ("loss_of(model, x, y, scale=1)", 'kind == "moved" and scale == 2'),
    ],
)
def test_an_argument_that_all_calls_write_out(call: str, test: str) -> None:
    function = FUNCTION.replace('kind == "moved"', test)
    assert is_never_taken(function + LOOP.replace("loss_of(model, x, y)", call))


@pytest.mark.parametrize(
    "other",
    [
        'loss_of(model, x, y, "moved")\n',
        "import sys\nloss_of(model, x, y, sys.argv[1])\n",
        'KIND = "plain"\nloss_of(model, x, y, KIND)\n',  # which may be set from elsewhere
        'loss_of(model, x, y, **{"kind": "moved"})\n',
        'loss_of(*[model, x, y, "moved"])\n',
        'other = loss_of\nother(model, x, y, "moved")\n',
        'globals()["loss_of"](model, x, y, "moved")\n',
        'import threading\nthreading.Thread(target=loss_of, args=(model, x, y, "moved")).start()\n',
        'import atexit\n@atexit.register\ndef last():\n    loss_of(model, x, y, "moved")\n',
        'def of(kind):\n    loss_of(model, x, y, kind)\nof("plain")\n',  # and `of` may be called otherwise
    ],
)
def test_another_call_may_give_another_one(other: str) -> None:
    assert is_never_taken(FUNCTION + LOOP)
    assert not is_never_taken(FUNCTION + LOOP + other)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ('    if kind == "plain":', '    kind = kind\n    if kind == "plain":'),
        ('    if kind == "plain":', '    for kind in [kind]:\n        pass\n    if kind == "plain":'),
        ('    if kind == "plain":', '    if [kind := kind] and kind == "plain":'),
        ('kind="plain"', "kind=KIND"),
        ("def loss_of", "@torch.enable_grad()\ndef loss_of"),
    ],
)
def test_a_function_that_may_see_another_one(old: str, new: str) -> None:
    assert not is_never_taken('KIND = "plain"\n' + FUNCTION.replace(old, new) + LOOP)


def test_a_condition_that_asks_for_more() -> None:
    loop = LOOP.replace("y)", 'y, "other")')
    assert is_never_taken(FUNCTION + loop)
    assert not is_never_taken(FUNCTION.replace('== "moved"', '== "moved" or x.sum() > 3') + loop)


def test_attributes_may_be_set_from_elsewhere() -> None:
    method = "class Task:\n    def __init__(self, kind='plain'):\n        self.kind = kind\n\n"
    method += "".join(f"    {line}\n" for line in FUNCTION.splitlines()).replace("loss_of(", "loss_of(self, ")
    loop = LOOP.replace("loss_of(", "Task().loss_of(")
    assert is_never_taken(method + loop)
    assert not is_never_taken(method.replace("if kind", "if self.kind") + loop)
