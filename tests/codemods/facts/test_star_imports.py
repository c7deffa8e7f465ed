"""Names that come by `from module import *`."""

from __future__ import annotations

import importlib

import pytest
from ddpify_codemods.facts.star_imports import _NAMES, star_names

from tests.codemods.checks import script_of
from tests.codemods.plain.test_followed import plain, refusals

SCRIPT = """\
from torch.nn import *
from torch.utils.data import *
from torch.optim import *
from tqdm import *
import torch

torch.manual_seed(0)
data = TensorDataset(torch.rand(64, 4), torch.rand(64, 1))
loader = DataLoader(data, batch_size=8, shuffle=True)
model = Linear(4, 1)
optimizer = SGD(model.parameters(), lr=0.1)
for x, y in tqdm(loader):
    loss = functional.mse_loss(model(x), y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
"""


@pytest.mark.parametrize("module", _NAMES)
def test_the_modules_have_these_names(module: str) -> None:
    made = importlib.import_module(module)
    public = getattr(made, "__all__", None) or [name for name in dir(made) if not name.startswith("_")]
    assert set(dict(star_names([module]))) <= set(public)


def test_a_name_of_the_file_is_its_own() -> None:
    script = script_of("from torch.nn import *\nfrom tqdm import *\nclass Linear: pass\ntqdm = list\n")
    assert script.imported["Module"] == "torch.nn.Module"
    assert {"Linear", "tqdm"}.isdisjoint(script.by_star)


def test_a_script_that_imports_all_of_torchs_modules_is_followed() -> None:
    result = plain(SCRIPT)
    assert not refusals(result)
    assert "for x, y in tqdm(loader, disable=dist.get_rank() != 0):" in result.code
    assert "functional.mse_loss(ddp_model(x), y)" in result.code
