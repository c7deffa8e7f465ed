"""Unified diffs that `git apply` accepts."""

from __future__ import annotations

from collections.abc import Iterator
from difflib import Match, SequenceMatcher
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
    groups = [*_Matcher(old, new).get_grouped_opcodes()]
    pieces = [b"--- " + _quoted(b"a/" + path) + b"\n", b"+++ " + _quoted(b"b/" + path) + b"\n"] if groups else []
    for group in groups:
        (_, first, _, first_new, _), (_, _, last, _, last_new) = group[0], group[-1]
        pieces.append(f"@@ -{_range(first, last)} +{_range(first_new, last_new)} @@\n".encode())
        for kind, begin, end, begin_new, end_new in group:
            if kind == "equal":
                pieces += [b" " + line for line in old[begin:end]]
            else:
                pieces += [b"-" + line for line in old[begin:end]] + [b"+" + line for line in new[begin_new:end_new]]
    return b"".join(piece if piece.endswith(b"\n") else piece + b"\n\\ No newline at end of file\n" for piece in pieces)


class _Matcher(SequenceMatcher[bytes]):
    """Also finds equal lines between the others that are frequent, such as blank ones.

    In a file of 200 lines and more difflib takes these for noise: it shows a run of them as removed and added again. To
    look at them everywhere takes seconds where there are thousands.
    """

    def __init__(self, old: list[bytes], new: list[bytes]) -> None:
        super().__init__(None, old, new)
        self.old, self.new = old, new

    def get_matching_blocks(self) -> list[Match]:
        return [*self._blocks()]

    def _blocks(self) -> Iterator[Match]:
        begin = begin_new = 0
        for block in super().get_matching_blocks():
            between = self.old[begin : block.a], self.new[begin_new : block.b]
            for found in SequenceMatcher(None, *between, autojunk=False).get_matching_blocks()[:-1]:
                yield Match(begin + found.a, begin_new + found.b, found.size)
            yield block
            begin, begin_new = block.a + block.size, block.b + block.size


def _range(begin: int, end: int) -> str:
    """Lines as a hunk names them: the first one and how many, if not one; before a place where none are, that place."""
    lines = end - begin
    return f"{begin + bool(lines)}" if lines == 1 else f"{begin + bool(lines)},{lines}"


def _quoted(path: bytes) -> bytes:
    if b" " in path and not set(path) & set(b'"\\\t\n\r'):
        return path + b"\t"  # git ends a name with blanks so, lest it be taken for a date
    if set(path) & set(b'"\\\t\n\r'):
        escaped = path.replace(b"\\", b"\\\\").replace(b'"', b'\\"')
        return b'"' + escaped.replace(b"\t", b"\\t").replace(b"\n", b"\\n").replace(b"\r", b"\\r") + b'"'
    return path
