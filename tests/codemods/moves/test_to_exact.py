"""A converted file is read again: what was added since is converted, everything else stays byte for byte."""

from __future__ import annotations

from difflib import ndiff
from pathlib import Path

import pytest
from ddpify_codemods import convert

PATH = Path("train.py")
BEFORE = """\
import os

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
model = nn.Linear(2, 1).to(device)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
loader = DataLoader(TensorDataset(torch.rand(8, 2)), batch_size=4)
for (x,) in loader:
    model(x.to(device)).mean().backward()
    optimizer.step()
    optimizer.zero_grad()
torch.save(model.state_dict(), "model.pt")
"""


def converted(text: str, target: str) -> str:
    return convert({PATH: text}, target)[PATH].code


def changed(before: str, after: str) -> list[str]:
    return [line for line in ndiff(before.splitlines(), after.splitlines()) if line[0] in "+-"]


@pytest.mark.parametrize("target", ["cpu", "cuda", "xla"])
@pytest.mark.parametrize(
    ("anchor", "line", "becomes"),
    [
        ("rank_zero_only(torch.save)", "torch.save(optimizer.state_dict(), 'o.pt')", "rank_zero_only(torch.save)"),
        ("rank_zero_only(torch.save)", "os.makedirs('out')", "rank_zero_only(os.makedirs)"),
        ("rank_zero_only(torch.save)", "log = open('log.csv', 'w')", "open(rank_zero_path('log.csv'), 'w')"),
        ("rank_zero_only(torch.save)", "if os.path.exists('x'): y = 1", "if rank_zero_value(os.path.exists)('x')"),
    ],
)
def test_a_new_effect_happens_once(target: str, anchor: str, line: str, becomes: str) -> None:
    once = converted(BEFORE, target)
    edited = once.replace(anchor, f"{line}\n{anchor}", 1)
    again = converted(edited, target)
    differences = [
        each for each in changed(edited, again) if "import" not in each and not each.startswith("+     rank")
    ]
    assert [each[0] for each in differences] == ["-", "+"] and becomes in differences[1]
    assert converted(again, target) == again


def test_what_a_person_lets_rank_0_do_stays() -> None:
    begin = "from ddpify_runtime import ("
    once = converted(BEFORE, "cpu").replace(begin, f"{begin}\n    get_rank,")
    saving = "rank_zero_only(torch.save)"
    edited = once.replace(saving, f"if get_rank() == 0:\n    torch.save(1, 'o.pt')\n{saving}", 1)
    assert edited != once and converted(edited, "cpu") == edited


@pytest.mark.parametrize("target", ["cpu", "cuda", "xla"])
def test_a_new_model_is_made_distributed(target: str) -> None:
    once = converted(BEFORE, target)
    new = "other = nn.Linear(2, 1).to(device)\nsecond = torch.optim.SGD(other.parameters(), lr=0.1)\n"
    edited = once.replace("loader = ", f"{new}loader = ", 1)
    [difference] = changed(edited, converted(edited, target))
    assert difference.startswith("+ other = DistributedDataParallel(other")


@pytest.mark.parametrize("target", ["cpu", "cuda", "xla"])
def test_the_same_names_further_down_are_another_model(target: str) -> None:
    once = converted(BEFORE, target)
    new = "model = nn.Linear(2, 1).to(device)\noptimizer = torch.optim.SGD(model.parameters(), lr=0.1)\n"
    edited = once.replace("rank_zero_only(torch.save)", f"{new}rank_zero_only(torch.save)", 1)
    again = converted(edited, target)
    [difference] = changed(edited, again)
    assert difference.startswith("+ model = DistributedDataParallel(model")
    assert again.index("optimizer = ", again.index("loader = ")) > again.rindex("DistributedDataParallel(model")


@pytest.mark.parametrize(("target", "becomes"), [("cpu", '"cpu"'), ("cuda", '"cuda"'), ("xla", "torch_xla.device()")])
def test_a_new_numbered_device_is_the_own_one(target: str, becomes: str) -> None:
    edited = converted(BEFORE, target).replace("loader = ", 'ones = torch.ones(3, device="cuda:0")\nloader = ', 1)
    assert changed(edited, converted(edited, target)) == [
        '- ones = torch.ones(3, device="cuda:0")',
        f"+ ones = torch.ones(3, device={becomes})",
    ]


def test_a_new_step_on_xla_is_run() -> None:
    once = converted(BEFORE, "xla")
    edited = once.replace("rank_zero_only(torch.save)", "optimizer.step()\nrank_zero_only(torch.save)", 1)
    assert changed(edited, converted(edited, "xla")) == ["+ torch_xla.sync()"]


def test_a_new_loader_loads_its_share() -> None:
    edited = converted(BEFORE, "cpu").replace(
        "loader = ", "from torch.utils.data import DataLoader as Loader\nextra = Loader([1])\nloader = ", 1
    )
    assert "from ddpify_runtime import DataLoader as Loader\n" in converted(edited, "cpu")


def test_a_new_name_joins_the_import_that_is_there() -> None:
    once = converted(BEFORE, "cpu")
    edited = once.replace("rank_zero_only(torch.save)", "open('log', 'w')\nrank_zero_only(torch.save)", 1)
    again = converted(edited, "cpu")
    assert again.count("from ddpify_runtime import") == 1 and "    rank_zero_only,\n    rank_zero_path,\n)" in again


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ('init_process_group("gloo")\n', "init_process_group('gloo')  # mine\n"),
        ("model = DistributedDataParallel(model)\n", "model = DistributedDataParallel(model, sync_batch_norm=False)\n"),
        ("model = DistributedDataParallel(model)\n", ""),
        ("rank_zero_only(torch.save)", "rank_zero_first(torch.save)"),
        ("torch.save", "torch . save"),
    ],
)
def test_what_a_person_has_changed_stays(old: str, new: str) -> None:
    once = converted(BEFORE, "cpu")
    edited = once.replace(old, new, 1)
    if not new:  # the wrap has moved to where the model is made
        edited = edited.replace(
            "model = nn.Linear(2, 1).to(device)", "model = DistributedDataParallel(nn.Linear(2, 1))"
        )
    assert edited != once
    assert converted(edited, "cpu") == edited


def test_own_uses_of_the_runtime_stay() -> None:
    edited = converted(BEFORE, "cpu").replace(
        "rank_zero_only(torch.save)",
        "if get_rank() == 0:\n    print('first')\nrank_zero_only(upload)('model.pt')\nrank_zero_only(torch.save)",
        1,
    )
    edited = edited.replace("    init_process_group,\n", "    get_rank,\n    init_process_group,\n")
    assert converted(edited, "cpu") == edited


def test_what_is_refused_in_a_new_script_is_refused_in_a_converted_one() -> None:
    edited = converted(BEFORE, "cpu").replace("loader = ", "width = int(input())\nloader = ", 1)
    result = convert({PATH: edited}, "cpu")[PATH]
    assert result.code == edited
    assert [(each.rule, each.severity) for each in result.findings] == [("DDP307", "refused")]


def test_what_one_file_was_told_decides_in_all_of_them() -> None:
    """A module that needs no name of the runtime is converted too: what a target decided in it stays decided."""
    info = (
        "import torch\n\n\nclass Info:\n    def __init__(self, wanted, n):\n"
        "        self.is_cuda = wanted and torch.cuda.is_available()\n        if not self.is_cuda:\n"
        "            self.device = torch.device('cpu')\n"
        "        else:\n            self.device = torch.device('cuda', n)\n"
    )
    train = (
        "import torch\nfrom info import Info\nm = torch.nn.Linear(2, 1).to(Info(True, 0).device)\n"
        "o = torch.optim.SGD(m.parameters(), lr=1)\nm(torch.rand(2, 2)).sum().backward()\no.step()\n"
    )
    results = convert({Path("train.py"): train, Path("info.py"): info}, "cpu")
    assert "self.is_cuda = False" in results[Path("info.py")].code
    assert "torch.device('cuda', n)" in results[Path("info.py")].code
