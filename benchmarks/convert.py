"""What a conversion costs: CPU seconds of fresh processes, beside that of importing libcst.

    python -m benchmarks.convert

A script of 500 lines is converted, checked when it is converted already, and `--help` is asked for. The share of
libcst's own import is printed, since that is the floor: whatever rewrites with libcst has to import it.
"""

from __future__ import annotations

import resource
import subprocess
import sys
import tempfile
from pathlib import Path

ROUNDS = 5
LINES = 500
HEAD = """\
import os

import torch
from torch import nn, optim
from torch.utils.data import DataLoader
from torchvision import datasets


"""
BLOCK = '''\
class Block{number}(nn.Module):
    """A residual block."""

    def __init__(self, width=64):
        super().__init__()
        self.first = nn.Conv2d(width, width, kernel_size=3, padding=1)  # same size
        self.second = nn.Conv2d(width, width, kernel_size=3, padding=1)
        self.norm = nn.BatchNorm2d(width)

    def forward(self, x):
        hidden = torch.relu(self.norm(self.first(x)))
        return x + torch.relu(self.second(hidden))


'''
TAIL = """\
def main():
    os.makedirs("out", exist_ok=True)
    device = torch.device("cuda:0" if torch.cuda.is_available() else "cpu")
    model = Block0().to(device)
    optimizer = optim.SGD(model.parameters(), lr=0.1)
    loader = DataLoader(datasets.FakeData(), batch_size=64, shuffle=True)
    for epoch in range(10):
        for x, y in loader:
            optimizer.zero_grad()
            loss = nn.functional.cross_entropy(model(x.to(device)), y.to(device))
            loss.backward()
            optimizer.step()
        torch.save(model.state_dict(), f"out/{epoch}.pt")


if __name__ == "__main__":
    main()
"""


def script() -> str:
    """A training script of about 500 lines."""
    text, number = HEAD + TAIL, 0
    while text.count("\n") < LINES:
        number += 1
        text = HEAD + "".join(BLOCK.format(number=each) for each in range(number)) + TAIL
    return text


def seconds(*command: str) -> float:
    """The CPU seconds of a fresh Python: the least of several rounds."""
    times = []
    for _ in range(ROUNDS):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        subprocess.run([sys.executable, *command], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        times.append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
    return min(times)


def main() -> None:
    """Measure and print."""
    with tempfile.TemporaryDirectory() as folder:
        before, after = Path(folder, "before.py"), Path(folder, "after.py")
        before.write_text(script())
        convert = (
            "import sys, pathlib\nfrom ddpify_codemods import convert\n"
            "path = pathlib.Path(sys.argv[1])\n"
            "pathlib.Path(sys.argv[2]).write_text(convert({path: path.read_text()}, 'cuda')[path].code)\n"
        )
        floor = seconds("-c", "import libcst")
        print(f"{'import libcst':<28}{floor:6.2f} s")
        for name, command in (
            ("python", ("-c", "")),
            (f"convert() of {LINES} lines", ("-c", convert, str(before), str(after))),
            ("ddpify, to convert", ("-m", "ddpify", str(before), "--target", "cuda", "--diff")),
            ("ddpify --check, converted", ("-m", "ddpify", str(after), "--target", "cuda", "--check")),
            ("ddpify --help", ("-m", "ddpify", "--help")),
        ):
            taken = seconds(*command)
            print(f"{name:<28}{taken:6.2f} s  {taken / floor:5.2f} x import libcst")


if __name__ == "__main__":
    main()
