"""`ddpify run SCRIPT`: start a converted script in several processes, by the launcher that is at hand or asked for."""

from __future__ import annotations

import importlib.util
import os
import re
import shlex
import shutil
import sys
from dataclasses import dataclass, replace
from pathlib import Path

from ddpify_codemods.plain_words import TORCH
from ddpify_codemods.targets import TARGETS, Target, of_backend

from ddpify import emit, files, launchers
from ddpify.config import did_you_mean
from ddpify.files import BadInput
from ddpify.launchers import LAUNCHERS, Job
from ddpify.modules import locate, started_as

_CONVERTED = re.compile(r"""\binit_process_group\(\s*(?:backend\s*=\s*)?["'](\w+)["']""")
_INSTALL = {
    "ddpify_runtime": "in a checkout of ddpify: pip install ./runtime",
    "torch": "pip install torch",
    "torch_xla": "pip install torch==2.9.0 torch_xla==2.9.0",
}
# With torch alone a script knows torchrun's variables, and no others.
_FOR_PLAIN = ("torchrun", "spawn", "python")


@dataclass(frozen=True)
class RunOptions:
    """The words of the command line.

    script: a path, or what stands after `python -m` if it is a `module`. arguments: the script's own. processes: on
    each machine; None if nothing was said. machines: "2", or "1:2" for least and most. hosts: "a:4,b:4". launcher,
    target: "" to find out. restarts: after a failure. extra: words for the launcher. emit: a form to print in place of
    a start.
    """

    script: str
    arguments: tuple[str, ...] = ()
    module: bool = False
    processes: int | None = None
    machines: str = ""
    hosts: str = ""
    launcher: str = ""
    target: str = ""
    restarts: int = 0
    extra: str = ""
    dry_run: bool = False
    emit: str = ""


@dataclass(frozen=True)
class _Script:
    """Whether a script imports the runtime, whether it is for XLA devices, its target ("" if it does not say), and
    whether it needs torchrun, also for one process: it asks for torchrun's variables, and starts none itself."""

    is_exact: bool
    is_xla: bool
    target: str
    needs_torchrun: bool = False


def run(options: RunOptions) -> int:
    """Start the processes, which take the place of this one, with their status; or print what was asked for.

    Returns 0 where nothing was to be started.

    Raises:
        BadInput: the script cannot be started so.
    """
    if options.processes == 0:
        raise BadInput("ddpify run", "0 processes train nothing", "--nproc 1, or leave it out")
    for word, known, kind in ((options.launcher, LAUNCHERS, "launcher"), (options.emit, emit.FORMS, "form to emit")):
        if word and word not in known:
            raise BadInput("ddpify run", f"no {kind} {word!r}{did_you_mean(word, known)}", f"one of {', '.join(known)}")
    script = _read(options, locate(options.script) if options.module else Path(options.script))
    job = _job(options, script)
    launcher = options.launcher or _choose(script, job)
    unsaid = options.processes is None and not options.machines and not options.hosts
    if launcher == "srun" and unsaid and "SLURM_JOB_ID" in os.environ:
        job = replace(job, processes=0)
    _require_fit(launcher, script, job, options)
    if options.emit:
        sys.stdout.write(emit.FORMS[options.emit](job, script.target, launcher))
        return 0
    settings = _settings(launcher, job, options)
    command = LAUNCHERS[launcher](job) if script.is_exact or launcher != "python" else _by_itself(script, job, options)
    launchers.require(command, launcher)
    shown = shlex.join([*(f"{name}={value}" for name, value in settings.items()), *command])
    if options.dry_run:
        print(shown)
        return 0
    needed = ["torch_xla" if script.is_xla else "torch"]
    if script.is_exact or launcher != "python":
        needed.append("ddpify_runtime")
    for package in needed:
        if importlib.util.find_spec(package) is None:
            raise BadInput(options.script, f"needs {package}, which is not installed", _INSTALL[package])
    print(f"ddpify: {shown}", file=sys.stderr, flush=True)
    start = command if launcher == "python" else [sys.executable, "-m", "ddpify_runtime.launch", *command]
    os.execve(sys.executable, start, os.environ | settings)


def _read(options: RunOptions, path: Path) -> _Script:
    text = files.read(path, str(path)).text
    found = _CONVERTED.search(text)
    converted = of_backend(found.group(1)) if found else _of_words(text)
    target = converted.name if converted else ""
    is_exact = "ddpify_runtime" in text
    if not (is_exact or found or converted or "torch_xla.launch" in text):
        raise BadInput(options.script, "is not converted", f"ddpify {path} --target {options.target or 'T'}")
    if options.target and target and options.target != target:
        what = f"was converted for {target}, not for {options.target}"
        raise BadInput(options.script, what, f"leave --target {options.target} out")
    needs_module = None if options.module else started_as(path.resolve(), text)
    if needs_module:
        raise BadInput(options.script, "imports relatively to its package", f"ddpify run -m {needs_module[1]}")
    is_xla = target == "xla" or "torch_xla" in text
    by_torch = bool(found) and bool(target) and not is_exact and not is_xla
    starts_itself = "torch.distributed.run" in text
    needs_torchrun = by_torch and not starts_itself and not TARGETS[target].plain_environment
    return _Script(is_exact, is_xla, target, needs_torchrun)


def _of_words(text: str) -> Target | None:
    """The target of a script that speaks to an engine in words of that engine's own."""
    own = (each for each in TARGETS.values() if each.words is not TORCH and each.words.imports[0] in text)
    return next((each for each in own if any(f"{join}(" in text for join in each.words.joined)), None)


def _own_launcher(script: _Script) -> str:
    """The launcher that a target asks for; "" where torchrun does, or another way to start it."""
    own = TARGETS[script.target].launch.split()[0] if script.target else ""
    return own if own in LAUNCHERS and own != "torchrun" else ""


def _job(options: RunOptions, script: _Script) -> Job:
    given = re.fullmatch(r"([1-9]\d*)(?::([1-9]\d*))?", options.machines or "1")
    least, most = (int(given[1]), int(given[2] or given[1])) if given else (1, 0)
    if least > most:
        raise BadInput("ddpify run", f"--nnodes {options.machines}", "--nnodes 2, or --nnodes 1:2, least and most")
    processes = options.processes
    if processes is None:
        module = TARGETS[script.target].module if script.target else ""
        processes = _devices(module) if module and not options.emit else 1
    hosts = tuple(_host(word, processes) for word in options.hosts.split(",")) if options.hosts else ()
    if hosts:
        processes = hosts[0][1]
        least, most = (least, most) if options.machines else (len(hosts), len(hosts))
    words = (*(("-m",) if options.module else ()), options.script, *options.arguments)
    return Job(words, processes, (least, most), hosts, options.restarts, tuple(shlex.split(options.extra)))


def _host(word: str, processes: int) -> tuple[str, int]:
    name, _, count = word.partition(":")
    if not name or (count and not (count.isdigit() and int(count))):
        raise BadInput("ddpify run", f"--hosts: {word!r} is no host", "--hosts node1:4,node2:4")
    return name, int(count or processes)


def _choose(script: _Script, job: Job) -> str:
    """The launcher at hand: Slurm's where this is an allocation of it, none for one process, else torchrun.

    For XLA devices it is the script itself, which starts a process for each; a target may have one of its own.
    """
    if script.is_xla:
        return "python"
    if _own_launcher(script) and (job.total > 1 or job.is_elastic):
        return _own_launcher(script)
    if "SLURM_JOB_ID" in os.environ and "SLURM_STEP_ID" not in os.environ and script.is_exact and shutil.which("srun"):
        return "srun"
    return "torchrun" if job.total > 1 or job.is_elastic or script.needs_torchrun else "python"


def _require_fit(launcher: str, script: _Script, job: Job, options: RunOptions) -> None:
    what, remedy = "", "--launcher torchrun"
    if script.is_xla and launcher != "python":
        what, remedy = f"is for XLA devices, which {launcher} does not start", "leave --launcher out"
    elif _own_launcher(script) and launcher in ("torchrun", "spawn"):
        what, remedy = f"is started by {_own_launcher(script)}, not by {launcher}", "leave --launcher out"
    elif not script.is_exact and launcher not in (*_FOR_PLAIN, _own_launcher(script)):
        what, remedy = f"uses torch alone, which does not know {launcher}'s variables", "--launcher torchrun"
    elif script.needs_torchrun and launcher == "python":
        what = "asks for variables that torchrun sets, which python alone does not"
    elif job.is_elastic and launcher != "torchrun":
        what = f"{launcher} does not start processes again"
    elif job.machines[1] > 1 and launcher in ("spawn", "python"):
        what = f"{launcher} starts processes on this machine only"
    elif job.machines[1] > 1 and not job.hosts and not options.emit and launcher != "srun":
        what, remedy = f"{launcher} needs the names of {job.machines[1]} machines", "--hosts node1,node2"
    elif launcher == "torchrun" and len({count for _, count in job.hosts}) > 1:
        what, remedy = "torchrun starts as many processes on each machine", "--nproc N, and --hosts without numbers"
    elif job.extra and launcher in ("spawn", "python"):
        what, remedy = f"{launcher} knows no options", "leave --launcher-args out"
    elif job.is_elastic and options.emit:
        what, remedy = f"--emit {options.emit} is for a number of machines that stays", "--nnodes N"
    if what:
        raise BadInput(options.script, what, remedy)


def _settings(launcher: str, job: Job, options: RunOptions) -> dict[str, str]:
    """What goes into the environment: each process's share of the cores (HAZARDS P11), and a way around a bug of torch.

    torch 2.13: where machines join later, rank 0 keeps the address of the first meeting and never says the next.
    """
    if launcher == "python":
        return {} if options.processes is None else {"DDPIFY_NPROC": str(options.processes)}
    settings = {"TORCH_DISABLE_SHARE_RDZV_TCP_STORE": "1"} if job.is_elastic else {}
    if "OMP_NUM_THREADS" not in os.environ:
        most = max([count for _, count in job.hosts], default=job.processes)
        cores = (
            os.environ.get("SLURM_CPUS_PER_TASK", "1") if launcher == "srun" else len(os.sched_getaffinity(0)) // most
        )
        settings["OMP_NUM_THREADS"] = str(cores or 1)
    return settings


def _by_itself(script: _Script, job: Job, options: RunOptions) -> list[str]:
    """A script with torch or torch_xla alone: torch_xla.launch starts no more than one process on CPUs."""
    if options.processes is None or not script.is_xla:
        return LAUNCHERS["python"](job)
    if options.module:
        raise BadInput(options.script, "-m with --nproc is not for torch_xla.launch", f"python -m {options.script}")
    threads = ["-m", "ddpify_runtime.devtools.xla_threads", "--devices", str(options.processes)]
    return [sys.executable, *threads, *job.script]


def _devices(module: str) -> int:
    """How many devices this machine has: those of `torch.cuda`, or of another such module."""
    import torch

    return max(1, int(getattr(torch, module.removeprefix("torch.")).device_count()))
