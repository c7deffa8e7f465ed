"""The fixtures: training scripts, a folder each, found by glob; a new one is a folder and no code."""

from __future__ import annotations

import sys
import tokenize
from dataclasses import dataclass
from pathlib import Path
from typing import Any

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

ROOT = Path(__file__).parents[2] / "fixtures"


@dataclass(frozen=True)
class Fixture:
    """A training script, and how to run it and hold its conversion against it."""

    name: str
    folder: Path  # what the script sees beside itself; for a single file, the fixture's own folder
    entry: str  # file name of the script, relative to folder
    args: tuple[str, ...]
    tolerance: float  # relative difference of parameters and gradients that N ranks may have, after every step
    cuda_shim: bool  # the original needs a GPU, which the harness then pretends to have
    refused: str  # id of the rule that refuses to convert it, or ""
    compile: bool  # it needs torch.compile's front end (see pretend/no_dynamo.py)
    divided: bool  # its training forwards can be divided; false for one that each rank has to run whole
    hazards: tuple[str, ...]  # what it is about: ids of docs/hazards.md
    on_device: bool  # on XLA it draws numbers on the device, or saves the device's name
    pretend_on_xla: str  # what it runs with there (a module of pretend/), so that more than rounding can be seen; or ""
    not_on_xla: str  # why it cannot run there, or ""
    also: tuple[str, ...]  # targets beside those of all fixtures for which its conversions are kept
    records: bool  # it makes steps of torch optimizers; false for one that updates its parameters by hand
    pretend_on_gpu: str = ""  # as pretend_on_xla
    whole_on_gpu: str = ""  # why its training forwards cannot be divided there with the numbers of one process, or ""

    @property
    def is_single_file(self) -> bool:
        return self.folder.name != "before"


def load(name: str) -> Fixture:
    """Return the fixture of that name (its folder's)."""
    with (ROOT / name / "fixture.toml").open("rb") as stream:
        settings = tomllib.load(stream)
    before = ROOT / name / "before"
    single = not before.is_dir()
    return Fixture(
        name=name,
        folder=ROOT / name if single else before,
        entry="before.py" if single else settings.get("entry", "train.py"),
        args=tuple(str(argument) for argument in settings.get("args", ())),
        tolerance=float(settings.get("tolerance", 1e-6)),
        cuda_shim=bool(settings.get("needs_cuda_shim", False)),
        refused=str(settings.get("refused", "")),
        compile=bool(settings.get("compile", False)),
        divided=bool(settings.get("divided", True)),
        hazards=tuple(settings["hazards"]),
        on_device=bool(settings.get("on_device", False)),
        pretend_on_xla=str(settings.get("pretend_on_xla", "")),
        not_on_xla=str(settings.get("not_on_xla", "")),
        also=tuple(settings.get("also", ())),
        records=bool(settings.get("records", True)),
        pretend_on_gpu=str(settings.get("pretend_on_gpu", "")),
        whole_on_gpu=str(settings.get("whole_on_gpu", "")),
    )


def names() -> list[str]:
    """Return the names of all fixtures, sorted."""
    return sorted(path.parent.name for path in ROOT.glob("*/fixture.toml"))


def plain_names() -> list[str]:
    """Return the names of those that the plain style accepts: their conversions are kept beside them."""
    return [name for name in names() if expected(load(name), "plain.cpu")]


def files(fixture: Fixture) -> dict[str, Path]:
    """Return what the original needs in its folder: relative path -> file."""
    if fixture.is_single_file:
        return {fixture.entry: fixture.folder / fixture.entry}
    found = (path for path in fixture.folder.rglob("*") if path.is_file() and "__pycache__" not in path.parts)
    return {path.relative_to(fixture.folder).as_posix(): path for path in sorted(found)}


def program(fixture: Fixture) -> dict[Path, str]:
    """Return the texts of the fixture's program: the entry script first, then the local modules that it imports."""
    from ddpify_codemods.imports import local_modules

    texts: dict[Path, str] = {}
    waiting = [fixture.folder / fixture.entry]
    while waiting:
        path = waiting.pop(0)
        if path not in texts:
            texts[path] = decode(path)[0]
            waiting += local_modules(path, texts[path])
    return texts


def converted(
    fixture: Fixture, target: str, xla_reduce: str = "ddp", style: str = "exact", **options: Any
) -> dict[str, bytes]:
    """Return the files that the converter changes for a target: relative path -> new content."""
    from ddpify_codemods import convert

    results = convert(program(fixture), target, xla_reduce=xla_reduce, style=style, **options)
    return {
        path.relative_to(fixture.folder).as_posix(): encode(path, result.code)
        for path, result in results.items()
        if encode(path, result.code) != path.read_bytes()
    }


def expected(fixture: Fixture, target: str) -> dict[str, bytes]:
    """Return the expected conversion for a target, as `converted` does."""
    root = expected_path(fixture, target, "")
    if fixture.is_single_file:
        return {fixture.entry: root.read_bytes()} if root.is_file() else {}
    return {path.relative_to(root).as_posix(): path.read_bytes() for path in root.rglob("*.py")}


def expected_path(fixture: Fixture, target: str, relative: str) -> Path:
    """Return where the expected conversion of a file lies: `after.<target>.py`, or a file below `after.<target>/`."""
    if fixture.is_single_file:
        return fixture.folder / f"after.{target}.py"
    return fixture.folder.parent / f"after.{target}" / relative


def decode(path: Path) -> tuple[str, str, bool]:
    """Return the text of a source file, newlines untouched and without BOM, its encoding, and whether it had a BOM."""
    with path.open("rb") as stream:
        encoding, _ = tokenize.detect_encoding(stream.readline)
    content = path.read_bytes()
    return content.decode(encoding), encoding.removesuffix("-sig"), encoding.endswith("-sig")


def encode(path: Path, text: str) -> bytes:
    """Return a text as the bytes that the source file at `path` would have: its encoding, its BOM."""
    _, encoding, has_bom = decode(path)
    return (b"\xef\xbb\xbf" if has_bom else b"") + text.encode(encoding)
