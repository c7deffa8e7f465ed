"""The words of Ignite: where they say something else than torch's, and where they say it in another place."""

from __future__ import annotations

from pathlib import Path

import pytest
from ddpify_codemods import Result, convert

from ddpify.command import CommandLine, run
from ddpify.files import BadInput

PATH = Path("train.py")
LOADER = "loader = DataLoader(data, batch_size=8, shuffle=True)"
HEAD = f"""\
import torch
from torch.utils.data import DataLoader, TensorDataset

data = TensorDataset(torch.rand(64, 4), torch.rand(64, 1))
{LOADER}
model = torch.nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
"""
LOOP = """\
for epoch in range(3):
    for x, y in loader:
        optimizer.zero_grad()
        torch.nn.functional.mse_loss(model(x), y).backward()
        optimizer.step()
"""


def converted(source: str, per_process: bool = False, sync_batchnorm: bool = False) -> Result:
    return convert({PATH: source}, "ignite", per_process=per_process, sync_batchnorm=sync_batchnorm)[PATH]


def code_of(source: str, per_process: bool = False) -> str:
    result = converted(source, per_process)
    assert result.code != source, result.findings
    return " ".join(result.code.split()).replace("( ", "(").replace(", )", ")")


def test_a_call_that_makes_loaders_of_both_kinds_takes_torchs_sampler() -> None:
    both = 'loaders = {x: DataLoader(sets[x], batch_size=8, shuffle=x == "train") for x in ["train", "val"]}'
    head = HEAD.replace(LOADER, f"sets = {{'train': data, 'val': data}}\n{both}")
    loop = LOOP.replace("in loader", "in loaders['train']")
    total = "total = 0.0\nfor x, y in loaders['val']:\n    total += (model(x) - y).abs().sum().item()\nprint(total)\n"
    code = code_of(head + loop + total)
    sampler = "DistributedSampler(sets[x], num_replicas=idist.get_world_size(), rank=idist.get_rank())"
    share = "range(idist.get_rank(), len(sets[x]), idist.get_world_size())"
    assert f'{sampler} if (x == "train") else {share}' in code
    assert "batch_size=8 // idist.get_world_size()" in code


def test_the_sampler_is_told_the_epoch_where_there_is_one() -> None:
    assert "if idist.get_world_size() > 1: loader.sampler.set_epoch(epoch)" in code_of(HEAD + LOOP)


def guarded(body: str, above: str = "") -> str:
    lines = "".join(f"    {line}\n" for line in body.splitlines())
    imports, _, rest = HEAD.partition("\n\n")
    return (
        f"{imports}\n\n{above}\nif __name__ == '__main__':\n"
        + "".join(f"    {line}\n" for line in rest.splitlines())
        + lines
    )


def test_names_of_the_main_guard_that_functions_read_stay_global() -> None:
    above = "rate = 0.1\n\ndef show():\n    print(epochs)\n\n"
    code = code_of(guarded("epochs = 3\nrate = rate / 2\n" + LOOP + "show()", above))
    assert "def training(local_rank): global epochs, rate if idist.get_rank() != 0:" in code
    assert "parallel.run(training)" in code and "idist.finalize()" not in code


@pytest.mark.parametrize("extra", ["from math import *", "class Own(torch.nn.Linear):\n    pass", "n: int = 1"])
def test_a_main_guard_that_cannot_be_a_function_joins_the_processes(extra: str) -> None:
    result = converted(guarded(f"{extra}\n{LOOP}"))
    assert "    idist.initialize(launched.backend)\n" in result.code and "parallel.run" not in result.code
    assert "DDP621" in {finding.rule for finding in result.findings if finding.severity == "note"}


def test_what_the_main_guard_imports_is_imported_for_all() -> None:
    code = code_of(guarded(f"import sys\nimport os.path as paths\n{LOOP}sys.exit(0)"))
    assert "def training(local_rank): global paths, sys if" in code


def test_a_function_called_training_is_left_alone() -> None:
    code = code_of(guarded(LOOP, "def training():\n    pass\n\n"))
    assert "def training_(local_rank):" in code and "parallel.run(training_)" in code


def test_flags_of_the_script_are_not_taken() -> None:
    code = code_of(f"backend = '--backend'\n{HEAD}{LOOP}")
    assert 'add_argument("--idist_backend"' in code and "idist.initialize(launched.idist_backend)" in code


def test_a_download_is_made_by_one_rank_first() -> None:
    head = HEAD.replace("\n\n", "\nfrom torchvision import datasets\n\n", 1)
    made = 'data = datasets.MNIST("data", download=True)'
    head = head.replace("data = TensorDataset(torch.rand(64, 4), torch.rand(64, 1))", made)
    code = converted(head + LOOP.replace("mse_loss", "cross_entropy")).code
    assert f"with idist.one_rank_first():\n    {made}\n" in code and "barrier" not in code


def test_the_model_is_taken_out_of_a_wrapper_that_may_not_be_there() -> None:
    body = LOOP.replace("model(x)", "net(x)").replace("\n", "\n    ").rstrip()
    fit = f"def fit(net):\n    {body}\n    torch.save(net.state_dict(), 'a')\n\nfit(model)\n"
    assert "torch.save(getattr(net, 'module', net).state_dict(), 'a')" in code_of(HEAD + fit)
    owner = "class Own(torch.nn.Linear):\n    def __init__(self):\n        self.module = None\n\n"
    refused = [each for each in converted(f"import torch\n{owner}{HEAD}{fit}").findings if each.severity == "refused"]
    assert [(each.rule, "module" in each.message) for each in refused] == [("DDP602", True)]


def test_what_differs_is_said() -> None:
    clips = "torch.nn.utils.clip_grad_norm_(model.parameters(), 1)\n        optimizer.step()"
    clipped = LOOP.replace("optimizer.step()", clips)
    told = [(each.line, each.message) for each in converted(HEAD + clipped).findings]
    assert [line for line, message in told if "unless it is smaller" in message] == [5]
    assert [line for line, message in told if "gradients of zero" in message] == [7]
    assert [line for line, message in told if "of one rank" in message] == [12]


def test_batchnorm_is_synchronized_by_the_engine() -> None:
    head = HEAD.replace("torch.nn.Linear(4, 1)", "torch.nn.Sequential(torch.nn.BatchNorm1d(4), torch.nn.Linear(4, 1))")
    assert "idist.auto_model(model, sync_bn=True)" in converted(head + LOOP, sync_batchnorm=True).code


def test_what_speaks_of_it_already_stays() -> None:
    once = converted(HEAD + LOOP).code
    again = converted(once)
    assert (again.code, again.reason) == (once, "distributed with Ignite already")


def test_an_exact_conversion_becomes_the_plain_one() -> None:
    exact = convert({PATH: HEAD + LOOP}, "cpu")[PATH].code
    assert converted(exact).code == converted(HEAD + LOOP).code


def test_there_is_no_exact_style(tmp_path: Path) -> None:
    script = tmp_path / "train.py"
    script.write_text(HEAD + LOOP)
    with pytest.raises(BadInput) as error:
        run(CommandLine((str(script),), target="ignite", style="exact"))
    assert "plain" in error.value.problem.message and script.read_text() == HEAD + LOOP
    report, _ = run(CommandLine((str(script),), target="ignite"))
    assert report.exit_code == 0 and "ddpify" not in script.read_text()
