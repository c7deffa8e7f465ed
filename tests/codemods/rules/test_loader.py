from __future__ import annotations

from pathlib import Path

import pytest
from ddpify_codemods import convert

from .snippet import check_noop, check_transformed, findings, imports_of


@pytest.mark.parametrize(
    ("lines", "imports"),
    [
        ("def run(loader: DataLoader) -> None:\n    pass", "from torch.utils.data import DataLoader\n"),
        ("known = isinstance(3, DataLoader)", "from torch.utils.data import DataLoader\n"),
        ("loader = DataLoader([])", "from torch_geometric.loader import DataLoader\n"),
        ("class Mine(DataLoader):\n    pass\nloader = Mine([])", "from torch.utils.data import DataLoader\n"),
        ("loader = torch.utils.data.BatchSampler([], 3, False)", ""),
    ],
)
def test_nothing_to_load(lines: str, imports: str) -> None:
    check_noop(lines, imports=imports)
    assert imports in imports_of(lines, imports=imports)


def test_a_derived_class_is_a_note() -> None:
    found = findings("class Mine(DataLoader):\n    pass", imports="from torch.utils.data import DataLoader\n")
    assert [(each.rule, each.severity) for each in found] == [("DDP109", "note")]


@pytest.mark.parametrize("line", ["writer.add_images('x', x)", "viz.images(x)"])
def test_where_rank_zero_needs_whole_batches(line: str) -> None:
    imports = "from torch.utils.data import DataLoader\n"
    lines = f"loader = DataLoader([])\n{line}"
    assert "DDP109" in [each.rule for each in findings(lines, imports=imports)]
    assert "from torch.utils.data import DataLoader\n" in imports_of(lines, imports=imports)


@pytest.mark.parametrize("line", ["rng = np.random.default_rng(0)", "rng = random.Random(3)"])
def test_a_generator_is_watched_in_the_run(line: str) -> None:
    imports = "import random\nimport numpy as np\nfrom torch.utils.data import DataLoader\n"
    lines = f"loader = DataLoader([])\n{line}"
    assert "    DataLoader,\n" in imports_of(lines, imports=imports)


@pytest.mark.parametrize(
    ("imports", "above"),
    [
        ("from torch.utils.data import DataLoader\n", "    DataLoader,\n"),
        ("from torch.utils.data import DataLoader, Dataset\n", "from torch.utils.data import Dataset\n"),
        ("from torch.utils.data import DataLoader as DL\n", "from ddpify_runtime import DataLoader as DL\n"),
    ],
)
def test_the_import_moves(imports: str, above: str) -> None:
    lines = "loader = DL([])" if " DL" in imports else "loader = DataLoader([])"
    check_noop(lines, imports=imports)
    assert above in imports_of(lines, imports=imports)


@pytest.mark.parametrize(
    ("before", "imports"),
    [
        ("loader = torch.utils.data.DataLoader([], 3)", ""),
        ("loader = data.DataLoader([], 3)", "import torch.utils.data as data\n"),
        ("loader = data.DataLoader([], 3)", "from torch.utils import data\n"),
        ("loader = DataLoader([], 3)", "from torch.utils.data import *\n"),
    ],
)
def test_a_dotted_name_becomes_the_runtime_s(before: str, imports: str) -> None:
    check_transformed(before, "loader = DataLoader([], 3)", imports=imports)
    assert "    DataLoader,\n" in imports_of(before, imports=imports)


def test_a_taken_name_gets_another() -> None:
    lines = "class DataLoader:\n    pass\nloader = torch.utils.data.DataLoader([])"
    check_transformed(lines, lines.replace("torch.utils.data.DataLoader", "ddpify_DataLoader"))


def test_an_import_that_nothing_uses_gives_its_name() -> None:
    source = (
        "import torch\nfrom torch.utils.data import DataLoader\nmodel = torch.nn.Linear(2, 1)\n"
        "loader = torch.utils.data.DataLoader(data, shuffle=True)\noptimizer = torch.optim.SGD(model.parameters())\n"
        "for x in loader:\n    model(x).mean().backward()\n    optimizer.step()\n"
    )
    code = convert({Path("train.py"): source}, "cpu")[Path("train.py")].code
    assert "torch.utils.data" not in code and "loader = DataLoader(data, shuffle=True)" in code
