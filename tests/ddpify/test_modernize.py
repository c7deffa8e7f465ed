"""--modernize: what is asked for, what is only told, and what makes no sense."""

from __future__ import annotations

from pathlib import Path

from tests.ddpify.command import TRAIN, ddpify, lines, put

OLD = """\
import torch
import torch_xla.core.xla_model as xm

device = xm.xla_device()
model = torch.nn.Linear(4, 1).to(device)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
model(torch.ones(2, 4).to(device)).mean().backward()
xm.optimizer_step(optimizer)
xm.mark_step()
"""


def test_told(tmp_path: Path) -> None:
    put(tmp_path, train=OLD)
    assert lines(ddpify("train.py", "--target", "xla", cwd=tmp_path).stdout) == [
        "train.py:4: xla_device is deprecated: use torch_xla.device; rewrite it with --modernize [DDP211]",
        "train.py:9: mark_step is deprecated: use torch_xla.sync; rewrite it with --modernize [DDP211]",
        "nothing to do in train.py: XLA code already",
    ]
    assert (tmp_path / "train.py").read_text() == OLD


def test_asked_for(tmp_path: Path) -> None:
    put(tmp_path, train=OLD)
    said = lines(ddpify("train.py", "--target", "xla", "--modernize", cwd=tmp_path).stdout)
    assert said[0] == "converted train.py for xla" and said[-1] == "start it with: python train.py"
    code = (tmp_path / "train.py").read_text()
    assert "device = torch_xla.device()" in code and "mark_step" not in code
    assert lines(ddpify("train.py", "--target", "xla", "--modernize", cwd=tmp_path).stdout) == [
        "nothing to do in train.py: XLA code already"
    ]


def test_a_check_finds_it_if_asked(tmp_path: Path) -> None:
    put(tmp_path, train=OLD)
    ddpify("train.py", "--target", "xla", "--check", cwd=tmp_path)
    ddpify("train.py", "--target", "xla", "--check", "--modernize", cwd=tmp_path, code=1)


def test_another_target(tmp_path: Path) -> None:
    put(tmp_path, train=TRAIN)
    said = ddpify("train.py", "--target", "cpu", "--modernize", cwd=tmp_path, code=2)
    assert lines(said.stderr) == ["ddpify: --modernize is for torch_xla code, the target is cpu; add --target xla"]
