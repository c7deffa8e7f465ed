"""DDP121: modules of the project that are not found, or that only the run can name."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from ...facts.imported_by_name import imports_by_name, pattern
from ...facts.missing_imports import is_package_of, missing_imports, unfound_part
from ...facts.script import Script
from ...rule import Edit, Finding, Rule
from ...targets import Target
from .frameworks import FRAMEWORKS

_LEFT = "so what it does with devices, loaders and files stays as it is"
_LEFT_ALL = _LEFT.replace("what it does", "what they do")
_FRAMEWORKS = frozenset(name.split(".")[0] for name in FRAMEWORKS)
_FOUND_BY_PATH = {"importlib.util.spec_from_file_location", "runpy.run_path", "runpy.run_module", "imp.load_source"}


def check(script: Script, target: Target) -> Iterator[Edit | Finding]:
    """Warn of imports whose module must be a local one and is not there; say which ones only the run can name."""
    packages: dict[str, int] = {}  # the line that needs each first
    for line, name in missing_imports(script, script.roots):
        if name.startswith(".") or is_package_of(name, script.roots):
            yield _warning(line, name)
        elif name.split(".")[0] not in _FRAMEWORKS:
            packages.setdefault(unfound_part(name, script.roots), line)
    for node in script.find(ast.Call):
        if _is_named_by_the_run(script, node):
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
)
