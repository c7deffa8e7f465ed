"""The hooks work under the real pre-commit, which builds the package from a clone of this checkout."""

from __future__ import annotations

import importlib.util
import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.ddpify.command import ENGINE, LIBRARY, MAIN, ROOT, TRAIN, environment, put

pytestmark = pytest.mark.skipif(importlib.util.find_spec("pre_commit") is None, reason="pre-commit is not installed")

IDENTITY = ("-c", "user.name=test", "-c", "user.email=test@example.org", "-c", "commit.gpgsign=false")


def git(folder: Path, *words: str) -> str:
    done = subprocess.run(["git", *IDENTITY, *words], cwd=folder, capture_output=True, text=True, check=True)
    return done.stdout


@pytest.fixture(scope="module")
def hooks(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A git repository that holds the packages as they are in the working tree."""
    clone = tmp_path_factory.mktemp("hooks")
    for name in ("ddpify", "codemods"):
        shutil.copytree(ROOT / name, clone / name, ignore=shutil.ignore_patterns("__pycache__", "*.egg-info", ".*"))
    for name in ("pyproject.toml", ".pre-commit-hooks.yaml", "LICENSE"):
        shutil.copy(ROOT / name, clone / name)
    (clone / "README.md").touch()  # the build asks for one, the hooks do not
    git(clone, "init", "-q")
    git(clone, "add", ".")
    git(clone, "commit", "-q", "-m", "the working tree")
    return clone


@pytest.fixture
def project(tmp_path: Path, hooks: Path) -> Path:
    """Somebody's repository: two training scripts, their modules, and files that are none of ddpify's business."""
    folder = tmp_path / "project"
    folder.mkdir()
    put(folder, train=TRAIN, main=MAIN, engine=ENGINE, library=LIBRARY, empty="", plain="print(1)\n")
    (folder / "pyproject.toml").write_text('[tool.ddpify]\ntarget = "cuda"\n', encoding="utf-8")
    config = {"repo": str(hooks), "rev": git(hooks, "rev-parse", "HEAD").strip()}
    config_hooks = [{"id": "ddpify-check"}, {"id": "ddpify"}]
    text = json.dumps({"repos": [{**config, "hooks": config_hooks}]})  # JSON is YAML
    (folder / ".pre-commit-config.yaml").write_text(text, encoding="utf-8")
    git(folder, "init", "-q")
    git(folder, "add", ".")
    return folder


def pre_commit(project: Path, hook: str, *words: str) -> subprocess.CompletedProcess[str]:
    # Not try-repo, which builds the hooks anew for each call.
    command = [sys.executable, "-m", "pre_commit", "run", hook, "--verbose", *words]
    environ = {**environment(), "PRE_COMMIT_HOME": str(project.parent / "home"), "PYTHONPATH": ""}
    return subprocess.run(command, cwd=project, env=environ, capture_output=True, text=True, check=False)


def test_hooks(project: Path) -> None:
    found = pre_commit(project, "ddpify-check", "--all-files")
    assert found.returncode == 1, found.stdout + found.stderr
    assert "would convert train.py for cuda" in found.stdout
    assert (project / "train.py").read_text(encoding="utf-8") == TRAIN

    wrote = pre_commit(project, "ddpify", "--all-files")
    assert "files were modified by this hook" in wrote.stdout, wrote.stdout + wrote.stderr
    assert {"converted train.py for cuda", "converted engine.py for cuda"} <= set(wrote.stdout.splitlines())

    for words in (["--all-files"], ["--files", "engine.py", "library.py"], ["--files", "plain.py"]):
        clean = pre_commit(project, "ddpify-check", *words)
        assert clean.returncode == 0, clean.stdout + clean.stderr
        assert "Passed" in clean.stdout
