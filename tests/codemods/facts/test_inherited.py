"""Names of libraries that a script gets through another file of its program."""

from __future__ import annotations

from pathlib import Path

import pytest
from ddpify_codemods import convert

COMMON = """\
import torch
import torch.nn as nn
import torch.optim as optim
from torch.utils.data import DataLoader, TensorDataset
from torch.autograd import grad
"""
TRAIN = """\
{imports}

if __name__ == "__main__":
    model = nn.DataParallel(nn.Linear(4, 1))
    loader = DataLoader(TensorDataset(torch.rand(8, 4)), batch_size=2, shuffle=True)
    optimizer = optim.SGD(model.parameters(), lr=0.1)
    for (x,) in loader:
        optimizer.zero_grad()
        model(x).mean().backward()
        optimizer.step()
{more}"""
STAR = "from common import *"
NAMES = "from common import torch, nn, optim, DataLoader, TensorDataset, grad"
FOLDER = Path("/project")


def converted(imports: str, common: str = COMMON, more: str = "", **others: str) -> dict[str, str]:
    """The files afterwards; a file that is refused stays, and so do the others."""
    texts = {"train": TRAIN.format(imports=imports, more=more), "common": common, **others}
    results = convert({FOLDER / f"{name}.py": text for name, text in texts.items()}, "cpu")
    return {path.stem: result.code for path, result in results.items()}


@pytest.mark.parametrize("imports", [STAR, NAMES, "from base import *"])
def test_they_mean_what_they_mean_there(imports: str) -> None:
    code = converted(imports, base="from common import *\n")["train"]
    from_runtime = code.split("from ddpify_runtime import (")[1].split(")")[0]
    assert "DataParallel," in from_runtime
    assert "DataLoader," in from_runtime or "from ddpify_runtime import DataLoader as ddpify_DataLoader" in code
    assert "model = DataParallel(nn.Linear(4, 1))" in code
    assert code.index(imports) < code.index("from ddpify_runtime")


@pytest.mark.parametrize("imports", [STAR, NAMES])
def test_what_is_refused_is_refused_through_another_file_too(imports: str) -> None:
    more = "        g = torch.func.grad(model)(x)\n"
    files = converted(imports, more=more)
    assert files["train"] == TRAIN.format(imports=imports, more=more)


@pytest.mark.parametrize("imports", [STAR, NAMES])
def test_a_function_that_is_replaced_is_replaced_through_another_file_too(imports: str) -> None:
    code = converted(imports, more="        g = grad(model(x).sum(), list(model.parameters()))\n")["train"]
    name = "grad" if imports == STAR else "ddpify_grad"  # what comes later hides what the star brought
    assert ("    grad,\n" if imports == STAR else "from ddpify_runtime import grad as ddpify_grad\n") in code
    assert f"g = {name}(model(x).sum()," in code
    assert code.index(imports) < code.index("from ddpify_runtime")


@pytest.mark.parametrize("common", [COMMON + "\n\nclass DataLoader:\n    pass\n", "__all__ = ['torch']\n" + COMMON])
def test_what_the_other_file_makes_itself_or_keeps_is_no_library(common: str) -> None:
    assert "DataLoader," not in converted(STAR, common)["train"]


def test_many_files_that_import_each_other_take_no_time() -> None:
    """A package whose parts all begin with `from . import …` has more ways through it than can be walked."""
    parts = {f"part{n}": "".join(f"from part{m} import *\n" for m in range(14) if m != n) for n in range(14)}
    code = converted("from part0 import *", part13=parts.pop("part13") + STAR, **parts)["train"]
    assert "DistributedDataParallel(model)" in code
