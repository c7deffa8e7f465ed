"""What things are in an eager DDP script."""

from __future__ import annotations

import ast

from ddpify_codemods.facts.eager import (
    cpu_devices,
    is_loader,
    is_made_on_host,
    is_module,
    is_move,
    is_moved_before,
    is_wrapped,
    is_wrapper_call,
)

from tests.codemods.checks import node_of, script_of, sources_of

SCRIPT = script_of("""
import torch
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader
device = torch.device("cpu")
net = torch.nn.Linear(2, 2)
net.to(device)
model = DDP(net)
loader = DataLoader([1])
model(torch.randn(20, 10))
""")


def test_the_wrapped_model_and_the_model_in_it() -> None:
    assert is_wrapper_call(SCRIPT, node_of(SCRIPT, "DDP(net)"))
    assert is_wrapped(SCRIPT, node_of(SCRIPT, "model(torch.randn(20, 10))").func)
    assert not is_wrapped(SCRIPT, node_of(SCRIPT, "DDP(net)").args[0])
    assert is_module(SCRIPT, node_of(SCRIPT, "DDP(net)").args[0])


def test_loaders_and_tensors_of_the_host() -> None:
    assert is_loader(SCRIPT, node_of(SCRIPT, "DataLoader([1])"))
    assert not is_loader(SCRIPT, node_of(SCRIPT, "DDP(net)"))
    assert is_made_on_host(SCRIPT, node_of(SCRIPT, "torch.randn(20, 10)"))


def test_a_change_of_type_is_no_move() -> None:
    moves = {
        source: is_move(ast.parse(source, mode="eval").body) for source in ("x.to(d)", "x.cuda()", "x.to(torch.half)")
    }
    assert moves == {"x.to(d)": True, "x.cuda()": True, "x.to(torch.half)": False}


def test_a_module_is_moved_by_a_statement_before() -> None:
    net = node_of(SCRIPT, "DDP(net)").args[0]
    assert is_moved_before(SCRIPT, net, 8) and not is_moved_before(SCRIPT, net, 6)


def test_the_cpu_that_a_wrapped_model_is_moved_to() -> None:
    assert sources_of(cpu_devices(SCRIPT)) == ["torch.device('cpu')"]
