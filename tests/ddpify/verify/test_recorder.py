"""The recorder shares an interpreter with the script, and leaves it its names."""

from __future__ import annotations

import sys
from pathlib import Path

from ddpify.verify import processes
from ddpify.verify.runs import read_records

NAMES = sorted(path.stem for path in (processes.RECORDER / "ddpify_recorder").glob("[!_]*.py"))
SCRIPT = f"""\
import sys, warnings
import torch
import {", ".join(NAMES)}
warnings.simplefilter("ignore")
warnings.warn("ddpify: a layer runs whole")
warnings.warn("nothing of ours")
assert all(module.mine for module in ({", ".join(NAMES)},))
assert sys.mine
model = torch.nn.Linear(2, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
model(torch.ones(3, 2)).sum().backward()
optimizer.step()
"""


def test_modules_and_sitecustomize_of_the_script_are_its_own(tmp_path: Path) -> None:
    work, own, record = (tmp_path / name for name in ("work", "own", "record"))
    for folder in (work, own, record):
        folder.mkdir()
    for name in NAMES:
        (work / f"{name}.py").write_text("mine = True\n")
    (own / "sitecustomize.py").write_text("import sys\nsys.mine = True\n")
    (work / "train.py").write_text(SCRIPT)
    environment = processes.environment(record, [own])
    code, _, said = processes.execute([sys.executable, "train.py"], work, environment, 120.0)
    assert code == 0, said
    assert len(read_records(record)[0].steps) == 1
    assert read_records(record)[0].remarks == ["a layer runs whole"]


TWO_MODELS = """\
import gc
import torch
gc.disable()
for _ in range(2):
    model = torch.nn.Sequential(torch.nn.Linear(2, 2), torch.nn.BatchNorm1d(2))
    model.cycle = [model]
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(2):
        optimizer.zero_grad()
        model(torch.ones(3, 2)).sum().backward()
        optimizer.step()
    del model, optimizer
"""


def test_a_model_that_was_dropped_is_not_looked_at(tmp_path: Path) -> None:
    """Where it lies in a cycle, it lives until the garbage collector comes, in each run at another step."""
    (tmp_path / "train.py").write_text(TWO_MODELS)
    environment = processes.environment(tmp_path, [])
    code, _, said = processes.execute([sys.executable, "train.py"], tmp_path, environment, 120.0)
    assert code == 0, said
    assert [len(step.buffers) for step in read_records(tmp_path)[0].steps] == [2] * 4
