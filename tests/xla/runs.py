"""Runs scripts for real: eager DDP on gloo processes, XLA scripts on CPU devices; converts them with the command."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from tests.forked import free_port

ROOT = Path(__file__).resolve().parents[2]
SCRIPTS = Path(__file__).parent / "scripts"
LIMIT = 240  # seconds until a run that hangs is killed; it takes 10 to 40

# Compiles seven times as fast.
FLAGS = (
    "--xla_backend_optimization_level=0 --xla_cpu_use_fusion_emitters=false --xla_cpu_parallel_codegen_split_count=1"
)

# torch_xla has an environment of its own, since it needs a torch of its own.
XLA_PYTHON = os.environ.get("DDPIFY_XLA_PYTHON") or next(
    (str(path) for path in [ROOT / ".venv-xla" / "bin" / "python"] if path.exists()), sys.executable
)

# What `forked.start` runs scripts on XLA devices in.
INTERPRETER = (XLA_PYTHON, "torch_xla", "torch_xla.distributed.xla_backend")

# What the scripts themselves call; torch_xla's own calls are its own affair.
_NO_DEPRECATED = ("-W", "error::DeprecationWarning:__main__", "-W", "error::DeprecationWarning:__mp_main__")


def convert(script: Path, folder: Path, *options: str) -> Path:
    """Convert a script for xla, into a folder; the new file."""
    converted = folder / "xla.py"
    words = [sys.executable, "-m", "ddpify", str(script), "--target", "xla", "-o", str(converted), *options]
    _run(words, folder)
    return converted


def spawned(script: Path, *arguments: str | Path) -> str:
    """Run a script that starts its own processes; what it printed."""
    return _run([sys.executable, str(script), *map(str, arguments)], script.parent)


def torchrun(script: Path, processes: int, *arguments: str | Path) -> str:
    """Run a script under torchrun; what it printed."""
    launcher = ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node", str(processes)]
    return _run(
        [sys.executable, *launcher, str(ROOT / "tests" / "torch_script.py"), str(script), *map(str, arguments)],
        script.parent,
    )


def xla(script: Path, devices: int, *arguments: str | Path, code: int = 0) -> str:
    """Run a script that calls torch_xla.launch on CPU devices; what it printed, errors included."""
    return helper(["--devices", str(devices), str(script), *map(str, arguments)], script.parent, code)


def helper(words: list[str], folder: Path, code: int = 0) -> str:
    """Run `python -m ddpify_runtime.devtools.xla_threads` with some words, in a folder; what it printed."""
    return _run([XLA_PYTHON, *_NO_DEPRECATED, "-m", "ddpify_runtime.devtools.xla_threads", *words], folder, code)


def _run(words: list[str], folder: Path, code: int = 0) -> str:
    paths = os.pathsep.join(str(path) for path in (ROOT, ROOT / "codemods", ROOT / "runtime"))
    environment = {**os.environ, "PYTHONPATH": paths, "OMP_NUM_THREADS": "1", "XLA_FLAGS": FLAGS}
    environment["TEST_PORT"] = free_port()
    environment = {name: value for name, value in environment.items() if name not in ("MASTER_PORT", "PJRT_DEVICE")}
    done = subprocess.run(
        words, cwd=folder, env=environment, text=True, timeout=LIMIT, check=False,
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
    )  # fmt: skip
    assert done.returncode == code, (words, done.returncode, done.stdout)
    return done.stdout
