"""What `ddpify --check` costs on whole repositories, beside pyupgrade: CPU seconds of fresh processes.

    python -m benchmarks.repositories FOLDER... [--pyupgrade PATH]

For each folder: all of it is checked, a copy of it is upgraded, and two copies of it side by side are checked, which
shows whether the cost is linear in the files.
"""

from __future__ import annotations

import argparse
import os
import resource
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path


def cpu_seconds(command: Sequence[str], folder: Path, runs: int = 2) -> float:
    """The CPU seconds of a command and of the processes that it starts, the least of some runs; what it prints is not
    shown. Python may keep what it compiles, as it does on people's machines."""
    env = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    used = []
    for _ in range(runs):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        subprocess.run(command, cwd=folder, env=env, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        used.append(after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime)
    return min(used)


def measured(folder: Path, pyupgrade: str) -> tuple[int, float, float, float]:
    """The number of Python files, and the CPU seconds of checking them, of checking them twice, and of pyupgrade."""
    check = [sys.executable, "-m", "ddpify", ".", "--check", "--target", "cuda"]
    with tempfile.TemporaryDirectory() as scratch:
        copies = [Path(scratch, name, folder.name) for name in ("first", "second")]
        for copy in copies:
            shutil.copytree(folder, copy, ignore=lambda place, names: [name for name in names if _is_data(place, name)])
            Path(copy, ".git").mkdir(exist_ok=True)  # each is a project of its own
        paths = sorted(str(path.relative_to(copies[0])) for path in copies[0].rglob("*.py"))
        once, twice = cpu_seconds(check, copies[0]), cpu_seconds(check, Path(scratch))
        return len(paths), once, twice, cpu_seconds([pyupgrade, "--py39-plus", *paths], copies[0], runs=1)


def _is_data(place: str, name: str) -> bool:
    kept = (".py", ".toml", ".cfg", ".txt")
    return name == ".git" or not (Path(place, name).is_dir() or name.endswith(kept))


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("folders", nargs="+", type=Path)
    parser.add_argument("--pyupgrade", default="pyupgrade", help="the command")
    words = parser.parse_args()
    sums = [0.0, 0.0]
    print(f"{'':30} {'files':>6} {'ddpify':>8} {'twice':>8} {'pyupgrade':>10} {'ratio':>6}")
    for folder in words.folders:
        files, once, twice, other = measured(folder.resolve(), words.pyupgrade)
        sums = [sums[0] + once, sums[1] + other]
        print(f"{folder.name:30} {files:6} {once:7.1f}s {twice:7.1f}s {other:9.1f}s {once / other:6.2f}")
    print(f"{'all':30} {'':6} {sums[0]:7.1f}s {'':8} {sums[1]:9.1f}s {sums[0] / sums[1]:6.2f}")


if __name__ == "__main__":
    main()
