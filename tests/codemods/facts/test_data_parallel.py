"""What torch.nn.parallel.data_parallel calls, and what with."""

from __future__ import annotations

import ast

import pytest
from ddpify_codemods.facts.data_parallel import called_in_parallel, needs_it, serves_it_alone, with_inputs

from tests.codemods.checks import script_of

PROGRAM = """\
import torch.nn as nn
from torch.nn.parallel import data_parallel


def forward(net, x, *inputs):
    return {}
"""


@pytest.mark.parametrize(
    ("call", "after"),
    [
        ("nn.parallel.data_parallel(net, x, range(2))", "net(x)"),
        ("data_parallel(net, x)", "net(x)"),
        ("data_parallel(inputs=x, module=net, device_ids=[0, 1])", "net(x)"),
        ("data_parallel(net, (x, x + 1), [0])", "net(x, x + 1)"),
        ("data_parallel(net, inputs, [0])", "net(*inputs)"),
        ("data_parallel(net, x, [0], None, 0, {'mask': None})", ""),
        ("data_parallel(net, x, module_kwargs={'mask': None})", ""),
        ("data_parallel(*inputs)", ""),
        ("nn.DataParallel(net, x)", ""),
        ("net(x, x)", ""),
    ],
)
def test_the_module_and_its_inputs(call: str, after: str) -> None:
    script = script_of(PROGRAM.format(call))
    [returned] = script.find(ast.Return)
    assert isinstance(returned.value, ast.Call)
    called = called_in_parallel(script, returned.value)
    assert (called is not None) == bool(after)
    if called is not None:
        template, parts = with_inputs(script, *called)
        assert template.format(*map(ast.unparse, parts)) == after


HELPER = """\
import functools
from torch.nn import DataParallel


def patch(net):
    {}
"""


@pytest.mark.parametrize(
    ("body", "alone"),
    [
        ("assert isinstance(net, DataParallel)", True),
        ("old = net.replicate; net.replicate = old", True),
        ("net = net.replicate", False),
        ("net.training = True", False),
        ("print(net)", False),
        ("return net", False),
        ("assert net", False),
    ],
)
def test_what_serves_nn_data_parallel_alone(body: str, alone: bool) -> None:
    script = script_of(HELPER.format(body))
    [function] = script.find(ast.FunctionDef)
    assert serves_it_alone(script, function) is alone


@pytest.mark.parametrize(
    ("body", "needs"),
    [
        ("assert isinstance(net, DataParallel)", True),
        ("assert isinstance(net, (DataParallel, list))", False),
        ("found = isinstance(net, DataParallel)", False),
        ("assert isinstance(net, DataParallel) and net", True),
        ("assert isinstance(net, DataParallel) or net", False),
        ("assert not isinstance(net, DataParallel)", False),
        ("if not isinstance(net, DataParallel) or not net: raise TypeError", True),
        ("if isinstance(net, DataParallel): return net.module\n    raise TypeError", True),
        ("if isinstance(net, DataParallel): return net.module\n    return net", False),
        ("if isinstance(net, DataParallel): net = net.module\n    else: raise TypeError", True),
        ("if isinstance(net, DataParallel): net = net.module\n    raise TypeError", False),
        ("if isinstance(net, DataParallel): raise TypeError", False),
        ("assert type(net) is DataParallel", True),
        ("if type(net) != DataParallel: raise TypeError", True),
        ("assert type(net) is not DataParallel", False),
        ("assert type(net) is list", False),
    ],
)
def test_where_nn_data_parallel_is_needed(body: str, needs: bool) -> None:
    script = script_of(HELPER.format(body))
    call = next(each for each in script.find(ast.Call) if ast.unparse(each.func) in ("isinstance", "type"))
    assert needs_it(script, call) is needs


@pytest.mark.parametrize(
    ("guard", "needs"),
    [
        ("hasattr(net, 'device_ids')", False),
        ("hasattr(net, 'module')", False),
        ("hasattr(net, 'cuda')", True),
        ("hasattr(sys, 'device_ids')", True),
        ("type(net) is DataParallel", False),
        ("isinstance(other, DataParallel)", True),
    ],
)
def test_what_nn_data_parallel_alone_has_is_asked_for_before(guard: str, needs: bool) -> None:
    script = script_of(HELPER.format(f"if {guard}: print(net.device_ids)"))
    [used] = (each for each in script.find(ast.Attribute) if each.attr == "device_ids")
    assert needs_it(script, used) is needs


@pytest.mark.parametrize(("default", "needs"), [("", True), (", []", False)])
def test_what_has_a_default_is_not_needed(default: str, needs: bool) -> None:
    script = script_of(HELPER.format(f"return getattr(net, 'device_ids'{default})"))
    [call] = script.find(ast.Call)
    assert needs_it(script, call) is needs
