"""Unified diffs that `git apply` accepts."""

from __future__ import annotations

from difflib import diff_bytes, unified_diff
from io import BytesIO


def diff(name: str, before: bytes, after: bytes) -> bytes:
    """The unified diff between two versions of a file.

    Args:
        name: its path from where it is applied. before, after: its bytes; lines end at "\\n" alone, as for git.
    Returns:
        The diff with its a/ and b/ header, line endings as they are in the file.
    """
    path = name.lstrip("/").encode("utf-8", "surrogateescape")
    old, new = BytesIO(before).readlines(), BytesIO(after).readlines()
    pieces = diff_bytes(unified_diff, old, new, _quoted(b"a/" + path), _quoted(b"b/" + path), lineterm=b"\n")
    return b"".join(piece if piece.endswith(b"\n") else piece + b"\n\\ No newline at end of file\n" for piece in pieces)


def _quoted(path: bytes) -> bytes:
    if b" " in path and not set(path) & set(b'"\\\t\n\r'):
        return path + b"\t"  # git ends a name with blanks so, lest it be taken for a date
    if set(path) & set(b'"\\\t\n\r'):
        escaped = path.replace(b"\\", b"\\\\").replace(b'"', b'\\"')
        return b'"' + escaped.replace(b"\t", b"\\t").replace(b"\n", b"\\n").replace(b"\r", b"\\r") + b'"'
    return path
