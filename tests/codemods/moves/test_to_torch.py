"""Horovod's words in torch's: what becomes of each line, and what has no form there (DDP641 to DDP646)."""

from __future__ import annotations

from pathlib import Path

import pytest
from ddpify_codemods import Result, convert

PATH = Path("train.py")
BEGIN = """\
import horovod.torch as hvd
import torch
from torch import nn, optim

hvd.init()
model = nn.Linear(4, 1)
optimizer = optim.SGD(model.parameters(), lr=0.1 * hvd.size())
"""
WRAPS = "optimizer = hvd.DistributedOptimizer(optimizer, named_parameters=model.named_parameters())"
TRAINS = "model(torch.rand(8, 4)).mean().backward()\noptimizer.step()\n"


def moved(line: str = "", wraps: str = WRAPS, trains: str = TRAINS, begin: str = BEGIN, target: str = "cpu") -> Result:
    return convert({PATH: f"{begin}{wraps}\n{line}\n{trains}"}, target)[PATH]


def refused(result: Result) -> list[tuple[str, int]]:
    return [(each.rule, each.line) for each in result.findings if each.severity == "refused"]


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("r = hvd.rank()", "r = dist.get_rank()"),
        ("print(f'{hvd.local_rank()} of {hvd.size()}')", 'print(f\'{int(os.environ["LOCAL_RANK"])} of {dist.get_world'),
        ('print(f"{hvd.local_rank()}")', "print(f\"{int(os.environ['LOCAL_RANK'])}\")"),
        ("torch.manual_seed(hvd.cross_rank())", 'torch.manual_seed(int(os.environ["GROUP_RANK"]))'),
        ("if hvd.is_initialized():\n    hvd.shutdown()", "if dist.is_initialized():\n    dist.destroy_process_group()"),
        ("x = hvd.allreduce(torch.tensor(1.0), name='x')", "x = average_over_ranks(torch.tensor(1.0))"),
        ("x = hvd.allreduce(torch.tensor(1.0), average=False)", "x = reduced_over_ranks(torch.tensor(1.0))"),
        ("x = hvd.allreduce(model(torch.ones(1, 4)))", "x = average_with_gradients(ddp_model(torch.ones(1, 4)))"),
        ("x = hvd.allreduce(model.weight, op=hvd.Sum)", "x = dist_nn.all_reduce(model.weight)"),
        (
            "x = hvd.allreduce(model.weight, op=hvd.Max).item()",
            "x = reduced_over_ranks(model.weight, dist.ReduceOp.MAX)",
        ),
        ("x = hvd.broadcast_object(3)", "x = object_of_rank(3)"),
        ("x = hvd.broadcast_object(3, root_rank=1, name='a')", "x = object_of_rank(3, 1)"),
        ("hvd.broadcast_parameters(model.state_dict(), 0)", "for tensor in model.state_dict().values():\n    dist.bro"),
        ("hvd.broadcast_optimizer_state(optimizer, root_rank=0)", ""),
        ("hvd.run(print)", "sys.exit("),
        ("model = nn.Linear(4, 1) if False else model", None),
        ("optimizer.set_backward_passes_per_step(2)", ""),
        ("print(model(torch.ones(1, 4)))", "print(ddp_model(torch.ones(1, 4)))"),
        ("with torch.no_grad():\n    print(model(torch.ones(1, 4)))", "with torch.no_grad():\n    print(model("),
        ("print(model.weight.norm(), model)", "print(model.weight.norm(), model)"),
    ],
)
def test_words(before: str, after: str | None) -> None:
    result = moved(before)
    if after is None:
        assert refused(result)
        return
    assert not refused(result), result.findings
    assert f"\nddp_model = DistributedDataParallel(model, broadcast_buffers=False)\n{after}" in result.code
    assert "hvd" not in result.code and "ddp_model(torch.rand(8, 4))" in result.code


@pytest.mark.parametrize(
    "wraps",
    [
        "optimizer = hvd.DistributedOptimizer(optimizer)",
        "optimizer = hvd.DistributedOptimizer(optimizer, model.named_parameters(), op=hvd.Average)",
        "optimizer = hvd.DistributedOptimizer(optimizer, gradient_predivide_factor=2.0, groups=3)",
        "optimizer = hvd.DistributedOptimizer(optim.SGD(list(model.parameters()), lr=0.1))",
        "other = hvd.DistributedOptimizer(optimizer)\noptimizer = other",
    ],
)
def test_forms_of_the_optimizer(wraps: str) -> None:
    code = moved(wraps=wraps).code
    assert "\nddp_model = DistributedDataParallel(model, broadcast_buffers=False)\n" in code and "hvd" not in code


@pytest.mark.parametrize(
    "wraps",
    [
        "optimizer = hvd.DistributedOptimizer(optimizer, op=hvd.Adasum)",
        "optimizer = hvd.DistributedOptimizer(optimizer, op=hvd.Sum)",
        "optimizer = hvd.DistributedOptimizer(optimizer, op=choose())",
        "optimizer = hvd.DistributedOptimizer(optimizer, compression=choose())",
        "optimizer = hvd.DistributedOptimizer(optimizer, sparse_as_dense=True)",
        "optimizer = hvd.DistributedOptimizer(optimizer, process_set=pairs)",
        "optimizer = hvd.DistributedOptimizer(**{'optimizer': optimizer})",
        "optimizer = hvd.DistributedOptimizer(optimizer, named_parameters=model.inner.named_parameters())",
        "if hvd.size() > 1:\n    optimizer = hvd.DistributedOptimizer(optimizer)",
        "first = hvd.DistributedOptimizer(optimizer)\nsecond = hvd.DistributedOptimizer(optimizer)",
    ],
)
def test_optimizers_that_average_otherwise_or_that_cannot_be_followed(wraps: str) -> None:
    result = moved(wraps=wraps)
    assert {rule for rule, _ in refused(result)} == {"DDP642"} and "hvd.init()" in result.code


@pytest.mark.parametrize(
    ("line", "rule"),
    [
        ("y = model.forward(torch.ones(1, 4))", "DDP642"),
        ("net = model", "DDP642"),
        ("nets = [model]", "DDP642"),
        ("part = model.inner", "DDP642"),
        ("y = model.inner(torch.ones(1, 4))", "DDP642"),
        ("summary(model)", "DDP642"),
        ("model = torch.compile(model)", "DDP642"),
        ("model.cuda()", "DDP642"),
        ("hvd.allreduce_(model.weight.data)", "DDP645"),
        ("x = hvd.allreduce(model.weight, op=hvd.Max)", "DDP645"),
        ("x = hvd.allgather(model.weight)", "DDP645"),
        ("x = hvd.allreduce(model.weight, prescale_factor=0.5)", "DDP645"),
        ("x = hvd.allreduce(model.weight, average=flag)", "DDP645"),
        ("def average_over_ranks(x): pass\nx = hvd.allreduce(torch.tensor(1.0))", "DDP645"),
        ("hvd.broadcast_parameters(tensors, root_rank=0)", "DDP644"),
        ("hvd.join()", "DDP646"),
        ("handle = hvd.allreduce_async(model.weight)", "DDP646"),
        ("size = hvd.size", "DDP646"),
        ("print(f'{hvd.allreduce(model.weight)}')", "DDP646"),
        ("dist = 3.0", "DDP646"),
        ("x = hvd.Compression.bf16", "DDP646"),
    ],
)
def test_what_has_no_form(line: str, rule: str) -> None:
    result = moved(line)
    assert refused(result) and {each for each, _ in refused(result)} == {rule}
    assert result.code == f"{BEGIN}{WRAPS}\n{line}\n{TRAINS}"


def test_what_keeps_the_model_before_it_is_wrapped_may_call_it() -> None:
    assert refused(moved(begin=f"{BEGIN}criterion = Distill(model)\n")) == [("DDP642", 8)]
    assert not refused(
        moved(begin=f"{BEGIN}initialize(model)\nmodel = nn.SyncBatchNorm.convert_sync_batchnorm(model)\n")
    )


def test_a_function_that_only_looks_at_its_parameters_keeps_no_model() -> None:
    begin = BEGIN.replace("optimizer = optim.SGD(model.parameters(), lr=0.1 * hvd.size())\n", "")
    built = "optimizer = build(model)\n"
    looks = "def build(net):\n    return optim.SGD(net.parameters(), lr=0.1)\n\n"
    assert not refused(moved(begin=looks + begin + built))
    keeps = looks.replace("    return", "    keep(net)\n    return")
    assert refused(moved(begin=keeps + begin + built)) == [("DDP642", 11)]


CLASS = """\
import argparse
import horovod.torch as hvd
import torch

args = argparse.ArgumentParser().parse_args()

class Trainer:
    def __init__(self):
        self.model = make(args.model)
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=0.1)
        self.optimizer = hvd.DistributedOptimizer(self.optimizer)

    def step(self, x):
        self.model(x).mean().backward()
        self.optimizer.step()

hvd.init()
trainer = Trainer()
trainer.step(torch.rand(8, 4))
"""


def test_a_model_that_an_object_holds_is_called_by_that_object_alone() -> None:
    result = convert({PATH: CLASS}, "cpu")[PATH]
    assert "self.ddp_model = DistributedDataParallel(self.model, " in result.code
    assert "        self.ddp_model(x).mean()" in result.code and "make(args.model)" in result.code
    assert not refused(convert({PATH: f"{CLASS}print(trainer.model.state_dict())\n"}, "cpu")[PATH])
    assert refused(convert({PATH: f"{CLASS}net = trainer.model\n"}, "cpu")[PATH]) == [("DDP642", 20)]


FUNCTIONS = """\
def forward(net, x):
    net.train()
    print(net.weight.shape)
    return net(x).mean()

def save(net):
    torch.save(net.state_dict(), "a.pt")

"""


def test_a_function_that_is_given_the_model_is_given_the_wrapper() -> None:
    result = moved("forward(model, torch.rand(8, 4)).backward()\nsave(model)", trains="", begin=FUNCTIONS + BEGIN)
    assert "forward(ddp_model, torch.rand(8, 4)).backward()\nsave(ddp_model)" in result.code
    assert "print(net.module.weight.shape)\n    return net(x)" in result.code
    assert "torch.save(net.module.state_dict()" in result.code


def test_such_a_function_is_not_given_another_model() -> None:
    result = moved("forward(model, torch.rand(8, 4)).backward()\nforward(other, 1)", trains="", begin=FUNCTIONS + BEGIN)
    assert refused(result) == [("DDP642", 18)]


def test_an_optimizer_that_is_made_where_its_model_is_only_a_parameter_is_refused() -> None:
    build = f"\ndef build(model, optimizer):\n    {WRAPS}\n    return optimizer\n\noptimizer = build(model, optimizer)"
    assert {rule for rule, _ in refused(moved(wraps=build))} == {"DDP642"}


def test_a_model_that_nothing_calls_is_refused() -> None:
    assert refused(moved(trains=TRAINS.replace("model(", "other("))) == [("DDP642", 8)]


def test_a_step_of_zeros_is_told_where_it_changed_something() -> None:
    line = "hvd.broadcast_optimizer_state(optimizer, root_rank=0)"
    assert not moved(line, begin=BEGIN.replace("lr=", "momentum=0.9, lr=")).findings
    for made in (BEGIN.replace("lr=", "weight_decay=0.1, lr="), BEGIN.replace("SGD", "Adam")):
        [finding] = moved(line, begin=made).findings
        assert (finding.rule, finding.severity, finding.line) == ("DDP644", "warning", 7)


def test_gradients_that_are_looked_at_without_waiting_are_told() -> None:
    trains = TRAINS.replace("optimizer.step", "nn.utils.clip_grad_norm_(model.parameters(), 1.0)\noptimizer.step")
    assert [(each.rule, each.severity) for each in moved(trains=trains).findings] == [("DDP643", "warning")]
    assert not moved(trains=trains.replace("nn.utils", "optimizer.synchronize()\nnn.utils")).findings


def test_what_is_below_skip_synchronize_stays_where_nothing_is_above_it() -> None:
    trains = "def step():\n    with optimizer.skip_synchronize():\n        optimizer.step()\n" + TRAINS
    assert "    with contextlib.nullcontext():\n        optimizer.step()\n" in moved(trains=trains).code


def test_adasum_by_an_option_ends_the_run() -> None:
    wraps = "optimizer = hvd.DistributedOptimizer(optimizer, op=hvd.Adasum if FLAG else hvd.Average)"
    assert (
        '\nif FLAG:\n    raise SystemExit("Adasum is Horovod\'s own: torch has none")\nddp_' in moved(wraps=wraps).code
    )


@pytest.mark.parametrize(("target", "word"), [("ignite", "idist.auto_model(model"), ("mpi", "is_mpi_available()")])
def test_it_moves_on_to_other_targets(target: str, word: str) -> None:
    result = moved(target=target)
    assert not refused(result) and word in result.code
    assert convert({PATH: result.code}, target)[PATH].code == result.code


def test_it_moves_on_to_xla() -> None:
    body = f"{BEGIN}{WRAPS}\n{TRAINS}".partition("optim\n")[2]
    lines = "".join(f"    {line}\n" for line in body.strip().splitlines())
    source = f"{BEGIN.partition('hvd.init')[0]}def main():\n{lines}\n\nif __name__ == '__main__':\n    main()\n"
    result = convert({PATH: source}, "xla")[PATH]
    assert not refused(result), result.findings
    assert 'init_process_group("xla"' in result.code and "torch_xla.launch(" in result.code


def test_for_gpus_it_is_put_on_them() -> None:
    code = moved(target="cuda").code
    assert 'DistributedDataParallel(model.to("cuda"), ' in code and convert({PATH: code}, "cuda")[PATH].code == code
