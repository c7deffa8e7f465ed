"""Settings: `[tool.ddpify]` in pyproject.toml."""

from __future__ import annotations

import sys
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fnmatch import fnmatch
from pathlib import Path
from typing import TYPE_CHECKING

from ddpify.files import BadInput, shown

if TYPE_CHECKING:
    from ddpify.report import FileReport

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

KEYS = ("target", "style", "batch-norm", "exclude", "select", "ignore", "per-file-ignores")
STATISTICS = ("batch", "local")
REPORTS = ("DDP4", "DDP5")  # the rules that only report: what converts or refuses is not switched off for a project


@dataclass(frozen=True)
class Settings:
    """What a project has chosen; `file` says it (shown to people), paths are taken from `folder`.

    style: of conversions. batch_norm: whose statistics BatchNorm takes, one of STATISTICS; "" where that is not chosen.
    exclude: files and folders that are passed over. select, ignore: rules of REPORTS, or how their names begin; an
    empty select stands for all. per_file_ignores: further ones to ignore, by pattern.
    """

    folder: Path = field(default_factory=Path)
    file: str = ""
    target: str = ""
    style: str = ""
    batch_norm: str = ""
    exclude: tuple[str, ...] = ()
    select: tuple[str, ...] = ()
    ignore: tuple[str, ...] = ()
    per_file_ignores: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    def excludes(self, path: Path) -> bool:
        """Whether a file or folder is passed over."""
        return any(matches(path, pattern, self.folder) for pattern in self.exclude)

    def reported(self, report: FileReport) -> FileReport:
        """The report of a file without the findings that are not wanted."""
        ignored = list(self.ignore)
        for pattern, rules in self.per_file_ignores.items():
            ignored += rules if matches(Path(report.name).resolve(), pattern, self.folder) else ()

        def is_wanted(rule: str) -> bool:
            chosen = not self.select or rule.startswith(self.select)
            return not rule.startswith(REPORTS) or (chosen and not rule.startswith(tuple(ignored)))

        return replace(report, findings=tuple(found for found in report.findings if is_wanted(found.rule)))


def matches(path: Path, pattern: str, folder: Path) -> bool:
    """Whether a pattern names a path or a folder above it.

    Args:
        path: a real path. pattern: as in fnmatch; without a slash inside it may match at any depth. folder: where
            patterns with a slash start.
    """
    if not path.is_relative_to(folder):
        return False
    inside = path.relative_to(folder)
    wanted = pattern.removeprefix("./").removeprefix("**/").rstrip("/").removesuffix("/**")
    if "/" not in wanted:
        return any(fnmatch(part, wanted) for part in inside.parts)
    patterns = [wanted.lstrip("/"), *([f"*/{wanted}"] if pattern.startswith("**/") else [])]
    return any(fnmatch(str(place), each) for place in [inside, *inside.parents] for each in patterns)


def read_settings(folder: Path) -> Settings:
    """The settings of a project.

    Args:
        folder: where to start; the nearest pyproject.toml upwards that has a `[tool.ddpify]` table counts.
    Raises:
        BadInput: the file cannot be read, or its table holds something that is not a setting.
    """
    for place in (folder, *folder.parents):
        file = place / "pyproject.toml"
        if file.is_file() and (table := _table(file)) is not None:
            return _settings(table, place.resolve(), shown(file))
    return Settings()


def _settings(table: Mapping[str, object], folder: Path, file: str) -> Settings:
    if unknown := sorted(set(table) - {*KEYS}):
        hint = did_you_mean(unknown[0], KEYS)
        message = f"[tool.ddpify] has no setting {unknown[0]!r}{hint}"
        raise BadInput(file, message, f"the settings are {', '.join(KEYS)}")
    target = table.get("target", "")
    if not isinstance(target, str):
        raise BadInput(file, "[tool.ddpify] target is not a string", 'write target = "cuda"')
    statistics = table.get("batch-norm", "")
    if statistics not in ("", *STATISTICS):
        message = f"[tool.ddpify] batch-norm is {statistics!r}"
        raise BadInput(file, message, f"write one of {', '.join(STATISTICS)}")
    style = table.get("style", "")
    if "style" in table and style not in ("exact", "plain"):
        raise BadInput(file, f"[tool.ddpify] style is {style!r}", 'write style = "exact" or style = "plain"')
    by_file = table.get("per-file-ignores", {})
    if not isinstance(by_file, dict):
        raise BadInput(file, "[tool.ddpify] per-file-ignores is not a table", 'write {"old/*" = ["DDP501"]}')
    lists = {key: _words(table.get(key, []), key, file) for key in ("exclude", "select", "ignore")}
    per_file = {pattern: _words(rules, f"per-file-ignores of {pattern!r}", file) for pattern, rules in by_file.items()}
    for key, rules in [*lists.items(), *((f"per-file-ignores of {name!r}", rules) for name, rules in per_file.items())]:
        if key != "exclude":
            _require_rules(rules, key, file)
    chosen = (str(style), str(statistics))
    return Settings(folder, file, target, *chosen, lists["exclude"], lists["select"], lists["ignore"], per_file)


def _words(value: object, key: str, file: str) -> tuple[str, ...]:
    if not isinstance(value, list) or not all(isinstance(word, str) and word for word in value):
        example = '["old/*.py"]' if key == "exclude" else '["DDP501"]'
        raise BadInput(file, f"[tool.ddpify] {key} is not a list of strings", f"write {example}")
    return tuple(value)


def _require_rules(names: Sequence[str], key: str, file: str) -> None:
    if not names:
        return
    from ddpify_codemods import RULES

    known = [rule.id for rule in RULES]
    for name in names:
        meant = [rule for rule in known if rule.startswith(name)]
        if not meant:
            message = f"[tool.ddpify] {key}: no rule {name!r}{did_you_mean(name, known)}"
            raise BadInput(file, message, "ddpify rules lists them")
        if not all(rule.startswith(REPORTS) for rule in meant):
            message = f"[tool.ddpify] {key}: {name!r} converts or refuses, which no setting switches off"
            raise BadInput(file, message, f"write # ddpify: ignore[{meant[0]}] on the line in question")


def _table(file: Path) -> dict[str, object] | None:
    try:
        tool = tomllib.loads(file.read_text(encoding="utf-8")).get("tool", {})
    except (OSError, ValueError) as error:
        raise BadInput(shown(file), f"cannot be read ({error})", "correct it") from error
    if not isinstance(tool, dict):
        raise BadInput(shown(file), "tool is not a table", 'write [tool.ddpify] and target = "cuda"')
    table = tool.get("ddpify")
    if table is not None and not isinstance(table, dict):
        raise BadInput(shown(file), "tool.ddpify is not a table", 'write [tool.ddpify] and target = "cuda"')
    return table


def choose_target(given: str, settings: Settings, targets: Collection[str], converted: Collection[str] = ()) -> str:
    """The target to convert for.

    Args:
        given: what the command line says, "" for nothing. settings: of the project. targets: all there are.
        converted: those that the files are converted for already; a single one counts where none is chosen.
    Returns:
        One of `targets`.
    Raises:
        BadInput: none is chosen, or one that does not exist.
    """
    name, place = (given, "--target") if given else (settings.target, settings.file)
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
    other = _target_called(name.lower())
    hint = f", did you mean {other!r}?" if other in targets else did_you_mean(name, targets)
    raise BadInput(place, f"no target {name!r}{hint}", f"the targets are {known}")


def _target_called(name: str) -> str:
    """The target that people also call by this name; "" for none."""
    from ddpify_codemods import TARGETS

    return next((target.name for target in TARGETS.values() if name in target.aliases), "")


def did_you_mean(word: str, known: Collection[str]) -> str:
    """A hint for a misspelt word: ", did you mean 'cuda'?", or nothing if no known word is near."""
    from difflib import get_close_matches  # 10 ms that only a mistake should cost

    near = get_close_matches(word.lower(), {name.lower(): name for name in known}, n=1)
    return ", did you mean " + next(repr(name) for name in known if name.lower() == near[0]) + "?" if near else ""
