"""Two runs, held against each other: what is equal, what differs first, and the likely hazard."""

from __future__ import annotations

import functools
import math
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import repeat
from typing import Any

from ddpify.verify import hazards, texts
from ddpify.verify.bars import settled
from ddpify.verify.batches import compare_batches
from ddpify.verify.compare import (
    AMPLIFIED,
    TEXT_TOLERANCE,
    close_content,
    distances,
    first_difference,
    one_voice,
    ranks_differ,
)
from ddpify.verify.hazards import Evidence, Hazard
from ddpify.verify.orders import repeated_orders
from ddpify.verify.runs import Run
from ddpify.verify.traces import distance

# Relative difference (2-norm) that rounding may make, of gradients and parameters: docs/contract.md, "How exact".
TOLERANCE = 1e-6
WITH_BATCH_NORM = 1e-5
NOISE = 2e-7  # of the control run's gradients, relative to the root mean square of all: the rounding of another order
CLIPPED = 1e-3  # relative difference of a norm that is clipped
ROUNDING = 5e-2  # a first difference above this is none that rounding makes, and needs no control run
CONTROLS = 5  # so many runs with other noise each, before a difference is one: a ReLU turns over in some of them only
_IMAGES = (".png", ".jpg", ".jpeg", ".gif", ".bmp")


@dataclass(frozen=True)
class Difference:
    """One thing that differs, as a sentence, and the likely hazard."""

    what: str
    hazard: Hazard


@dataclass
class Verdict:
    """What the comparison says. differences: the first one first. equal, notes: (what, sentence) and sentences.

    amplified: whether differences beyond the tolerance were taken for rounding, by the control run.
    losses: of the original and of the other, by step. gradients, parameters: relative differences by step.
    """

    steps: int = 0
    differences: list[Difference] = field(default_factory=list)
    equal: list[tuple[str, str]] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    losses: tuple[list[float], list[float]] = field(default_factory=lambda: ([], []))
    gradients: list[float] = field(default_factory=list)
    parameters: list[float] = field(default_factory=list)
    tolerance: float = TOLERANCE
    amplified: bool = False


def judge(
    original: Run,
    other: Run,
    world_size: int,
    text: str,
    control: Callable[[int], Run],
    tolerance: float = 0.0,
    given: bool = False,
    pictures: bool = False,
) -> Verdict:
    """Compare a run of many processes with one of the original.

    Args:
        original, other: the runs; both ended well. world_size: the number of processes of the other.
        text: the source code of the original.
        control: runs the original again, with noise of rounding's size, another for each number.
        tolerance: relative difference that is allowed; 0 for that of docs/contract.md.
        given: whether the original was given the batches of the other run. pictures: whether images that it writes are
            of rank 0's samples.
    """
    records = [other.records[rank] for rank in range(world_size)]
    evidence = Evidence(original, other, world_size, compare_batches(original.records[0], records), text)
    statistics = any(step.buffers for step in original.steps())
    verdict = Verdict(tolerance=tolerance or (WITH_BATCH_NORM if statistics else TOLERANCE))
    verdict.losses = _losses(original, 1), _losses(other, world_size)
    pairs = list(distances(original.steps(), other.steps()))
    verdict.gradients, verdict.parameters = [pair[0] for pair in pairs], [pair[1] for pair in pairs]
    verdict.steps = len(pairs)
    again = functools.cache(control)
    once = functools.partial(again, 0)
    verdict.differences += _counts(evidence)
    verdict.differences += _steps(verdict, evidence, again)
    verdict.differences += _norms(verdict, evidence)
    verdict.differences += _statistics(verdict, evidence)
    if given:
        sentence = "the original was given, step by step, the union of those that the ranks drew"
        verdict.equal.append(("batches", sentence))
        hazard = Hazard("D2", "the sampler is not told the epoch: set_epoch is missing")
        verdict.differences += [Difference(each, hazard) for each in repeated_orders(records[0])]
    else:
        verdict.differences += _batches(verdict, evidence)
    verdict.differences += _printed(verdict, evidence, once)
    verdict.differences += _files(verdict, evidence, once, _IMAGES if pictures else ())
    _randomness(verdict, evidence)
    return verdict


def _losses(run: Run, world_size: int) -> list[float]:
    """What was differentiated for each step, the mean over ranks; nan where nothing of one number was."""
    ranks = [run.steps(rank) for rank in range(world_size)]
    return [
        math.fsum(sum(step.losses) if step.losses else math.nan for step in steps) / world_size
        for steps in zip(*ranks, strict=False)
    ]


def _counts(evidence: Evidence) -> Iterator[Difference]:
    reference = len(evidence.original.steps())
    counts = [len(evidence.other.steps(rank)) for rank in range(evidence.world_size)]
    if set(counts) != {reference}:
        made = str(counts[0]) if len(set(counts)) == 1 else " and ".join(map(str, counts))
        what = f"number of optimizer steps: {made}, original {reference}"
        yield Difference(what, hazards.of_counts(reference, counts, evidence))


def _steps(verdict: Verdict, evidence: Evidence, control: Callable[[int], Run]) -> Iterator[Difference]:
    reference, steps = evidence.original.steps(), evidence.other.steps()
    between = ranks_differ([evidence.other.steps(rank) for rank in range(evidence.world_size)])
    limits = repeat((verdict.tolerance, verdict.tolerance))
    found = first_difference(reference, steps, limits)
    if found and found.size <= ROUNDING:
        controls: list[Run] = []
        while found and len(controls) < CONTROLS:
            controls.append(control(len(controls)))
            allowed = list(_allowed(verdict.tolerance, controls, evidence))
            found = first_difference(reference, steps, allowed)
        if not found:
            verdict.amplified = True
            verdict.notes.append(
                "this training amplifies rounding: noise of 2e-7 on gradients and of 6e-8 on first weights, and sums "
                "by another number of threads, change the original's gradients by up to "
                f"{max(pair[0] for pair in allowed) / AMPLIFIED:.1e} and its parameters "
                f"by up to {max(pair[1] for pair in allowed) / AMPLIFIED:.1e}, so differences up to "
                f"{AMPLIFIED} times that were taken for rounding (--sgd amplifies less)"
            )
    if between and (not found or between.step <= found.step):
        name = _name(evidence, between.step, between.index)
        what = f"step {between.step + 1}: the ranks have different {between.kind}s of {name}"
        yield Difference(what, hazards.of_ranks(between, evidence))
    elif evidence.world_size > 1:
        verdict.equal.append(("ranks", f"the same bits on all {evidence.world_size} ranks after every step"))
    if not found:
        for kind, sizes in (("parameters", verdict.parameters), ("gradients", verdict.gradients)):
            verdict.equal.append((kind, _agreement(sizes, verdict.tolerance)))
    elif not between or found.step < between.step:
        name = _name(evidence, found.step, found.index)
        size = f"relative difference {found.size:.1e} over all, {found.own:.1e} in {name}"
        what = f"step {found.step + 1}: {found.kind}s, {size} (tolerance {verdict.tolerance:.0e})"
        if found.kind in ("optimizer", "shape"):
            what = f"step {found.step + 1}: other optimizers or parameters than the original"
        yield Difference(what, hazards.of_step(found, evidence))


def _agreement(sizes: list[float], tolerance: float) -> str:
    largest, limit = f"relative difference at most {max(sizes):.1e}", f"tolerance {tolerance:.0e}"
    beyond = next((step for step, size in enumerate(sizes, 1) if not size <= tolerance), 0)
    if beyond:
        return f"{largest}, from step {beyond} on beyond the {limit}: no more than rounding does here, see the note"
    return f"{len(sizes)} steps, {largest} ({limit})"


def _allowed(tolerance: float, controls: list[Run], evidence: Evidence) -> Iterator[tuple[float, float]]:
    """The tolerance, or what rounding has made of the original itself by then."""
    most = [0.0, 0.0]
    for pairs in zip(*(distances(evidence.original.steps(), run.steps()) for run in controls), strict=False):
        most = [max(sizes) for sizes in zip(most, *pairs, strict=True)]
        yield max(tolerance, AMPLIFIED * most[0]), max(tolerance, AMPLIFIED * most[1])


def _name(evidence: Evidence, step: int, index: int) -> str:
    names = evidence.original.records[0].names.get(evidence.original.steps()[step].optimizer, [])
    return (names[index] if 0 <= index < len(names) else "") or f"tensor {index}"


def _norms(verdict: Verdict, evidence: Evidence) -> Iterator[Difference]:
    """The norms that gradients had before they were clipped, where nothing differs after it (L8)."""
    if verdict.differences or verdict.amplified:
        return
    for number, steps in enumerate(zip(evidence.original.steps(), evidence.other.steps(), strict=False), 1):
        for original, ours in zip(steps[0].norms, steps[1].norms, strict=False):
            if math.isfinite(original) and not math.isclose(ours, original, rel_tol=CLIPPED):
                what = f"step {number}: gradients of norm {ours:.6g} are clipped, in the original of {original:.6g}"
                yield Difference(what, hazards.of_norms(ours, original, evidence))
                return


def _statistics(verdict: Verdict, evidence: Evidence) -> Iterator[Difference]:
    """Running statistics, where nothing before them differs."""
    pairs = zip(evidence.original.steps(), evidence.other.steps(), strict=False)
    sizes = [distance(two.buffers, one.buffers) for one, two in pairs if one.buffers]
    if not sizes:
        return
    far = next((step for step, size in enumerate(sizes) if not size <= 10 * WITH_BATCH_NORM), None)
    if far is None:
        verdict.equal.append(("running statistics", f"relative difference at most {max(sizes):.1e}"))
    elif not verdict.amplified:
        what = f"step {far + 1}: running statistics, relative difference {sizes[far]:.1e}"
        yield Difference(what, hazards.of_statistics(evidence, far))


def _batches(verdict: Verdict, evidence: Evidence) -> Iterator[Difference]:
    found = evidence.batches
    if not evidence.original.records[0].batches:
        _samples_in_memory(verdict, evidence)
        return
    if not found.number:
        how = f"{found.divided} of them divided over the ranks" if found.divided else "each whole on every rank"
        verdict.equal.append(("batches", f"{found.same} hold the samples of the original, {how}"))
        return
    kind = "training" if found.training else "evaluation"
    parts = " | ".join(_samples(part) for part in found.parts)
    what = f"pass {found.number} ({kind}), batch {found.place}: samples {parts}, original {_samples(found.whole)}"
    yield Difference(what, hazards.of_batches(found, evidence))
    if found.repeated:
        yield Difference("a later pass draws the order of an earlier one again", Hazard("D2", "set_epoch is forgotten"))
    for number, training in found.padded[:1]:
        hazard = Hazard("D6" if training else "E1", "the ranks' shards are filled up to equal lengths")
        yield Difference(f"pass {number}: some samples are drawn twice", hazard)


def _samples_in_memory(verdict: Verdict, evidence: Evidence) -> None:
    """Whether the ranks divide what modules are called with, where the script makes its batches without a loader."""
    ranks = [evidence.other.steps(rank) for rank in range(evidence.world_size)]
    steps = zip(evidence.original.steps(), *ranks, strict=False)
    first = [[step.inputs[0] for step in same] for same in steps if all(step.inputs for step in same)]
    if first and not verdict.differences:
        whole = sum(all(inputs == each[0] for inputs in each) for each in first)
        verdict.equal.append(("batches", f"made in memory, whole on every rank in {whole} of {len(first)} steps"))


def _samples(drawn: tuple[int, ...]) -> str:
    return " ".join(map(str, drawn[:6])) + (" …" if len(drawn) > 6 else "") if drawn else "none"


def _printed(verdict: Verdict, evidence: Evidence, control: Callable[[], Run]) -> Iterator[Difference]:
    original, other = evidence.original, evidence.other
    tolerance = max(TEXT_TOLERANCE, verdict.tolerance)
    found, left_out = texts.first_difference(original.stdout, other.stdout, None, tolerance)
    if found and not verdict.differences:
        found, left_out = texts.first_difference(original.stdout, other.stdout, control().stdout, tolerance)
    if found:
        lines = [text.splitlines() for text in (other.stdout, original.stdout)]
        hazard = hazards.of_text(found.ours or "", found.original or "", evidence, *lines)
        yield Difference(f"stdout line {found.line}: {_quoted(found.ours)}, original {_quoted(found.original)}", hazard)
    else:
        left = f", {left_out} numbers left out (times, or different in each run)" if left_out else ""
        verdict.equal.append(("prints", f"{len(settled(original.stdout).splitlines())} lines{left}"))
    for rank, text in sorted(other.others.items()):
        if text.strip():
            line = next(line for line in text.splitlines() if line.strip())
            yield Difference(f"rank {rank} prints too: {_quoted(line)}", Hazard("I1", "it is printed by several ranks"))
            break
    voice = next(one_voice(original.stderr, other.stderr), None)
    if voice and not verdict.differences and next(one_voice(original.stderr, control().stderr), None) is None:
        yield Difference(voice, Hazard("I1", "a log line or a progress bar that is not shown once"))


def _quoted(line: str | None) -> str:
    return "nothing" if line is None else repr(line if len(line) < 100 else f"{line[:99]}…")


def _files(
    verdict: Verdict, evidence: Evidence, control: Callable[[], Run], partial: tuple[str, ...]
) -> Iterator[Difference]:
    """Files; partial: the endings of those that show rank 0's samples alone."""
    original, other = evidence.original.files, evidence.other.files
    disturbed = control() if verdict.amplified else None
    found = list(_file_differences(evidence.original, evidence.other, verdict.tolerance, disturbed))
    left_out = [name for name, _ in found if name.endswith(partial) and {name} <= {*original} & {*other}]
    if left_out:
        verdict.notes.append(f"not compared, since they show samples of rank 0: {', '.join(dict.fromkeys(left_out))}")
        found = [(name, message) for name, message in found if name not in left_out]
    if found and not verdict.differences:
        again = control()
        unstable = {name for name, _ in _file_differences(evidence.original, again, verdict.tolerance)}
        unstable |= _renamed(original, again.files, other)
        changing = [name for name, _ in found if name in unstable]
        if changing:
            verdict.notes.append(
                f"not compared, since two runs of the original differ in it: {', '.join(dict.fromkeys(changing))}"
            )
        left_out += changing
        found = [(name, message) for name, message in found if name not in unstable]
    if found:
        yield from (Difference(message, hazards.of_file(message)) for _, message in found[:1])
    elif original:
        names = sorted(name for name in {*original} & {*other} - {*left_out} if not name.endswith("/"))
        shown = ", ".join(names[:5]) + (f" and {len(names) - 5} more" if len(names) > 5 else "")
        verdict.equal.append(("files", shown or "the same names"))


def _renamed(original: Mapping[str, Any], again: Mapping[str, Any], other: Mapping[str, Any]) -> set[str]:
    """The files of `other` whose names hold numbers that no two runs of the original share, such as a time and a
    process, if it has as many of them."""
    kinds = {_without_numbers(name) for name in original.keys() ^ again.keys()}
    counts = [Counter(map(_without_numbers, files)) for files in (original, other)]
    extra = {name: _without_numbers(name) for name in other.keys() - original.keys()}
    return {name for name, kind in extra.items() if kind in kinds and counts[0][kind] == counts[1][kind]}


def _without_numbers(name: str) -> str:
    return re.sub(r"\d+", "#", name)


def _file_differences(
    original: Run, other: Run, tolerance: float, disturbed: Run | None = None
) -> Iterator[tuple[str, str]]:
    for name in sorted(original.files.keys() | other.files.keys()):
        if name not in other.files:
            yield name, f"files missing: {name}"
        elif name not in original.files:
            yield name, f"files extra: {name}"
        else:
            content = other.files[name]
            if isinstance(content, str) and content.startswith("does not load"):
                yield name, f"file {name}: {content}"
            elif isinstance(content, str) and isinstance(original.files[name], str):
                found, _ = texts.first_difference(original.files[name], content, None, max(TEXT_TOLERANCE, tolerance))
                if found:
                    place = f"file {name} line {found.line}"
                    yield name, f"{place}: {_quoted(found.ours)}, original {_quoted(found.original)}"
            else:
                again = disturbed.files.get(name) if disturbed else None
                for message in close_content(name, original.files[name], content, tolerance, again):
                    yield name, message


def _randomness(verdict: Verdict, evidence: Evidence) -> None:
    pairs = zip(evidence.original.steps(), evidence.other.steps(), strict=False)
    other = next((number for number, (one, two) in enumerate(pairs, 1) if one.draws != two.draws), 0)
    if not other and verdict.steps:
        verdict.equal.append(
            ("random numbers", "the same draws before every step: dropout and noise did not have to be switched off")
        )
    elif other:
        verdict.notes.append(f"random numbers: from step {other} on, other draws than in the original")
