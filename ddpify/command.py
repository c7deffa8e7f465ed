"""`ddpify PATH...`: from the words on the command line to files that are written, and a report."""

from __future__ import annotations

import os
import shlex
import stat
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cache, partial
from operator import itemgetter
from pathlib import Path

from ddpify_codemods import ONE_DEVICE, TARGETS, converted_for
from ddpify_codemods.facts.gpu_option import gpu_option
from ddpify_codemods.facts.ignores import skips_file
from ddpify_codemods.folders import forget
from ddpify_codemods.search_path import Added

from ddpify import files
from ddpify.config import Settings, choose_target, read_settings
from ddpify.conversion import Converted, added_of, convert_program, imports_of, on_all_cores
from ddpify.files import BadInput, Source, shown
from ddpify.importers import with_importers
from ddpify.inputs import STDIN, Inputs, gather
from ddpify.modules import started_as
from ddpify.outcome import Outcome, diff_folder, left_out, merge, reports, settle
from ddpify.programs import Additions, Imports, Program, find_programs, importer, program
from ddpify.report import FileReport, Report, Status

Load = Callable[[Path], Source]

_SET_ORDER = "DDP401"  # the rule that finds an order which differs between processes


@dataclass(frozen=True)
class CommandLine:
    """What was asked for: the words of the command line."""

    paths: tuple[str, ...]
    target: str = ""
    diff: bool = False
    check: bool = False
    output: str = ""
    modernize: bool = False
    xla_reduce: str = "ddp"
    batch_norm: str = ""
    style: str = ""
    sync_batchnorm: bool = False
    per_process: bool | None = None
    xpu_backend: str = ""
    entry: str = ""
    optimizer_sharding: bool = False
    fully_sharded: bool | None = None
    resume: str = ""

    @property
    def destination(self) -> str:
        """Where the code of one script goes: a path, "-" for standard output, "" for where it came from."""
        if self.output or self.diff or self.check:
            return self.output
        return STDIN if self.paths == (STDIN,) else ""


def run(options: CommandLine) -> tuple[Report, bytes]:
    """Convert what the options name, and write it where they say.

    Args:
        options: the words of the command line.
    Returns:
        The report, and the bytes for standard output (code or diff).
    Raises:
        BadInput: nothing could be done, nothing was written.
    """
    _refuse_contradictions(options)
    forget()
    settings = read_settings(_project_folder(options.paths[0]))
    choices = (*TARGETS, ONE_DEVICE)
    if options.target or settings.target:
        choose_target(options.target, settings, choices)  # before anything is read
    inputs = gather(options.paths, settings)
    load, imports, added = readers(inputs)
    programs, entries = _choose(inputs, load, imports, added)
    entries += [FileReport(name, "nothing to do", f"excluded in {settings.file}") for name in inputs.excluded]
    work = []
    for chosen in programs:
        try:
            work.append((tuple(load(path) for path in chosen.files), chosen.roots))
        except BadInput as error:
            entries += [FileReport(error.problem.path, "error", problem=error.problem)]
            entries += [FileReport(load(chosen.entry).name, "untouched")]
    texts = ({source.path: source.text for source in sources} for sources, _ in work)
    own = {name for each in texts if (name := converted_for(each))}
    target = choose_target(options.target, settings, choices, own)
    style = _style(options, settings.style, target)
    _require_plain(options, style)
    _require_exact(options, style, target)
    _require_target(options, target)
    asked = replace(options, style=style, batch_norm=options.batch_norm or settings.batch_norm)
    program = partial(_converted, target=target, options=asked)
    converted = on_all_cores(program, work, files=itemgetter(0))
    pairs = zip(work, converted, strict=True)
    reason = partial(_reason_to_leave, settings)
    outcomes = [Outcome(parts, result, parts[0].path not in inputs.named) for (parts, _), result in pairs]
    outcomes = settle([left_out(outcome, reason) for outcome in outcomes])
    outcomes = with_importers(outcomes) if style == "plain" else outcomes
    output = _write(options, outcomes)
    template = "" if target == ONE_DEVICE else TARGETS[target].with_backend(options.xpu_backend).launch
    device = TARGETS[target].device_type if target != ONE_DEVICE and TARGETS[target].is_accelerator else ""
    launch = partial(_launch, template, options.destination, device)
    status: Status = "would convert" if options.diff or options.check else "converted"
    folder = diff_folder(outcomes) if options.diff else None
    for outcome in outcomes:
        entries += reports(outcome, status, launch, folder, demanded=not (options.check or outcome.silent))
    entries = [settings.reported(report) for report in entries]
    root = str(folder) if folder and folder != Path.cwd() else ""
    report = Report(merge(entries), target, options.check, options.destination, root)
    return report, b"".join(file.diff for file in report.files) if options.diff else output


def _converted(program: tuple[Sequence[Source], Sequence[Path]], target: str, options: CommandLine) -> Converted:
    sources, roots = program
    return convert_program(
        sources,
        target,
        roots,
        modernize=options.modernize,
        xla_reduce=options.xla_reduce,
        batch_norm=options.batch_norm,
        style=options.style,
        sync_batchnorm=options.sync_batchnorm,
        per_process=options.per_process,
        backend=options.xpu_backend,
        entry=options.entry,
        optimizer_sharding=options.optimizer_sharding,
        fully_sharded=options.fully_sharded,
        resume=options.resume,
        for_writing=options.diff or not options.check,
    )


def _style(options: CommandLine, usual: str, target: str) -> str:
    """The style of the conversions: the only one that there is for a target, or the one that is asked for."""
    if target == ONE_DEVICE or not TARGETS[target].only_plain:
        return options.style or usual
    if options.style == "exact":
        message = (
            f"ddpify_runtime does not run in {TARGETS[target].words.name}'s words, --target {target} is plain code"
        )
        raise BadInput("ddpify", message, "leave --style exact out")
    return "plain"


def _require_target(options: CommandLine, target: str) -> None:
    """Refuse an option that is for other targets."""
    given = {
        "modernize": (options.modernize, "--modernize is for torch_xla code"),
        "xla-reduce": (options.xla_reduce != "ddp", "--xla-reduce is for XLA devices"),
        "sync-batchnorm": (options.sync_batchnorm, "torch synchronizes BatchNorm on GPUs"),
        "xpu-backend": (bool(options.xpu_backend), "--xpu-backend is for Intel's GPUs"),
        "fully-sharded": (bool(options.fully_sharded), "--strategy fsdp2 is not for every device"),
        "optimizer-sharding": (options.optimizer_sharding, "--optimizer-sharding is not for every device"),
    }
    for name, (is_given, what) in given.items():
        targets = [each.name for each in TARGETS.values() if name in each.options]
        if is_given and target not in targets:
            raise BadInput("ddpify", f"{what}, the target is {target}", f"add --target {targets[0]}")
    chosen = TARGETS[target].with_backend(options.xpu_backend) if target in TARGETS else None
    if options.entry == "spawn" and chosen is not None and not chosen.processes:
        what = f"--entry spawn is for what torchrun starts, the {target} target has its own way"
        raise BadInput("ddpify", what, f"start it with {chosen.launch.format(module='', script='SCRIPT')}")


def _require_plain(options: CommandLine, style: str) -> None:
    if options.fully_sharded and options.optimizer_sharding:
        what = "--strategy fsdp2 divides the optimizer's state as well"
        raise BadInput("ddpify", what, "leave out --optimizer-sharding")
    if options.batch_norm and (options.sync_batchnorm or style == "plain"):
        if options.batch_norm == "local" and not options.sync_batchnorm:
            what = "--batch-norm local is what --style plain does"
        else:
            what = f"--batch-norm {options.batch_norm} is for the exact style, as --sync-batchnorm for the plain one"
        raise BadInput("ddpify", what, "leave --batch-norm out")
    if style == "plain" and options.xla_reduce != "ddp":
        what = "--xla-reduce is for the exact style: plain code has torch's DistributedDataParallel"
        raise BadInput("ddpify", what, "leave it out")
    if style != "plain" and options.sync_batchnorm:
        raise BadInput("ddpify", "--sync-batchnorm is for the plain style", "add --style plain")


def _require_exact(options: CommandLine, style: str, target: str) -> None:
    for given, name in ((options.resume, "--resume"), (options.batch_norm == "local", "--batch-norm local")):
        if given and options.fully_sharded:
            what = f"{name} is for models that each process keeps whole, not for --strategy fsdp2"
            raise BadInput("ddpify", what, "leave one of them out")
    if options.resume and (style == "plain" or target == ONE_DEVICE):
        what = "--style plain" if style == "plain" else f"--target {ONE_DEVICE}"
        raise BadInput("ddpify", f"--resume is for the exact style, not for {what}", "leave one of them out")


def _refuse_contradictions(options: CommandLine) -> None:
    if options.output and options.diff:
        raise BadInput("ddpify", "--diff writes nothing, -o says where to", "leave one of them out")
    if options.output and options.check:
        raise BadInput("ddpify", "--check writes nothing, -o says where to", "leave one of them out")
    if not options.output or options.output == STDIN:
        several = options.output == STDIN and _several(options.paths)
    else:
        several = _several(options.paths)
        place = Path(options.output)
        if place.is_dir():
            raise BadInput(options.output, "is a folder", "give -o the name of a file")
        if not place.parent.is_dir():
            raise BadInput(options.output, f"no folder {str(place.parent)!r}", "make it first")
    if several:
        raise BadInput("ddpify", f"two outputs for one file, -o {options.output}", "give one script with -o")


def _several(paths: Sequence[str]) -> bool:
    return len({Path(path).resolve() for path in paths}) > 1 or any(Path(path).is_dir() for path in paths)


def _project_folder(first: str) -> Path:
    if first == STDIN:
        return Path.cwd()
    path = Path(first).absolute()
    return path if path.is_dir() else path.parent


def readers(inputs: Inputs) -> tuple[Load, Imports, Additions]:
    """What gives the source of a path, the local modules that it imports, and the folders that it puts on sys.path."""
    known: dict[tuple[Path, Path, bool], Sequence[Path]] = {}
    one = {path: path for path in inputs.sources}  # object for each path: comparing two takes long

    @cache
    def load(path: Path) -> Source:
        return inputs.sources.get(path) or files.read(path, shown(path))

    def imports(path: Path, root: Path, starts: bool) -> Sequence[Path]:
        at = path, root, starts
        if at not in known:
            try:
                known[at] = [one.setdefault(module, module) for module in imports_of(load(path), root, starts)]
            except BadInput:
                known[at] = []  # reading its program says what is wrong
        return known[at]

    @cache
    def added(path: Path) -> Sequence[Added]:
        try:
            return added_of(load(path))
        except BadInput:
            return []

    return load, imports, added


def _choose(inputs: Inputs, load: Load, imports: Imports, added: Additions) -> tuple[list[Program], list[FileReport]]:
    """The programs to convert, and reports of the rest: bad files, and named files with nothing to do."""
    entries = [FileReport(problem.path, "error", problem=problem) for problem in inputs.problems]
    if inputs.single:
        found = [program(path, imports, added) for path in inputs.named]
    else:
        found = find_programs(inputs.sources, imports, added)
    chosen = []

    def readable(path: Path) -> Source | None:
        try:
            return load(path)
        except BadInput:
            return None

    for candidate in found:
        source = load(candidate.entry)
        is_given = candidate.entry in inputs.named and source.path.exists()
        by = importer(source, readable, imports) if is_given else None
        if by:
            entries.append(FileReport(source.name, "nothing to do", f"a module of {shown(by)}, convert that"))
        elif skips_file(source.text):
            reason = "# ddpify: skip-file"
            entries.append(FileReport(source.name, "nothing to do", reason, silent=candidate.entry not in inputs.named))
        else:
            chosen.append(candidate)
    covered = {path for candidate in found for path in candidate.files}
    for path in inputs.named:
        if path not in covered:
            entries.append(FileReport(load(path).name, "nothing to do", "no training loop"))
    return chosen, entries


def _reason_to_leave(settings: Settings, source: Source) -> str:
    if skips_file(source.text):
        return "# ddpify: skip-file"
    return f"excluded in {settings.file}" if settings.excludes(source.path) else ""


def _write(options: CommandLine, outcomes: Sequence[Outcome]) -> bytes:
    """Write what may be written; return what belongs on standard output."""
    good = [outcome for outcome in outcomes if outcome.distributed or not outcome.failed]
    if options.diff or options.check:
        return b""
    if not options.destination:
        files.write_all({s.path: s.encode(code) for outcome in good for s, code in outcome.codes.items()})
        return b""
    if not good:
        return b""
    (outcome,) = good
    others = [source.name for source in outcome.codes if source is not outcome.entry]
    if others:
        what = f"{', '.join(others)} must change too: two outputs for one file"
        raise BadInput(outcome.entry.name, what, "convert it in place, or see --diff")
    code = outcome.entry.encode(outcome.codes.get(outcome.entry, outcome.entry.text))
    if options.destination == STDIN:
        return code
    _write_to(Path(options.destination), code, outcome.entry.path)
    return b""


def _write_to(place: Path, code: bytes, model: Path) -> None:
    if place.exists() and not place.is_file():  # /dev/null, a pipe: nothing to replace
        place.write_bytes(code)
    else:
        files.write_all({place: code}, stat.S_IMODE(model.stat().st_mode) if model.exists() else None)


def _launch(template: str, destination: str, device: str, outcome: Outcome) -> str:
    """The command that starts a converted script, with the option that lets it use GPUs, where it has one, and with
    the same hashes in all processes, where it puts a set into an order.

    Args:
        device: what the target's devices are called; "" for none.
    """
    results = outcome.converted.results
    template = results[outcome.entry.path].launch or template
    started = _started(template, destination, outcome.entry)
    if not started:
        return ""
    option = gpu_option([source.text for source in outcome.sources], device) if device else ""
    has_order = any(finding.rule == _SET_ORDER for result in results.values() for finding in result.findings)
    apart = "-- " if option and template.startswith("ddpify run") else ""  # its own options end there
    return f"{'PYTHONHASHSEED=0 ' if has_order else ''}{started} {apart}{option}".rstrip()


def _started(template: str, destination: str, entry: Source) -> str:
    name = destination or entry.name
    if name in (STDIN, "<stdin>"):
        return ""
    module = None if destination else started_as(entry.path, entry.text)
    if module is None:
        return template.format(module="", script=shlex.quote(name))
    folder, name = module
    found = "" if folder == Path.cwd() else f"PYTHONPATH={shlex.quote(os.path.relpath(folder))} "
    return found + template.format(module="-m ", script=name)
