"""What two runs printed, line by line; times and what two runs of the original print differently are left out."""

from __future__ import annotations

import re
from dataclasses import dataclass
from itertools import zip_longest

from ddpify.verify import bars
from ddpify.verify.compare import NUMBER, close_number

_QUANTITY = r"[-+]?\d+(?:\.\d+)?(?:e[-+]?\d+)?"
_AVERAGE = rf"(?:\s*\({_QUANTITY}\))"
_TIME_WORD = r"\w*time|elapsed|took|eta|duration|speed|throughput"
NEAR = 0.01  # relative: a number that two runs of the original print so near to each other is no clock's
# Of a run's folder, mostly: 2026-11-23_23-15-50, 20261123-231550, and TensorBoard's Nov23_23-15-50.
_DATE = (
    r"(?<!\d)(?:20\d\d([-_/])\d\d\1\d\d[T _-]+\d\d([-:_h])\d\d(?:\2\d\d(?:\.\d+)?)?|20\d{6}[_-]\d{4}(?:\d\d)?"
    r"|(?:jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)\d\d_\d\d-\d\d-\d\d)(?!\d)"
)
# A clock, a number with a unit of time, or one after a word for it; of a meter also its average, in parentheses, and
# "Data 0.013 (0.013)", the time to load of the ImageNet example.
TIME = re.compile(
    rf"{_DATE}|\b\d+:\d\d(?::\d\d)?(?:\.\d+)?\b|{_QUANTITY}\s*(?:[mµun]?s|secs?|seconds?|mins|minutes?|hours?)\b(?!\w)"
    rf"|{_QUANTITY}\s*\w+/(?:s|sec|second)\b|\b(?:{_TIME_WORD})\W{{0,4}}{_QUANTITY}{_AVERAGE}?|\bdata\s+{_QUANTITY}{_AVERAGE}",
    re.IGNORECASE,
)


@dataclass(frozen=True)
class TextDifference:
    """The first line (1-based) that differs; `ours` or `original` is None where the text ended before."""

    line: int
    ours: str | None
    original: str | None


def first_difference(
    original: str, ours: str, control: str | None, tolerance: float
) -> tuple[TextDifference | None, int]:
    """Hold a text against the original's.

    Args:
        original, ours: the texts. control: what the original printed in another run, if that is known: numbers that
            differ between these two may differ ten times as much in ours, or at all if they are not near each other.
        tolerance: relative difference of numbers; one unit of the last printed digit is always allowed.
    Returns:
        The first difference, and how many numbers were left out: times, and what the control has otherwise.
    """
    settled = [bars.settled(text) for text in (original, ours, original if control is None else control)]
    left_out = sum(1 for _ in TIME.finditer(settled[0]))
    texts = (TIME.sub("<time>", text).splitlines() for text in settled)
    for number, (a, b, c) in enumerate(zip_longest(*texts), start=1):
        if a is None or b is None:
            if c is None and a is None and control is not None:
                continue
            return TextDifference(number, b, a), left_out
        if a == b:
            continue
        if c is not None and _words(a) != _words(c):  # the original does not print this line twice
            left_out += 1
            continue
        if _words(a) != _words(b):
            return TextDifference(number, b, a), left_out
        others = NUMBER.findall(a if c is None else c)
        for x, y, z in zip(NUMBER.findall(a), NUMBER.findall(b), others, strict=True):
            if close_number(x, y, tolerance):
                continue
            if x == z:
                return TextDifference(number, b, a), left_out
            noise = abs(float(x) - float(z))
            if noise <= NEAR * abs(float(x)) and abs(float(x) - float(y)) > 10 * noise:
                return TextDifference(number, b, a), left_out
            left_out += 1
    return None, left_out


def _words(line: str) -> list[str]:
    return [" ".join(part.split()) for part in NUMBER.split(line)]
