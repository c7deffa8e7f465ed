"""Which backends and devices a hand-written script names."""

from __future__ import annotations

from ddpify_codemods.facts.backends import (
    backend_names,
    backend_of,
    backends,
    joins,
    known_target,
    names_device,
    spoken,
)
from ddpify_codemods.targets import TARGETS

from tests.codemods.checks import node_of, script_of

SCRIPT = """
import torch
import torch.distributed as dist
kind = "nccl"
dist.init_process_group(backend=kind)
model = torch.nn.Linear(2, 2).cuda()
cpu = torch.zeros(2).to("cpu")
"""


def test_a_backend_is_found_where_it_is_written() -> None:
    script = script_of(SCRIPT)
    (call,) = joins(script)
    given = backend_of(call)
    assert given is not None
    assert [(each.value, each.lineno) for each in backend_names(script, given)] == [("nccl", 4)]


def test_torch_takes_the_backend_of_each_device_where_none_is_given() -> None:
    (call,) = joins(script_of("import torch.distributed as dist\ndist.init_process_group()"))
    assert backend_of(call) is None


def test_each_backend_belongs_to_a_target() -> None:
    assert {"nccl", "gloo", "xccl", "mpi"} <= backends()
    target = known_target("nccl")
    assert target is not None and target.name == "cuda"
    assert known_target("imaginary") is None


def test_devices_are_named_in_the_words_of_an_accelerator() -> None:
    script = script_of(SCRIPT)
    assert names_device(script, node_of(script, "torch.nn.Linear(2, 2).cuda()"), TARGETS["cuda"])
    assert not names_device(script, node_of(script, "torch.zeros(2).to('cpu')"), TARGETS["cuda"])
    words = spoken([script])
    assert words is not None and words.name == "cuda"
    assert spoken([script_of("import torch\ntorch.zeros(2)")]) is None
