"""Programs in the plain style, and imports that nothing needs afterwards."""

from __future__ import annotations

from pathlib import Path

from ddpify_codemods import convert
from ddpify_codemods.to_plain import without_idle_imports

from tests.codemods.checks import script_of

PATH = Path("train.py")
SCRIPT = """\
import torch
from torch.utils.data import DataLoader, TensorDataset

model = torch.nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
loader = DataLoader(TensorDataset(torch.rand(8, 4)), batch_size=4, shuffle=True)
for (x,) in loader:
    optimizer.zero_grad()
    model(x).mean().backward()
    optimizer.step()
"""


def test_the_output_needs_torch_alone() -> None:
    code = convert({PATH: SCRIPT}, "cpu", style="plain")[PATH].code
    assert "ddpify" not in code
    for name in ("init_process_group", "DistributedSampler", "DistributedDataParallel", "destroy_process_group"):
        assert name in code


def test_imports_that_nothing_needs_any_more_go() -> None:
    script = script_of("import os\nimport sys\nprint(os.name, sys.argv)\n")
    assert without_idle_imports(script, "import os\nimport sys\nprint(sys.argv)\n") == "import sys\nprint(sys.argv)\n"
    assert without_idle_imports(script, script.text) == script.text
