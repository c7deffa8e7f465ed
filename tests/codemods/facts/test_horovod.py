"""What a script says to Horovod."""

from __future__ import annotations

import ast

from ddpify_codemods.facts.horovod import (
    calls_of,
    free_name,
    given,
    horovod_name,
    is_constant,
    is_wrapped_optimizer,
    wrapped_optimizers,
)

from tests.codemods.checks import node_of, script_of, sources_of

SCRIPT = script_of("""
import horovod.torch as hvd
import torch
hvd.init()
optimizer = hvd.DistributedOptimizer(plain, op=hvd.Sum)
rank = hvd.rank()
mean = hvd.allreduce(x, True, name="loss")
optimizer.step()
""")


def test_names_are_horovods_by_their_origin() -> None:
    assert horovod_name(SCRIPT, node_of(SCRIPT, "hvd.rank")) == "rank"
    assert horovod_name(SCRIPT, node_of(SCRIPT, "x")) == ""
    assert sources_of(calls_of(SCRIPT, "rank", "size")) == ["hvd.rank()"]


def test_arguments_go_by_the_names_of_parameters() -> None:
    words = given(SCRIPT, node_of(SCRIPT, "hvd.allreduce(x, True, name='loss')"))
    assert words is not None
    assert {name: ast.unparse(value) for name, value in words.items()} == {
        "tensor": "x",
        "average": "True",
        "name": "'loss'",
    }
    hidden = script_of("import horovod.torch as hvd\ny = hvd.allreduce(*xs)")
    assert given(hidden, node_of(hidden, "hvd.allreduce(*xs)")) is None


def test_wrapped_optimizers() -> None:
    assert wrapped_optimizers(SCRIPT) == {"optimizer"}
    assert is_wrapped_optimizer(SCRIPT, node_of(SCRIPT, "optimizer.step").value)
    assert not is_wrapped_optimizer(SCRIPT, node_of(SCRIPT, "x"))


def test_constants_and_free_names() -> None:
    assert is_constant(None, 1) and is_constant(ast.Constant(1), 1, 2) and not is_constant(ast.Constant(3), 1, 2)
    assert free_name(SCRIPT, "rank") != "rank" and free_name(SCRIPT, "unused") == "unused"
