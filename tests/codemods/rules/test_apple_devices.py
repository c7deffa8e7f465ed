"""Scripts for Apple's GPU (DDP133)."""

from __future__ import annotations

from pathlib import Path

import pytest
from ddpify_codemods import convert

TRAINING = """\
import torch

{choice}
{seeds}
model = torch.nn.Linear(4, 1).to(device)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for _ in range(10):
    loss = model(torch.rand(8, 4).to(device)).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
"""
ALONE = 'device = torch.device("mps:0" if torch.backends.mps.is_available() else "cpu")'


def lines(target: str, choice: str, seeds: str = "torch.manual_seed(1)") -> list[str]:
    """The first lines of a converted training with a choice of its device."""
    path = Path("train.py")
    code = convert({path: TRAINING.format(choice=choice, seeds=seeds)}, target)[path].code
    return code[: code.index("model =")].splitlines()


@pytest.mark.parametrize(("target", "kind"), [("cuda", "cuda"), ("xpu", "xpu")])
def test_the_target_s_gpu_is_taken_for_apple_s(target: str, kind: str) -> None:
    code = lines(target, ALONE, "torch.mps.manual_seed(1)")
    assert f'device = torch.device("{kind}" if torch.{kind}.is_available() else "cpu")' in code
    assert f"torch.{kind}.manual_seed(1)" in code


def test_a_comparison_goes_with_the_name() -> None:
    choice = 'device = "mps" if torch.backends.mps.is_built() else "cpu"\nprint("mps", device == "mps")'
    code = lines("cuda", choice)
    assert 'device = "cuda" if torch.cuda.is_available() else "cpu"' in code
    assert 'print("mps", device == "cuda")' in code


def test_a_comment_knows_no_other_gpu() -> None:
    code = lines("cuda", 'device = "mps"  # or "cuda"')
    assert 'device = "cuda"  # or "cuda"' in code


@pytest.mark.parametrize("known", ["torch.cuda.manual_seed(1)", "from torch import cuda", 'other = "cuda:1"'])
def test_a_file_that_names_others_keeps_apple_s(known: str) -> None:
    assert ALONE in lines("cuda", ALONE, known)


def test_a_file_that_knows_both_chooses_in_the_run() -> None:
    choice = ALONE.replace('"cpu"', '"cuda" if torch.cuda.is_available() else "cpu"')
    assert choice in lines("cuda", choice)


def test_a_target_without_gpus_needs_none() -> None:
    assert any('torch.device("cpu")' in line or line == 'device = "cpu"' for line in lines("cpu", ALONE))
