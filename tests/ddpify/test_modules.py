"""Packages whose script is started as `python -m package.train`: what is recommended, run and verified."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from ddpify.files import BadInput
from ddpify.modules import locate, started_as
from tests.ddpify.command import ddpify, environment, lines

NET = "import torch\n\n\ndef build():\n    return torch.nn.Linear(4, 1)\n"
TRAIN = """\
import argparse

import torch
from .net import build

if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--s", type=float, default=1.0)
    options = parser.parse_args()
    torch.manual_seed(0)
    model = build()
    optimizer = torch.optim.SGD(model.parameters(), lr=options.s)
    for step in range(3):
        optimizer.zero_grad()
        loss = model(torch.randn(8, 4)).pow(2).mean()
        loss.backward()
        optimizer.step()
        print(f"{loss.item():.6f}")
"""


@pytest.fixture
def package(tmp_path: Path) -> Path:
    """A folder with a package whose script imports relatively."""
    (tmp_path / "pkg").mkdir()
    for name, text in {"__init__": "", "net": NET, "train": TRAIN}.items():
        (tmp_path / "pkg" / f"{name}.py").write_text(text)
    return tmp_path


def printed(command: list[str] | str, folder: Path) -> list[str]:
    """What a command prints, started by hand."""
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    variables = environment() | {"OMP_NUM_THREADS": "1", "PATH": path}
    shell = isinstance(command, str)
    done = subprocess.run(
        command, cwd=folder, env=variables, shell=shell, capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.split()


def test_what_is_recommended_runs_with_the_options_of_the_script(package: Path) -> None:
    expected = printed([sys.executable, "-m", "pkg.train", "--s", "0.1"], package)
    said = lines(ddpify("pkg/train.py", "--target", "cpu", cwd=package).stdout)
    start = "torchrun --standalone --nproc-per-node 2 -m -- pkg.train"
    assert f"start it with: {start}" in said
    assert printed(f"{start} --s 0.1", package) == expected
    run = [sys.executable, "-m", "ddpify", "run", "-n", "2", "-m", "pkg.train", "--", "--s", "0.1"]
    assert printed(run, package) == expected
    done = ddpify("run", "pkg/train.py", cwd=package, code=2)
    assert lines(done.stderr) == ["pkg/train.py: imports relatively to its package; ddpify run -m pkg.train"]


def test_from_another_folder_the_package_is_put_on_the_path(package: Path) -> None:
    done = ddpify("train.py", "--target", "cpu", "--diff", cwd=package / "pkg")
    assert b"start it with: PYTHONPATH=.. torchrun --standalone --nproc-per-node 2 -m -- pkg.train" in done.stderr


@pytest.mark.nightly
def test_verify_runs_a_module(package: Path) -> None:
    done = ddpify("verify", "-m", "pkg.train", "--", "--s", "0.1", cwd=package, OMP_NUM_THREADS="1")
    assert b"EQUAL: pkg/train.py in one process, and its conversion in 2 processes, over 3" in done.stdout
    done = ddpify("verify", "pkg/train.py", cwd=package, code=2)
    assert lines(done.stderr) == ["pkg/train.py: imports relatively to its package; ddpify verify -m pkg.train"]


@pytest.mark.parametrize(
    ("name", "text", "started"),
    [
        ("pkg/train.py", "from .net import build", (".", "pkg.train")),
        ("pkg/deep/train.py", "from ..net import build", (".", "pkg.deep.train")),  # without an __init__.py
        ("pkg/__main__.py", "def main():\n    from . import net", (".", "pkg")),
        ("pkg/train.py", "import net", None),
        ("pkg/train.py", "try:\n    from .net import f\nexcept ImportError:\n    from net import f", None),
        ("my-package/train.py", "from .net import build", None),
        ("pkg/train.py", "from .net import", None),
    ],
)
def test_who_has_to_be_started_as_a_module(
    tmp_path: Path, name: str, text: str, started: tuple[str, str] | None
) -> None:
    expected = started and (tmp_path / started[0], started[1])
    assert started_as(tmp_path / name, text) == expected


def test_where_a_module_is(package: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(package)
    (package / "pkg" / "__main__.py").touch()
    (package / "folder").mkdir()
    (package / "folder" / "script.py").touch()
    assert locate("pkg.train") == Path("pkg/train.py")
    assert locate("pkg") == Path("pkg/__main__.py")
    assert locate("folder.script") == Path("folder/script.py")
    for name in ("folder", "nothing", "pkg.nothing", "pkg/train.py", "math", ".train"):
        with pytest.raises(BadInput):
            locate(name)
