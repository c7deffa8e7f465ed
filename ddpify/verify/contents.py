"""What a run wrote into its folder, read into plain values that can be compared without the script's classes."""

from __future__ import annotations

import contextlib
import io
import os
import pickle
import subprocess
import sys
import zipfile
from collections.abc import Container
from pathlib import Path
from typing import Any

import numpy
import torch

from ddpify.verify.load_checkpoint import leaves

IGNORED = "__pycache__"
LOADER = Path(__file__).with_name("load_checkpoint.py")
PICKLES = {".pkl", ".pickle", ".pt", ".pth", ".ckpt", ".bin", ".tar", ".model"}


def read(folder: Path, sources: Container[str], original: Path) -> dict[str, Any]:
    """Return relative path -> content of all that is in a folder but the sources; directories end in "/".

    A checkpoint becomes a flat dict of its leaves (see load_checkpoint), an array file a dict of arrays, a text a str,
    anything else bytes. A checkpoint that does not load becomes a str that begins with "does not load".

    Args:
        folder: where the run took place.
        sources: relative paths that were there before.
        original: the script whose classes the checkpoints may need; ddpify's runtime cannot be imported there.
    """
    found: dict[str, Any] = {}
    checkpoints: list[str] = []
    for path in sorted(folder.rglob("*")):
        name = path.relative_to(folder).as_posix()
        if IGNORED in path.parts or name in sources:
            continue
        if path.is_dir():
            found[f"{name}/"] = None
        elif _is_checkpoint(path):
            checkpoints.append(name)
        else:
            found[name] = _content(path)
    return found | _load(folder, checkpoints, original)


def _is_checkpoint(path: Path) -> bool:
    if zipfile.is_zipfile(path):
        with zipfile.ZipFile(path) as archive:
            return any(name.endswith("data.pkl") for name in archive.namelist())
    return path.suffix in PICKLES and path.read_bytes()[:1] == pickle.PROTO


def _content(path: Path) -> Any:
    content = path.read_bytes()
    if content.startswith(b"\x93NUMPY"):
        return {path.name: numpy.load(io.BytesIO(content), allow_pickle=True)}
    if path.suffix == ".npz":
        return dict(numpy.load(io.BytesIO(content), allow_pickle=True))
    try:
        return content.decode()
    except UnicodeDecodeError:
        return content


def _load(folder: Path, names: list[str], original: Path) -> dict[str, Any]:
    """Return the leaves of checkpoints; those of more than tensors and containers are loaded in another process."""
    loaded: dict[str, Any] = {}
    for name in names:
        with contextlib.suppress(Exception):
            value = torch.load(folder / name, map_location="cpu", weights_only=True)
            loaded[name] = dict(leaves(value, (), set()))
    others = [name for name in names if name not in loaded]
    if not others:
        return loaded
    command = [sys.executable, str(LOADER), str(original), *others]
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    environment |= {"OMP_NUM_THREADS": "1", "PYTHONDONTWRITEBYTECODE": "1"}
    loader = subprocess.run(command, cwd=folder, env=environment, capture_output=True, timeout=120, check=False)
    if loader.returncode:
        raise RuntimeError(f"loading {others} failed: {loader.stderr.decode()}")
    loaded.update(pickle.loads(loader.stdout))
    return loaded
