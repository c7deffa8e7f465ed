"""What --strategy fsdp2 writes in the exact style, what it refuses, and what it leaves."""

from __future__ import annotations

from pathlib import Path

import pytest
from ddpify_codemods import Result, convert

SCRIPT = """\
import copy
import torch
from torch import nn, optim
from torch.utils.data import DataLoader, TensorDataset

def build():
    return nn.Sequential(nn.Linear(4, 4), nn.Linear(4, 1))

def evaluate(net, loader):
    net.eval()
    return sum(nn.functional.mse_loss(net(x), y).item() for x, y in loader)

loader = DataLoader(TensorDataset(torch.rand(64, 4), torch.rand(64, 1)), batch_size=8, shuffle=True)
model = build()
{before}
optimizer = optim.{optimizer}
for x, y in loader:
    loss = nn.functional.mse_loss(model(x), y)
    optimizer.zero_grad()
    loss.backward({backward})
    {step}
    optimizer.step()
{after}
"""
PATH = Path("train.py")
ADAM = "Adam(model.parameters())"


def source(before: str = "", step: str = "pass", after: str = "", optimizer: str = ADAM, backward: str = "") -> str:
    return SCRIPT.format(before=before, step=step, after=after, optimizer=optimizer, backward=backward)


def converted(code: str, target: str = "cpu") -> Result:
    return convert({PATH: code}, target, fully_sharded=True)[PATH]


def refusals(result: Result) -> list[str]:
    return [finding.message for finding in result.findings if finding.severity == "refused"]


@pytest.mark.parametrize(
    ("where", "line", "reason"),
    [
        ("after", "torch.save(model, 'm.pt')", "torch.save is given a model"),
        ("after", "best = copy.deepcopy(model)", "copy.deepcopy is given a model"),
        ("after", "kept = [model]", "kept where it is not followed"),
        ("after", "class Holder:\n    def get(self):\n        return model", "returned, and not followed"),
        ("after", "torch.save(optimizer.state_dict(), 'o.pt')", "the optimizer's state"),
        ("after", "optimizer.load_state_dict(torch.load('o.pt'))", "the optimizer's state"),
        ("after", "print(optimizer.state)", "the optimizer's state"),
        ("after", "print(sum(p.norm() for p in model.parameters()))", "`model.parameters()` is read"),
        ("after", "def show(net):\n    print([*net.parameters()])\nshow(model)", "`net.parameters()` is read"),
        ("after", "print(model[0].weight)", "kept where it is not followed"),
        ("after", "model.to('cpu')", "`model.to` is called"),
        ("after", "state = model.state_dict()\nprint(state['0.weight'])", "state is looked into"),
        ("after", "best = {k: v for k, v in model.state_dict().items()}", "state is looked into"),
        ("after", "model.load_state_dict(torch.load('m.pt'), assign=True)", "assign=True"),
        ("step", "n = nn.utils.clip_grad_norm_(model.parameters(), 1.0)", "`model.parameters()` is read"),
        ("step", "for p in optimizer.param_groups[0]['params']: p.grad.mul_(2)", "parameters of the optimizer"),
        ("before", "scaler = torch.amp.GradScaler('cpu')", "skip a step alone"),
        ("before", "model = torch.compile(model)", "compiled forward"),
        ("before", "params = [*model.parameters()]\nother = optim.SGD(params)", "one model"),
        ("before", "second = optim.SGD(nn.Linear(2, 2).parameters())", "one model"),
        ("optimizer", "Adafactor(model.parameters())", "may need all of one"),
        ("optimizer", "LBFGS(model.parameters())", "may need all of one"),
        ("backward", "create_graph=True", "gradients of gradients"),
    ],
)
def test_refused(where: str, line: str, reason: str) -> None:
    code = source(**{where: line})
    result = converted(code)
    assert any(reason in each for each in refusals(result))
    assert result.code == code


@pytest.mark.parametrize(
    ("where", "line"),
    [
        ("before", "model.load_state_dict(torch.load('m.pt'))\nprint(model[0].weight)"),
        ("after", "print(model)"),
        ("after", "evaluate(model, loader)"),
        ("after", "print(sum(p.numel() for p in model.parameters()))"),
        ("after", "model.load_state_dict(torch.load('m.pt'))"),
        ("after", "best = copy.deepcopy(model.state_dict())\nprint(best['0.weight'])\nmodel.load_state_dict(best)"),
        ("step", "nn.utils.clip_grad_norm_(model.parameters(), 1.0)"),
        ("step", "optimizer.param_groups[0]['lr'] = 0.1"),
    ],
)
def test_left(where: str, line: str) -> None:
    result = converted(source(**{where: line}))
    assert not refusals(result)
    for each in line.splitlines():
        assert each in result.code
    assert "\nfully_shard(model)\n" in result.code
    assert "DistributedDataParallel" not in result.code


def test_it_stays_and_goes_back() -> None:
    code = source()
    result = converted(code).code
    assert convert({PATH: result}, "cpu")[PATH].code == result
    assert converted(result).code == result
    on_gpus = convert({PATH: result}, "cuda")[PATH].code
    assert "\nfully_shard(model)\n" in on_gpus and 'init_process_group("nccl")' in on_gpus
    assert on_gpus == convert({PATH: code}, "cuda", fully_sharded=True)[PATH].code
    assert convert({PATH: result}, "none")[PATH].code == code
    plain = convert({PATH: code}, "cpu", style="plain", fully_sharded=True)[PATH].code
    assert convert({PATH: result}, "cpu", style="plain")[PATH].code == plain


def test_what_is_refused_later_is_refused_there_too() -> None:
    """The file says itself that its model is divided."""
    later = converted(source()).code + "torch.save(model, 'm.pt')\n"
    assert any("torch.save is given a model" in each for each in refusals(convert({PATH: later}, "cpu")[PATH]))


def test_what_is_distributed_otherwise_is_not_taken_for_it() -> None:
    other = convert({PATH: source()}, "cpu")[PATH].code
    assert any("DistributedDataParallel" in each for each in refusals(converted(other)))


@pytest.mark.parametrize(("target", "style"), [("xla", "exact"), ("xla", "plain"), ("ignite", "plain")])
def test_other_engines_have_none(target: str, style: str) -> None:
    result = convert({PATH: converted(source()).code}, target, style=style)[PATH]
    assert any(f"not for the {target}" in each for each in refusals(result))


def test_a_model_that_another_file_is_given_is_not_followed() -> None:
    code = source(after="from other import train\ntrain(model)")
    program = {PATH: code, Path("other.py"): "def train(model):\n    print(list(model.parameters()))\n"}
    found = convert(program, "cpu", fully_sharded=True)
    assert any("train is given a model" in each for each in refusals(found[PATH]))
