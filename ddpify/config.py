"""Settings: `[tool.ddpify]` in pyproject.toml."""

from __future__ import annotations

import sys
from collections.abc import Collection
from pathlib import Path

from ddpify.files import BadInput, shown

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib


def configured_target(folder: Path) -> tuple[str, str]:
    """The target that a project has chosen.

    Args:
        folder: where to start; the nearest pyproject.toml upwards that has a `[tool.ddpify]` table counts.
    Returns:
        The target and the name of the file that says so; two empty strings if none does.
    Raises:
        BadInput: the file cannot be read, or its table holds something else than `target`.
    """
    for place in (folder, *folder.parents):
        file = place / "pyproject.toml"
        if file.is_file() and (table := _table(file)) is not None:
            if unknown := sorted(set(table) - {"target"}):
                raise BadInput(shown(file), f"[tool.ddpify] has no setting {unknown[0]!r}", "the one setting is target")
            target = table.get("target", "")
            if not isinstance(target, str):
                raise BadInput(shown(file), "[tool.ddpify] target is not a string", 'write target = "cuda"')
            return target, shown(file)
    return "", ""


def _table(file: Path) -> dict[str, object] | None:
    try:
        table = tomllib.loads(file.read_text(encoding="utf-8")).get("tool", {}).get("ddpify")
    except (OSError, ValueError, AttributeError) as error:
        raise BadInput(shown(file), f"cannot be read ({error})", "correct it, or give --target") from error
    if table is not None and not isinstance(table, dict):
        raise BadInput(shown(file), "tool.ddpify is not a table", 'write [tool.ddpify] and target = "cuda"')
    return table


def choose_target(given: str, folder: Path, targets: Collection[str], converted: Collection[str] = ()) -> str:
    """The target to convert for.

    Args:
        given: what the command line says, "" for nothing. folder: where to look for settings. targets: all there are.
        converted: those that the files are converted for already; a single one counts where none is chosen.
    Returns:
        One of `targets`.
    Raises:
        BadInput: none is chosen, or one that does not exist.
    """
    name, place = (given, "--target") if given else configured_target(folder)
    if name in targets:
        return name
    known = ", ".join(sorted(targets))
    if not name and len(converted) == 1:
        return next(iter(converted))
    if not name and converted:
        what = f"the files are converted for different targets ({', '.join(sorted(converted))})"
        raise BadInput("ddpify", what, "give them one after the other, or --target")
    if not name:
        raise BadInput("ddpify", "no target", f"give --target with one of {known}")
    raise BadInput(place, f"no target {name!r}{did_you_mean(name, targets)}", f"the targets are {known}")


def did_you_mean(word: str, known: Collection[str]) -> str:
    """A hint for a misspelt word: ", did you mean 'cuda'?", or nothing if no known word is near."""
    from difflib import get_close_matches  # 10 ms that only a mistake should cost

    near = get_close_matches(word.lower(), {name.lower(): name for name in known}, n=1)
    return ", did you mean " + next(repr(name) for name in known if name.lower() == near[0]) + "?" if near else ""
