"""Progress bars (tqdm's): what stays of them when they are finished, for how often they draw themselves is chance."""

from __future__ import annotations

import re

# "epoch 1:  40%|████      | 8/20 [00:00<00:00, 15.42it/s, loss=0.93]", or "8it [00:00, 15.42it/s]" without a total.
_INSIDE = r"\[(?:[^\[\]\r\n]|\[[^\[\]\r\n]*\])*\]"
_DRAWN = rf"[^\r\n]*?(?:\d+%\|[^|\r\n]*\|[^\[\r\n]*(?:{_INSIDE})?|\b\d[\d.]*\w*\s(?=\[\d+:\d\d){_INSIDE})"
_BAR = re.compile(_DRAWN)
_PARTS = re.compile(rf"(.*?)100%\|[^|]*\|([^\[]*)({_INSIDE})?", re.DOTALL)
_UP = r"(?:\x1b\[A)+"
_INNER = re.compile(rf"\n+\r(?:{_DRAWN}| *){_UP}|{_UP}")  # it is drawn some lines below, and goes back up


def settled(text: str) -> str:
    """A text without the bars that draw themselves in it; one that is finished stays as its name, counts and postfix.

    Times, rates and the number of redraws are left out, for no two runs of a script have the same.
    """
    if not _BAR.search(text):
        return text
    lines = _INNER.sub("", text).split("\n")
    kept = (_line(line, is_whole=number < len(lines)) for number, line in enumerate(lines, start=1))
    return "\n".join(line for line in kept if line is not None)


def _line(line: str, is_whole: bool) -> str | None:
    """What stays of a line; None if only a bar was there. A bar is finished where the line ends behind it."""
    if not _BAR.search(line) and "\r" not in line:
        return line
    last = line.rpartition("\r")[2]
    parts = [part for part in _BAR.sub("", line).split("\r") if part.strip()]
    bar = _BAR.fullmatch(last.rstrip())
    if is_whole and bar and (found := _PARTS.fullmatch(bar[0])):
        parts.append(_finished(*found.groups(default="")))
    return "\r".join(parts) if parts else None


def _finished(name: str, counts: str, inside: str) -> str:
    postfix = inside[1:-1].split(", ", 2)[2:]  # behind the times and the rate
    return ", ".join(word for word in (name.strip() + counts.rstrip(), *postfix) if word)
