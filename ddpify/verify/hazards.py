"""What a difference looks like: the likely hazard, by what was recorded. Guesses from evidence, and called so."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import chain

import numpy

from ddpify.verify.batches import Batches
from ddpify.verify.changing_sets import changed_by_loading
from ddpify.verify.compare import NUMBER, StepDifference
from ddpify.verify.runs import Record, Run, Step
from ddpify.verify.traces import distance, ratio, same_trace

STANDARD = ("BatchSampler", "RandomSampler", "SequentialSampler", "Shuffled", "InOrder", "_InfiniteConstantSampler")
ADAPTIVE = ("Adam", "AdamW", "Adamax", "NAdam", "RAdam", "Adagrad", "Adadelta", "RMSprop")  # hide a constant factor
CONSTANT = 1e-3  # relative residue below which two gradients count as multiples of each other


@dataclass(frozen=True)
class Hazard:
    """A row of the list of hazards, and why it is the likely one. others: rows that look the same from outside."""

    id: str
    reason: str
    others: tuple[str, ...] = ()

    def __str__(self) -> str:
        return f"{' or '.join([self.id, *self.others])}: {self.reason}"


@dataclass(frozen=True)
class Evidence:
    """All that a guess is made from. text: the source code of the original."""

    original: Run
    other: Run
    world_size: int
    batches: Batches
    text: str

    def records(self) -> list[Record]:
        """The original's, then those of the ranks."""
        return [self.original.records[0], *(self.other.records[rank] for rank in range(self.world_size))]

    def missed(self) -> bool:
        """Whether the ranks loaded less of a checkpoint than the original."""
        return self.other.records[0].missed > self.original.records[0].missed

    def drifted(self) -> bool:
        """Whether a random number generator was in the same state on all ranks at first, and later not."""
        return any(any(steps) and not all(steps) for steps in self._same_draws())

    def unseeded(self) -> bool:
        """Whether a random number generator that the original uses was never in the same state on all ranks."""
        draws = (step.draws for step in self.original.steps())
        used = [len(set(states)) > 1 for states in zip(*draws, strict=False)]
        return any(use and not any(steps) for use, steps in zip(used, self._same_draws(), strict=False))

    def _same_draws(self) -> list[tuple[bool, ...]]:
        """For each random number generator, at which steps its state was the same on all ranks."""
        ranks = zip(*(self.other.steps(rank) for rank in range(self.world_size)), strict=False)
        draws = (zip(*(step.draws for step in steps), strict=False) for steps in ranks)
        return [*zip(*([len(set(states)) == 1 for states in each] for each in draws), strict=False)]

    def ranks(self, step: int) -> list[Step]:
        """The same step on every rank."""
        return [self.other.steps(rank)[step] for rank in range(self.world_size)]


def of_path(steps: Sequence[Step]) -> Hazard | None:
    """How the ranks came to the same step by different ways.

    Args:
        steps: one step, on every rank.
    """
    if len({step.closures for step in steps}) > 1:
        made = " and ".join(str(step.closures) for step in steps)
        return Hazard("L18", f"the ranks call their closures {made} times in one step, each as its own loss asks")
    if len({step.forwards - step.looks - step.backwards for step in steps}) > 1:
        return Hazard("L20", "a rank left out a batch for which the other ranks waited (a loss of nan, an exception)")
    if len({step.forwards - step.looks for step in steps}) > 1:
        return Hazard("E4", "a rank left the loop or a step on its own decision, the others did not", ("D19", "L20"))
    return None


def of_counts(original: int, counts: list[int], evidence: Evidence) -> Hazard:
    """Why the numbers of optimizer steps differ."""
    for step in range(min(original, *counts)):
        if found := of_path(evidence.ranks(step)):
            return found
    if counts[0] > original and evidence.batches.number and evidence.batches.training:
        return of_batches(evidence.batches, evidence)
    if len(set(counts)) > 1:
        reason = "the ranks make different numbers of steps: uneven shards, or a decision of one rank"
        return Hazard("D19", reason, ("E4", "E8", "P7"))
    if _grown(evidence.batches) or counts[0] * evidence.world_size in range(original, original + evidence.world_size):
        return Hazard("D5", "the batch size is kept for each rank: a step uses several batches of the original")
    if re.search(r"\b(if|while)\b.*\b(time\(\)|monotonic\(\)|perf_counter\(\))", evidence.text):
        return Hazard("E8", "the loop ends by the clock, for each process at another step")
    return Hazard("D17", "the loop ends elsewhere: len(loader), drop_last or a number of steps means something else")


def of_ranks(found: StepDifference, evidence: Evidence) -> Hazard:
    """Why the ranks of one run differ from each other at a step."""
    steps = evidence.ranks(found.step)
    if path := of_path(steps):
        return path
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
    if steps[0].replaced:
        return Hazard("M7", "the parameter came to the model after it was wrapped: it is not averaged")
    if steps[0].nested:
        return Hazard("M12", "a parameter gets gradients from several reentrant checkpoints: the first is averaged")
    if len(far) < sum(trace is not None for trace in steps[0].grads):
        late = [index for index in far if _appeared_late(evidence, found.step, index)]
        if late:
            return Hazard("M6", "the parameter began to train after the model was wrapped: it is not averaged")
        return Hazard("L17", "the parameter is in no wrapped module (a loss, a second model): not averaged", ("M17",))
    if steps[0].synced and not steps[0].synced[-1]:
        return Hazard("L7", "the last forward before the step was in no_sync(): nothing is averaged", ("L15",))
    if steps[0].penalties:
        return Hazard("L14", "gradients of gradients that no DistributedDataParallel has averaged", ("L15",))
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
    ranks = evidence.ranks(found.step)
    if evidence.missed():
        return Hazard("I7", "a checkpoint was loaded with strict=False, and its keys are not those of the wrapper")
    batch = _of_batches(found, evidence)
    if batch:
        return batch
    if two.shadowed:
        return Hazard("M2", f"{two.shadowed[0]} was set on the wrapper, not on the module that looks for it")
    if any(step.norms != two.norms for step in ranks):
        return Hazard("L8", "each rank clips its own gradients, before they are averaged")
    samples = _of_samples(found, evidence)
    if samples:
        return samples
    factor, rest = ratio(two.grads, one.grads)
    if rest < CONSTANT and abs(factor - 1) > CONSTANT:
        cause = _of_factor(factor, evidence)
        adaptive = evidence.original.records[0].kinds.get(one.optimizer, "") in ADAPTIVE
        return replace(cause, others=(*cause.others, "L9")) if adaptive else cause
    if _statistics_differ(evidence, found.step):
        return Hazard("M8", "BatchNorm normalises with the statistics of each rank's rows")
    if any(step.carried for step in evidence.other.steps()):
        return Hazard("D14", "a state is carried from step to step: of other columns, or along a time axis that is cut")
    if _follows_parameters(one, two):
        return Hazard("L6", "the difference is along the parameters: a penalty on them is scaled with the loss")
    return _of_loss(found, evidence)


def _of_batches(found: StepDifference, evidence: Evidence) -> Hazard | None:
    if evidence.batches.number and evidence.batches.training and _drawn_before(evidence, found.step):
        return of_batches(evidence.batches, evidence)
    sizes = [sum(step.rows) for step in evidence.ranks(found.step)]
    if 0 in sizes and any(sizes):
        return Hazard("D7", "a rank has no sample of this batch: the mean of nothing is nan", ("D6",))
    if len(set(sizes)) > 1:
        return Hazard("D6", f"the ranks have {' and '.join(map(str, sizes))} samples: a mean of means is not the mean")
    return None


def _of_samples(found: StepDifference, evidence: Evidence) -> Hazard | None:
    """Why the modules are called with other samples, although the loaders, if there are any, draw the same."""
    one, ranks = evidence.original.steps()[found.step], evidence.ranks(found.step)
    drawn = bool(evidence.original.records[0].batches)
    if one.draws != ranks[0].draws and drawn:
        return Hazard("S2", "random numbers are drawn for a part of the batch: other ones than for the whole")
    if not one.inputs or not all(step.inputs for step in ranks):
        return None
    if any(_together(one.inputs[0][k], [step.inputs[0][k] for step in ranks]) for k in (0, 1)):
        return None
    if not drawn:
        return Hazard("D13", "batches that the script makes in memory: the ranks' are not a part of the original's")
    if attribute := changed_by_loading(evidence.text):
        return Hazard("D20", f"samples depend on what was loaded before them: {attribute} changes in __getitem__")
    if any(each.workers for each in evidence.original.records[0].passes.values()):
        return Hazard("S3", "the loaders' workers draw other numbers for the same samples")
    if evidence.unseeded():
        return Hazard("S1", "the ranks draw random numbers without a common seed")
    if len({record.hash for record in evidence.other.records.values()}) > 1:
        return Hazard("D12", "samples hold other numbers on each rank: counted off from a set of strings, as a rule")
    return None


def _together(whole: tuple[int, ...], parts: list[tuple[int, ...]]) -> bool:
    return all(part == whole for part in parts) or Counter(chain.from_iterable(parts)) == Counter(whole)


def of_batches(batches: Batches, evidence: Evidence) -> Hazard:
    """Why the samples of a batch are other ones."""
    passes = [record.passes.get(batches.number) for record in evidence.records()]
    original, ours = passes[0], passes[1:]
    if original and original.stream:
        return Hazard("D8", "each rank reads the stream by itself: nothing divides it")
    if original and original.part and len({each.part for each in ours if each}) > 1:
        return Hazard("D11", "each rank has split the data otherwise: no seed is shared")
    if not batches.training:
        return Hazard("E1", "the evaluation set is divided or drawn otherwise")
    if _grown(batches) and batches.shorter:
        return Hazard("D5", "the batch size is kept for each rank: the batches together are too large")
    drawn = [sample for part in batches.parts for sample in part]
    if Counter(drawn) - Counter(batches.whole) and set(drawn) == set(batches.whole):
        return Hazard("D6", "the batch is filled up with samples that are in it already")
    if original and original.batch_sampler not in STANDARD:
        return Hazard("D10", f"{original.batch_sampler} draws other batches on each rank, or was replaced")
    if (
        original
        and original.sampler not in STANDARD
        and any(each and each.sampler != original.sampler for each in ours)
    ):
        return Hazard("D9", f"{original.sampler} was replaced by {ours[0].sampler if ours[0] else 'another one'}")
    if len(set(drawn)) < len(drawn):
        if evidence.drifted():
            return Hazard(
                "I11", "one rank drew random numbers that the others did not: behind `if rank == 0`, as a rule"
            )
        return Hazard("D1", "the ranks' samples overlap: the loader has no sampler, and no seed is shared", ("S1",))
    return Hazard("D1", "other samples than one process draws (DistributedSampler has an order of its own)")


def _of_factor(factor: float, evidence: Evidence) -> Hazard:
    size = evidence.world_size
    if abs(factor * size - 1) < CONSTANT:
        return Hazard(
            "L1", f"every gradient is 1/{size} of the original's: a sum, or one over a constant, is averaged", ("L2",)
        )
    lengths = [{each.length for each in record.passes.values()} for record in evidence.records()]
    if lengths[0] != lengths[1]:
        return Hazard("D17", f"every gradient is {factor:.4g} times the original's: len() of a set means a part now")
    if abs(factor - size) < CONSTANT:
        return Hazard("X9", f"every gradient is {size} times the original's: summed over the ranks, not averaged")
    return Hazard("L2", f"every gradient is {factor:.4g} times the original's: the loss is divided by another number")


def _of_loss(found: StepDifference, evidence: Evidence) -> Hazard:
    mean = "the mean of the ranks' losses is not the loss of the batch"
    steps = evidence.original.steps()
    repeated = all(step.inputs and step.inputs[0] == steps[0].inputs[0] for step in steps)
    if len(steps) > 1 and repeated and not evidence.original.records[0].batches:
        return Hazard("D16", "the whole set is one batch, and its rows depend on each other", ("L5",))
    if re.search(r"(cross_?entropy|nll_?loss)\w*\((.|\n)*?\bweight\s*=", evidence.text, re.IGNORECASE):
        return Hazard("L4", f"{mean}: class weights are normalised on each rank")
    if re.search(r"ignore_index|mask|pad_sequence", evidence.text, re.IGNORECASE):
        return Hazard("L3", f"{mean}: each rank divides by its own number of valid elements")
    if re.search(r"\.(t\(\)|T\b|mT\b)|cdist|triplet|nce\b|contrast|similarity|\.(mean|std|var)\(0", evidence.text):
        return Hazard("L5", f"{mean}: the loss couples samples of different ranks")
    return Hazard("L2-L5", f"{mean}, although they hold the same samples (masks, weights, coupled samples)")


def of_norms(ours: float, original: float, evidence: Evidence) -> Hazard:
    """Why a norm differs that gradients were clipped to, although they are the same once they are clipped."""
    cause = _of_factor(ours / original if original else math.inf, evidence)
    return replace(cause, others=(*cause.others, "L8"))


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
    if evidence.batches.divided and not evidence.batches.number:
        return Hazard("E3", "the samples are the same: a number that is not the mean of the ranks' numbers", ("E1",))
    if any(not training for _, training in evidence.batches.padded):
        return Hazard("E1", "evaluation on shards that are filled up: some samples count twice")
    return Hazard("E1", "an evaluation of a part of the data, or of rank 0's rows")


def of_file(message: str) -> Hazard:
    """Why a file differs, by what the comparison says of it."""
    if "_orig_mod" in message and "module." in message and "keys" in message:
        return Hazard("M15", "the checkpoint holds the keys of the wrapper round a compiled module", ("I7",))
    if "module.module." in message and "keys" in message:
        return Hazard("M14", "the checkpoint holds a copy of the wrapper: copy model.module", ("M13", "I7"))
    if "module." in message and "keys" in message:
        return Hazard("I7", "the checkpoint holds the wrapper's keys: save model.module.state_dict()")
    if "does not load" in message:
        return Hazard("I9", "it pickles an object of the distributed run, or several ranks wrote it at once")
    if "files extra" in message:
        return Hazard("I6", "the ranks write files of their own")
    if "files missing" in message:
        return Hazard("I3", "a file or folder is made by one process only")
    return Hazard("I2", "written by several ranks, or from the numbers of one rank")


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
