"""What a rank costs: CPU seconds of one rank against those of one process, beside hand-written DDP.

    python -m benchmarks.scaling [--ranks 2 8] [--workloads convolutions dropout] [--rounds 3]

Efficiency is CPU seconds of one process / (ranks x CPU seconds of one rank), user and system time of all threads, from
the second epoch on; the global batch is the same. CPU time rather than clock time, so that more ranks than cores can be
run. All ways of a workload run in turn, and the least of the rounds counts.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

from ddpify_codemods import convert

from .workloads import WORKLOADS, script

HERE = Path(__file__).parent


def seconds(source: str, ranks: int) -> float:
    """CPU seconds of the busiest rank, per epoch, after the first."""
    with tempfile.TemporaryDirectory() as folder:
        train = Path(folder, "train.py")
        train.write_text(source)
        paths = os.pathsep.join([str(HERE), os.environ.get("PYTHONPATH", "")])
        settings = {"METER": f"{folder}/rank", "OMP_NUM_THREADS": "1", "PYTHONPATH": paths}
        launcher = ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node", str(ranks)] if ranks else []
        done = subprocess.run(
            [sys.executable, *launcher, str(train)], env=os.environ | settings, capture_output=True, text=True
        )
        if done.returncode:
            raise SystemExit(done.stderr[-3000:])
        epochs = [json.loads(path.read_text()) for path in Path(folder).glob("rank*")]
    return max((each[-1] - each[1]) / (len(each) - 2) for each in epochs)


def converted(source: str) -> str:
    """The source, converted for cpu."""
    path = Path("train.py")
    result = convert({path: source}, "cpu")[path]
    refused = [finding.message for finding in result.findings if finding.severity == "refused"]
    if refused:
        raise SystemExit(f"refused: {refused}")
    return result.code


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--ranks", type=int, nargs="+", default=[2, 4, 8])
    parser.add_argument("--workloads", nargs="+", default=list(WORKLOADS), choices=WORKLOADS)
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    print(
        f"| workload | one process, CPU s per epoch | {' | '.join(f'{n} ranks: hand / ours' for n in options.ranks)} |"
    )
    print(f"|---|---|{'---|' * len(options.ranks)}")
    for name in options.workloads:
        plain, by_hand = script(name, by_hand=False), script(name, by_hand=True)
        ours = converted(plain)
        one = min(seconds(plain, 0) for _ in range(options.rounds))
        cells = []
        for ranks in options.ranks:
            pairs = [(seconds(by_hand, ranks), seconds(ours, ranks)) for _ in range(options.rounds)]
            hand, own = (one / ranks / min(pair[place] for pair in pairs) for place in (0, 1))
            cells.append(f"{hand:.2f} / {own:.2f} ({own / hand:.2f})")
        print(f"| {name} | {one:.2f} | {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    main()
