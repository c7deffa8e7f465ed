"""DDP121: modules of the project that are not found, or that only the run can name."""

from __future__ import annotations

import ast
import importlib.util
import re
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from ..facts.script import Script
from ..imports import imports_by_name, pattern
from ..rule import Edit, Finding, Rule
from ..targets import Target
from .frameworks import FRAMEWORKS

_LEFT = "so what it does with devices, loaders and files stays as it is"
_LEFT_ALL = _LEFT.replace("what it does", "what they do")
_FOUND_BY_PATH = {"importlib.util.spec_from_file_location", "runpy.run_path", "runpy.run_module", "imp.load_source"}


def check(script: Script, target: Target) -> Iterator[Edit | Finding]:
    """Warn of imports whose module must be a local one and is not there; say which ones only the run can name."""
    packages: dict[str, int] = {}  # the line that needs each first
    for node in script.nodes:
        if isinstance(node, (ast.Import, ast.ImportFrom)) and not _may_fail(script, node):
            for name in _missing(script, node):
                if name.startswith(".") or _is_package_of(name, script.roots):
                    yield _warning(node.lineno, name)
                else:
                    packages.setdefault(name.split(".")[0], node.lineno)
        elif isinstance(node, ast.Call) and _is_named_by_the_run(script, node):
            message = f"which module this imports is known in the run only, {_LEFT} if it is no part of the program"
            yield Finding(RULE.id, "note", node.lineno, message, "import it by a name in the source")
    if packages:
        yield _warning(min(packages.values()), *packages)


def _warning(line: int, *names: str) -> Finding:
    remedy = "if it is yours, give ddpify the PYTHONPATH that the script needs"
    if names[0].startswith("."):
        remedy = "add the file, or correct the import"
    what, is_one = ", ".join(names), len(names) == 1
    message = f"{what} is not found, {_LEFT}" if is_one else f"{what} are not found, {_LEFT_ALL}"
    return Finding(RULE.id, "warning", line, message, remedy if is_one else remedy.replace("it is", "they are"))


def _is_named_by_the_run(script: Script, call: ast.Call) -> bool:
    if imports_by_name(call):
        return pattern(call.args[0]) == "*"
    return script.qualified(call.func) in _FOUND_BY_PATH


def _may_fail(script: Script, node: ast.AST) -> bool:
    """Whether an import may find nothing: in a `try`, or for a type checker only."""
    return any(
        isinstance(parent, ast.Try) or (isinstance(parent, ast.If) and "TYPE_CHECKING" in ast.unparse(parent.test))
        for parent in script.ancestors(node)
    )


def _missing(script: Script, node: ast.Import | ast.ImportFrom) -> Iterator[str]:
    if isinstance(node, ast.Import):
        names = [alias.name for alias in node.names]
    elif node.level:
        folders = script.path.absolute().parents
        folder = folders[min(node.level, len(folders)) - 1]
        if node.module and not _reaches(folder, node.module.split(".")):
            yield f"{'.' * node.level}{node.module}"
        return
    else:
        names = [node.module] if node.module else []
    yield from (name for name in names if script.roots and _is_missing(name, script.roots))


def _is_missing(name: str, roots: tuple[Path, ...]) -> bool:
    """Whether an absolute import finds nothing, though it must be of this project, or all other packages are here."""
    top, *rest = name.split(".")
    if top in sys.stdlib_module_names or any(_reaches(root, [top, *rest]) for root in roots):
        return False
    if _is_package_of(name, roots):
        return True
    if top in {framework.split(".")[0] for framework in FRAMEWORKS}:
        return False
    if _is_installed(top) or not _is_installed("torch"):  # without torch this is no machine that trains
        return False
    return not any(re.search(rf"(?i)\b{top}\b", _requirements(root)) for root in roots)


def _is_package_of(name: str, roots: tuple[Path, ...]) -> bool:
    return any((root / name.split(".")[0] / "__init__.py").is_file() for root in roots)


@cache
def _requirements(folder: Path) -> str:
    """What a folder says about the packages that its scripts need."""
    files = [*folder.glob("*requirements*.txt"), *folder.glob("environment*.y*ml")]
    files += [folder / name for name in ("pyproject.toml", "setup.py", "setup.cfg", "Pipfile")]
    texts = (path.read_text(encoding="utf-8", errors="replace") for path in files if path.is_file())
    return "\n".join(texts).replace("-", "_")


def _reaches(folder: Path, parts: list[str]) -> bool:
    """Whether a folder has `a/b/c`, or any file of that name: Python, or an extension that is compiled or will be."""
    for part in parts[:-1]:
        folder = folder / part
        if not folder.is_dir():
            return _has_file(folder)  # names in a module
    return (folder / parts[-1]).is_dir() or _has_file(folder / parts[-1])


def _has_file(path: Path) -> bool:
    return any(path.parent.glob(f"{path.name}.*"))


@cache
def _is_installed(top: str) -> bool:
    try:
        return importlib.util.find_spec(top) is not None
    except (ImportError, ValueError):
        return False


RULE = Rule(
    id="DDP121",
    title="Say which modules are not found",
    why="""\
A program is converted with all its modules: a `.cuda()`, a loader or a `torch.save` in one that is not found stays as
it is. Local modules are looked for beside the script, in the folders that it puts on `sys.path`, on PYTHONPATH, above
its package, and in the folders up to the project's root and their `src`. What is found nowhere is told if it must be of
this project (a relative import, a part of a local package), or if no package of that name is installed where torch is,
nor named in the requirements.""",
    before="""\
import torch
from .nets import build

model = build()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for _ in range(10):
    loss = model(torch.rand(8, 4)).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
""",
    after="""\
import torch
from .nets import build
from ddpify_runtime import (
    DistributedDataParallel,
    destroy_process_group,
    init_process_group,
)

init_process_group("gloo")

model = build()
model = DistributedDataParallel(model)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for _ in range(10):
    loss = model(torch.rand(8, 4)).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()

destroy_process_group()
""",
    check=check,
    target="cpu",
    without_loop=True,
)
