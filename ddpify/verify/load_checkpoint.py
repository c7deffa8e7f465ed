"""Loads checkpoints as their author's other scripts would: with his classes, without ddpify's runtime.

`python load_checkpoint.py ORIGINAL_SCRIPT FILE...` writes a pickle of {file: {path of a leaf: leaf}} to its standard
output. Leaves are numpy arrays, numbers, strings and None; any other object is walked through its attributes, so that
what reads this needs none of the classes.
"""

from __future__ import annotations

import ast
import contextlib
import pickle
import sys
import types
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy
import torch

Path_ = tuple[str | int, ...]
DEFINITIONS = (ast.Import, ast.ImportFrom, ast.ClassDef, ast.FunctionDef)


def main() -> None:
    """Load the files that the command line names."""
    script = Path(sys.argv[1])
    sys.modules["ddpify_runtime"] = None  # type: ignore[assignment]  # import raises ImportError
    sys.path.insert(0, str(script.parent))
    out, sys.stdout = sys.stdout.buffer, sys.stderr
    _define(script)
    loaded: dict[str, Any] = {}
    for name in sys.argv[2:]:
        try:
            loaded[name] = dict(leaves(_load(name), (), set()))
        except Exception as error:  # noqa: BLE001  # whatever a pickle raises is the answer
            loaded[name] = f"does not load: {type(error).__name__}: {error}"
    pickle.dump(loaded, out)


def _define(script: Path) -> None:
    """Put the script's imports, classes and functions into __main__, where its pickles look for them."""
    for statement in ast.parse(script.read_bytes()).body:
        if isinstance(statement, DEFINITIONS):
            code = compile(ast.Module([statement], []), str(script), "exec")
            with contextlib.suppress(Exception):
                exec(code, sys.modules["__main__"].__dict__)


def _load(name: str) -> Any:
    with open(name, "rb") as stream:
        if Path(name).suffix in (".pkl", ".pickle"):
            with contextlib.suppress(pickle.UnpicklingError):
                return pickle.load(stream)
        stream.seek(0)
        return torch.load(stream, map_location="cpu", weights_only=False)


def leaves(value: Any, path: Path_, seen: set[int]) -> Iterator[tuple[Path_, Any]]:
    """Yield (path, leaf) of all leaves below a value; the type of an object is a leaf too."""
    if value is None or isinstance(value, bool | int | float | complex | str | bytes):
        yield path, value
    elif isinstance(value, torch.Tensor):
        yield path, _array(value)
    elif isinstance(value, numpy.ndarray | numpy.generic):
        yield path, numpy.asarray(value) if value.dtype != object else repr(value)
    elif isinstance(value, type | types.FunctionType | types.BuiltinFunctionType):
        yield path, f"{value.__module__}.{value.__qualname__}"
    elif isinstance(value, torch.device | torch.dtype | torch.Size | set | frozenset):
        yield path, repr(sorted(map(repr, value)) if isinstance(value, set | frozenset) else value)
    elif id(value) in seen:
        yield path, "seen before"
    else:
        yield from _below(value, path, seen | {id(value)})


def _below(value: Any, path: Path_, seen: set[int]) -> Iterator[tuple[Path_, Any]]:
    yield (*path, "<type>"), f"{type(value).__module__}.{type(value).__qualname__}"
    if isinstance(value, Mapping):
        for key, item in value.items():
            yield from leaves(item, (*path, key if isinstance(key, int) else str(key)), seen)
    elif isinstance(value, list | tuple):
        for index, item in enumerate(value):
            yield from leaves(item, (*path, index), seen)
    attributes = getattr(value, "__dict__", {})
    for name, item in attributes.items():
        yield from leaves(item, (*path, f".{name}"), seen)


def _array(tensor: torch.Tensor) -> Any:
    tensor = tensor.detach()
    if tensor.is_sparse:
        tensor = tensor.to_dense()
    return (tensor.float() if tensor.dtype is torch.bfloat16 else tensor).numpy()


if __name__ == "__main__":
    main()
