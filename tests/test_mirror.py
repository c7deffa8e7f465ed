"""Tests lie where the module lies that they test, under its name."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from functools import cache
from importlib.util import find_spec
from pathlib import Path

ROOT = Path(__file__).parents[1]
PACKAGES = {"ddpify": "ddpify", "codemods": "codemods/ddpify_codemods", "runtime": "runtime/ddpify_runtime"}
_DEFINITIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)


def modules(package: Path) -> Iterator[Path]:
    """The modules of a package that define something, and can be imported here.

    Left out are rules, each of which has its examples (tests/codemods/test_rules.py runs them); what the runs import
    that `ddpify verify` records, which is no part of the package; and what needs torch_xla or Horovod: tests/xla and
    tests/engines run that where these are.
    """
    for path in sorted(package.rglob("*.py")):
        folders = [folder for folder in path.parents if package in (folder, *folder.parents)]
        if path.name == "__init__.py" or package / "rules" in folders:
            continue
        if not all((folder / "__init__.py").exists() for folder in folders):
            continue
        defines = any(isinstance(node, _DEFINITIONS) for node in _tree(path).body)
        if defines and all(find_spec(name) is not None for name in _libraries(path, package)):
            yield path


def _libraries(path: Path, package: Path) -> set[str]:
    """What has to be installed to use a module: what it imports, and what is imported with that."""
    found: set[str] = set()
    waiting = [path, *_packages(path, package)]
    for module in waiting:
        nodes = ast.walk(_tree(module)) if module == path else _tree(module).body
        for name in _imports(module, nodes, package):
            if isinstance(name, str):
                found.add(name)
            else:
                waiting += [each for each in (name, *_packages(name, package)) if each not in waiting]
    return found


def _packages(path: Path, package: Path) -> list[Path]:
    return [folder / "__init__.py" for folder in path.parents if package in folder.parents]


def _imports(path: Path, nodes: Iterable[ast.AST], package: Path) -> Iterator[str | Path]:
    """What some nodes of a module import: libraries by name, modules of the package by path."""
    for node in nodes:
        if isinstance(node, ast.Import):
            yield from (alias.name.partition(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and not node.level:
            yield (node.module or "").partition(".")[0]
        elif isinstance(node, ast.ImportFrom):
            base = path.parents[node.level - 1].joinpath(*(node.module or "").split("."))
            places = [base, *(base / alias.name for alias in node.names)]
            files = (each for place in places for each in (place.with_suffix(".py"), place / "__init__.py"))
            yield from (file for file in files if file.exists() and file != package / "__init__.py")


@cache
def _tree(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


def test_a_module_has_tests_under_its_name() -> None:
    missing = [
        str(path.relative_to(ROOT))
        for name, folder in PACKAGES.items()
        for path in modules(ROOT / folder)
        if not (ROOT / "tests" / name / path.relative_to(ROOT / folder).with_name(f"test_{path.name}")).exists()
    ]
    assert not missing, "\n".join(missing)
