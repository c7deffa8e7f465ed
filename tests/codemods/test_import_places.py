"""New imports stand where isort puts them, in files whose imports are sorted."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from ddpify_codemods import convert

from tests.e2e import fixtures
from tests.update_fixtures import TARGETS

TRAINING = """
model = torch.nn.Linear(2, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
model(torch.ones(4, 2)).mean().backward()
optimizer.step()
"""


def unsorted(folder: Path) -> set[str]:
    """The files of a folder that ruff's isort would change."""
    command = [sys.executable, "-m", "ruff", "check", "--isolated", "--select", "I001", "--output-format", "concise"]
    lines = subprocess.run([*command, "."], cwd=folder, capture_output=True, text=True).stdout.splitlines()
    return {line.split(":")[0] for line in lines if "I001" in line}


def test_sorted_files_stay_sorted(tmp_path: Path) -> None:
    for name in fixtures.names():
        fixture = fixtures.load(name)
        for relative, path in fixtures.files(fixture).items():
            if path.suffix == ".py":
                place = tmp_path / "before" / name / relative
                place.parent.mkdir(parents=True, exist_ok=True)
                place.write_bytes(path.read_bytes())
        for target in TARGETS:
            for relative, content in fixtures.expected(fixture, target).items():
                place = tmp_path / target / name / relative
                place.parent.mkdir(parents=True, exist_ok=True)
                place.write_bytes(content)
        for relative, content in fixtures.expected(fixture, "plain.cpu").items():
            place = tmp_path / "plain" / name / relative
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_bytes(content)
    before = unsorted(tmp_path / "before")
    assert before, "ruff has found nothing at all"
    for target in (*TARGETS, "plain"):
        assert unsorted(tmp_path / target) - before == set()


@pytest.mark.parametrize(
    "head",
    [
        "import torch\n",
        '"""Trains."""\n\n# tensors\nimport torch\n',
        "from __future__ import annotations\n\nimport torch\n",
        "from __future__ import annotations\n\nimport random\n\nimport torch\n",
        "import argparse\n\nimport torch\n",
        "import numpy\nimport torch  # a library\nimport yaml\n",
        "import torch\n\nimport nets\n",
    ],
)
def test_what_a_plain_conversion_imports_has_a_section_of_its_own(head: str, tmp_path: Path) -> None:
    loop = TRAINING.replace("model(torch.ones(4, 2))", "for x, in loader:\n    model(x)").replace("\nopt", "\n\nopt", 1)
    loader = "loader = torch.utils.data.DataLoader(torch.utils.data.TensorDataset(torch.ones(4, 2)), batch_size=4)\n"
    files = {Path("train.py"): f"{head}\n{loader}{loop}", Path("nets.py"): "A = 1\n"}
    code = convert(files, "cpu", style="plain")[Path("train.py")].code
    (tmp_path / "train.py").write_text(code)
    (tmp_path / "nets.py").write_text("A = 1\n")
    assert "\nimport os\nimport sys\n" in f"\n{code}".replace("import random\n", "") and unsorted(tmp_path) == set()


@pytest.mark.parametrize("above", ["", '"""Trains."""\n', "#!/usr/bin/env python\n# mine\n\n"])
@pytest.mark.parametrize("target", ["cpu", "cuda"])
def test_imports_of_the_future_stay_the_first(above: str, target: str) -> None:
    loop = TRAINING.replace("model(torch.ones(4, 2))", "for x, in loader:\n    model(x)").replace("\nopt", "\n\nopt", 1)
    loader = "loader = torch.utils.data.DataLoader(torch.utils.data.TensorDataset(torch.ones(4, 2)), batch_size=4)\n"
    text = (
        f"{above}from __future__ import division\nfrom __future__ import print_function\nimport torch\n{loader}{loop}"
    )
    code = convert({Path("train.py"): text}, target, style="plain")[Path("train.py")].code
    first = "from __future__ import division\nfrom __future__ import print_function\nimport os\nimport sys\n\nimport"
    assert code.startswith(above + first)
    compile(code, "train.py", "exec", dont_inherit=True)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (  # above the first of a section, below its comment
            "import os\n\n# tensors\nimport torch\n",
            "import os\n\n# tensors\nimport ddpify_runtime.xla\nimport torch\nimport torch_xla\nfrom ddpify",
        ),
        (  # sorted: among the third-party imports
            "import numpy\nimport torch\nfrom torch import nn\n\nimport nets\n",
            "import ddpify_runtime.xla\nimport numpy\nimport torch\nimport torch_xla\nfrom ddpify_runtime import",
        ),
        (  # not sorted: beside torch
            "import torch\nimport os\nimport yaml\n",
            "import torch\nimport ddpify_runtime.xla\nimport torch_xla\nfrom ddpify_runtime import",
        ),
        (  # sorted, with a star that has names of ours: behind it
            "import torch\nfrom torch.utils.data import *\n\nfrom nets import *\n",
            "import torch\nfrom torch.utils.data import *\n\nfrom nets import *\nimport ddpify_runtime.xla\n"
            "import torch_xla\nfrom ddpify_runtime import",
        ),
        (  # the same where it is tried
            "import torch\ntry:\n    from torch.utils.data import *\nexcept ImportError:\n    pass\n",
            "import torch\ntry:\n    from torch.utils.data import *\nexcept ImportError:\n    pass\n"
            "import ddpify_runtime.xla\nimport torch_xla\nfrom ddpify_runtime import",
        ),
        (  # two sections with torch
            "import torch\n\nfrom torch import nn\nimport yaml\n",
            "import torch\n\nfrom torch import nn\nimport ddpify_runtime.xla\nimport torch_xla\nfrom ddpify_runtime",
        ),
    ],
)
def test_places(before: str, after: str) -> None:
    path = Path("train.py")
    assert convert({path: before + TRAINING}, "xla")[path].code.startswith(after)
