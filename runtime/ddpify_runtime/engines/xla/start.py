"""How the processes of an XLA run come to be: one for each device.

TPUs: the first process starts one for each chip of its machine through torch_xla.launch, and each of them runs the
script from its first line. So `python train.py` trains on all chips; on a pod, start it on every host. CPU devices and
Neuron cores: torchrun, or DDPIFY_NPROC. Variables as documented by torch_xla (PJRT_DEVICE, TPU_VISIBLE_CHIPS, …) and
torchrun; torch_xla reads them.
"""

from __future__ import annotations

import os
import runpy
import sys
from concurrent.futures.process import BrokenProcessPool
from typing import NoReturn

import torch.distributed as dist
import torch_xla
import torch_xla.runtime

from ...launch import environment, start
from ...torch_xla_internals import pjrt, tpu

_launched = False


def rendezvous() -> str | None:
    """The init_method by which this process finds the others; None for a process that trains alone.

    Does not return in a process that starts the others. Ends with one line and status 2 where PJRT_DEVICE names no
    device, or there are more processes than devices.
    """
    device = torch_xla.runtime.device_type()
    if device not in ("CPU", "TPU", "NEURON"):
        _stop(
            f"PJRT_DEVICE={os.environ.get('PJRT_DEVICE', '')!r} is no device of torch_xla {torch_xla.__version__}: "
            "set it to TPU, NEURON or CPU, or leave it unset"
        )
    if device == "TPU":
        return _on_tpu()
    start.start_processes()
    place = environment.join()
    if device == "CPU" and place.rank == 0:
        print(
            f"ddpify: XLA on {place.world_size} CPU device{'s' * (place.world_size > 1)}: for correctness, not speed",
            file=sys.stderr,
        )
    if place.world_size == 1:
        return None
    return "env://" if device == "CPU" else "xla://"


def _on_tpu() -> str | None:
    if _launched:
        if torch_xla.runtime.addressable_device_count() > 1:
            _stop("this TPU has two devices in a process (v2, v3); ddpify needs one: v4 or newer")
        return "xla://"
    chips = tpu.num_available_chips()
    wanted = os.environ.get("LOCAL_WORLD_SIZE") or os.environ.get("DDPIFY_NPROC") or str(tpu.num_local_processes())
    if not wanted.isdigit() or not 1 <= int(wanted) <= chips:
        _stop(f"{wanted} processes do not fit the {chips} TPU chips of this machine")
    if dist.is_torchelastic_launched():
        return "xla://"
    if wanted == "1":
        pjrt.initialize_singleprocess()
        return None
    if int(wanted) != tpu.num_local_processes():
        _stop(
            f"DDPIFY_NPROC={wanted}, but this TPU is set up for {tpu.num_local_processes()} processes: leave it out, "
            "or choose chips with TPU_VISIBLE_CHIPS and TPU_PROCESS_BOUNDS"
        )
    launch()


def _stop(reason: str) -> NoReturn:
    print(f"ddpify: {reason}", file=sys.stderr)
    raise SystemExit(2)


def launch() -> NoReturn:
    """Run this script again, from its first line, in one process for each device; exit with its status."""
    main = sys.modules["__main__"]
    spec = main.__spec__
    module = spec.name.removesuffix(".__main__") if spec is not None else ""
    # What multiprocessing would import again in each process, where it must run as __main__ rather than beside it.
    main.__spec__ = None
    vars(main).pop("__file__", None)
    sys.stdout.flush()
    sys.stderr.flush()
    try:
        torch_xla.launch(_run_script, args=(module, list(sys.argv)))
    except BrokenProcessPool:  # its process has said why
        raise SystemExit(1) from None
    raise SystemExit


def _run_script(index: int, module: str, arguments: list[str]) -> None:
    global _launched
    _launched = True
    sys.argv = arguments
    try:
        if module:
            runpy.run_module(module, run_name="__main__", alter_sys=True)
        else:
            sys.path[0] = os.path.dirname(os.path.abspath(arguments[0]))
            runpy.run_path(arguments[0], run_name="__main__")
    except Exception as error:  # noqa: BLE001  the others may wait for this process: its pool ends them when it is gone
        try:
            sys.excepthook(type(error), error, error.__traceback__)
        finally:
            os._exit(1)
