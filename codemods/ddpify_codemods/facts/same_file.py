"""Whether a call may read what another one writes: by what both are for, and by how the files are called."""

from __future__ import annotations

import ast
import os
from collections.abc import Iterable

from .bindings import bindings
from .called_modules import last_name
from .effects import mode_of, opened_path
from .script import Script

# What only reads files of its kind, by its last name or its full one, and the kind.
_READERS = {
    **dict.fromkeys(("Image.open", "cv2.imread", "imread", "read_image", "decode_image", "VideoCapture"), "images"),
    **dict.fromkeys(("torch.load", "torch.jit.load"), "tensors"),
    **dict.fromkeys(("h5py.File", "numpy.load", "numpy.loadtxt", "numpy.genfromtxt", "numpy.memmap"), "arrays"),
    **dict.fromkeys(("pandas.read_csv", "read_csv", "loadmat", "torchaudio.load", "librosa.load"), "arrays"),
}
# What writes files of a kind, by its last name or its full one.
_WRITERS = {
    **dict.fromkeys(("torch.save", "torch.jit.save", "torch.onnx.export"), "tensors"),
    **dict.fromkeys(("savefig", "imwrite", "imsave", "save_image", "mimsave", "write_png", "write_jpeg"), "images"),
    **dict.fromkeys(("numpy.save", "numpy.savez", "numpy.savetxt", "to_csv", "savemat"), "arrays"),
}
_SHOWS = frozenset({"show", "pause", "configure"})
_SERVICES = ("wandb.", "mlflow.", "neptune.", "comet_ml.", "clearml.", "swanlab.")
_SENDS = ("log", "init", "start_run", "watch", "set_", "define_", "alert", "finish", "end_run", "update")
_PATHS = frozenset({"f", "fp", "file", "fname", "filename", "path"})
_ONTO = frozenset({"copy", "copy2", "copyfile", "copytree", "move", "rename", "renames", "replace", "symlink", "link"})
_FETCHING = frozenset({"urlretrieve", "download_url_to_file"})
_OF_FOLDERS = frozenset(
    {"extractall", "extract", "unpack_archive", "listdir", "scandir", "walk", "iterdir", "ImageFolder", "DatasetFolder"}
)
_ENDINGS = frozenset(
    {".pt", ".pth", ".ckpt", ".bin", ".tar", ".pkl", ".json", ".txt", ".csv", ".tsv", ".png", ".jpg", ".jpeg", ".npy"}
    | {".npz", ".yaml", ".yml", ".log", ".onnx", ".h5", ".hdf5", ".mat", ".md", ".html", ".svg", ".pdf", ".gif", ".xml"}
)
# By them a function may be called whose name is nowhere.
_BY_NAME = frozenset({"globals", "locals", "vars", "eval", "exec", "getattr"})


def writes_a_file(script: Script, call: ast.Call) -> bool:
    """Whether what a call does outside of the process may be a file that is read: a window is none, nor what a service
    is sent."""
    name = last_name(call.func)
    called = script.qualified(call.func)
    is_sent = called == "wandb.save" or (called.startswith(_SERVICES) and name.startswith(_SENDS))
    return name not in _SHOWS and not is_sent


def may_be_read_by(script: Script, write: ast.Call, other: Script, read: ast.Call) -> bool:
    """Whether a call may read, or look for, what another one writes.

    Args:
        script, write: a call that writes, and its file. other, read: a call that reads, and its file.
    """
    paths = [path_of(script, write), path_of(other, read)]
    if all(paths) and ast.dump(paths[0]) == ast.dump(paths[1]):  # type: ignore[arg-type]
        return True
    written, expected = _kind(script, write, _WRITERS), _kind(other, read, _READERS)
    if written and expected and written != expected:
        return False
    if expected in ("images", "tensors") and not written and _opens_text(script, write):
        return False
    endings = _ending(script, paths[0]), _ending(other, paths[1])
    return None in endings or endings[0] == endings[1]


def is_ever_used(scripts: Iterable[Script], function: ast.AST) -> bool:
    """Whether anything in a program names a function, or it is a method, which others may call."""
    name = getattr(function, "name", "")
    for script in scripts:
        if any(each.id in _BY_NAME for each in script.find(ast.Name)):
            return True
        if function in script.parents and not isinstance(script.parents[function], ast.Module):
            return True
        named = (each.id for each in script.find(ast.Name))
        if name in named or any(each.attr == name for each in script.find(ast.Attribute)):
            return True
    return not name


def _kind(script: Script, call: ast.Call, kinds: dict[str, str]) -> str:
    name = script.qualified(call.func)
    short = ".".join(name.split(".")[-2:])
    return kinds.get(name) or kinds.get(short) or kinds.get(last_name(call.func), "")


def _opens_text(script: Script, call: ast.Call) -> bool:
    """Whether a call opens a file for text: `open(path, "w")`, `path.open("w")`."""
    if last_name(call.func) != "open":
        return False
    mode = mode_of(script, call, place=0 if opened_path(script, call) is not None else 1)
    return mode is not None and "b" not in mode


def path_of(script: Script, call: ast.Call) -> ast.expr | None:
    """What names the file that a call reads or writes; None where that is not seen."""
    name, full = last_name(call.func), script.qualified(call.func)
    if name in _OF_FOLDERS or (name in _ONTO and len(call.args) < 2):
        return None
    if (owner := opened_path(script, call)) is not None:
        return owner
    said = [word.value for word in call.keywords if word.arg in _PATHS]
    second = full in ("torch.save", "torch.jit.save") or name in {"save_image", *_FETCHING, *_ONTO}
    return said[0] if said else next(iter(call.args[int(second) :]), None)


def _ending(script: Script, node: ast.expr | None, depth: int = 4) -> str | None:
    """What the name of a file ends with: ".pth"; None where that is not seen."""
    if node is None or depth == 0:
        return None
    if isinstance(node, ast.Constant):
        ending = os.path.splitext(node.value)[1] if isinstance(node.value, str) else ""
        return ending if ending in _ENDINGS else None
    if isinstance(node, ast.JoinedStr):
        last = node.values[-1] if node.values else None
        return _ending(script, last if isinstance(last, ast.Constant) else None, depth)
    if isinstance(node, ast.BinOp):
        return _ending(script, node.right if isinstance(node.op, ast.Add | ast.Div) else node.left, depth - 1)
    if isinstance(node, ast.Call) and last_name(node.func) == "format" and isinstance(node.func, ast.Attribute):
        return _ending(script, node.func.value, depth - 1)
    if isinstance(node, ast.Call) and last_name(node.func) in ("join", "Path", "str") and node.args:
        return _ending(script, node.args[-1], depth - 1)
    if isinstance(node, ast.Name) and not _is_given(script, node):
        values = bindings(script, script.scope(node)).get(node.id, [])
        return _ending(script, values[0], depth - 1) if len(values) == 1 else None
    return None


def _is_given(script: Script, node: ast.Name) -> bool:
    """Whether a name is a parameter of its function."""
    given = getattr(script.scope(node), "args", None)
    return given is not None and any(each.arg == node.id for each in ast.walk(given) if isinstance(each, ast.arg))
