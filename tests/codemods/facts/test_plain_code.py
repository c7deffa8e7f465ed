"""What conversions of the plain style write is known again, by origin and by its exact shape."""

from __future__ import annotations

import ast

import pytest
from ddpify_codemods.facts import plain_code

from tests.codemods.checks import node_of, script_of

HEAD = "import os\nimport torch.distributed as dist\nfrom torch.nn.parallel import DistributedDataParallel\n"


@pytest.mark.parametrize(
    ("source", "answers"),
    [
        ("dist.get_rank() == 0", (True, False)),
        ("dist.get_rank() != 0", (False, True)),
        ("get_rank() == 0", (False, False)),
        ("dist.get_rank() == 1", (False, False)),
    ],
)
def test_tests_of_the_rank(source: str, answers: tuple[bool, bool]) -> None:
    script = script_of(f"{HEAD}x = {source}")
    node = node_of(script, source)
    assert (plain_code.is_rank_0(script, node), plain_code.is_other_rank(script, node)) == answers


def test_calls_and_statements_of_torch_distributed() -> None:
    script = script_of(f"{HEAD}dist.barrier()\nx = dist.get_world_size()")
    assert plain_code.is_statement(script, script.tree.body[3], "barrier", "destroy_process_group")
    assert not plain_code.is_statement(script, script.tree.body[4], "barrier")
    assert plain_code.is_world_size(script, node_of(script, "dist.get_world_size()"))
    assert plain_code.is_call(script, node_of(script, "dist.barrier()"), "barrier")


def test_every_wth_sample() -> None:
    every = "range(dist.get_rank(), len(data), dist.get_world_size())"
    script = script_of(f"{HEAD}x = {every}\ny = range(dist.get_rank(), len(data))")
    assert plain_code.is_every_wth(script, node_of(script, every))
    assert not plain_code.is_every_wth(script, node_of(script, "range(dist.get_rank(), len(data))"))


def test_an_elif_is_no_statement_by_itself() -> None:
    script = script_of("if a:\n    pass\nelif b:\n    pass\nelse:\n    if c:\n        pass")
    found = {ast.unparse(node.test): plain_code.is_elif(script, node) for node in script.find(ast.If)}
    assert found == {"a": False, "b": True, "c": False}


def test_what_asks_torchruns_environment() -> None:
    script = script_of(f"{HEAD}x = int(os.environ['LOCAL_RANK'])\ny = os.environ['HOME']")
    assert plain_code.asks_launcher(script, node_of(script, "os.environ['LOCAL_RANK']"))
    assert not plain_code.asks_launcher(script, node_of(script, "os.environ['HOME']"))
