"""Records what the script that this interpreter runs trains; Python imports it before the script.

It needs torch and nothing else; tensors of any device are copied to the CPU. Environment variables tell what to do:

DDPIFY_PRETEND  modules to be installed first
DDPIFY_RECORD   a folder. After each event one pickle is appended to `rank<RANK>.pkl` there, so that a process which
                crashes or is killed leaves all that it did. Events: see ddpify_recorder.recorder
DDPIFY_STEPS    end the process, as by sys.exit(0), after so many optimizer steps
DDPIFY_PLAIN    replace every optimizer by plain gradient descent with its learning rates
DDPIFY_NOISE    add normal noise to the gradients: so large, in units of the root mean square of all of them
DDPIFY_NOISE_SEED  which noise: 0, 1, …
DDPIFY_DROPOUT  "off" makes torch.nn.functional's dropouts do nothing
DDPIFY_NEUTRAL  let BatchNorm normalize each sample by itself, draw random numbers by sample, and none in steps
DDPIFY_UNIONS   a file with the batches that training loaders draw (ddpify_recorder.unions)
DDPIFY_SEED     where the random generators begin
DDPIFY_INPUTS   record what the samples are that modules are called with
DDPIFY_PROTECT  folders in which Python code may not write
DDPIFY_SCRATCH  with DDPIFY_PROTECT: the one in which it may, even if it lies in one of them
"""

from __future__ import annotations

import contextlib
import importlib
import os
import sys
from pathlib import Path


def _pretend(modules: list[str]) -> None:
    for module in modules:
        importlib.import_module(module).install()


def _protect(folders: list[str], scratch: str) -> None:
    from ddpify_recorder.protection import protect

    protect([os.path.realpath(folder) for folder in folders], os.path.realpath(scratch))


def _record(folder: Path) -> None:
    from ddpify_recorder.seeds import seed

    value = seed()

    from ddpify_recorder.start import start

    start(folder, value)


def _next_sitecustomize() -> None:
    """Import the sitecustomize that this one hides, if there is one."""
    here = str(Path(__file__).parent)
    sys.path[:] = [place for place in sys.path if place != here]
    own = sys.modules.pop(__name__)
    with contextlib.suppress(ImportError):
        importlib.import_module(__name__)
    sys.modules[__name__] = own


_pretend(os.environ.get("DDPIFY_PRETEND", "").split())
if "DDPIFY_PROTECT" in os.environ:
    _protect(os.environ["DDPIFY_PROTECT"].split(os.pathsep), os.environ["DDPIFY_SCRATCH"])
if "DDPIFY_RECORD" in os.environ:
    _record(Path(os.environ["DDPIFY_RECORD"]))
_next_sitecustomize()
