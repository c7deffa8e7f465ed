"""`python -m ddpify_runtime.devtools.xla_threads --devices N train.py ARGS`: torch_xla.launch on N CPU devices.

The devices are those of XLA's CPU client, one thread of one process for each, and the process group is torch_xla's own
(ProcessGroupXla). Its collectives hang or abort there as torch_xla 2.9 ships them; xla_thread_collectives says why and
replaces them. This is to try a script: it shows that it is right, and is no faster than one device.

Nothing is changed in the script: torch_xla.launch starts one process, as on CPUs it always does, and that process
prepares torch_xla before it imports the script. Threads are not processes: see docs/retarget.md.
"""

from __future__ import annotations

import argparse
import importlib.util
import os
import runpy
import socket
import sys
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from importlib.machinery import ModuleSpec
from typing import Any

_SCRIPT = "DDPIFY_XLA_SCRIPT"  # tells the process that torch_xla.launch starts which file to import
_NAME = "ddpify_runtime.devtools.xla_threads"


def main(arguments: Sequence[str]) -> None:
    """Run a script whose torch_xla.launch gets several CPU devices.

    Args: the words after the name of this module. Exits with status 2 and one line for a wrong one.
    """
    parser = argparse.ArgumentParser(prog=f"python -m {_NAME}", description="Run a torch_xla script on CPU devices.")
    parser.add_argument("--devices", type=int, required=True, metavar="N", help="how many devices, one thread each")
    parser.add_argument("script", help="a script that calls torch_xla.launch")
    parser.add_argument("arguments", nargs=argparse.REMAINDER, help="its arguments")
    given = parser.parse_args(arguments)
    if given.devices < 1:
        parser.error(f"--devices {given.devices}: there must be at least one")
    if not os.path.isfile(given.script):
        parser.error(f"no such script: {given.script}")
    if importlib.util.find_spec("torch_xla") is None:
        parser.error("torch_xla is not installed: pip install torch==2.9.0 torch_xla==2.9.0")
    if os.environ.get("PJRT_DEVICE", "CPU") != "CPU":
        parser.error(f"PJRT_DEVICE={os.environ['PJRT_DEVICE']}: this is for CPUs; start the script itself on a TPU")
    print(f"ddpify: {given.devices} XLA devices on this CPU, for correctness, not for speed", file=sys.stderr)
    _set_environment(given.devices, given.script)
    _start_children_here()
    sys.argv = [given.script, *given.arguments]
    sys.path[0] = os.path.dirname(os.path.abspath(given.script))
    runpy.run_path(given.script, run_name="__main__")


def _set_environment(devices: int, script: str) -> None:
    """What the XLA runtime reads when it starts, in the process that torch_xla.launch makes."""
    threads = str(max(16, 4 * devices))  # every device can wait in a collective at the same time
    os.environ |= {"PJRT_DEVICE": "CPU", "CPU_NUM_DEVICES": str(devices), _SCRIPT: os.path.abspath(script)}
    os.environ.setdefault("PJRT_CPU_ASYNC_CLIENT", "false")  # waiting for a graph then means that it has run
    os.environ.setdefault("XLA_THREAD_POOL_SIZE", threads)
    os.environ.setdefault("NPROC", threads)
    if "MASTER_PORT" not in os.environ:  # torch_xla would take 12355, which two runs cannot have
        with socket.socket() as probe:
            probe.bind(("localhost", 0))
            os.environ["MASTER_PORT"] = str(probe.getsockname()[1])


def _start_children_here() -> None:
    """Let torch_xla.launch start a process that runs this module first, and the script from here."""
    from ddpify_runtime.torch_xla_internals import pjrt

    original = pjrt.run_multiprocess

    def run_multiprocess(function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        script = sys.modules["__main__"]
        before = script.__spec__
        script.__spec__ = ModuleSpec(_NAME, None)  # multiprocessing imports the main module by this name
        try:
            return original(function, *args, **kwargs)
        finally:
            script.__spec__ = before

    pjrt.run_multiprocess = run_multiprocess


def _become_the_script() -> None:
    """In the started process: prepare torch_xla, then import the script as multiprocessing would have done."""
    from ddpify_runtime.devtools import xla_thread_collectives
    from ddpify_runtime.torch_xla_internals import RUN_THREADS, pjrt

    xla_thread_collectives.install()
    setattr(pjrt, RUN_THREADS, _run_threads)
    globals().update(runpy.run_path(os.environ[_SCRIPT], run_name="__mp_main__"))


def _run_threads(
    local_rank: int, local_world_size: int, fn: Callable[[], Any], initializer_fn: Callable[[int, int], None]
) -> dict[int, Any]:
    """In the place of torch_xla's own; it also notices a rank that fails or ends while others wait for it.

    Returns what `fn` returned, by rank. Raises what a rank raised, the first one that did.
    """
    from torch_xla.core import xla_model

    from ddpify_runtime.devtools import xla_thread_collectives
    from ddpify_runtime.torch_xla_internals import make_current, ordinal

    initializer_fn(local_rank, local_world_size)
    devices = xla_model.get_xla_supported_devices()
    failures: list[BaseException] = []

    def work(rank: int, device: str) -> Any:
        make_current(device)
        try:
            xla_thread_collectives.prepare_thread(device)
            return fn()
        except BaseException as error:
            failures.append(error)
            raise
        finally:
            xla_thread_collectives.leave(rank)

    ranks = [ordinal(device) for device in devices]
    with ThreadPoolExecutor(max_workers=len(devices)) as pool:
        results: dict[int, Future[Any]] = {
            rank: pool.submit(work, rank, device) for rank, device in zip(ranks, devices, strict=True)
        }
    if failures:
        raise failures[0]
    return {rank: result.result() for rank, result in results.items()}


if __name__ == "__main__":
    main(sys.argv[1:])
elif __name__ == "__mp_main__" and _SCRIPT in os.environ:
    _become_the_script()
