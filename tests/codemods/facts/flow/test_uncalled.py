"""Functions that would train, and that nothing calls."""

from __future__ import annotations

from pathlib import Path

import pytest
from ddpify_codemods import convert

FILES = {
    Path("train.py"): """\
import torch
from torch.utils.data import DataLoader, TensorDataset
from steps import run

{mark}
def train():
    loader = DataLoader(TensorDataset(torch.rand(48, 4)), batch_size=12)
    model = torch.nn.Linear(4, 1)
    run(model, torch.optim.SGD(model.parameters(), lr=0.1), loader)


def helper():
    return 1


{last}
""",
    Path("steps.py"): """\
def run(model, optimizer, loader):
    model.train()
    for (x,) in loader:
        optimizer.zero_grad()
        model(x).mean().backward()
        optimizer.step()
""",
}


def refused(mark: str = "", last: str = "") -> list[tuple[int, str]]:
    files = {path: text.replace("{mark}", mark).replace("{last}", last) for path, text in FILES.items()}
    results = convert(files, "cpu", style="plain").values()
    found = [each for result in results for each in result.findings]
    return [(each.line, each.message) for each in found if each.severity == "refused" and each.rule == "DDP602"]


def test_a_file_whose_training_nothing_calls_says_so() -> None:
    ((line, message),) = refused()
    assert line == 6 and message.startswith("nothing calls train() here: convert the script that does")
    assert refused(last="def show(model):\n    model.eval()") == [(line, message)]
    assert not refused(last="train()")
    assert not refused(last='if __name__ == "__main__":\n    train()')


def test_a_function_that_a_library_calls() -> None:
    ((line, message),) = refused("@cli.command()")
    assert line in (6, 7) and message.startswith("train() is called by a library")


@pytest.mark.parametrize("last", ["globals()['train']", "print(helper)\nfire.Fire()", "library.run('helper', train)"])
def test_another_reason_where_it_may_be_called(last: str) -> None:
    assert not any("nothing calls" in message for _, message in refused(last=last))
