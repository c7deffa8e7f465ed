"""Holds one run against another; every function yields the differences it sees, as sentences."""

from __future__ import annotations

import math
import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from itertools import zip_longest
from typing import Any

import numpy

from ddpify.verify.runs import Run, Step

TEXT_TOLERANCE = 1e-4  # relative, for numbers in texts, which are printed with few digits
NUMBER = re.compile(r"(?<![A-Za-z_])[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?(?![A-Za-z_])|\b[-+]?(?:nan|inf)\b")
ERROR = re.compile(r"(\[rank\d+\]: )?[\w.]+(Error|Exception|Interrupt|Exit)\b")
BAR = re.compile(r"\d+%\||\bit/s\b|\bs/it\b")


def identical(original: Run, alone: Run) -> Iterator[str]:
    """Yield how a converted script, run alone, differs at all from its original (E3)."""
    yield from _exit(original, alone)
    yield from _exact_text("stdout", original.stdout, alone.stdout)
    yield from _same_steps(original.records.get(0, []), alone.records.get(0, []), "original", "alone")
    yield from _same_names(original.files, alone.files)
    for name in sorted(original.files.keys() & alone.files.keys()):
        yield from _loads(name, alone.files[name])
        if not _same_content(original.files[name], alone.files[name]):
            yield f"file {name} differs"


def equivalent(original: Run, many: Run, world_size: int, tolerance: float) -> Iterator[str]:
    """Yield how a converted script, run on many ranks, differs from its original by more than a tolerance (E1-E5)."""
    yield from _exit(original, many)
    reference = original.records.get(0, [])
    ranks = [many.records.get(rank, []) for rank in range(world_size)]
    counts = [len(steps) for steps in ranks]
    if counts != [len(reference)] * world_size:
        yield f"steps: original {len(reference)}, ranks {counts}"
    for rank in range(1, world_size):
        yield from _same_steps(ranks[0], ranks[rank], "rank 0", f"rank {rank}")
    yield from _close_steps(reference, ranks[0], tolerance)
    number_tolerance = max(TEXT_TOLERANCE, tolerance)
    yield from close_text("stdout", original.stdout, many.stdout, number_tolerance)
    yield from _one_voice(original.stderr, many.stderr)
    yield from _same_names(original.files, many.files)
    for name in sorted(original.files.keys() & many.files.keys()):
        yield from _loads(name, many.files[name])
        yield from _close_content(name, original.files[name], many.files[name], tolerance)


def divided(many: Run) -> Iterator[str]:
    """Yield the ranks on which no training forward was divided: each computed everything, however right."""
    if idle := [rank for rank, steps in many.records.items() if steps and not steps[-1].forwards]:
        yield f"nothing was divided on ranks {sorted(idle)}"


def _exit(original: Run, other: Run) -> Iterator[str]:
    if other.rc != original.rc:
        lines = [line for line in other.stderr.splitlines() if ERROR.match(line)] or other.stderr.splitlines() or [""]
        cause = "ended by the time limit" if other.rc == 124 else lines[0]
        yield f"rc {other.rc}, original {original.rc}: {cause.strip()}"


# Steps


def _same_steps(first: Sequence[Step], second: Sequence[Step], a: str, b: str) -> Iterator[str]:
    """Yield the first step whose parameters or gradients are not the same bits."""
    if len(first) != len(second):
        yield f"steps: {a} {len(first)}, {b} {len(second)}"
    for number, (one, two) in enumerate(zip(first, second, strict=False)):
        if one.optimizer != two.optimizer:
            yield f"step {number}: optimizer {one.optimizer} in {a}, {two.optimizer} in {b}"
            return
        for kind, ours, theirs in (("gradient", one.grads, two.grads), ("parameter", one.params, two.params)):
            for index, (x, y) in enumerate(zip_longest(ours, theirs)):
                if not _same_trace(x, y):
                    yield f"step {number}: {kind} {index} of {a} and {b} differ, {_describe(y, x)}"
                    return


def _close_steps(reference: Sequence[Step], steps: Sequence[Step], tolerance: float) -> Iterator[str]:
    """Yield the first step whose parameters or gradients, all together, are further apart than the tolerance.

    Parameters relative to themselves. A gradient is a sum over samples that cancel more and more as training goes on,
    while its rounding error stays that of the terms: it is held relative to the largest gradient of its optimizer so
    far. (What a wrong gradient does, the parameters of the same step show without this allowance.)
    """
    largest: defaultdict[int, float] = defaultdict(float)
    for number, (one, two) in enumerate(zip(reference, steps, strict=False)):
        if one.optimizer != two.optimizer:
            yield f"step {number}: optimizer {two.optimizer}, original {one.optimizer}"
            return
        for kind, original, ours in (("gradient", one.grads, two.grads), ("parameter", one.params, two.params)):
            if [_size(x) for x in original if x] != [_size(x) for x in ours if x] and kind == "parameter":
                yield f"step {number}: other parameters than the original"
                return
            distance = _distance(ours, original)
            if kind == "gradient":
                norm = math.hypot(*(trace[1] for trace in original if trace))
                largest[one.optimizer] = max(largest[one.optimizer], norm)
                distance *= norm / largest[one.optimizer] if largest[one.optimizer] else 1.0
            if not distance <= tolerance:
                index, own = _first_far(ours, original, tolerance)
                yield f"step {number}: {kind}s differ, rel {distance:.1e} (first: {kind} {index}, rel {own:.1e})"
                return


def _same_trace(x: Any, y: Any) -> bool:
    if x is None or y is None:
        return x is y
    return bool(x[0].dtype == y[0].dtype and x[0].tobytes() == y[0].tobytes() and x[2] == y[2])


def _describe(x: Any, y: Any) -> str:
    if x is None or y is None:
        return "one has none"
    return f"rel {_distance([x], [y]):.1e}" if x[0].shape == y[0].shape else f"sizes {x[0].size} and {y[0].size}"


def _size(trace: Any) -> int:
    return int(trace[0].size)


def _distance(ours: Sequence[Any], original: Sequence[Any]) -> float:
    """Return ||ours - original|| / ||original|| over all tensors; an absent gradient counts as zero."""
    difference = norm = 0.0
    for x, y in zip_longest(ours, original):
        if x is None and y is None:
            continue
        a, b, share = _pair(x, y)
        if a.shape != b.shape:
            return math.inf
        with numpy.errstate(invalid="ignore"):
            difference += float(numpy.sum(numpy.where(_equal(a, b), 0.0, a - b) ** 2)) / share
        if share < 1:
            difference += (x[1] - y[1]) ** 2 if x and y else 0.0
        norm += float(numpy.nansum(numpy.where(numpy.isinf(b), 0.0, b) ** 2)) / share
    if difference == 0:
        return 0.0
    return math.sqrt(difference / norm) if norm else math.inf


def _pair(x: Any, y: Any) -> tuple[Any, Any, float]:
    """Return the values of two traces in float64, zeros for an absent one, and the share of the tensor they are."""
    a, b = (None if trace is None else trace[0].astype(numpy.float64) for trace in (x, y))
    a, b = numpy.zeros_like(b) if a is None else a, numpy.zeros_like(a) if b is None else b
    known = y or x
    sampled = float(numpy.linalg.norm(known[0].astype(numpy.float64)))
    share = (sampled / known[1]) ** 2 if known[2] and known[1] and sampled else 1.0
    return a, b, share


def _equal(a: Any, b: Any) -> Any:
    return (a == b) | (numpy.isnan(a) & numpy.isnan(b))


def _first_far(ours: Sequence[Any], original: Sequence[Any], tolerance: float) -> tuple[int, float]:
    pairs = [(index, _distance([x], [y])) for index, (x, y) in enumerate(zip_longest(ours, original))]
    far = [pair for pair in pairs if not pair[1] <= tolerance]
    return far[0] if far else (-1, math.nan)


# Texts


def _exact_text(name: str, original: str, ours: str) -> Iterator[str]:
    pairs = enumerate(zip_longest(original.splitlines(), ours.splitlines()), start=1)
    for number, (a, b) in pairs:
        if a != b:
            yield f"{name} line {number}: {b!r}, original {a!r}"
            return
    if original != ours:
        yield f"{name}: line endings differ"


def close_text(name: str, original: str, ours: str, tolerance: float) -> Iterator[str]:
    """Yield the first line whose words, or whose numbers by more than a relative tolerance or one digit, differ."""
    for number, (a, b) in enumerate(zip_longest(original.splitlines(), ours.splitlines()), start=1):
        if a is None or b is None or not _close_line(a, b, tolerance):
            yield f"{name} line {number}: {b!r}, original {a!r}"
            return


def _close_line(a: str, b: str, tolerance: float) -> bool:
    if a == b:
        return True
    if [" ".join(part.split()) for part in NUMBER.split(a)] != [" ".join(part.split()) for part in NUMBER.split(b)]:
        return False
    return all(_close_number(x, y, tolerance) for x, y in zip(NUMBER.findall(a), NUMBER.findall(b), strict=True))


def _close_number(original: str, ours: str, tolerance: float) -> bool:
    if original == ours:
        return True
    if re.fullmatch(r"[-+]?\d+", original) and re.fullmatch(r"[-+]?\d+", ours):
        return False  # a count
    a, b = float(original), float(ours)
    digit = max(_last_digit(original), _last_digit(ours))
    return abs(a - b) <= max(tolerance * abs(a), 1.001 * digit)


def _last_digit(number: str) -> float:
    """Return what one unit of the last printed digit is worth."""
    mantissa, _, exponent = number.lower().partition("e")
    decimals = len(mantissa.partition(".")[2])
    return 0.0 if "n" in number else float(10.0 ** (int(exponent or 0) - decimals))


def _one_voice(original: str, ours: str) -> Iterator[str]:
    """Yield the lines of the original's stderr (loggers, finished bars) that are not there as often as in it (E4)."""
    before, after = Counter(_voice(original)), Counter(_voice(ours))
    for line, count in before.items():
        if after[line] != count:
            yield f"stderr: {line!r} {after[line]} times, original {count}"
            return


def _voice(text: str) -> Iterator[str]:
    """Yield what stays on the screen: lines without their numbers, the names of finished bars, no warnings."""
    for line in text.split("\n"):  # and not at "\r", with which a bar draws itself again
        last = line.rpartition("\r")[2]
        if not last.strip() or "\x1b" in last:  # an inner bar moves the cursor back up
            continue
        if BAR.search(last):
            if "100%" in last:
                yield last.partition(":")[0].partition("|")[0].strip()
        elif "Warning" not in last and not line.startswith((" ", "Traceback")):
            yield NUMBER.sub("#", last)


# Files


def _same_names(original: Mapping[str, Any], ours: Mapping[str, Any]) -> Iterator[str]:
    if missing := sorted(original.keys() - ours.keys()):
        yield f"files missing: {missing}"
    if extra := sorted(ours.keys() - original.keys()):
        yield f"files extra: {extra}"


def _loads(name: str, content: Any) -> Iterator[str]:
    if isinstance(content, str) and content.startswith("does not load"):
        yield f"file {name}: {content}"


def _same_content(a: Any, b: Any) -> bool:
    if isinstance(a, dict) and isinstance(b, dict):
        return list(a) == list(b) and all(_same_content(a[key], b[key]) for key in a)
    if isinstance(a, numpy.ndarray) and isinstance(b, numpy.ndarray):
        return a.dtype == b.dtype and a.shape == b.shape and a.tobytes() == b.tobytes()
    return type(a) is type(b) and (a == b or (a != a and b != b))


def _close_content(name: str, original: Any, ours: Any, tolerance: float) -> Iterator[str]:
    if isinstance(original, dict) and isinstance(ours, dict):
        yield from _close_leaves(name, original, ours, tolerance)
    elif isinstance(original, str) and isinstance(ours, str):
        yield from close_text(f"file {name}", original, ours, max(TEXT_TOLERANCE, tolerance))
    elif original != ours and not _close_image(original, ours):
        yield f"file {name} differs"


def _close_image(original: Any, ours: Any) -> bool:
    """Return whether two binary PGM or PPM files have the same size and pixels that differ by one grey at most."""
    if not (isinstance(original, bytes) and isinstance(ours, bytes) and original[:2] in (b"P5", b"P6")):
        return False
    a, b = (numpy.frombuffer(content, numpy.uint8).astype(int) for content in (original, ours))
    return a.shape == b.shape and bool(numpy.all(numpy.abs(a - b) <= 1))


def _close_leaves(name: str, original: dict[Any, Any], ours: dict[Any, Any], tolerance: float) -> Iterator[str]:
    """Yield how two loaded files differ: in their keys, in an exact leaf, or in a group of float tensors."""
    if original.keys() != ours.keys():
        missing, extra = original.keys() - ours.keys(), ours.keys() - original.keys()
        yield f"file {name}: keys missing {sorted(map(str, missing))[:3]}, extra {sorted(map(str, extra))[:3]}"
        return
    groups: dict[Any, list[tuple[Any, Any]]] = defaultdict(list)
    for path, a in original.items():
        b = ours[path]
        if isinstance(a, numpy.ndarray) and a.dtype.kind in "fc" and getattr(b, "dtype", None) == a.dtype:
            groups[_group(path)].append((_as_trace(b), _as_trace(a)))
        elif isinstance(a, float) and isinstance(b, float):
            if not (a == b or abs(a - b) <= max(TEXT_TOLERANCE, tolerance) * abs(a) or (a != a and b != b)):
                yield f"file {name}: {path} is {b}, original {a}"
                return
        elif not _same_content(a, b):
            yield f"file {name}: {path} is {b!r:.60}, original {a!r:.60}"
            return
    for group, pairs in groups.items():
        distance = _distance([pair[0] for pair in pairs], [pair[1] for pair in pairs])
        if not distance <= tolerance:
            yield f"file {name}: {group} differs, rel {distance:.1e}"
            return


def _group(path: Any) -> Any:
    """Return what a tensor is compared together with: the tensors of one state_dict, one moment of all parameters.

    Some tensors are rounding noise around zero (a bias before a batch norm) and say nothing on their own.
    """
    if not isinstance(path, tuple):
        return path
    words = tuple(word for word in path if not isinstance(word, int))
    return words if len(words) < len(path) else words[:-1]


def _as_trace(values: Any) -> Any:
    values = numpy.atleast_1d(values).reshape(-1)
    return (values.view(values.real.dtype) if values.dtype.kind == "c" else values, 0.0, "")
