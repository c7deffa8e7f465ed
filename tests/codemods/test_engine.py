"""What convert() does with a program: nothing, a refusal, or a rewrite that it has checked."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from ddpify_codemods import Change, SourceError, convert

ENTRY, NETS, DATA = Path("train.py"), Path("nets.py"), Path("data.py")
TRAINING = """\
import torch

model = torch.nn.Linear(2, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
model(torch.ones(4, 2)).mean().backward()
optimizer.step()
"""
ASKING = "import torch\n\nwidth = int(input())\n"


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "empty file"),
        (" \n\n", "empty file"),
        ("print(1)\n", "no torch in it"),
        ("this is no Python, and there is no t-word in it", "no torch in it"),
        ("import torch\n\nprint(torch.ones(1))\n", "no training loop"),
        ("import torch\n\n\nclass Net(torch.nn.Module):\n    pass\n", "no training loop"),
        ("import torch\n\nx = torch.ones(1, requires_grad=True)\nx.backward()\n", "no training loop"),
        ("import torch\nfrom ddpify_runtime import init_process_group\n", "no training loop"),
    ],
)
def test_nothing_to_do(text: str, reason: str) -> None:
    result = convert({ENTRY: text}, "cpu")[ENTRY]
    assert (result.code, result.reason, result.changes, result.findings) == (text, reason, (), ())


@pytest.mark.parametrize("target", ["cpu", "cuda", "xla"])
def test_a_second_conversion_has_nothing_to_do(target: str) -> None:
    once = convert({ENTRY: TRAINING}, target)[ENTRY]
    assert once.code != TRAINING and once.reason == ""
    assert convert({ENTRY: once.code}, target)[ENTRY].reason == "already converted"


def test_changes_name_the_lines_of_the_original() -> None:
    changes = convert({ENTRY: TRAINING}, "cpu")[ENTRY].changes
    assert [(change.rule, change.line) for change in changes] == [("DDP101", 1), ("DDP102", 4), ("DDP101", 6)]
    assert changes[1] == Change("DDP102", 4, "make model distributed")


def test_a_refusal_in_one_file_leaves_all_of_them() -> None:
    results = convert({ENTRY: f"import nets\n{TRAINING}", NETS: ASKING}, "cpu")
    assert results[ENTRY].code == f"import nets\n{TRAINING}"
    assert results[ENTRY].findings == () and results[ENTRY].changes == ()
    [finding] = results[NETS].findings
    assert (finding.rule, finding.severity, finding.line) == ("DDP307", "refused", 3)


def test_only_the_entry_joins_the_process_group() -> None:
    results = convert({ENTRY: TRAINING, NETS: TRAINING}, "cpu")
    assert "init_process_group" in results[ENTRY].code
    assert "init_process_group" not in results[NETS].code
    assert "DistributedDataParallel(model)" in results[NETS].code


def test_a_converted_module_of_another_program_is_read_like_the_others() -> None:
    converted = "from ddpify_runtime import rank_zero_only\n\nwidth = int(input())\n"
    [finding] = convert({ENTRY: TRAINING, NETS: converted}, "cpu")[NETS].findings
    assert (finding.rule, finding.severity) == ("DDP307", "refused")


def test_loop_and_optimizer_may_be_in_different_files() -> None:
    entry = "import torch\nfrom nets import fit\n\nfit(torch.nn.Linear(2, 1))\n"
    fit = (
        "from torch import optim\n\n\ndef fit(model):\n    optimizer = optim.SGD(model.parameters())\n"
        "    model().backward()\n"
    )
    results = convert({ENTRY: entry, NETS: fit}, "cpu")
    assert "    model = DistributedDataParallel(model)\n    optimizer" in results[NETS].code
    assert "init_process_group" in results[ENTRY].code


def test_a_module_with_a_loop_but_without_entry_code_does_not_join() -> None:
    text = TRAINING.replace("\nmodel", "\n\ndef fit():\n    model", 1).replace("\noptimizer", "\n    optimizer")
    text = text.replace("\nmodel(", "\n    model(")
    code = convert({ENTRY: text}, "cpu")[ENTRY].code
    assert "DistributedDataParallel" in code and "init_process_group" not in code


@pytest.mark.parametrize("text", ["import torch\nprint 1\n", "import torch\ndef f(:\n", "import torch\n  x = 1\n"])
def test_text_that_does_not_parse(text: str) -> None:
    with pytest.raises(SourceError, match="not valid Python 3") as caught:
        convert({DATA: text}, "cpu")
    assert (caught.value.path, caught.value.line) == (DATA, 2)


def test_null_bytes() -> None:
    with pytest.raises(SourceError):
        convert({DATA: "import torch\0"}, "cpu")


def test_odd_escapes_do_not_warn() -> None:
    assert convert({ENTRY: TRAINING + "pattern = '\\d'\n"}, "cpu")[ENTRY].code.endswith("destroy_process_group()\n")


@pytest.mark.parametrize(
    "comment", ["# ddpify: ignore[DDP307]", "# why  # ddpify: ignore", "#ddpify:ignore[DDP1, DDP307]"]
)
def test_a_rule_can_be_ignored_on_a_line(comment: str) -> None:
    asking = f"{ASKING.rstrip()}  {comment}\n"
    result = convert({ENTRY: TRAINING, NETS: asking}, "cpu")
    assert result[NETS].findings == ()
    assert result[ENTRY].code != TRAINING


def test_another_rule_is_not_ignored() -> None:
    text = ASKING.rstrip("\n") + "  # ddpify: ignore[DDP101]\n"
    assert convert({ENTRY: TRAINING, NETS: text}, "cpu")[NETS].findings


def test_ignored_edits_are_not_made() -> None:
    text = TRAINING.replace("lr=0.1)", "lr=0.1)  # ddpify: ignore[DDP102]")
    assert "DistributedDataParallel" not in convert({ENTRY: text}, "cpu")[ENTRY].code


def test_a_program_of_which_nothing_is_divided_is_warned_of() -> None:
    text = "from torch import optim\nfrom nets import weights\noptimizer = optim.SGD(weights)\nloss.backward()\n"
    [finding] = convert({ENTRY: text}, "cpu")[ENTRY].findings
    assert (finding.rule, finding.severity, finding.line) == ("DDP102", "warning", 3)


def test_libcst_is_only_imported_to_rewrite() -> None:
    code = (
        "import sys, pathlib, ddpify_codemods as d\n"
        "d.convert({pathlib.Path('a.py'): 'import torch'}, 'cpu')\n"
        "assert 'libcst' not in sys.modules and 'torch' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
