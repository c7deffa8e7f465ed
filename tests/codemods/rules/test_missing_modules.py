"""DDP121: which imports are told as not found."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest
from ddpify_codemods.facts import missing_imports
from ddpify_codemods.facts.script import Script
from ddpify_codemods.rule import Finding
from ddpify_codemods.rules.always import missing_modules
from ddpify_codemods.targets import TARGETS


def told(folder: Path, text: str, roots: bool = True) -> list[tuple[str, int, str]]:
    for name in ("pkg/__init__.py", "pkg/net.py", "pkg/kernel.cpp", "plain/one.py", "train.py"):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).touch()
    script = Script(folder / "pkg" / "train.py", text, ast.parse(text), True, frozenset(), (folder,) if roots else ())
    found = missing_modules.check(script, TARGETS["cpu"])
    return [(each.severity, each.line, each.message.split()[0]) for each in found if not isinstance(each, ast.AST)]  # type: ignore[union-attr]


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("from .nets import build", ".nets"),
        ("from ..helpers.data import load", "..helpers.data"),
        ("import pkg.nets", "pkg.nets"),
        ("from pkg.deep.nets import build", "pkg.deep.nets"),
        ("import utils_of_nobody", "utils_of_nobody"),
    ],
)
def test_told(tmp_path: Path, text: str, name: str) -> None:
    assert told(tmp_path, text) == [("warning", 1, name)]


@pytest.mark.parametrize(
    "text",
    [
        "import os, torch, torch.nn.functional as F",
        "from .net import build",
        "from . import anything",
        "from .kernel import compiled",
        "from pkg.net import build",
        "from plain.one import f",
        "try:\n    import apex_of_nobody\nexcept ImportError:\n    apex = None",
        "if TYPE_CHECKING:\n    from .types import Batch",
        "import importlib\nimportlib.import_module('pkg.' + name)",
    ],
)
def test_silent(tmp_path: Path, text: str) -> None:
    assert told(tmp_path, text) == []


def test_where_torch_is_not_installed_a_name_says_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine for pre-commit has no packages: what is not there may be one of them."""
    monkeypatch.setattr(missing_imports, "_is_installed", lambda top: False)
    assert told(tmp_path, "import timm\nimport utils\nfrom .nets import build") == [("warning", 3, ".nets")]


def test_without_roots_only_relative_imports_are_looked_for(tmp_path: Path) -> None:
    assert told(tmp_path, "import utils_of_nobody\nimport pkg.nets", roots=False) == []


@pytest.mark.parametrize("call", ["importlib.import_module(name)", "runpy.run_path(name)", "__import__(name)"])
def test_names_that_only_the_run_knows(tmp_path: Path, call: str) -> None:
    assert told(tmp_path, f"import importlib, runpy\n{call}") == [("note", 2, "which")]


def test_what_the_requirements_name_is_a_package(tmp_path: Path) -> None:
    (tmp_path / "requirements.txt").write_text("torch>=2\nsome-package-of-nobody==1.0\n")
    assert told(tmp_path, "import some_package_of_nobody") == []


def test_what_may_be_packages_is_told_once(tmp_path: Path) -> None:
    text = "import pkg.nets\nfrom nobody.one import f\nimport other_of_nobody\nimport nobody.two"
    script = Script(tmp_path / "train.py", text, ast.parse(text), True, frozenset(), (tmp_path,))
    told(tmp_path, text)  # makes the folders
    found = [each for each in missing_modules.check(script, TARGETS["cpu"]) if isinstance(each, Finding)]
    assert [(each.line, each.message.split(" not found")[0]) for each in found] == [
        (1, "pkg.nets is"),
        (2, "nobody, other_of_nobody are"),
    ]
