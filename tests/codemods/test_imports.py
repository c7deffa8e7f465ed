"""Which local files a script imports."""

from __future__ import annotations

from pathlib import Path

import pytest
from ddpify_codemods.imports import local_modules


def files(folder: Path, *names: str) -> None:
    for name in names:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).touch()


def found(folder: Path, text: str, script: str = "train.py") -> list[str]:
    paths = local_modules(folder / script, text, root=folder)
    return [path.relative_to(folder).as_posix() for path in paths]


@pytest.mark.parametrize(
    "text", ["", "import torch", "from torch import nn", "import model.", "from . import x", "import train"]
)
def test_nothing_local(tmp_path: Path, text: str) -> None:
    files(tmp_path, "train.py", "model.py")
    assert found(tmp_path, text) == []


def test_a_module_beside_the_script(tmp_path: Path) -> None:
    files(tmp_path, "train.py", "model.py", "data.py")
    assert found(tmp_path, "import os, model\nfrom data import load\nimport model") == ["model.py", "data.py"]


def test_imports_inside_functions_count(tmp_path: Path) -> None:
    files(tmp_path, "model.py")
    assert found(tmp_path, "def f():\n    from model import Net") == ["model.py"]


def test_packages_bring_their_init(tmp_path: Path) -> None:
    files(tmp_path, "utils/__init__.py", "utils/data.py")
    assert found(tmp_path, "from utils.data import x") == ["utils/__init__.py", "utils/data.py"]
    assert found(tmp_path, "from utils import data") == ["utils/__init__.py", "utils/data.py"]
    assert found(tmp_path, "import utils.data") == ["utils/__init__.py", "utils/data.py"]
    assert found(tmp_path, "from utils import *") == ["utils/__init__.py"]


def test_folders_without_init(tmp_path: Path) -> None:
    files(tmp_path, "utils/data.py")
    assert found(tmp_path, "from utils.data import x") == ["utils/data.py"]
    assert found(tmp_path, "from utils import data, other") == ["utils/data.py"]


def test_a_local_file_shadows_an_installed_package(tmp_path: Path) -> None:
    files(tmp_path, "numpy.py")
    assert found(tmp_path, "import numpy") == ["numpy.py"]


def test_relative_imports_start_at_the_file(tmp_path: Path) -> None:
    files(tmp_path, "nets/__init__.py", "nets/unet.py", "nets/parts.py", "nets/deep/a.py", "common.py")
    assert found(tmp_path, "from .parts import Block", "nets/unet.py") == ["nets/parts.py"]
    assert found(tmp_path, "from . import parts", "nets/unet.py") == ["nets/__init__.py", "nets/parts.py"]
    assert found(tmp_path, "from ..parts import Block", "nets/deep/a.py") == ["nets/parts.py"]


def test_absolute_imports_of_a_module_start_at_the_root(tmp_path: Path) -> None:
    files(tmp_path, "nets/__init__.py", "nets/unet.py", "common.py")
    assert found(tmp_path, "import common", "nets/unet.py") == ["common.py"]


def test_what_stands_below_the_main_guard_is_of_what_is_started(tmp_path: Path) -> None:
    files(tmp_path, "model.py", "other.py")
    text = "import model\nif __name__ == '__main__':\n    import other\n"
    assert local_modules(tmp_path / "train.py", text) == [tmp_path / "model.py", tmp_path / "other.py"]
    assert local_modules(tmp_path / "train.py", text, starts=False) == [tmp_path / "model.py"]


def test_the_root_is_the_folder_of_the_script_by_default(tmp_path: Path) -> None:
    files(tmp_path, "model.py")
    assert local_modules(tmp_path / "train.py", "import model") == [tmp_path / "model.py"]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("import importlib\nimportlib.import_module('nets.unet')", ["nets/__init__.py", "nets/unet.py"]),
        ("importlib.import_module('nets.' + name)", ["nets/__init__.py", "nets/resnet.py", "nets/unet.py"]),
        ("import_module(f'nets.{name}')", ["nets/__init__.py", "nets/resnet.py", "nets/unet.py"]),
        ("__import__('nets.%s' % name)", ["nets/__init__.py", "nets/resnet.py", "nets/unet.py"]),
        ("import_module('nets.{}net'.format(name))", ["nets/__init__.py", "nets/resnet.py", "nets/unet.py"]),
        ("import_module(f'nets.re{name}')", ["nets/__init__.py", "nets/resnet.py"]),
        ("import_module('.' + name, 'nets')", ["nets/resnet.py", "nets/unet.py"]),
        ("import_module('configs.' + name)", ["configs/a.py"]),
        ("__import__('.'.join(['nets', name]))", ["nets/__init__.py", "nets/resnet.py", "nets/unet.py"]),
        ("__import__('.'.join(parts))", []),
        ("import_module(name)", []),
        ("import_module('/abs' + name)", []),
        ("import_module('..')", []),
    ],
)
def test_modules_by_a_name_that_the_run_completes(tmp_path: Path, text: str, expected: list[str]) -> None:
    files(tmp_path, "train.py", "nets/__init__.py", "nets/unet.py", "nets/resnet.py", "configs/a.py", "other.py")
    assert found(tmp_path, text) == expected


def test_a_package_imports_its_own_modules_by_name(tmp_path: Path) -> None:
    files(tmp_path, "nets/__init__.py", "nets/unet.py")
    for text in ("import_module('.' + name, __package__)", "import_module(f'{__name__}.{name}')"):
        assert found(tmp_path, text, "nets/__init__.py") == ["nets/unet.py"]


@pytest.mark.parametrize(
    ("exported", "expected"),
    [("['unet']", ["unet"]), ("[f.stem for f in glob()]", ["resnet", "unet"]), ("['Net']", [])],
)
def test_a_star_imports_what_the_package_exports(tmp_path: Path, exported: str, expected: list[str]) -> None:
    files(tmp_path, "nets/unet.py", "nets/resnet.py")
    (tmp_path / "nets" / "__init__.py").write_text(f"__all__ = {exported}\n")
    assert found(tmp_path, "from nets import *") == ["nets/__init__.py", *(f"nets/{name}.py" for name in expected)]
