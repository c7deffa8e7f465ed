"""Functions that a library calls with what the command line says are followed from there."""

from __future__ import annotations

from pathlib import Path

import pytest
from ddpify_codemods import Result, convert

SCRIPT = """\
import torch
import torch.nn.functional as F
from torch.utils.data import DataLoader, TensorDataset
{imports}


def main({parameters}):
    data = TensorDataset(torch.rand(64, 4), torch.randint(3, (64,)))
    loader = DataLoader(data, batch_size=16, shuffle=True)
    model = torch.nn.Linear(4, 3)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for x, y in loader:
        loss = {loss}
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


if __name__ == "__main__":
    {call}
"""
LOSS = "F.cross_entropy(model(x), y)"


def _converted(imports: str, parameters: str, call: str, loss: str = LOSS) -> Result:
    script = SCRIPT.format(imports=imports, parameters=parameters, call=call, loss=loss)
    return convert({Path("train.py"): script}, "cpu", style="plain")[Path("train.py")]


@pytest.mark.parametrize(
    ("imports", "parameters", "call"),
    [
        ("from absl import app", "argv", "app.run(main)"),
        ("import absl.app", "_", "absl.app.run(main)"),
        ("import fire", "lr=0.1, *, epochs=2", "fire.Fire(main)"),
        ("from fire import Fire", "lr=0.1, *rest, **more", "Fire(main)"),
        ("import fire", "lr=0.1", "fire.Fire()"),
        ("import fire", "lr=0.1", "fire.Fire({'train': main})"),
        ("import typer", "lr: float = 0.1", "typer.run(main)"),
    ],
)
def test_it_is_followed(imports: str, parameters: str, call: str) -> None:
    result = _converted(imports, parameters, call)
    assert "loss = F.cross_entropy(ddp_model(x), y)" in result.code, result.findings
    refused = _converted(imports, parameters, call, "F.cross_entropy(model(x[:4]), y[:4])")
    assert any(finding.severity == "refused" for finding in refused.findings)


@pytest.mark.parametrize("default", ["False", "None"])
def test_a_default_is_not_what_the_command_line_says(default: str) -> None:
    """The command line may say otherwise: both ways are followed."""
    loss = f"F.cross_entropy(model(x[:4]), y[:4]) if few else {LOSS}"
    result = _converted("import fire", f"few={default}", "fire.Fire(main)", loss)
    assert any(finding.severity == "refused" for finding in result.findings)


COMMANDS = """\
    parser = argparse.ArgumentParser()
    commands = parser.add_subparsers()
    first = commands.add_parser("train")
    first.set_defaults(func=main, verbose=True)
    second = commands.add_parser("other")
    second.set_defaults(func=other)
    args = parser.parse_args()
    args.func(args)
"""
OTHER = """\
def other(args):
    {}


if __name__"""


def _with_commands(other: str) -> Result:
    script = SCRIPT.format(imports="import argparse", parameters="args", call=COMMANDS.strip(), loss=LOSS)
    script = script.replace("if __name__", OTHER.format(other))
    return convert({Path("train.py"): script}, "cpu", style="plain")[Path("train.py")]


def test_argparse_chooses_a_function_by_the_command() -> None:
    result = _with_commands("print(1)")
    assert "loss = F.cross_entropy(ddp_model(x), y)" in result.code, result.findings


def test_both_commands_train() -> None:
    code = _with_commands("main(args)").code
    assert code.count("DistributedDataParallel(model)") == 1 and "ddp_model(x)" in code
    own = SCRIPT[SCRIPT.index("    data =") : SCRIPT.index("\n\nif")].strip()
    code = _with_commands(own.format(loss=LOSS)).code
    assert code.count("DistributedDataParallel(model)") == code.count("ddp_model(x)") == 2


@pytest.mark.parametrize("loss", ["F.cross_entropy(model(x[:4]), y[:4])", "model(x)[0].sum()"])
def test_another_command_that_cannot_be_divided(loss: str) -> None:
    own = SCRIPT[SCRIPT.index("    data =") : SCRIPT.index("\n\nif")].strip()
    assert any(each.severity == "refused" for each in _with_commands(own.format(loss=loss)).findings)
