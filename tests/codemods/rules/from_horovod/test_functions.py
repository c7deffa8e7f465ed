"""Functions that take the place of Horovod's collectives."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
import torch
from ddpify_codemods.rule import Finding, Insert
from ddpify_codemods.rules.from_horovod.functions import functions

from tests.codemods.checks import script_of


def test_each_function_once_and_in_order() -> None:
    script = script_of("import os\nimport torch\nprint(1)\n")
    edits = [*functions(script, "DDP645", ["rows_of_ranks", "objects_of_ranks", "rows_of_ranks"])]
    names = [edit.code.split("(")[0].split()[-1] for edit in edits if isinstance(edit, Insert)]
    assert names == ["objects_of_ranks", "rows_of_ranks"]
    assert {edit.at for edit in edits if isinstance(edit, Insert)} == {script.tree.body[1]}


@pytest.mark.parametrize("source", ["import torch\n\n\ndef tensor_of_rank(x):\n    return x\n", "print(1)\n"])
def test_a_name_that_is_taken_or_a_file_without_imports(source: str) -> None:
    [finding] = functions(script_of(source), "DDP645", ["tensor_of_rank"])
    assert isinstance(finding, Finding)
    assert (finding.rule, finding.severity) == ("DDP645", "refused") and "`tensor_of_rank`" in finding.message


@pytest.mark.parametrize(("numbers", "average"), [([3, 4], 3), ([-3, -4], -3), ([1.0, 2.0], 1.5)])
def test_whole_numbers_are_averaged_as_horovod_does(numbers: list[float], average: float) -> None:
    [edit] = functions(script_of("import torch\n"), "DDP645", ["average_over_ranks"])
    assert isinstance(edit, Insert)
    given = torch.tensor(numbers)
    known: dict[str, Any] = {
        "torch": torch,
        "dist": SimpleNamespace(get_world_size=lambda: 2),
        "reduced_over_ranks": torch.sum,
    }
    exec(edit.code, known)
    assert known["average_over_ranks"](given).item() == average
