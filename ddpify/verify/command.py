"""`ddpify verify SCRIPT`: convert it, run both versions in scratch copies, hold them against each other, tell."""

from __future__ import annotations

import os
import re
import signal
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from ddpify import files
from ddpify.files import BadInput, shown
from ddpify.modules import locate, started_as
from ddpify.verify import compare, ends, picture, scratch, trial, verdict
from ddpify.verify.processes import TIMED_OUT
from ddpify.verify.program import Subject, converted, reached
from ddpify.verify.runs import Record, Run
from ddpify.verify.trial import Trial, failure
from ddpify.verify.unions import NEUTRAL, unions

TARGETS = ("cpu", "cuda")
EQUAL, DIFFERENT, COULD_NOT_RUN = 0, 1, 2
STOPPED = re.compile(r"^.*RuntimeError: (ddpify.*)", re.MULTILINE)
ABORT = "terminate called without an active exception"


@dataclass(frozen=True)
class VerifyOptions:
    """What was asked for: the words of the command line.

    against: a hand-made conversion to hold against the script, instead of converting it. steps: 0 for all.
    timeout: seconds for each run. tolerance: 0 for that of docs/contract.md. output: where pictures go, "" for nowhere.
    module: script and against are names of modules, as for `python -m`. style, optimizer_sharding, fully_sharded:
    how it is converted.
    """

    script: str
    arguments: tuple[str, ...] = ()
    processes: int = 2
    steps: int = 100
    target: str = "cpu"
    against: str = ""
    sgd: bool = False
    timeout: float = 600.0
    tolerance: float = 0.0
    links: tuple[str, ...] = ()
    output: str = ""
    module: bool = False
    style: str = "exact"
    optimizer_sharding: bool = False
    fully_sharded: bool = False


class CouldNotRun(Exception):
    """A run that cannot be compared; `lines` say why, and what to do. code: the exit code."""

    def __init__(self, *lines: str, code: int = COULD_NOT_RUN) -> None:
        super().__init__(lines[0])
        self.lines, self.code = lines, code


def run(options: VerifyOptions) -> int:
    """Verify a conversion, print what was found; return the exit code: 0 equal, 1 not, 2 could not run.

    Raises:
        BadInput: the command line cannot be used.
    """
    modules = {}
    if options.module:
        modules = {locate(name).resolve(): name for name in (options.script, options.against) if name}
        against = str(locate(options.against)) if options.against else ""
        options = replace(options, script=str(locate(options.script)), against=against)
    _check(options)
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # children and copies go then too
    script = Path(options.script).resolve()
    how = (options.target, options.style, options.optimizer_sharding, options.fully_sharded)
    program = reached(script) if options.against else converted(options.script, *how)
    try:
        found = _verify(options, script, program, modules)
    except CouldNotRun as error:
        print("\n".join(error.lines), flush=True)
        return error.code
    print("\n".join(_lines(found, options)), flush=True)
    if options.output:
        for line in picture.write(found, Path(options.output), _title(options), _lines(found, options)):
            print(line)
    return DIFFERENT if found.differences else EQUAL


def _check(options: VerifyOptions) -> None:
    if options.target not in TARGETS:
        raise BadInput("ddpify verify", f"target {options.target} is not run here", f"give one of {', '.join(TARGETS)}")
    if options.processes < 1 or options.steps < 0 or options.timeout <= 0:
        raise BadInput("ddpify verify", "-n must be at least 1, --steps 0 or more, --timeout above 0", "correct it")
    for name in filter(None, (options.script, options.against)):
        if Path(name).is_dir():
            raise BadInput(name, "is a folder", "give the script in it")
        if not Path(name).is_file():
            raise BadInput(name, "no such script", "check the spelling")
        needed = None if options.module else started_as(Path(name).resolve(), files.read(Path(name), name).text)
        if needed:
            raise BadInput(name, "imports relatively to its package", f"ddpify verify -m {needed[1]}")
    if options.output:
        place = Path(options.output)
        if place.exists() and not place.is_dir():
            raise BadInput(options.output, "is not a folder", "give --output the name of a folder")


def _verify(options: VerifyOptions, script: Path, program: Subject, modules: Mapping[Path, str]) -> verdict.Verdict:
    other = Path(options.against).resolve() if options.against else script
    setting = plan(options, script, [*program.files, *(reached(other).files if options.against else ())], modules)
    if options.style == "plain" and not options.against:
        return _verify_plain(options, script, program, setting)
    original = run_original(setting, script, {})
    title = shown(other) if options.against else "the converted script"
    print(f"running {title} in {options.processes} processes", flush=True)
    settings = {} if options.against else {"DDPIFY_CHECK": "1"}
    world_size = options.processes if options.processes > 1 else 0
    many = trial.run(setting, other, program.changed, world_size, settings)
    require_end(many, original, title, setting, options.processes)
    found = verdict.judge(
        original,
        many,
        options.processes,
        program.text,
        lambda number: run_original(setting, script, _disturbed(options.processes, number)),
        options.tolerance,
    )
    found.notes += _remarks(options, program, original, many)
    return found


def _verify_plain(options: VerifyOptions, script: Path, program: Subject, setting: Trial) -> verdict.Verdict:
    """Run the conversion first, then the original on the batches that its ranks drew."""
    title = "the converted script"
    print(f"running {title} in {options.processes} processes", flush=True)
    many = trial.run(setting, script, program.changed, options.processes, NEUTRAL)
    if many.rc:  # its ranks have not drawn enough for the original to come to its end, unless that fails, too
        require_end(many, run_original(setting, script, NEUTRAL), title, setting, options.processes)
    with tempfile.TemporaryDirectory(prefix="ddpify-unions-") as folder:
        file = Path(folder) / "unions.json"
        file.write_text(unions([many.records.get(rank, Record()) for rank in range(options.processes)]))
        settings = {**NEUTRAL, "DDPIFY_UNIONS": str(file), "DDPIFY_SEED": "0"}
        original = run_original(setting, script, settings)
        if not many.rc:
            require_end(many, original, title, setting, options.processes)
        found = verdict.judge(
            original,
            many,
            options.processes,
            program.text,
            lambda number: run_original(setting, script, settings | _disturbed(options.processes, number)),
            options.tolerance,
            given=True,
            pictures=program.pictures,
        )
    found.notes += [
        "the order of samples is that of DistributedSampler: the original drew what the ranks drew, and where an "
        "evaluation shuffles and its conversion does not, the original went in order, too",
        "in both, BatchNorm normalized each sample by itself, dropout was switched off, noise was left out of steps, "
        "and what a data set draws depended on the sample alone: plain code cannot draw what one process draws",
    ]
    if original.records[0].stopped:
        found.notes.append(f"both were ended after {options.steps} optimizer steps (--steps)")
    return found


_NOISE = "DDPIFY_NOISE"


def _disturbed(processes: int, number: int) -> dict[str, str]:
    """The settings of a control run."""
    threads = str(trial.other_threads(processes, number))
    return {_NOISE: str(verdict.NOISE), "DDPIFY_NOISE_SEED": str(number), "OMP_NUM_THREADS": threads}


def _remarks(options: VerifyOptions, program: Subject, original: Run, many: Run) -> Iterator[str]:
    """What else one should know about the two runs."""
    if original.records[0].stopped:
        yield f"both were ended after {options.steps} optimizer steps (--steps); what comes later was not compared"
    if options.against and "dropout" in program.text.lower():
        yield "dropout was switched off in both: a conversion by hand cannot draw the numbers of one process"
    if not options.against and options.processes > 1 and any(compare.divided(many)):
        yield "no training forward was divided: every process computed the whole, which is right and no faster"
    if program.local_batch_norm:
        yield (
            "BatchNorm took the statistics of the whole batch here, so that the steps can be compared; with "
            "--batch-norm local (sync_batch_norm=False) it takes those of each rank's rows, and the steps are others"
        )
    yield from dict.fromkeys(many.records[0].remarks)


def plan(options: VerifyOptions, script: Path, needed: Sequence[Path], modules: Mapping[Path, str]) -> Trial:
    """Return what all runs share.

    Args:
        options: what was asked for. script: the original. needed: all files that have to be in the copies, real paths.
        modules: the names of those that are started as modules.
    """
    here = Path.cwd().resolve()
    is_here = script.is_relative_to(here) and here not in (Path.home().resolve(), *Path.home().resolve().parents)
    folder = here if is_here or modules else script.parent
    root = Path(os.path.commonpath([folder, *(path.parent for path in needed)]))
    home, temporary = Path.home().resolve(), Path(tempfile.gettempdir()).resolve()
    if root != folder and (root in (home, *home.parents) or temporary.is_relative_to(root)):
        far = next(path for path in needed if not path.is_relative_to(folder))
        remedy = "keep it near the script, or install it (pip install) so that it counts as a library"
        raise BadInput(shown(far), f"lies far from the script: {shown(root)} would be copied for each run", remedy)
    settings: dict[str, str] = {"CUDA_VISIBLE_DEVICES": ""} if options.target == "cpu" else {}
    if options.sgd:
        settings["DDPIFY_PLAIN"] = "1"
    if options.against:
        settings |= {"DDPIFY_DROPOUT": "off", "DDPIFY_INPUTS": "1"}
    project = scratch.survey(root, [Path(link) for link in options.links])
    return Trial(
        project,
        folder,
        script,
        options.arguments,
        options.steps,
        options.timeout,
        options.processes,
        settings,
        hashes=bool(options.against) and "PYTHONHASHSEED" not in os.environ,
        modules=modules,
    )


def run_original(plan: Trial, script: Path, settings: Mapping[str, str]) -> Run:
    """Run the original in one process.

    Args:
        plan: what all runs share. script: the original. settings: of the recorder; those of a control run, or none.
    Raises:
        CouldNotRun: it failed, took too long, or made no step.
    """
    again = ", again, with its gradients disturbed as rounding would" if _NOISE in settings else ""
    print(f"running {shown(script)} in one process{again}", flush=True)
    done = trial.run(plan, script, {}, 0, settings)
    steps = len(done.steps())
    if done.rc == TIMED_OUT:
        raise CouldNotRun(
            f"{shown(script)}: could not run: after {plan.limit:g} s the original was at step {steps}; "
            "give fewer --steps, a longer --timeout, or arguments for a smaller run"
        )
    if done.rc:
        reason = f"{shown(script)}: could not run: the original fails by itself, with exit code {done.rc}:"
        raise CouldNotRun(reason, *failure(done))
    if not steps:
        raise CouldNotRun(
            f"{shown(script)}: could not run: the original made no step of a torch optimizer, so there is nothing to "
            "compare; check its arguments"
        )
    return done


def require_end(many: Run, original: Run, title: str, plan: Trial, processes: int) -> None:
    """Return if a run of many processes came to its end.

    Raises:
        CouldNotRun: it hung, crashed, was stopped by the runtime, or a rank made no step.
    """
    counts = [len(many.steps(rank)) for rank in range(processes)]
    guess = ends.of_end(many, counts)
    likely = [f"likely {guess}"] if guess else []
    made = " and ".join(map(str, counts))
    if many.rc == TIMED_OUT:
        raise CouldNotRun(
            f"{title}: could not run: hung, or too slow: after {plan.limit:g} s (--timeout) its ranks had made {made} "
            f"steps, the original {len(original.steps())}",
            *likely,
            *failure(many),
        )
    if many.rc and ABORT in many.stderr and "Traceback" not in many.stderr and len({*counts}) == 1:
        print(f"note: {title} aborts at its end, as gloo does without dist.destroy_process_group()", flush=True)
    elif many.rc and (stopped := STOPPED.search(many.stderr)):
        raise CouldNotRun(f"NOT EQUAL: {title} was stopped after {made} steps: {stopped[1]}", code=DIFFERENT)
    elif many.rc:
        reason = (
            f"{title}: could not run: it fails after {made} steps, with exit code {many.rc}; the original does not:"
        )
        raise CouldNotRun(reason, *failure(many), *likely)
    if missing := [rank for rank in range(processes) if not many.steps(rank)]:
        raise CouldNotRun(f"{title}: could not run: rank {missing[0]} made no step of a torch optimizer", *likely)


def _title(options: VerifyOptions) -> str:
    held = options.against or "its conversion"
    return f"{options.script} in one process, and {held} in {options.processes}"


def _lines(found: verdict.Verdict, options: VerifyOptions) -> list[str]:
    """The report for people."""
    lines = []
    if found.differences:
        lines.append(f"NOT EQUAL: {options.script} and {options.against or 'its conversion'} train different things")
        for number, difference in enumerate(found.differences):
            lines.append(f"  {'first' if not number else 'also'}: {difference.what}")
            lines.append(f"    likely {difference.hazard}")
        lines += ["equal:"] if found.equal else []
    else:
        rounding = " up to rounding, which this training amplifies" if found.amplified else ""
        lines.append(f"EQUAL{rounding}: {_title(options)} processes, over {found.steps} optimizer steps")
    width = max((len(what) for what, _ in found.equal), default=0)
    lines += [f"  {what:<{width}}  {sentence}" for what, sentence in found.equal]
    lines += [f"note: {note}" for note in found.notes]
    return lines
