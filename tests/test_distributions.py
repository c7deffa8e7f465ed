"""Two distributions are built of this checkout: the command, without torch, and the runtime, with torch alone."""

from __future__ import annotations

import importlib.metadata
import shutil
import subprocess
import sys
import venv
import zipfile
from pathlib import Path

import pytest
from packaging.requirements import Requirement

from ddpify import __version__

ROOT = Path(__file__).parents[1]
PIP = (sys.executable, "-m", "pip", "--disable-pip-version-check")


@pytest.fixture(scope="module")
def wheels(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """The wheel of each distribution."""
    folder = tmp_path_factory.mktemp("build")
    for name in ("ddpify", "codemods", "runtime"):
        leave = shutil.ignore_patterns("__pycache__", "*.egg-info", "build", ".*")
        shutil.copytree(ROOT / name, folder / name, ignore=leave)
    for name in ("pyproject.toml", "LICENSE", "README.md"):
        shutil.copy(ROOT / name, folder)
    words = ["wheel", "--quiet", "--no-build-isolation", "--no-deps", "--no-index", "--wheel-dir", "wheels"]
    subprocess.run([*PIP, *words, ".", "./runtime"], cwd=folder, check=True, timeout=120)
    return {path.name.split("-")[0]: path for path in (folder / "wheels").iterdir()}


def test_each_file_is_in_one_of_them(wheels: dict[str, Path]) -> None:
    found = {name: set(zipfile.ZipFile(path).namelist()) for name, path in wheels.items()}
    assert set(found) == {"ddpify", "ddpify_runtime"}
    assert not found["ddpify"] & found["ddpify_runtime"]
    for root, package in ((".", "ddpify"), ("codemods", "ddpify_codemods"), ("runtime", "ddpify_runtime")):
        sources = {str(path.relative_to(ROOT / root)) for path in (ROOT / root / package).rglob("*.py")}
        assert sources <= found["ddpify_runtime" if root == "runtime" else "ddpify"]
    assert {path.name.split("-")[1] for path in wheels.values()} == {__version__}


def linked(distribution: str, folder: Path) -> None:
    """Put what is installed of a distribution into a folder, and what it requires."""
    found = importlib.metadata.distribution(distribution)
    for name in {path.parts[0] for path in found.files or () if path.parts[0] != ".."} - {"__pycache__"}:
        if not (folder / name).exists():
            (folder / name).symlink_to(Path(str(found.locate_file(name))))
    for requirement in map(Requirement, found.requires or ()):
        wanted = not requirement.marker or requirement.marker.evaluate({"extra": ""})
        if wanted and not any(folder.glob(f"{requirement.name.replace('-', '_').lower()}-*")):
            linked(requirement.name, folder)


def test_the_runtime_needs_torch_and_nothing_else(wheels: dict[str, Path], tmp_path: Path) -> None:
    venv.create(tmp_path / "venv", symlinks=True)
    (site,) = (tmp_path / "venv").glob("lib/*/site-packages")
    linked("torch", site)
    words = ["install", "--quiet", "--no-deps", "--no-index", "--target", str(site), str(wheels["ddpify_runtime"])]
    subprocess.run([*PIP, *words], check=True, timeout=120)
    assert not any(list(site.glob(f"{name}*")) for name in ("libcst", "typer", "pydantic", "numpy", "ddpify-"))
    command = [str(tmp_path / "venv" / "bin" / "python"), "-I", "-c", "import ddpify_runtime as r; print(r.__file__)"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True, timeout=120)
    assert done.stdout == f"{site / 'ddpify_runtime' / '__init__.py'}\n"
