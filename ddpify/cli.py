"""The command line: words in, text and an exit code out."""

from __future__ import annotations

import contextlib
import gc
import os
import sys
from collections.abc import Callable
from dataclasses import replace
from enum import Enum
from io import TextIOWrapper
from typing import TYPE_CHECKING, Annotated, Any, TextIO

import typer
import typer.core

from ddpify import COMMANDS, __version__

if TYPE_CHECKING:
    from ddpify.command import CommandLine
    from ddpify.report import Report

# ddpify_codemods is imported inside the commands, so that --help costs nothing. rich is never imported.

HELP = {"help_option_names": ["--help", "-h"]}
app = typer.Typer(rich_markup_mode=None, add_completion=False, pretty_exceptions_enable=False, context_settings=HELP)
about = typer.Typer(rich_markup_mode=None, add_completion=False, pretty_exceptions_enable=False, context_settings=HELP)

INTERRUPTED = 130  # what a shell expects of a program that Ctrl-C has ended


class Format(str, Enum):
    """How a run tells what it did."""

    text = "text"
    json = "json"
    github = "github"


class Reduce(str, Enum):
    """How gradients are reduced on XLA."""

    ddp = "ddp"
    native = "native"


class BatchNorm(str, Enum):
    """Whose statistics BatchNorm normalises with."""

    batch = "batch"
    local = "local"


class XpuBackend(str, Enum):
    """What carries tensors between Intel's GPUs."""

    xccl = "xccl"
    ccl = "ccl"


class Entry(str, Enum):
    """Who starts the processes."""

    torchrun = "torchrun"
    spawn = "spawn"


class Style(str, Enum):
    """What a conversion imports: ddpify_runtime, or torch alone."""

    exact = "exact"
    plain = "plain"


class Strategy(str, Enum):
    """How the model is distributed."""

    ddp = "ddp"
    fsdp2 = "fsdp2"


class BatchSize(str, Enum):
    """What a loader's batch size counts."""

    whole = "global"
    per_process = "per-process"


class _Starter(typer.core.TyperCommand):
    """A command that starts a script, whose options people give as if they were ours."""

    def parse_args(self, context: Any, words: list[str]) -> list[str]:
        try:
            return super().parse_args(context, words)
        except Exception as error:
            if type(error).__name__ != "NoSuchOption":  # of typer's own click, or of the one that it asks for
                raise
            name = getattr(error, "option_name", "")
            hint = f"options of the script go behind --: ddpify {context.info_name} SCRIPT -- {name} ..."
            print(f"ddpify: no option {name}; {hint}", file=sys.stderr)
            raise typer.Exit(2) from None


def main() -> None:
    """Run the command line and exit.

    rules, explain, verify and run are commands; any other first word is a path (a file called "rules" is ./rules).
    """
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")  # a file name need not be text
    chosen = about if sys.argv[1:2] and sys.argv[1] in COMMANDS else app
    try:
        chosen(prog_name="ddpify")
    finally:
        _flush()


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"ddpify {__version__}")
        raise typer.Exit


@app.command(
    epilog="ddpify verify SCRIPT runs both versions, ddpify run SCRIPT starts the converted one, ddpify rules lists "
    "the rules, ddpify explain ID shows one. Exit codes: 0 done or nothing to do, 1 --check found work, 2 refused or "
    "bad input."
)
def convert(
    paths: Annotated[list[str], typer.Argument(metavar="PATH", help="Scripts, folders, or - for standard input.")],
    target: Annotated[
        str,
        typer.Option("--target", "-t", metavar="T", help="cpu, cuda, horovod, ignite, mpi, xla, xpu; none goes back."),
    ] = "",
    diff: Annotated[bool, typer.Option("--diff", help="Print a unified diff, write nothing.")] = False,
    check: Annotated[bool, typer.Option("--check", help="Write nothing, exit 1 if something would change.")] = False,
    output: Annotated[str, typer.Option("--output", "-o", metavar="PATH", help="Write there; - prints the code.")] = "",
    modernize: Annotated[bool, typer.Option("--modernize", help="Rewrite old spellings of torch_xla code.")] = False,
    xla_reduce: Annotated[
        Reduce, typer.Option("--xla-reduce", help="On XLA: DistributedDataParallel, or one all-reduce per backward.")
    ] = Reduce.ddp,
    batch_norm: Annotated[
        BatchNorm | None, typer.Option("--batch-norm", help="Statistics of the whole batch (default), or each rank's.")
    ] = None,
    style: Annotated[
        Style | None, typer.Option("--style", help="exact: what one process trains; plain: torch alone, as by hand.")
    ] = None,
    batch_size: Annotated[
        BatchSize | None,
        typer.Option("--batch-size", help="Whether the batch size is that of all processes (default), or of each."),
    ] = None,
    sync_batchnorm: Annotated[
        bool, typer.Option("--sync-batchnorm", help="Plain, on GPUs: BatchNorm sees the batches of all processes.")
    ] = False,
    strategy: Annotated[
        Strategy | None,
        typer.Option("--strategy", help="DistributedDataParallel (default), or torch's fully_shard."),
    ] = None,
    xpu_backend: Annotated[
        XpuBackend | None,
        typer.Option("--xpu-backend", help="On Intel's GPUs: torch's xccl (default), or oneCCL's ccl."),
    ] = None,
    entry: Annotated[
        Entry | None,
        typer.Option("--entry", help="Who starts the processes: torchrun (default), or spawn, python SCRIPT itself."),
    ] = None,
    optimizer_sharding: Annotated[
        bool, typer.Option("--optimizer-sharding", help="Each process keeps a part of the optimizer's state (ZeRO).")
    ] = False,
    resume: Annotated[
        str, typer.Option("--resume", metavar="DIR", help="Write checkpoints there, and go on from the last one.")
    ] = "",
    format: Annotated[Format, typer.Option("--format", help="How to tell what was done.")] = Format.text,
    version: Annotated[
        bool, typer.Option("--version", is_eager=True, callback=_version, help="Print the version.")
    ] = False,
) -> None:
    """Turn training scripts for one device into scripts that train on many, in place."""

    def work() -> int:
        from ddpify.command import CommandLine

        statistics = batch_norm.value if batch_norm else ""
        words = (tuple(paths), target, diff, check, output, modernize, xla_reduce.value, statistics)
        per_process = None if batch_size is None else batch_size is BatchSize.per_process
        name = style.value if style else ""
        backend = xpu_backend.value if xpu_backend else ""
        chosen = replace(CommandLine(*words), style=name, sync_batchnorm=sync_batchnorm, per_process=per_process)
        sharded = None if strategy is None else strategy is Strategy.fsdp2
        chosen = replace(chosen, xpu_backend=backend, entry=entry.value if entry else "", resume=resume)
        chosen = replace(chosen, optimizer_sharding=optimizer_sharding, fully_sharded=sharded)
        return _convert(chosen, format)

    raise typer.Exit(_guarded(work))


def _convert(options: CommandLine, format: Format) -> int:
    from ddpify.command import run
    from ddpify.files import BadInput
    from ddpify.report import FileReport, Report

    gc.disable()  # syntax trees are many objects and no garbage: looking for some in them takes a tenth of the time
    try:
        report, payload = run(options)
    except BadInput as error:
        report, payload = Report((FileReport(error.problem.path, "error", problem=error.problem),), options.target), b""
    is_for_payload = options.destination == "-" or (options.diff and format is not Format.json)
    with contextlib.suppress(BrokenPipeError):  # the reader has seen enough
        if is_for_payload:
            sys.stdout.buffer.write(payload)
            sys.stdout.buffer.flush()
        _print_report(report, format, options.diff, sys.stderr if is_for_payload else sys.stdout)
    return report.exit_code


def _print_report(report: Report, format: Format, with_diff: bool, stream: TextIO) -> None:
    from ddpify.report import as_json, github, text

    done, refused = text(report)
    if format is Format.json:
        done, refused = [as_json(report, with_diff)], []
    elif format is Format.github:
        done, refused = github(report), []
    for line in refused:
        print(line, file=sys.stderr)
    for line in done:
        print(line, file=stream)
    stream.flush()


@about.command()
def rules() -> None:
    """List the rules."""

    def work() -> int:
        from ddpify_codemods import RULES

        for rule in RULES:
            print(f"{rule.id}  {rule.title}")
        return 0

    raise typer.Exit(_guarded(work))


@about.command()
def explain(rule: Annotated[str, typer.Argument(metavar="ID", help="For example DDP101.")]) -> None:
    """Show one rule: what it does, why, and an example."""

    def work() -> int:
        from ddpify_codemods import RULES

        from ddpify.config import did_you_mean
        from ddpify.report import explanation

        known = {each.id: each for each in RULES}
        if rule.upper() in known:
            print(explanation(known[rule.upper()]))
            return 0
        near = [name for name in known if name.startswith(rule.upper()[:5])]  # of DDP999 no number is meant
        print(f"ddpify: no rule {rule!r}{did_you_mean(rule.upper(), near)}; ddpify rules lists them", file=sys.stderr)
        return 2

    raise typer.Exit(_guarded(work))


@about.command(cls=_Starter, epilog="Exit codes: 0 equal, 1 not equal, 2 could not run.")
def verify(
    script: Annotated[str, typer.Argument(metavar="SCRIPT", help="The original; it is not changed.")],
    arguments: Annotated[list[str] | None, typer.Argument(metavar="-- ARGS", help="Arguments of the script.")] = None,
    module: Annotated[bool, typer.Option("-m", help="SCRIPT is a module, as for python -m.")] = False,
    processes: Annotated[int, typer.Option("-n", metavar="N", help="Processes of the converted run.")] = 2,
    steps: Annotated[int, typer.Option(metavar="K", help="End both after K optimizer steps; 0: run to the end.")] = 100,
    target: Annotated[str, typer.Option("--target", "-t", metavar="T", help="cpu or cuda.")] = "cpu",
    style: Annotated[Style, typer.Option("--style", help="Of the conversion that is verified.")] = Style.exact,
    optimizer_sharding: Annotated[
        bool, typer.Option("--optimizer-sharding", help="Each process keeps a part of the optimizer's state (ZeRO).")
    ] = False,
    strategy: Annotated[
        Strategy, typer.Option("--strategy", help="DistributedDataParallel, or torch's fully_shard.")
    ] = Strategy.ddp,
    against: Annotated[
        str, typer.Option(metavar="OTHER.py", help="Compare with a conversion made by hand, started by torchrun.")
    ] = "",
    sgd: Annotated[
        bool, typer.Option("--sgd", help="Replace every optimizer, in both, by one that does not amplify rounding.")
    ] = False,
    timeout: Annotated[float, typer.Option(metavar="S", help="Seconds that each run may take.")] = 600,
    tolerance: Annotated[
        float,
        typer.Option(
            metavar="X", help="Relative difference allowed; default: 1e-6, with BatchNorm 1e-5.", show_default=False
        ),
    ] = 0.0,
    link: Annotated[
        list[str] | None,
        typer.Option(metavar="PATH", help="Link this into the scratch copies: large data that is only read."),
    ] = None,
    output: Annotated[
        str, typer.Option("--output", "-o", metavar="DIR", help="Write report.html and curves.png.")
    ] = "",
) -> None:
    """Run a script and its conversion in real processes, and compare every optimizer step, prints and files."""

    def work() -> int:
        from ddpify.files import BadInput
        from ddpify.verify import packages

        words = (script, tuple(arguments or ()), processes, steps, target, against, sgd, timeout, tolerance)
        try:
            packages.require()
            from ddpify.verify.command import VerifyOptions, run

            sharded = strategy is Strategy.fsdp2
            given = VerifyOptions(*words, tuple(link or ()), output, module, style.value, optimizer_sharding, sharded)
            return run(given)
        except BadInput as error:
            problem = error.problem
            print(f"{problem.path}: {problem.message}; {problem.remedy}", file=sys.stderr)
            return 2

    raise typer.Exit(_guarded(work))


@about.command(cls=_Starter, epilog="The exit code is that of the script; 2 if it could not be started.")
def run(
    script: Annotated[str, typer.Argument(metavar="SCRIPT", help="A converted script.")],
    arguments: Annotated[list[str] | None, typer.Argument(metavar="-- ARGS", help="Arguments of the script.")] = None,
    module: Annotated[bool, typer.Option("-m", help="SCRIPT is a module, as for python -m.")] = False,
    processes: Annotated[
        int | None,
        typer.Option(
            "--nproc",
            "--devices",
            "-n",
            metavar="N",
            min=0,
            help="Processes on each machine; default: all GPUs, or one.",
        ),
    ] = None,
    machines: Annotated[str, typer.Option("--nnodes", metavar="N", help="Machines; 1:4 for least and most.")] = "",
    hosts: Annotated[
        str, typer.Option("--hosts", metavar="A:4,B:4", help="Their names; torchrun is started on each.")
    ] = "",
    launcher: Annotated[
        str,
        typer.Option(
            "--launcher", metavar="L", help="torchrun, spawn, srun, openmpi, mpich, intelmpi, horovodrun, python."
        ),
    ] = "",
    restarts: Annotated[
        int, typer.Option("--max-restarts", metavar="N", min=0, help="Start again after a failure (torchrun).")
    ] = 0,
    extra: Annotated[
        str, typer.Option("--launcher-args", metavar="WORDS", help="Further words for the launcher.")
    ] = "",
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Print the command, run nothing.")] = False,
    emit: Annotated[
        str, typer.Option("--emit", metavar="FORM", help="Print sbatch, k8s or hostfile instead: for a cluster.")
    ] = "",
    target: Annotated[
        str,
        typer.Option(
            "--target", "-t", metavar="T", help="cpu, cuda, horovod, ignite, mpi, xla or xpu: what it is for."
        ),
    ] = "",
) -> None:
    """Start a converted script in several processes, by the launcher that is at hand or asked for."""

    def work() -> int:
        from ddpify import start
        from ddpify.files import BadInput

        words = (script, tuple(arguments or ()), module, processes, machines, hosts, launcher, target, restarts, extra)
        try:
            return start.run(start.RunOptions(*words, dry_run, emit))
        except BadInput as error:
            problem = error.problem
            print(f"{problem.path}: {problem.message}; {problem.remedy}", file=sys.stderr)
            return 2

    raise typer.Exit(_guarded(work))


def _guarded(work: Callable[[], int]) -> int:
    """The exit code of a command, whatever happens to the machine or to the pipe that it writes to."""
    try:
        return work()
    except KeyboardInterrupt:
        print("ddpify: interrupted", file=sys.stderr)
        return INTERRUPTED
    except BrokenPipeError:
        return 0  # the reader has seen enough
    except OSError as error:
        place = f"{error.filename}: " if error.filename else ""
        print(f"ddpify: {place}{error.strerror or error}", file=sys.stderr)
        return 2


def _flush() -> None:
    try:
        sys.stdout.flush()
    except BrokenPipeError:
        # Python flushes once more when it ends, and would complain.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
