"""Runs the real command, and the scripts it is run on."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from tests.forked import run

ROOT = Path(__file__).resolve().parents[2]
COMMAND = (sys.executable, "-m", "ddpify")
IMPORTED = (sys.executable, "ddpify.command", "ddpify.diff", "ddpify_codemods.engine")

TRAIN = """\
import torch
from torch import nn, optim


def main():
    model = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 1))
    optimizer = optim.SGD(model.parameters(), lr=0.1)
    for epoch in range(2):
        optimizer.zero_grad()
        loss = model(torch.ones(8, 4)).mean()
        loss.backward()
        optimizer.step()


if __name__ == "__main__":
    main()
"""

# A training script whose engine lies in another file, and the engine.
MAIN = """\
import torch
from engine import train

if __name__ == "__main__":
    train(torch.nn.Linear(4, 1))
"""
ENGINE = """\
import torch


def train(model):
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for epoch in range(2):
        optimizer.zero_grad()
        model(torch.ones(8, 4)).mean().backward()
        optimizer.step()
"""
LIBRARY = "import torch\n\n\ndef loss(x):\n    return torch.abs(x).mean()\n"

# Somebody else already spreads this over many devices: refused.
REFUSED = TRAIN.replace("import torch\n", "import torch\nfrom accelerate import Accelerator\n").replace(
    "def main():\n", "def main():\n    accelerator = Accelerator()\n"
)


def environment() -> dict[str, str]:
    """The environment of the command: the packages of this checkout, whether installed or not."""
    paths = [str(ROOT), str(ROOT / "codemods"), str(ROOT / "runtime")]
    return {**os.environ, "PYTHONPATH": os.pathsep.join(paths)}


def ddpify(
    *arguments: str | Path, cwd: Path, stdin: bytes = b"", code: int = 0, **extra: str
) -> subprocess.CompletedProcess[bytes]:
    """Run the command in a folder.

    Args:
        arguments: its words. cwd: the folder. stdin: what it reads. code: the exit code that it must have.
        extra: further environment variables.
    Returns:
        The finished process, with what it printed as bytes; it never holds a traceback.
    """
    words = [*COMMAND, *map(str, arguments)]
    if extra or "verify" in words:
        done = subprocess.run(
            words, cwd=cwd, input=stdin, capture_output=True, timeout=120, env={**environment(), **extra}, check=False
        )
    else:  # in a process of its own, which has imported the command already: that takes longer than most of these
        given = environment()
        script = [str(ROOT / "ddpify" / "__main__.py"), *words[len(COMMAND) :]]
        answer = run(script, 0, cwd, given, 120, IMPORTED, stdin=stdin, path=given["PYTHONPATH"])
        done = subprocess.CompletedProcess(words, *answer)
    assert b"Traceback" not in done.stderr, done.stderr.decode()
    assert done.returncode == code, (done.returncode, done.stdout.decode(), done.stderr.decode())
    return done


def put(folder: Path, **texts: str) -> None:
    """Write Python files: put(tmp_path, train=TRAIN) makes train.py."""
    for name, text in texts.items():
        (folder / f"{name}.py").write_text(text, encoding="utf-8", newline="")


def lines(output: bytes) -> list[str]:
    """The lines of some output."""
    return output.decode().splitlines()
