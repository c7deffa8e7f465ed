"""Imports whose module must be a local one and is not there."""

from __future__ import annotations

import ast
from pathlib import Path

from ddpify_codemods.facts.missing_imports import found_beside, is_package_of, missing_imports, unfound_part
from ddpify_codemods.facts.script import Script


def missing(folder: Path, text: str) -> list[tuple[int, str]]:
    script = Script(folder / "package" / "train.py", text, ast.parse(text), is_entry=True, defined=frozenset())
    return list(missing_imports(script, (folder,)))


def test_what_a_package_lacks(tmp_path: Path) -> None:
    (tmp_path / "package").mkdir()
    (tmp_path / "package" / "__init__.py").touch()
    (tmp_path / "package" / "net.py").touch()
    assert missing(tmp_path, "import os\nfrom .net import a\nfrom .gone import b") == [(3, ".gone")]
    assert missing(tmp_path, "import package.net\nimport package.lost") == [(2, "package.lost")]
    assert is_package_of("package.net", (tmp_path,)) and not is_package_of("other", (tmp_path,))


def test_what_may_be_missing(tmp_path: Path) -> None:
    (tmp_path / "package").mkdir()
    assert missing(tmp_path, "try:\n    from .gone import b\nexcept ImportError:\n    b = None") == []
    assert missing(tmp_path, "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from .gone import b") == []


def test_what_is_not_found_of_a_folder_that_is_there(tmp_path: Path) -> None:
    """The folder itself was named, which holds other modules."""
    (tmp_path / "nets").mkdir()
    (tmp_path / "nets" / "small.py").touch()
    assert unfound_part("nets.VGG", (tmp_path,)) == "nets.VGG"
    assert unfound_part("gone.VGG", (tmp_path,)) == "gone"


def test_what_python_2_found_beside_a_file(tmp_path: Path) -> None:
    (tmp_path / "nets").mkdir()
    (tmp_path / "nets" / "small.py").touch()
    for text, found in {
        "from small import *": "small",
        "from .small import *": "",
        "from nets.small import *": "",
        "import gone": "",
    }.items():
        path = tmp_path / "nets" / "__init__.py"
        script = Script(path, text, ast.parse(text), is_entry=False, defined=frozenset(), roots=(tmp_path,))
        assert found_beside(script) == found
