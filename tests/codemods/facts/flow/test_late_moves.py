"""What gives a model another device, or its numbers another type, between two steps of its training."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest
from ddpify_codemods.facts.flow.late_moves import given_by_move
from ddpify_codemods.facts.script import Script

from tests.codemods.plain.test_followed import plain, refusals

HEAD = """\
import copy

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
host = torch.device("cpu")
loader = DataLoader(TensorDataset(torch.rand(64, 4), torch.rand(64, 1)), batch_size=8, shuffle=True)


def train(model, optimizer):
    for x, y in loader:
        loss = nn.functional.mse_loss(model(x.to(device)), y.to(device))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


"""
MADE = "model = nn.Linear(4, 1).to(device)\noptimizer = torch.optim.SGD(model.parameters(), lr=0.1)\n"
EPOCHS = "for epoch in range(3):\n    train(model, optimizer)\n"
SAVED = "{name: value.cpu() for name, value in model.state_dict().items()}"


@pytest.mark.parametrize(
    ("call", "given"),
    [
        ("model.cpu()", ("the CPU", "")),
        ("model.to(host)", ("the CPU", "")),
        ("model.to('cpu', torch.half)", ("the CPU", "float16")),
        ("model.to(device)", ("a device", "")),
        ("model.to(device=device, dtype=torch.float64)", ("a device", "float64")),
        ("model.to(torch.bfloat16)", ("", "bfloat16")),
        ("model.type(torch.float32)", ("", "float32")),
        ("model.float()", ("", "float32")),
        ("model.train()", ("", "")),
    ],
)
def test_what_a_call_gives(call: str, given: tuple[str, str]) -> None:
    script = Script(Path("train.py"), HEAD + call, ast.parse(HEAD + call), True, frozenset())
    [node] = [each for each in script.find(ast.Call) if ast.unparse(each) == call]
    assert given_by_move(script, node) == given


@pytest.mark.parametrize(
    "lines",
    [
        "    model.eval().cpu()\n    torch.save(model.state_dict(), 'model.pt')\n    model.to(device).train()\n",
        "    model.to(host)\n    torch.save(model.state_dict(), 'model.pt')\n    model.to(device)\n",
        "    torch.save(model.half().state_dict(), 'model.pt')\n    model.float()\n",
        "    torch.save(model.cpu().state_dict(), 'model.pt')\n    print(model(torch.ones(1, 4)))\n    model.cuda()\n",
        "    for p in model.parameters():\n        p.data = p.data.double()\n",
    ],
)
def test_a_model_that_is_moved_and_trained_again_is_refused(lines: str) -> None:
    [reason, *_] = refusals(plain(HEAD + MADE + EPOCHS + lines))
    assert "would no longer average" in reason


@pytest.mark.parametrize("move", ["model.cpu()", "model.to('cpu')"])
def test_what_is_saved_is_moved_in_place_of_the_model(move: str) -> None:
    lines = f"    torch.save({{'model': {move}.state_dict()}}, 'model.pt')\n    model = model.to(device)\n"
    assert f"{{'model': {SAVED}}}" in plain(HEAD + MADE + EPOCHS + lines, "cuda").code


@pytest.mark.parametrize(
    "lines",
    [
        f"{MADE}{EPOCHS}torch.save(model.cpu().state_dict(), 'model.pt')\nmodel.double()\n",
        f"{MADE}{EPOCHS}    model.float()\n    model = model.to(device)\n",
        f"{MADE}{EPOCHS}    torch.save(copy.deepcopy(model).cpu().state_dict(), 'model.pt')\n",
        f"{MADE}{EPOCHS}    torch.save({SAVED}, 'model.pt')\n",
        f"{MADE}{EPOCHS}    print(model.weight.data.cpu().numpy(), model.bias.cpu())\n    w = model.weight.double()\n",
        f"{MADE}model.scale = torch.ones(1)\n{EPOCHS}    print(model.scale.cpu())\n",
        f"{MADE}{EPOCHS}    if epoch > 1:\n        model.cpu()\n        break\n",
        f"{MADE.replace(').to', ').double().to')}{EPOCHS}    model.double()\n".replace("x.to(device)", "x.double()"),
        "def run():\n    MADE    EPOCHS    return model.cpu()\n\n\nprint(run(), run())\n".replace(
            "MADE", MADE.replace("\n", "\n    ").rstrip(" ")
        ).replace("EPOCHS", EPOCHS.replace("\n", "\n    ").rstrip(" ")),
    ],
)
def test_what_moves_nothing_that_is_trained_again_stays(lines: str) -> None:
    result = plain(HEAD + lines)
    assert not refusals(result) and "DistributedDataParallel(model" in result.code
