"""Runs at module level, with globals, and is run again by torch_xla.launch; exits with its argument."""

import sys

import ddpify_runtime.xla
import torch
import torch_xla
from ddpify_runtime.engines.xla import start

if not start._launched:
    start.launch()
CALLS = 0


class Net(torch.nn.Linear):
    pass


def call():
    global CALLS
    CALLS += 1


call()
call()
torch.save(Net(2, 2).to(torch_xla.device()), "net.pt")
print(__name__, sys.argv[1], CALLS)
if sys.argv[1] == "error":
    raise ValueError("as asked for")
sys.exit(int(sys.argv[1]))
