"""The comments that switch rules off: `# ddpify: ignore[DDP105]` on a line, `# ddpify: skip-file` for all of it."""

from __future__ import annotations

import re

_IGNORE = re.compile(r"#\s*ddpify:\s*ignore(?:\[([^\]\r\n]*)\]?)?")
_SKIP = re.compile(r"^\s*#\s*ddpify:\s*skip-file\b", re.MULTILINE)


def ignored(text: str) -> dict[int, frozenset[str]]:
    """The rules that are switched off, by line; "" stands for all of them."""
    if "ddpify:" not in text:
        return {}
    found = {number: _IGNORE.search(line) for number, line in enumerate(re.split(r"\r\n|\r|\n", text), start=1)}
    return {
        number: frozenset(name.strip() for name in (match[1] or "").split(","))
        for number, match in found.items()
        if match
    }


def skips_file(text: str) -> bool:
    """Whether a comment with a line of its own asks to leave the file alone."""
    return "skip-file" in text and bool(_SKIP.search(text))
