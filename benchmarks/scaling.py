"""What a rank costs: CPU seconds of one process against those of the ranks, beside hand-written DDP and frameworks.

    python -m benchmarks.scaling [--ranks 1,2,4,8] [--workloads "GAN;dropout"] [--rounds 3] [--instructions]

Efficiency is CPU seconds of one process / (ranks x CPU seconds of one rank), user and system time of all threads, from
the second epoch on; the global batch is the same. CPU time rather than clock time, so that more ranks than cores can be
run. All ways of a workload run in turn, and the least of the rounds counts. Frameworks are measured where they are
installed (`pip install -e '.[benchmarks]'`).

With --instructions the user instructions of a rank are counted instead, with its threads and workers, which a busy
machine hardly changes: one round will do. Only the system's part of the work is left out.

With --device cuda it is seconds by the clock, over NCCL, beside hand-written DDP. Where there are fewer GPUs than ranks
all ranks share the first one: then the ratios say what the host does, but nothing of how well more GPUs are used.

It takes long: a run of 8 ranks on two cores imports torch eight times. How long all of it will take is said on standard
error after each cell; on two idle cores a round of all workloads takes about an hour at 1, 2, 4 and 8 ranks.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import socket
import subprocess
import sys
import tempfile
import time
from importlib.util import find_spec
from pathlib import Path

import torch
from ddpify_codemods import convert

from .workloads import WORKLOADS, script

HERE = Path(__file__).parent
LIMIT = 1800  # seconds for one run
STYLES = ["exact", "plain"]
UNITS = {"CPU seconds": "CPU s", "instructions": "10^9 instructions", "seconds": "s"}
FRAMEWORKS = {"accelerate": "accelerate", "fabric": "lightning_fabric"}


class Failed(Exception):
    """A run that ended with an error; its last lines."""


def used(source: str, ranks: int, unit: str, shared: bool = False) -> float:
    """What the busiest rank used per epoch, after the first.

    Args:
        ranks: 0 for one process without a launcher. unit: one of UNITS. shared: whether all ranks use the first GPU.

    Raises:
        Failed: the script did not run.
    """
    with tempfile.TemporaryDirectory() as folder:
        train = Path(folder, "train.py")
        train.write_text(source)
        paths = os.pathsep.join([str(HERE), os.environ.get("PYTHONPATH", "")])
        settings = {"METER": f"{folder}/rank", "METER_COUNTS": unit, "OMP_NUM_THREADS": "1", "PYTHONPATH": paths}
        runs = []
        with contextlib.ExitStack() as ends:
            for launcher, more in _launchers(ranks, shared):
                errors = ends.enter_context(tempfile.TemporaryFile("w+"))
                command = [sys.executable, *launcher, str(train)]
                environment = os.environ | settings | more
                run = subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL, stderr=errors)
                ends.callback(run.kill)
                runs.append((run, errors))
            for run, errors in runs:
                try:
                    code = run.wait(LIMIT)
                except subprocess.TimeoutExpired:
                    raise Failed(f"it ran for more than {LIMIT} s") from None
                if code:
                    errors.seek(0)
                    raise Failed(errors.read()[-3000:])
        epochs = [json.loads(path.read_text()) for path in Path(folder).glob("rank*")]
    return max(float(each[-1] - each[1]) / (len(each) - 2) for each in epochs)


def _launchers(ranks: int, shared: bool) -> list[tuple[list[str], dict[str, str]]]:
    """What stands between the interpreter and the script, and its variables, for each process to be started.

    NCCL refuses two ranks of one machine on one GPU. So each has a launcher of its own, as on as many machines, whose
    names are told apart by NCCL_HOSTID.
    """
    torchrun = ["-m", "torch.distributed.run"]
    if not shared:
        return [([*torchrun, "--standalone", "--nproc-per-node", str(ranks)] if ranks else [], {})]
    with socket.socket() as probe:
        probe.bind(("localhost", 0))
        port = probe.getsockname()[1]
    words = [*torchrun, "--nnodes", str(ranks), "--master-addr", "localhost", "--master-port", str(port), "--node-rank"]
    network = {"NCCL_SOCKET_IFNAME": "lo", "GLOO_SOCKET_IFNAME": "lo"}
    return [([*words, str(rank)], {**network, "NCCL_HOSTID": f"machine{rank}"}) for rank in range(ranks)]


def converted(source: str, style: str, target: str) -> str:
    """The source, converted for a target in a style, exact or plain.

    Raises:
        Failed: it is refused.
    """
    path = Path("train.py")
    result = convert({path: source}, target, style=style)[path]
    refused = [finding.message for finding in result.findings if finding.severity == "refused"]
    if refused:
        raise Failed(f"refused: {refused}")
    return result.code


def sources_of(name: str, ways: list[str], device: str) -> dict[str, str]:
    """The script of a workload in each way; one that a style refuses is said, and left out."""
    sources = {}
    for way in ways:
        try:
            one = script(name, "one", device)
            sources[way] = converted(one, way, device) if way in STYLES else script(name, way, device)
        except Failed as error:
            print(f"{name}, {way}: {error}", file=sys.stderr, flush=True)
    return sources


def least(sources: dict[str, str], ranks: int, rounds: int, unit: str, shared: bool = False) -> dict[str, float]:
    """The least that each way has used, all run in turn; a way that fails is said, and left out."""
    found: dict[str, float] = {}
    failed: set[str] = set()
    for _ in range(rounds):
        for way, source in sources.items():
            if way in failed:
                continue
            try:
                found[way] = min(used(source, ranks, unit, shared), found.get(way, float("inf")))
            except Failed as error:
                failed.add(way)
                found.pop(way, None)
                print(f"{way} failed on {ranks} ranks: {error}", file=sys.stderr, flush=True)
    return found


def cell(one: float, found: dict[str, float], ways: list[str], ranks: int) -> str:
    """The efficiency of each way, and both styles beside the hand-written one."""
    efficiency = {way: one / ranks / each for way, each in found.items()}
    shown = " / ".join(f"{efficiency[way]:.2f}" if way in efficiency else "-" for way in ways)
    if "hand" not in efficiency:
        return shown
    beside = [f"{efficiency[way] / efficiency['hand']:.2f}" if way in efficiency else "-" for way in STYLES]
    return f"{shown} ({', '.join(beside)})"


def instructions_are_not_counted() -> str:
    """Why, in a line; "" where they are."""
    environment = os.environ | {"METER": os.devnull, "METER_COUNTS": "instructions"}
    tried = subprocess.run([sys.executable, "meter.py"], cwd=HERE, env=environment, capture_output=True, text=True)
    return tried.stderr.strip().rpartition("\n")[2] if tried.returncode else ""


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--ranks", default="1,2,4,8", help="how many, with commas between")
    parser.add_argument("--workloads", default=";".join(WORKLOADS), help="which, with semicolons between")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--instructions", action="store_true", help="count these rather than CPU seconds (Linux)")
    parser.add_argument("--device", choices=["cpu", "cuda"], default="cpu")
    options = parser.parse_args()
    unit = "seconds" if options.device == "cuda" else "instructions" if options.instructions else "CPU seconds"
    if options.instructions and (why := instructions_are_not_counted()):
        parser.error(f"--instructions: {why}")
    gpus = torch.cuda.device_count() if options.device == "cuda" else 0
    ranks, names = [int(each) for each in options.ranks.split(",")], options.workloads.split(";")
    if unknown := set(names) - set(WORKLOADS):
        parser.error(f"no workload {', '.join(sorted(unknown))}; there are {', '.join(WORKLOADS)}")
    frameworks = [way for way, package in FRAMEWORKS.items() if options.device == "cpu" and find_spec(package)]
    ways = ["hand", *STYLES, *frameworks]
    start, cells = time.monotonic(), 0
    rows = []
    for name in names:
        sources = sources_of(name, ways, options.device)
        alone = least({"one": script(name, "one", options.device)}, 0, options.rounds, unit)
        if "one" not in alone:
            continue
        one = alone["one"]
        row = []
        for count in ranks:
            shared = options.device == "cuda" and count > gpus
            row.append(cell(one, least(sources, count, options.rounds, unit, shared), ways, count))
            cells += 1
            took = (time.monotonic() - start) / 60
            left = took / cells * (len(names) * len(ranks) - cells)
            print(
                f"{name}, {count} ranks: {row[-1]}; {took:.0f} min, about {left:.0f} to go", file=sys.stderr, flush=True
            )
        rows.append(f"| {name} | {one:.2f} | {' | '.join(row)} |")
    print(f"Efficiency: {' / '.join(ways)} ({', '.join(STYLES)} / hand); the least of {options.rounds} rounds.\n")
    print(f"| | one process, {UNITS[unit]} per epoch | {' | '.join(f'{count} ranks' for count in ranks)} |")
    print("|---|---|" + "---|" * len(ranks))
    print("\n".join(rows))


if __name__ == "__main__":
    main()
