"""What DDPIFY_CHECK=1 costs: seconds of a converted training on two gloo processes, with and without it.

    python -m benchmarks.check

A multilayer perceptron of 1.3 million parameters and batches of 64: little work for each step, so that the share of the
check is large. Both are run several times in turn; the least counts. Timed are 200 steps after the first 20.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

ROUNDS = 3
SCRIPT = """\
import time
import torch
from torch import nn
from torch.utils.data import TensorDataset
from ddpify_runtime import DataLoader, DistributedDataParallel, destroy_process_group, init_process_group

init_process_group("gloo")
torch.manual_seed(0)
data = TensorDataset(torch.randn(64 * 220, 256), torch.randint(10, (64 * 220,)))
loader = DataLoader(data, batch_size=64, shuffle=True)
model = nn.Sequential(nn.Linear(256, 1024), nn.ReLU(), nn.Linear(1024, 1024), nn.ReLU(), nn.Linear(1024, 10))
model = DistributedDataParallel(model)
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
for step, (x, y) in enumerate(loader):
    if step == 20:
        begin = time.perf_counter()
    optimizer.zero_grad()
    nn.functional.cross_entropy(model(x), y).backward()
    optimizer.step()
print(time.perf_counter() - begin)
destroy_process_group()
"""


def seconds(script: Path, check: str) -> float:
    """The seconds of 200 steps."""
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2", str(script)]
    done = subprocess.run(
        command, env={**os.environ, "DDPIFY_CHECK": check, "OMP_NUM_THREADS": "1"}, capture_output=True, check=True
    )
    return float(done.stdout)


def main() -> None:
    """Measure and print."""
    with tempfile.TemporaryDirectory() as folder:
        script = Path(folder, "train.py")
        script.write_text(SCRIPT)
        pairs = [(seconds(script, "0"), seconds(script, "1")) for _ in range(ROUNDS)]
    without, with_check = (min(pair[place] for pair in pairs) for place in (0, 1))
    print(
        f"200 steps without {without:.2f} s, with DDPIFY_CHECK=1 {with_check:.2f} s: {with_check / without:.3f} times"
    )


if __name__ == "__main__":
    main()
