"""Holds one run against another; every function yields the differences it sees, as sentences."""

from __future__ import annotations

import io
import math
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import repeat, zip_longest
from typing import Any

import numpy

from ddpify.verify.bars import settled
from ddpify.verify.runs import Run, Step
from ddpify.verify.traces import distance, first_far, same_trace

AMPLIFIED = 10  # a difference may be so many times that which rounding makes of the original itself
TEXT_TOLERANCE = 1e-4  # relative, for numbers in texts, which are printed with few digits
NUMBER = re.compile(r"(?<![A-Za-z_])[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?(?![A-Za-z_])|\b[-+]?(?:nan|inf)\b")
# As the module warnings writes it: where, what in one line or in several, and the line of code.
WARNING = re.compile(r"^\S.*:\d+: \w*Warning: .*(?:\n(?! ).*){0,4}?\n  .*$", re.MULTILINE)
ERROR = re.compile(r"(\[rank\d+\]: )?[\w.]+(Error|Exception|Interrupt|Exit)\b")


def identical(original: Run, alone: Run) -> Iterator[str]:
    """Yield how a converted script, run alone, differs at all from its original (E3)."""
    yield from _exit(original, alone)
    yield from _exact_text("stdout", original.stdout, alone.stdout)
    yield from _same_steps(original.steps(), alone.steps(), "original", "alone")
    yield from _same_names(original.files, alone.files)
    for name in sorted(original.files.keys() & alone.files.keys()):
        yield from _loads(name, alone.files[name])
        if not _same_content(original.files[name], alone.files[name]):
            yield f"file {name} differs"


def equivalent(original: Run, many: Run, world_size: int, tolerance: float) -> Iterator[str]:
    """Yield how a converted script, run on many ranks, differs from its original by more than a tolerance (E1-E5)."""
    yield from _exit(original, many)
    reference = original.steps()
    ranks = [many.steps(rank) for rank in range(world_size)]
    counts = [len(steps) for steps in ranks]
    if counts != [len(reference)] * world_size:
        yield f"steps: original {len(reference)}, ranks {counts}"
    for rank in range(1, world_size):
        yield from _same_steps(ranks[0], ranks[rank], "rank 0", f"rank {rank}")
    yield from _close_steps(reference, ranks[0], tolerance)
    number_tolerance = max(TEXT_TOLERANCE, tolerance)
    yield from close_text("stdout", original.stdout, many.stdout, number_tolerance)
    yield from one_voice(original.stderr, many.stderr)
    yield from _same_names(original.files, many.files)
    for name in sorted(original.files.keys() & many.files.keys()):
        yield from _loads(name, many.files[name])
        yield from close_content(name, original.files[name], many.files[name], tolerance)


def divided(many: Run) -> Iterator[str]:
    """Yield the ranks on which no training forward was divided: each computed everything, however right."""
    if idle := [rank for rank, record in many.records.items() if record.steps and not record.steps[-1].forwards]:
        yield f"nothing was divided on ranks {sorted(idle)}"


def _exit(original: Run, other: Run) -> Iterator[str]:
    if other.rc != original.rc:
        lines = [line for line in other.stderr.splitlines() if ERROR.match(line)] or other.stderr.splitlines() or [""]
        cause = "ended by the time limit" if other.rc == 124 else lines[0]
        yield f"rc {other.rc}, original {original.rc}: {cause.strip()}"


# Steps


@dataclass(frozen=True)
class StepDifference:
    """The first step (0-based) at which two runs are too far apart.

    kind: what of it: "gradient", "parameter", "optimizer" (another one stepped), "shape". size: the relative difference
    over all tensors; index: the first tensor that is far, own: its own relative difference.
    """

    step: int
    kind: str
    size: float = math.inf
    index: int = -1
    own: float = math.inf

    def __str__(self) -> str:
        if self.kind in ("optimizer", "shape"):
            return (
                f"step {self.step}: other {'optimizer' if self.kind == 'optimizer' else 'parameters'} than the original"
            )
        first = f"first: {self.kind} {self.index}, rel {self.own:.1e}"
        return f"step {self.step}: {self.kind}s differ, rel {self.size:.1e} ({first})"


def distances(reference: Sequence[Step], steps: Sequence[Step]) -> Iterator[tuple[float, float]]:
    """Yield the relative differences of the gradients and of the parameters, all together, for each step.

    Parameters relative to themselves. A gradient is a sum over samples that cancel more and more as training goes on,
    while its rounding error stays that of the terms: it is held relative to the largest gradient of its optimizer so
    far. (What a wrong gradient does, the parameters of the same step show without this allowance.)
    """
    largest: defaultdict[int, float] = defaultdict(float)
    for one, two in zip(reference, steps, strict=False):
        norm = math.hypot(*(trace[1] for trace in one.grads if trace))
        if math.isfinite(norm):
            largest[one.optimizer] = max(largest[one.optimizer], norm)
        share = norm / largest[one.optimizer] if largest[one.optimizer] and math.isfinite(norm) else 1.0
        gradient, parameter = distance(two.grads, one.grads), distance(two.params, one.params)
        yield gradient * share if share or math.isfinite(gradient) else gradient, parameter


def first_difference(
    reference: Sequence[Step], steps: Sequence[Step], limits: Iterable[tuple[float, float]]
) -> StepDifference | None:
    """Return the first step whose gradients or parameters, all together, are further apart than allowed.

    Args:
        reference: the steps of the original. steps: those held against it. limits: for each step, the relative
            difference that its gradients and its parameters may have.
    """
    pairs = zip(reference, steps, distances(reference, steps), limits, strict=False)
    for number, (one, two, (gradient, parameter), (most, most_of_parameters)) in enumerate(pairs):
        if one.optimizer != two.optimizer:
            return StepDifference(number, "optimizer")
        if not gradient <= most:
            return StepDifference(number, "gradient", gradient, *first_far(two.grads, one.grads, most))
        if [trace[0].size for trace in one.params] != [trace[0].size for trace in two.params]:
            return StepDifference(number, "shape")
        if not parameter <= most_of_parameters:
            return StepDifference(
                number, "parameter", parameter, *first_far(two.params, one.params, most_of_parameters)
            )
    return None


def _close_steps(reference: Sequence[Step], steps: Sequence[Step], tolerance: float) -> Iterator[str]:
    found = first_difference(reference, steps, repeat((tolerance, tolerance)))
    if found:
        yield str(found)


def ranks_differ(ranks: Sequence[Sequence[Step]]) -> StepDifference | None:
    """Return the first step whose gradients or parameters are not the same bits on every rank."""
    for number, steps in enumerate(zip(*ranks, strict=False)):
        for kind in ("gradient", "parameter"):
            lists = [step.grads if kind == "gradient" else step.params for step in steps]
            for index, traces in enumerate(zip_longest(*lists)):
                if not all(same_trace(traces[0], trace) for trace in traces):
                    return StepDifference(number, kind, index=index)
    return None


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
                if not same_trace(x, y):
                    yield f"step {number}: {kind} {index} of {a} and {b} differ, {_describe(y, x)}"
                    return


def _describe(x: Any, y: Any) -> str:
    if x is None or y is None:
        return "one has none"
    return f"rel {distance([x], [y]):.1e}" if x[0].shape == y[0].shape else f"sizes {x[0].size} and {y[0].size}"


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
    return all(close_number(x, y, tolerance) for x, y in zip(NUMBER.findall(a), NUMBER.findall(b), strict=True))


def close_number(original: str, ours: str, tolerance: float) -> bool:
    """Return whether two printed numbers are within a relative tolerance or one digit; counts must be equal."""
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


def one_voice(original: str, ours: str) -> Iterator[str]:
    """Yield the lines of the original's stderr (loggers, finished bars) that are not there as often as in it (E4)."""
    before, after = Counter(_voice(original)), Counter(_voice(ours))
    for line, count in before.items():
        if after[line] != count:
            yield f"stderr: {line!r} {after[line]} times, original {count}"
            return


def _voice(text: str) -> Iterator[str]:
    """Yield what stays on the screen: lines and finished bars without their numbers, no warnings."""
    for line in WARNING.sub("", settled(text)).split("\n"):
        last = line.rpartition("\r")[2]
        if last.strip() and "\x1b" not in last and "Warning" not in last and not line.startswith((" ", "Traceback")):
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


def close_content(name: str, original: Any, ours: Any, tolerance: float, disturbed: Any = None) -> Iterator[str]:
    """Yield how the content of a file (see contents.read) differs by more than a relative tolerance.

    disturbed: what rounding made of the original's; tensors may differ by `AMPLIFIED` times what they do there.
    """
    if isinstance(original, dict) and isinstance(ours, dict):
        disturbed = disturbed if isinstance(disturbed, dict) and disturbed.keys() == original.keys() else original
        yield from _close_leaves(name, original, ours, tolerance, disturbed)
    elif isinstance(original, str) and isinstance(ours, str):
        yield from close_text(f"file {name}", original, ours, max(TEXT_TOLERANCE, tolerance))
    elif original != ours and not _close_image(original, ours):
        yield f"file {name} differs"


def _close_image(original: Any, ours: Any) -> bool:
    """Return whether two images have the same size and pixels that differ by one grey at most."""
    a, b = _pixels(original), _pixels(ours)
    return a is not None and b is not None and a.shape == b.shape and bool(numpy.all(numpy.abs(a - b) <= 1))


def _pixels(content: Any) -> Any:
    """Return the greys of an image as integers; None for anything else, and without Pillow for all but PGM and PPM."""
    if not isinstance(content, bytes):
        return None
    if content[:2] in (b"P5", b"P6"):
        return numpy.frombuffer(content, numpy.uint8).astype(int)
    try:
        from PIL import Image

        with Image.open(io.BytesIO(content)) as image:
            return numpy.asarray(image).astype(int)
    except (ImportError, OSError):
        return None


def _close_leaves(
    name: str, original: dict[Any, Any], ours: dict[Any, Any], tolerance: float, disturbed: dict[Any, Any]
) -> Iterator[str]:
    """Yield how two loaded files differ: in their keys, in an exact leaf, or in a group of float tensors."""
    if original.keys() != ours.keys():
        missing, extra = original.keys() - ours.keys(), ours.keys() - original.keys()
        yield f"file {name}: keys missing {sorted(map(str, missing))[:3]}, extra {sorted(map(str, extra))[:3]}"
        return
    groups: dict[Any, list[tuple[Any, Any, Any]]] = defaultdict(list)
    for path, a in original.items():
        b = ours[path]
        if isinstance(a, numpy.ndarray) and a.dtype.kind in "fc" and getattr(b, "dtype", None) == a.dtype:
            c = disturbed[path]
            c = c if getattr(c, "dtype", None) == a.dtype and c.shape == a.shape else a
            groups[_group(path)].append((_as_trace(b), _as_trace(a), _as_trace(c)))
        elif isinstance(a, float) and isinstance(b, float):
            if not (a == b or abs(a - b) <= max(TEXT_TOLERANCE, tolerance) * abs(a) or (a != a and b != b)):
                yield f"file {name}: {path} is {b}, original {a}"
                return
        elif not _same_content(a, b):
            yield f"file {name}: {path} is {b!r:.60}, original {a!r:.60}"
            return
    for group, leaves in groups.items():
        of_ours, of_original, of_disturbed = zip(*leaves, strict=True)
        far = distance(of_ours, of_original)
        if not far <= max(tolerance, AMPLIFIED * distance(of_disturbed, of_original)):
            yield f"file {name}: {group} differs, rel {far:.1e}"
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
