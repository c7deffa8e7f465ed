"""Names that only ever said which GPU a process has."""

from __future__ import annotations

import pytest
from ddpify_codemods.facts.leftovers import idle_assignments

from tests.codemods.checks import script_of, sources_of


@pytest.mark.parametrize(("use", "is_idle"), [("model.to(device_id)", True), ("print(device_id)", False)])
def test_a_name_that_only_chooses_a_gpu_is_idle(use: str, is_idle: bool) -> None:
    script = script_of(f"import torch\ndevice_id = rank % torch.cuda.device_count()\nmodel = {use}")
    assert sources_of(idle_assignments(script)) == ["device_id = rank % torch.cuda.device_count()"] * is_idle


def test_a_name_that_says_no_gpu_is_not() -> None:
    assert not list(idle_assignments(script_of("x = 3\nmodel.to(x)")))


@pytest.mark.parametrize(
    ("other", "is_idle"), [('torch.device("cpu")', False), ("args.device", False), ('torch.device("cuda:0")', True)]
)
def test_a_name_that_may_be_the_cpu_is_not(other: str, is_idle: bool) -> None:
    lines = f'if args.cuda:\n    device = torch.device("cuda")\nelse:\n    device = {other}\nmodel = model.to(device)'
    assert bool(list(idle_assignments(script_of(f"import torch\n{lines}")))) is is_idle
