"""What hvd.DistributedOptimizer does otherwise than DistributedDataParallel."""

from __future__ import annotations

import ast

from ddpify_codemods.facts.horovod_optimizer import asks_for_adasum, difference, trained_model

from tests.codemods.checks import node_of, script_of

SCRIPT = script_of("""
import torch
import horovod.torch as hvd
plain = torch.optim.SGD(net.parameters(), lr=0.1)
a = hvd.DistributedOptimizer(plain, op=hvd.Adasum if args.use_adasum else hvd.Average)
b = hvd.DistributedOptimizer(plain, named_parameters=net.named_parameters(), op=hvd.Average)
""")


def test_averages_are_what_distributed_data_parallel_does() -> None:
    assert difference(SCRIPT, {}) == ""
    assert difference(SCRIPT, {"op": node_of(SCRIPT, "hvd.Average")}) == ""
    assert difference(SCRIPT, {"op": node_of(SCRIPT, "hvd.Adasum")})


def test_an_option_may_ask_for_adasum() -> None:
    option = asks_for_adasum(SCRIPT, node_of(SCRIPT, "hvd.Adasum if args.use_adasum else hvd.Average"))
    assert option is not None and ast.unparse(option) == "args.use_adasum"
    assert asks_for_adasum(SCRIPT, node_of(SCRIPT, "hvd.Average")) is None


def test_the_model_is_found_by_its_parameters() -> None:
    plain = node_of(
        SCRIPT, "hvd.DistributedOptimizer(plain, named_parameters=net.named_parameters(), op=hvd.Average)"
    ).args[0]
    for named in (node_of(SCRIPT, "net.named_parameters()"), None):
        model = trained_model(SCRIPT, named, plain)
        assert model is not None and ast.unparse(model) == "net"
