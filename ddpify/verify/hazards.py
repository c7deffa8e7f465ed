"""What a difference looks like: the likely hazard, by what was recorded. Guesses from evidence, and called so."""

from __future__ import annotations

import math
import re
from collections import Counter
from dataclasses import dataclass

import numpy

from ddpify.verify.batches import Batches
from ddpify.verify.compare import NUMBER, StepDifference
from ddpify.verify.runs import Run, Step
from ddpify.verify.traces import distance, ratio, same_trace

CONSTANT = 1e-3  # relative residue below which two gradients count as multiples of each other


@dataclass(frozen=True)
class Hazard:
    """A row of the list of hazards, and why it is the likely one."""

    id: str
    reason: str


@dataclass(frozen=True)
class Evidence:
    """All that a guess is made from. text: the source code of the original."""

    original: Run
    other: Run
    world_size: int
    batches: Batches
    text: str

    def ranks(self, step: int) -> list[Step]:
        """The same step on every rank."""
        return [self.other.steps(rank)[step] for rank in range(self.world_size)]


def of_counts(original: int, counts: list[int], evidence: Evidence) -> Hazard:
    """Why the numbers of optimizer steps differ."""
    if len(set(counts)) > 1:
        return Hazard("D19", "the ranks make different numbers of steps: uneven shards, or a decision of one rank")
    if _grown(evidence.batches) or counts[0] * evidence.world_size in range(original, original + evidence.world_size):
        return Hazard("D5", "the batch size is kept for each rank: a step uses several batches of the original")
    return Hazard("D17", "the loop ends elsewhere: len(loader), drop_last or a number of steps means something else")


def of_ranks(found: StepDifference, evidence: Evidence) -> Hazard:
    """Why the ranks of one run differ from each other at a step."""
    steps = evidence.ranks(found.step)
    if found.kind == "parameter":
        if any(step.rates != steps[0].rates for step in steps):
            return Hazard("L19", "the ranks have different learning rates: each took its own metric")
        return Hazard("S1", "equal gradients, other parameters: the ranks started from different weights")
    far = _differing(steps)
    names = _names(evidence, steps[0].optimizer)
    if any(not names[index] for index in far if index < len(names)):
        return Hazard("L16", "a tensor outside of any module is trained: nothing averages its gradient")
    before = _step_before(evidence, found.step)
    forwards, backwards = steps[0].forwards - before.forwards, steps[0].backwards - before.backwards
    if len(far) < len(steps[0].grads):
        late = [index for index in far if _appeared_late(evidence, found.step, index)]
        if late:
            return Hazard("M6", "the parameter began to train after the model was wrapped: it is not averaged")
        return Hazard("L17", "the parameter is in no wrapped module (of a loss, as a rule): it is not averaged")
    if not forwards:
        return Hazard("M3", "no forward of DistributedDataParallel led to this step (model.module(x), a method)")
    if backwards > forwards:
        return Hazard("L10", "more backwards than forwards: DistributedDataParallel averages one for each")
    if backwards > 1:
        return Hazard("L11", "several forwards before several backwards: DistributedDataParallel mixes them up")
    return Hazard("L15", "gradients that no DistributedDataParallel has averaged (autograd.grad, p.grad, no_sync)")


def of_step(found: StepDifference, evidence: Evidence) -> Hazard:
    """Why the ranks agree with each other at a step, and not with the original."""
    one, two = evidence.original.steps()[found.step], evidence.other.steps()[found.step]
    if found.kind in ("optimizer", "shape"):
        return Hazard("M18", "another model or another order of optimizers than in one process")
    if found.kind == "parameter":
        if one.rates != two.rates:
            return Hazard("L22", f"learning rate {two.rates[0]:g}, original {one.rates[0]:g}, and the same gradients")
        return Hazard("S1", "the same gradients and learning rates, other parameters: other weights at the start")
    batch = _of_batches(found, evidence)
    if batch:
        return batch
    if one.draws != two.draws:
        return Hazard("S2", "random numbers are drawn for a part of the batch: other ones than for the whole")
    factor, rest = ratio(two.grads, one.grads)
    if rest < CONSTANT and abs(factor - 1) > CONSTANT:
        return _of_factor(factor, evidence)
    if _statistics_differ(evidence, found.step):
        return Hazard("M8", "BatchNorm normalises with the statistics of each rank's rows")
    if _follows_parameters(one, two):
        return Hazard("L6", "the difference is along the parameters: a penalty on them is scaled with the loss")
    return _of_loss(found, evidence)


def _of_batches(found: StepDifference, evidence: Evidence) -> Hazard | None:
    if evidence.batches.number and evidence.batches.training and _drawn_before(evidence, found.step):
        return of_batches(evidence.batches)
    sizes = [sum(step.rows) for step in evidence.ranks(found.step)]
    if len(set(sizes)) > 1:
        return Hazard("D6", f"the ranks have {' and '.join(map(str, sizes))} samples: a mean of means is not the mean")
    return None


def of_batches(batches: Batches) -> Hazard:
    """Why the samples of a batch are other ones."""
    if not batches.training:
        return Hazard("E1", "the evaluation set is divided or drawn otherwise")
    if _grown(batches) and batches.shorter:
        return Hazard("D5", "the batch size is kept for each rank: the batches together are too large")
    drawn = [sample for part in batches.parts for sample in part]
    if Counter(drawn) - Counter(batches.whole) and set(drawn) == set(batches.whole):
        return Hazard("D6", "the batch is filled up with samples that are in it already")
    if len(set(drawn)) < len(drawn):
        return Hazard("D1", "the ranks' samples overlap: the loader has no sampler, and no seed is shared")
    return Hazard("D1", "other samples than one process draws (DistributedSampler has an order of its own)")


def _of_factor(factor: float, evidence: Evidence) -> Hazard:
    size = evidence.world_size
    if abs(factor * size - 1) < CONSTANT:
        return Hazard(
            "L1", f"every gradient is 1/{size} of the original's: a sum (or a constant divisor, L2) is averaged"
        )
    if abs(factor - size) < CONSTANT:
        return Hazard("X9", f"every gradient is {size} times the original's: summed over the ranks, not averaged")
    return Hazard("L2", f"every gradient is {factor:.4g} times the original's: the loss is divided by another number")


def _of_loss(found: StepDifference, evidence: Evidence) -> Hazard:
    mean = "the mean of the ranks' losses is not the loss of the batch"
    if re.search(r"(cross_?entropy|nll_?loss)\w*\((.|\n)*?\bweight\s*=", evidence.text, re.IGNORECASE):
        return Hazard("L4", f"{mean}: class weights are normalised on each rank")
    if re.search(r"ignore_index|mask|pad_sequence", evidence.text, re.IGNORECASE):
        return Hazard("L3", f"{mean}: each rank divides by its own number of valid elements")
    if re.search(r"\.(t\(\)|T\b|mT\b)|cdist|triplet|nce\b|contrast|similarity|\.(mean|std|var)\(0", evidence.text):
        return Hazard("L5", f"{mean}: the loss couples samples of different ranks")
    return Hazard("L2-L5", f"{mean}, although they hold the same samples (masks, weights, coupled samples)")


def of_statistics(evidence: Evidence, step: int) -> Hazard:
    """Why running statistics differ although gradients and parameters do not."""
    ranks = evidence.ranks(step)
    if not all(map(same_trace, ranks[0].buffers, ranks[-1].buffers)):
        return Hazard("M9", "each rank keeps the running statistics of its own rows")
    return Hazard("M8", "the running statistics are those of a part of the batch")


def of_text(line: str, wanted: str, evidence: Evidence, lines: list[str], original: list[str]) -> Hazard:
    """Why a printed line is another one.

    Args:
        line: what was printed. wanted: what the original printed there. lines, original: all lines of both.
    """
    size = evidence.world_size
    if len(lines) > len(original) and (lines.count(line) > original.count(line) or len(lines) >= size * len(original)):
        return Hazard("I1", "it is printed by several ranks")
    pairs = [(float(a), float(b)) for a, b in zip(NUMBER.findall(wanted), NUMBER.findall(line), strict=False) if a != b]
    if any(a and math.isclose(b * size, a, rel_tol=0.05) for a, b in pairs):
        return Hazard("E2", f"a number is 1/{size} of the original's: counted on one rank only")
    if re.search(r"loss|err|cost", line, re.IGNORECASE) and not re.search("test|val|acc", line, re.IGNORECASE):
        return Hazard("E6", "a loss of rank 0's rows only is printed")
    if any(not training for _, training in evidence.batches.padded):
        return Hazard("E1", "evaluation on shards that are filled up: some samples count twice")
    return Hazard("E1", "an evaluation of a part of the data, or of rank 0's rows")


def of_file(message: str) -> Hazard:
    """Why a file differs, by what the comparison says of it."""
    if "module." in message and "keys" in message:
        return Hazard("I7", "the checkpoint holds the wrapper's keys: save model.module.state_dict()")
    if "does not load" in message:
        return Hazard("I9", "it pickles an object of the distributed run, or several ranks wrote it at once")
    if "files extra" in message:
        return Hazard("I6", "the ranks write files of their own")
    if "files missing" in message:
        return Hazard("I3", "a file or folder is made by one process only")
    return Hazard("I2", "written by several ranks, or from the numbers of one rank")


def of_end(stderr: str, counts: list[int]) -> Hazard | None:
    """Why a run crashed or hung, if its last words or its steps tell."""
    words = {
        "Expected to have finished reduction": Hazard("M4", "a parameter got no gradient in some step"),
        "sampler option is mutually exclusive": Hazard("D3", "a loader has both shuffle=True and a sampler"),
        "Expected hidden size": Hazard("D15", "a tensor has the size of the global batch"),
        "must match the size of tensor": Hazard("D15", "a tensor has the size of the global batch"),
        "unrecognized arguments: --local": Hazard("P3", "the script's argparse does not know the launcher's argument"),
        "doesn't require any gradient": Hazard("M5", "a module without a trained parameter is wrapped"),
        "DistributedDataParallel' object ": Hazard("M1", "an attribute or method is looked for on the wrapper"),
        "File exists": Hazard("I3", "several ranks make the same folder"),
    }
    for word, hazard in words.items():
        if word in stderr:
            return hazard
    if "Connection closed by peer" in stderr and stderr.count("Error: ") == stderr.count("Connection closed by peer"):
        return Hazard("D19", "a rank had ended while another one waited for it: uneven steps, or a decision of its own")
    if len(set(counts)) > 1:
        return Hazard("D19", f"the ranks made {' and '.join(map(str, counts))} steps: one waits for the others")
    return None


def _differing(steps: list[Step]) -> list[int]:
    first = steps[0].grads
    return [i for i in range(len(first)) if not all(same_trace(first[i], step.grads[i]) for step in steps[1:])]


def _names(evidence: Evidence, optimizer: int) -> list[str]:
    return evidence.original.records[0].names.get(optimizer, [])


def _step_before(evidence: Evidence, step: int) -> Step:
    return evidence.other.steps()[step - 1] if step else Step(0, [], [])


def _appeared_late(evidence: Evidence, step: int, index: int) -> bool:
    """Whether a parameter had no gradient in an earlier step of the same optimizer, or was not in the optimizer."""
    steps = evidence.original.steps()
    earlier = [each for each in steps[:step] if each.optimizer == steps[step].optimizer]
    return any(index >= len(each.grads) or _is_zero(each.grads[index]) for each in earlier)


def _is_zero(trace: object) -> bool:
    return trace is None or (isinstance(trace, tuple) and trace[1] == 0)


def _grown(batches: Batches) -> bool:
    """Whether the ranks together draw several times as many samples as the original, all different ones."""
    together = [sample for part in batches.parts for sample in part]
    return bool(batches.whole) and len(together) > 1.2 * len(batches.whole) and len(set(batches.parts)) > 1


def _drawn_before(evidence: Evidence, step: int) -> bool:
    """Whether the first other batch had been drawn before a step of the original."""
    batches, record = evidence.batches, evidence.original.records[0]
    drawn = record.batches[: record.steps[step].batches]
    return (
        sum(each.number < batches.number for each in drawn) + sum(each.number == batches.number for each in drawn) > 0
        and sum(each.number == batches.number for each in drawn) >= batches.place
    ) or any(each.number > batches.number for each in drawn)


def _statistics_differ(evidence: Evidence, step: int) -> bool:
    one, two = evidence.original.steps()[step].buffers, evidence.other.steps()[step].buffers
    return bool(one) and len(one) == len(two) and distance(two, one) > 1e-4


def _follows_parameters(one: Step, two: Step) -> bool:
    """Whether what the gradients differ by is a multiple of the parameters before the step, or of their signs."""
    rate = one.rates[0] if one.rates else 0.0
    for shape in (lambda x: x, numpy.sign):
        product = square = norm = 0.0
        for ours, original, parameter in zip(two.grads, one.grads, one.params, strict=True):
            if ours is None or original is None or len({x[0].size for x in (ours, original, parameter)}) > 1:
                continue
            difference = ours[0].astype(float) - original[0].astype(float)
            before = shape(parameter[0].astype(float) + rate * original[0].astype(float))
            product += float(difference @ before)
            square += float(difference @ difference)
            norm += float(before @ before)
        if square and norm and product**2 / (square * norm) > 0.97:
            return True
    return False
