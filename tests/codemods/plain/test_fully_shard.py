"""What --strategy fsdp2 refuses, and what it leaves: parameters are DTensors once the model is sharded."""

from __future__ import annotations

from pathlib import Path

import pytest
from ddpify_codemods import Result, convert

SCRIPT = """\
import copy
import torch
from torch import nn, optim
from torch.utils.data import DataLoader, TensorDataset

loader = DataLoader(TensorDataset(torch.rand(64, 4), torch.rand(64, 1)), batch_size=8, shuffle=True)
tests = DataLoader(TensorDataset(torch.rand(30, 4), torch.rand(30, 1)), batch_size=8)
model = nn.Sequential(nn.Linear(4, 4), nn.Linear(4, 1))
{before}
optimizer = optim.{optimizer}
for x, y in loader:
    loss = nn.functional.mse_loss(model(x), y)
    optimizer.zero_grad()
    loss.backward()
    {step}
    optimizer.step()
{after}
"""
PATH = Path("train.py")


def converted(
    before: str = "", step: str = "pass", after: str = "", optimizer: str = "Adam(model.parameters())"
) -> Result:
    source = SCRIPT.format(before=before, step=step, after=after, optimizer=optimizer)
    return convert({PATH: source}, "cpu", style="plain", fully_sharded=True)[PATH]


def refusals(result: Result) -> list[str]:
    return [finding.message for finding in result.findings if finding.severity == "refused"]


@pytest.mark.parametrize(
    ("where", "line", "reason"),
    [
        ("after", "torch.save(model, 'm.pt')", "torch.save is given a model"),
        ("after", "print(model)", "print is given a model"),
        ("after", "best = copy.deepcopy(model)", "copy.deepcopy is given a model"),
        ("after", "torch.save(optimizer.state_dict(), 'o.pt')", "state_dict of an optimizer"),
        ("after", "optimizer.load_state_dict(torch.load('o.pt'))", "load_state_dict of an optimizer"),
        ("after", "print(sum(p.norm() for p in model.parameters()))", "`model.parameters()` is read"),
        ("after", "print(model[0].weight)", "`model[0].weight` is read"),
        (
            "step",
            "norm = nn.utils.clip_grad_norm_(model.parameters(), 1.0); print(norm)",
            "`model.parameters()` is read",
        ),
        ("after", "model.load_state_dict(torch.load('m.pt'), strict=False)", "`model.load_state_dict` is called"),
        ("before", "scaler = torch.amp.GradScaler('cpu')", "GradScaler may skip"),
        ("before", "model = torch.jit.script(model)", "no compiled TorchScript"),
        ("optimizer", "Adafactor(model.parameters())", "may need all of one"),
    ],
)
def test_refused(where: str, line: str, reason: str) -> None:
    said = refusals(converted(**{where: line}))
    assert said
    assert any(reason in each for each in said)


@pytest.mark.parametrize(
    ("where", "line", "becomes"),
    [
        ("before", "print(model)", "print(model)"),
        ("before", "model.load_state_dict(torch.load('m.pt'))", "model.load_state_dict(torch.load('m.pt'))"),
        ("after", "print(sum(p.numel() for p in model.parameters()))",
         "print(sum(p.numel() for p in model.parameters()))"),
        ("step", "nn.utils.clip_grad_norm_(model.parameters(), 1.0)",
         "nn.utils.clip_grad_norm_(model.parameters(), 1.0)"),
        ("after", "model.load_state_dict(torch.load('m.pt'))",
         "model.reshard()\nset_model_state_dict(model, dict(torch.load('m.pt')), "
         "options=StateDictOptions(full_state_dict=True, broadcast_from_rank0=True))"),
        ("after", "state = model.state_dict()",
         "state = get_model_state_dict(model, options=StateDictOptions(full_state_dict=True, cpu_offload=True))"),
    ],
)  # fmt: skip
def test_left_or_written_otherwise(where: str, line: str, becomes: str) -> None:
    result = converted(**{where: line})
    assert not refusals(result)
    assert f"{becomes}\n" in result.code
    assert "DistributedDataParallel" not in result.code and "fully_shard(model, mesh=mesh)\n" in result.code


def test_evaluations_are_whole() -> None:
    """A sharded model is called equally often on all ranks."""
    adds = (
        "total = 0.0\nwith torch.no_grad():\n    for x, y in tests:\n"
        "        total += (model(x) - y).sum().item()\nprint(total)"
    )
    result = converted(after=adds)
    assert not refusals(result)
    assert "sampler=range" not in result.code and "total = sum_over_ranks" not in result.code


def test_an_accelerator_takes_its_own_mesh() -> None:
    source = SCRIPT.format(before="", step="pass", after="", optimizer="Adam(model.parameters())")
    code = convert({PATH: source}, "cuda", style="plain", fully_sharded=True)[PATH].code
    assert "fully_shard(model)\n" in code


OR_A_CHECKPOINT = """\
if len(__file__) > 3:
    model = nn.Linear(4, 1)
    optimizer = optim.SGD(model.parameters(), lr=0.1)
else:
    saved = torch.load("last.pt")
    model = saved["model"]
    optimizer = saved["optimizer"]
"""


@pytest.mark.parametrize("style", ["plain", "exact"])
def test_an_optimizer_never_gets_the_parameters_of_before(style: str) -> None:
    """They are other ones once the model is sharded; DistributedDataParallel keeps them, behind both ways."""
    head, _, training = SCRIPT.format(before="", optimizer="SGD", step="pass", after="").partition("model = nn")
    source = head + OR_A_CHECKPOINT + training[training.index("for x, y") :]
    sharded = convert({PATH: source}, "cpu", style=style, fully_sharded=True)[PATH]
    assert refusals(sharded) or sharded.code.index("fully_shard(model)") < sharded.code.index("optim.SGD(")
    wrapped = convert({PATH: source}, "cpu", style=style)[PATH].code
    made = wrapped.index('saved["optimizer"]')
    assert made < wrapped.index("DistributedDataParallel(model") < wrapped.index("for x, y")
