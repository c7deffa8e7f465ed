"""The private names of torch: all in one place, and each does what it is used for. The oldest torch: tests/xla."""

from __future__ import annotations

import ast
import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import ddpify_runtime
import pytest
import torch

RUNTIME = Path(ddpify_runtime.__file__).parent
CHECKS = Path(__file__).with_name("torch_internals_checks.py")
PLACES = {name: RUNTIME / f"{name}_internals.py" for name in ("torch", "torch_xla", "torch_geometric")}

# Private, and not of torch.
OTHERS = {
    "_as": "the end of names of operations",
    "_core": "loguru",
    "_exit": "os",
    "_fields": "named tuples",
    "_functional": "the end of names of operations",
    "_getframe": "sys",
    "_handlerList": "logging",
    "_inheriting": "multiprocessing",
    "_sink": "loguru",
}


def checked(python: str) -> tuple[str, dict[str, str]]:
    """The torch of an interpreter, and which checks fail there."""
    environment = os.environ | {"PYTHONPATH": str(RUNTIME.parent), "OMP_NUM_THREADS": "1"}
    done = subprocess.run([python, str(CHECKS)], env=environment, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout.splitlines()[-1])
    return found["torch"], found["failed"]


def test_every_name_does_what_it_is_used_for() -> None:
    version, failed = checked(sys.executable)
    assert version == torch.__version__.partition("+")[0]
    assert not failed, "\n".join(failed.values())


def test_every_name_is_checked() -> None:
    text = CHECKS.read_text(encoding="utf-8")
    missing = {name for name in defined(PLACES["torch"]) if not re.search(rf"\binternals\.{name}\b", text)}
    # Threads with groups of their own are what tests/xla/test_threads.py runs in.
    assert missing == {"give_threads_groups"}


@pytest.mark.parametrize("path", sorted(RUNTIME.rglob("*.py")), ids=lambda path: str(path.relative_to(RUNTIME)))
def test_no_other_private_name_of_torch_is_used(path: Path) -> None:
    if path in PLACES.values():
        return
    assert not list(private(path)), "it belongs into torch_internals.py, or one of its neighbours"


def test_what_is_private_is_found(tmp_path: Path) -> None:
    lines = {
        "import torch._dynamo": "torch._dynamo",
        "from torch.utils._pytree import tree_map": "torch.utils._pytree",
        "from torch import _C": "torch._C",
        "from torch_xla._internal import tpu": "torch_xla._internal",
        "model._call_impl(1)": "_call_impl",
        "vars(model)['_forward_hooks']": "_forward_hooks",
        "getattr(torch.Tensor, '_make_subclass')": "_make_subclass",
        "sys.modules['torch._dynamo']": "torch._dynamo",
        "nn.Module._apply = 1": "_apply",
    }
    for line, name in lines.items():
        (tmp_path / "one.py").write_text(line, encoding="utf-8")
        assert [found for _, found in private(tmp_path / "one.py")] == [name]
    (tmp_path / "one.py").write_text("import torch\nself._own = 1\nself.__dict__\nother._own\nos._exit(0)\n_ = 1")
    assert not list(private(tmp_path / "one.py"))


def private(path: Path) -> Iterator[tuple[int, str]]:
    """The private names in a file that are none of ours, by line."""
    own = OWN | _made(path) | OTHERS.keys()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        names: list[str] = []
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and not node.level:
            names = [node.module or ""]
            if not _is_private(names[0]):
                names = [f"{node.module}.{alias.name}" for alias in node.names]
            names = [name for name in names if name.startswith("torch")]
        elif isinstance(node, ast.Attribute) and node.attr not in own:
            names = [node.attr]
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and node.value not in own:
            whole = re.fullmatch(r"(torch\w*\.[\w.]+|_[a-z]\w*)", node.value)
            names = [node.value] if whole else []
        yield from ((node.lineno, name) for name in names if _is_private(name))  # type: ignore[attr-defined]


def _is_private(name: str) -> bool:
    return any(re.match(r"_(?!ddpify)[a-zA-Z]", part) for part in name.split("."))


def _made(path: Path) -> set[str]:
    """The private names that a file gives to something of its own, its classes' attributes among them."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    made = {node.name for node in ast.walk(tree) if isinstance(node, (ast.FunctionDef, ast.ClassDef))}
    for node in ast.walk(tree):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            made.add(node.id)
        elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store) and isinstance(node.value, ast.Name):
            made |= {node.attr} if node.value.id == "self" else set()
    return made


def defined(path: Path) -> set[str]:
    """The public names of a file."""
    body = ast.parse(path.read_text(encoding="utf-8")).body
    names = {alias.asname for node in body if isinstance(node, ast.ImportFrom) for alias in node.names if alias.asname}
    names |= {node.name for node in body if isinstance(node, (ast.FunctionDef, ast.ClassDef))}
    assigned = [target for node in body if isinstance(node, ast.Assign) for target in node.targets]
    names |= {name.id for target in assigned for name in ast.walk(target) if isinstance(name, ast.Name)}
    return {name for name in names if not name.startswith("_")}


OWN = {name for path in RUNTIME.rglob("*.py") if path not in PLACES.values() for name in _made(path)}


def test_no_private_name_of_torch_is_also_one_of_ours() -> None:
    """Else its use elsewhere would not be seen."""
    for path in PLACES.values():
        tree = ast.parse(path.read_text(encoding="utf-8"))
        used = {node.attr for node in ast.walk(tree) if isinstance(node, ast.Attribute)}
        used |= {str(node.value) for node in ast.walk(tree) if isinstance(node, ast.Constant)}
        assert not {name for name in used if _is_private(name)} & OWN
