"""What a script that is distributed already does."""

from __future__ import annotations

from ddpify_codemods.facts.hand_written import (
    backward_calls,
    feeds_evaluation,
    feeds_training,
    is_collective,
    loaders,
    makes_loss,
    reduces,
    sampler_calls,
    training_loops,
    wrap_calls,
    wrapped_names,
)

from tests.codemods.checks import node_of, script_of, sources_of

SCRIPT = script_of("""
import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, DistributedSampler
model = DDP(net)
sampler = DistributedSampler(data)
train_loader = DataLoader(data, sampler=sampler)
test_loader = DataLoader(test)
for epoch in range(3):
    for x in train_loader:
        loss = model(x).mean()
        loss.backward()
    with torch.no_grad():
        for x in test_loader:
            model(x)
""")


def test_what_is_wrapped_and_sampled() -> None:
    assert sources_of(wrap_calls(SCRIPT)) == ["DDP(net)"] and wrapped_names(SCRIPT) == {"model"}
    assert sources_of(sampler_calls(SCRIPT)) == ["DistributedSampler(data)"]


def test_loaders_and_what_they_feed() -> None:
    training, test = loaders(SCRIPT)
    assert (training.name, test.name) == ("train_loader", "test_loader")
    assert training.sampler is not None and test.sampler is None
    assert feeds_training(SCRIPT, training) and not feeds_training(SCRIPT, test)
    assert feeds_evaluation(SCRIPT, test) and not feeds_evaluation(SCRIPT, training)


def test_the_training_loop_is_the_innermost_one() -> None:
    (loop,) = training_loops(SCRIPT)
    assert sources_of([loop])[0].startswith("for x in train_loader:")
    assert len(backward_calls(SCRIPT)) == len(backward_calls(SCRIPT, loop)) == 1
    assert "model(x).mean()" in sources_of(makes_loss(SCRIPT, loop))


def test_collectives_are_what_every_rank_calls() -> None:
    script = script_of("import torch.distributed as dist\nx = dist.all_reduce(x)\ny = dist.get_rank()")
    assert is_collective(script, node_of(script, "dist.all_reduce(x)"))
    assert not is_collective(script, node_of(script, "dist.get_rank()"))
    assert reduces(script) and not reduces(SCRIPT)
