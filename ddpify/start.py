"""`ddpify run SCRIPT`: start a converted script in several processes, which take the place of this one."""

from __future__ import annotations

import importlib.util
import os
import re
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import NoReturn

from ddpify import files
from ddpify.files import BadInput
from ddpify.modules import locate, started_as

# What a converted script says about its process group, and what that is called as a target.
_TARGETS = {"gloo": "cpu", "nccl": "cuda", "xla": "xla"}
_CONVERTED = re.compile(r"""\binit_process_group\(\s*(?:backend\s*=\s*)?["'](\w+)["']""")
_INSTALL = {
    "ddpify_runtime": "in a checkout of ddpify: pip install ./runtime",
    "torch": "pip install torch",
    "torch_xla": "pip install torch==2.9.0 torch_xla==2.9.0",
}


def run(script: str, arguments: Sequence[str], devices: int, target: str, module: bool = False) -> NoReturn:
    """Become the processes of a script; its status is that of this process.

    Args:
        script: a path, or what stands after `python -m` if it is a `module`. arguments: the script's own.
        devices: how many processes; 0 for one on each device that there is. target: cpu, cuda or xla; "" for that of
            the script.

    Raises:
        BadInput: the script cannot be started so.
    """
    path = locate(script) if module else Path(script)
    text = files.read(path, str(path)).text
    found = _CONVERTED.search(text)
    own = _TARGETS.get(found.group(1), "") if found else ""
    if "ddpify_runtime" not in text and "torch_xla.launch" not in text:
        raise BadInput(script, "is not converted", f"ddpify {path} --target {target or 'T'}")
    if target and own and target != own:
        raise BadInput(script, f"was converted for {own}, not for {target}", f"leave --target {target} out")
    needed = "torch_xla" if own == "xla" or "torch_xla" in text else "torch"
    for package in (needed, "ddpify_runtime"):
        if importlib.util.find_spec(package) is None:
            raise BadInput(script, f"needs {package}, which is not installed", _INSTALL[package])
    environment = dict(os.environ)
    if devices:
        environment["DDPIFY_NPROC"] = str(devices)
    elif own == "cuda":
        environment["DDPIFY_NPROC"] = str(_gpus())
    needs_module = None if module else started_as(path.resolve(), text)
    if needs_module:
        raise BadInput(script, "imports relatively to its package", f"ddpify run -m {needs_module[1]}")
    command = [sys.executable, *(["-m"] if module else []), script, *arguments]
    if "ddpify_runtime" not in text and devices:  # it starts its own processes, and on CPUs no more than one
        if module:
            raise BadInput(script, "-m with --devices is not for torch_xla.launch", f"python -m {script}")
        threads = ["-m", "ddpify_runtime.devtools.xla_threads", "--devices", str(devices)]
        command = [sys.executable, *threads, script, *arguments]
    sys.stdout.flush()
    os.execve(sys.executable, command, environment)


def _gpus() -> int:
    import torch

    return max(1, torch.cuda.device_count())
