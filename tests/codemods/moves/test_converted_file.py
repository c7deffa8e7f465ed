"""Converted files move to another target, and back to one device."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest
from ddpify_codemods import ONE_DEVICE, convert

from tests.e2e import fixtures
from tests.turns import in_turn

PATH = Path("train.py")
CONVERTED = [name for name in fixtures.names() if not fixtures.load(name).refused]
BEFORE = """\
import torch
from torch.utils.data import DataLoader, TensorDataset

device = torch.device("cuda")
model = torch.nn.Linear(2, 1).to(device)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for (x,) in DataLoader(TensorDataset(torch.rand(8, 2)), batch_size=4):
    model(x.to(device)).mean().backward()
    optimizer.step()
torch.save(model.state_dict(), "a" + "b")
"""


def texts(program: dict[Path, str], target: str) -> dict[Path, str]:
    return {path: result.code for path, result in convert(program, target).items()}


def converted(text: str, target: str) -> str:
    return texts({PATH: text}, target)[PATH]


@pytest.mark.parametrize(("name", "target"), in_turn((name, target) for name in CONVERTED for target in ("xla", "cpu")))
def test_from_cuda_it_becomes_what_the_original_would(name: str, target: str) -> None:
    program = fixtures.program(fixtures.load(name))
    assert texts(texts(program, "cuda"), target) == texts(program, target)


@pytest.mark.parametrize("name", in_turn((name,) for name in CONVERTED))
def test_back_and_forth(name: str) -> None:
    once = texts(fixtures.program(fixtures.load(name)), "cuda")
    back = texts(once, ONE_DEVICE)
    assert not any("ddpify_runtime" in text for text in back.values())
    again = texts(back, "cuda")
    assert {path: body(text) for path, text in again.items()} == {path: body(text) for path, text in once.items()}


def body(text: str) -> str:
    """A file without its imports, which may have moved, and without its layout."""
    tree = ast.parse(text)
    tree.body = [node for node in tree.body if not isinstance(node, (ast.Import, ast.ImportFrom))]
    return ast.unparse(tree)


@pytest.mark.parametrize("target", ["cpu", "cuda", "xla"])
def test_back_to_the_very_script(target: str) -> None:
    before = BEFORE.replace('"cuda"', '"cpu"') if target == "cpu" else BEFORE
    assert converted(converted(before, target), ONE_DEVICE) == before


@pytest.mark.parametrize(
    ("module", "lines"),
    [
        ("time", "while time.time() < 9:\n    optimizer.step()\n"),
        ("wandb", "rate = wandb.config.rate\n"),
        ("sys", "ms = {1: model}\nopts = {k: torch.optim.SGD(m.parameters(), lr=1) for k, m in ms.items()}\n"),
    ],
)
def test_what_stands_for_something_else_comes_back(module: str, lines: str) -> None:
    before = f"import {module}\n{BEFORE}{lines}"
    once = converted(before, "cuda")
    assert converted(once, "cuda") == once != before
    assert converted(once, ONE_DEVICE).rstrip() == before.rstrip()


@pytest.mark.parametrize("first", ["cpu", "cuda", "xla"])
@pytest.mark.parametrize("second", ["cuda", "xla"])
def test_what_a_person_has_added_moves_along(first: str, second: str) -> None:
    edited = converted(BEFORE, first).replace(
        "rank_zero_only(torch.save)", "rank_zero_only(upload)('model.pt')  # mine\nrank_zero_only(torch.save)", 1
    )
    assert "\nrank_zero_only(upload)('model.pt')  # mine\n" in converted(edited, second)


def test_without_a_target_it_is_updated_for_its_own() -> None:
    once = converted(BEFORE, "xla")
    assert converted(once, "") == once
    assert (
        converted(once.replace("torch_xla.sync()\n", "torch_xla.sync()\n    optimizer.step()\n"), "").count("sync") == 2
    )


def test_a_number_of_the_runtime_that_cannot_go_is_told() -> None:
    edited = converted(BEFORE, "cuda").replace(
        "rank_zero_only(torch.save)", "once = rank_zero_only\nonce(torch.save)", 1
    )
    result = convert({PATH: edited}, ONE_DEVICE)[PATH]
    [finding] = result.findings
    assert result.code == edited and finding.severity == "refused"
    assert edited.splitlines()[finding.line - 1] == "once = rank_zero_only"


def test_a_scaler_that_xla_switched_off_is_told() -> None:
    before = BEFORE.replace("for (x,)", "scaler = torch.amp.GradScaler()\nfor (x,)")
    findings = convert({PATH: converted(before, "xla")}, "cuda")[PATH].findings
    assert [each.message.split(",")[0] for each in findings if each.severity == "warning"] == [
        "GradScaler is switched off"
    ]


def test_a_device_that_is_the_cpu_by_name_is_told() -> None:
    [finding] = convert({PATH: converted(BEFORE, "cpu")}, "cuda")[PATH].findings
    assert (finding.rule, finding.severity) == ("DDP103", "warning")


LOADERS = [
    "DataLoader(data, batch_size=4, shuffle=True)",
    "DataLoader(data, 4, True)",
    "DataLoader(data, 4)",
    "DataLoader(data, 4, shuffle = False)",
    "DataLoader(\n    data,\n    4,  # rows\n)",
    "DataLoader(data,\n           shuffle=(x > 3),  # later\n           **more)",
    "DataLoader(dataset=Data() if x else None, **{'num_workers': 2})",
    "DataLoader(Data(3), sampler=Mine(3))",
    "[DataLoader(Data(n), 4, shuffle=n > 2) for n in (1, 2)]",
]


@pytest.mark.parametrize("loader", LOADERS)
def test_a_loader_comes_back_as_it_was(loader: str) -> None:
    before = BEFORE.replace("optimizer =", f"loader = {loader}  # mine\noptimizer =")
    once = converted(before, "cuda")
    assert "sampler=Dist" in once and converted(once, "cuda") == once and converted(once, "") == once
    assert converted(once, "xla") == converted(before, "xla")
    assert converted(once, ONE_DEVICE) == before


@pytest.mark.parametrize(
    "lines",
    [
        "sampler = DistributedSampler(data, shuffle=True)\nloader = DataLoader(data, 4, sampler=sampler)\n",
        "loader = DataLoader(data, 4, sampler=DistributedSampler(data, seed=3))\nloader.sampler.set_epoch(3)\n",
        "loader = DataLoader(data, 4, sampler=DistributedSampler(other))\n",
    ],
)
def test_a_sampler_that_a_person_has_written_stays(lines: str) -> None:
    edited = converted(BEFORE, "cuda").replace("optimizer =", f"{lines}optimizer =")
    assert converted(edited, "cuda") == edited
    assert lines in converted(edited, "xla")


def test_arguments_of_a_sampler_that_cannot_go_are_told() -> None:
    line = "loader = DataLoader(data, 4, sampler=DistributedSampler(data, seed=3))"
    edited = converted(BEFORE, "cuda").replace("optimizer =", f"{line}\noptimizer =")
    result = convert({PATH: edited}, ONE_DEVICE)[PATH]
    assert result.code == edited and [each.severity for each in result.findings] == ["refused"]


def test_a_name_that_a_person_uses_too_stays() -> None:
    edited = converted(BEFORE, "cuda") + "print(len(dataset))\n"
    assert "in DataLoader(dataset := TensorDataset(torch.rand(8, 2)), batch_size=4):" in converted(edited, ONE_DEVICE)
