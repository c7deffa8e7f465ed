"""`python -m tests.update_fixtures [NAME...]` rewrites the expected conversions of fixtures, of all by default."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Sequence

from ddpify_codemods import TARGETS as ALL_TARGETS

from tests.e2e import fixtures

TARGETS = ("cpu", "cuda", "xla")


def main(names: Sequence[str]) -> None:
    """Write `after.<target>.py`, or the changed files below `after.<target>/`, for every fixture that is converted; for
    the plain style `after.plain.<target>`.

    Args:
        names: names of fixtures.
    """
    for name in names:
        fixture = fixtures.load(name)
        for target in (*TARGETS, *fixture.also):
            for style, name_of in styles(target):
                _remove(fixture, name_of)
                for relative, content in fixtures.converted(fixture, target, style=style).items():
                    path = fixtures.expected_path(fixture, name_of, relative)
                    path.parent.mkdir(exist_ok=True, parents=True)
                    path.write_bytes(content)


def styles(target: str) -> list[tuple[str, str]]:
    """The styles of a target's conversions, and the names of those."""
    plain = [("plain", f"plain.{target}")]
    return plain if ALL_TARGETS[target].only_plain else [("exact", target), *plain]


def _remove(fixture: fixtures.Fixture, target: str) -> None:
    path = fixtures.expected_path(fixture, target, "")
    if path.is_dir():
        shutil.rmtree(path)
    path.unlink(missing_ok=True)


if __name__ == "__main__":
    main(sys.argv[1:] or fixtures.names())
