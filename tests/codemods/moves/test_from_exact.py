"""Programs of several files in the exact style are moved as one."""

from __future__ import annotations

from pathlib import Path

import pytest
from ddpify_codemods import ONE_DEVICE, convert

from tests.codemods.moves.plain_programs import BEFORE, PATH

ENTRY, DATA = Path("train.py"), Path("data.py")
PROGRAM = {
    ENTRY: """\
import torch

from data import loader

model = torch.nn.Linear(2, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for (x,) in loader:
    model(x).mean().backward()
    optimizer.step()
    optimizer.zero_grad()
""",
    DATA: """\
import torch
from torch.utils.data import DataLoader, TensorDataset

loader = DataLoader(TensorDataset(torch.rand(8, 2)), batch_size=4)
""",
}
OWN = "\nfrom ddpify_runtime import get_rank as mine\nname = mine\n"


def converted(target: str) -> dict[Path, str]:
    return {path: result.code for path, result in convert(PROGRAM, target).items()}


def test_each_file_comes_back() -> None:
    there = converted("cuda")
    assert all("ddpify_runtime" in text for text in there.values())
    assert {path: result.code for path, result in convert(there, ONE_DEVICE).items()} == PROGRAM


def test_each_file_moves_to_another_target() -> None:
    assert {path: result.code for path, result in convert(converted("cuda"), "cpu").items()} == converted("cpu")


def test_what_cannot_go_in_one_file_leaves_all_of_them() -> None:
    there = converted("cuda")
    there[DATA] += OWN
    results = convert(there, ONE_DEVICE)
    assert {path: result.code for path, result in results.items()} == there
    [finding] = [finding for finding in results[DATA].findings if finding.severity == "refused"]
    assert finding.line == len(there[DATA].splitlines())


def test_changes_name_the_lines_of_the_file_as_it_is() -> None:
    there = converted("cuda")
    there[DATA] = there[DATA].replace("import torch\n", "# loads\nimport torch\n", 1)
    results = convert(there, ONE_DEVICE)
    lines = there[DATA].splitlines()
    assert {change.line for change in results[DATA].changes} <= {*range(1, len(lines) + 1)}
    assert any("init_process_group" in there[ENTRY].splitlines()[each.line - 1] for each in results[ENTRY].changes)


@pytest.mark.parametrize("target", ["cpu", "cuda", "xla"])
def test_the_batch_size_is_that_of_all_processes_again_where_it_is_asked_for(target: str) -> None:
    there = convert({PATH: BEFORE}, target, per_process=True)[PATH].code
    assert convert({PATH: there}, target)[PATH].code == there
    assert convert({PATH: there}, target, per_process=False)[PATH].code == convert({PATH: BEFORE}, target)[PATH].code


def test_a_model_that_is_divided_is_not_made_whole_in_passing() -> None:
    there = convert({PATH: BEFORE}, "cpu", fully_sharded=True)[PATH].code
    result = convert({PATH: there}, "cpu", fully_sharded=False)[PATH]
    assert (result.code, [each.severity for each in result.findings]) == (there, ["refused"])
    assert "fully_shard(" not in convert({PATH: there}, "cpu", style="plain", fully_sharded=False)[PATH].code
