"""Why a run of several processes crashed or hung: its last words, and what its ranks had done by then."""

from __future__ import annotations

import re

from ddpify.verify.hazards import Hazard, of_path
from ddpify.verify.runs import Run, Step

WORDS = {
    "sampler option is mutually exclusive": Hazard("D3", "a loader has both shuffle=True and a sampler"),
    "sampler attribute should not be set": Hazard("D4", "a sampler is given to a loader that is made already"),
    "DataLoader with IterableDataset: expected unspecified": Hazard("D8", "a stream cannot have a sampler: divide it"),
    "Expected hidden size": Hazard("D15", "a tensor has the size of the global batch"),
    "must match the size of tensor": Hazard("D15", "a tensor has the size of the global batch"),
    "to match target batch_size": Hazard("D15", "a tensor has the size of the global batch"),
    "specified number of total steps": Hazard("L22", "a schedule is made from a length that the division has changed"),
    "DistributedDataParallel' object ": Hazard("M1", "an attribute or method is looked for on the wrapper"),
    "is not needed when a module doesn't": Hazard("M5", "a module without a trained parameter is wrapped"),
    "Expected to mark a variable ready only once": Hazard(
        "M12", "a parameter is used by several checkpoints with use_reentrant=True, or finished before all its uses"
    ),
    "appears not to match sizes": Hazard("M18", "the ranks have made models of different sizes, from their data"),
    "expects same model across all ranks": Hazard("M18", "the ranks have made different models"),
    "File exists": Hazard("I3", "several ranks make the same folder"),
    "current process has finished its": Hazard("P1", "processes are spawned by code that each of them runs again"),
    "Can't pickle": Hazard("P2", "what is spawned is a lambda or a local function: only a global one can be sent"),
    "unrecognized arguments: --local": Hazard("P3", "the script's argparse does not know the launcher's argument"),
    "arguments are required: --local": Hazard("P3", "torchrun gives LOCAL_RANK by the environment, not as an argument"),
}
UNFINISHED = "Expected to have finished reduction"
LOST = re.compile(r"Error: .*Connection (?:closed|reset) by peer")
RAISED = re.compile(r"^\[rank(\d+)\]: Traceback", re.MULTILINE)
ERROR = re.compile(r"^(?:\[rank\d+\]: )?[\w.]+Error\b", re.MULTILINE)


def of_end(run: Run, counts: list[int]) -> Hazard | None:
    """The likely hazard of a run that did not come to its end; None if nothing tells.

    Args:
        run: of several processes. counts: the optimizer steps that each rank has made.
    """
    said = next((hazard for word, hazard in WORDS.items() if word in run.stderr), None)
    if said:
        return said
    steps = [run.steps(rank) for rank in range(len(counts))]
    if UNFINISHED in run.stderr:
        return _unfinished([each[-1] for each in steps if each])
    for same in zip(*steps, strict=False):
        if hazard := of_path(same):
            return hazard
    looks = [record.looks for record in run.records.values()]
    if 0 in looks and any(looks):
        return Hazard("E5", "one rank evaluates through the wrapper, which waits for the others", ("I11",))
    if "Timed out waiting" in run.stderr:
        return Hazard("E7", "what one rank does alone takes longer than the others wait", ("D19",))
    lost = len(LOST.findall(run.stderr))
    waited = bool(lost) and len(ERROR.findall(run.stderr)) == lost
    if lost and not waited:
        return Hazard("P8", "an exception on one rank: the others lose the connection to it")
    if len({*RAISED.findall(run.stderr)}) == 1 and not waited:
        return Hazard("P8", "an exception on one rank: the launcher ends the others, wherever they are")
    if len(set(counts)) > 1 or waited:
        made = " and ".join(map(str, counts))
        reason = f"one rank waits for another that has ended or does something else: they made {made} steps"
        return Hazard("D19", reason, ("E4", "E8", "P7"))
    return None


def _unfinished(last: list[Step]) -> Hazard:
    if any(step.replaced for step in last):
        return Hazard("M7", "a layer was replaced after the model was wrapped: the wrapper waits for the old one")
    if any(step.penalties for step in last):
        return Hazard("L14", "a gradient penalty alone does not reach every parameter", ("M4",))
    return Hazard("M4", "a parameter got no gradient in some step")
