"""One line for an operation that XLA devices do not have, in place of a long traceback with a list of kernels."""

from __future__ import annotations

import os
import sys
import traceback
from pathlib import Path
from types import TracebackType

import torch
import torch.distributed as dist
import torch_xla

from ...agreement import standard_streams
from ...launch import failures

_LACKING = (
    "Could not run 'aten::",  # no kernel
    "its data is not allocated yet",  # a kernel that reads memory, such as packed sequences
    "Cannot access data pointer of Tensor that doesn't have storage",  # the same, in an extension
    "UNIMPLEMENTED: ",  # the compiler's word
)
_NEEDS_GPU = ("not compiled with CUDA enabled", "Found no NVIDIA driver", "No CUDA GPUs are available")
_LIBRARIES = (str(Path(__file__).parents[2]) + os.sep, str(Path(torch.__file__).parents[1]) + os.sep)


def reason(error: BaseException, trace: TracebackType | None) -> str:
    """What the script asks of XLA that it cannot do, and where; "" for any other error."""
    text = str(error)
    if any(words in text for words in _NEEDS_GPU):
        what = "this needs an NVIDIA GPU"
    elif any(words in text for words in _LACKING):
        what = f"torch_xla {torch_xla.__version__} cannot do this on its devices"
    else:
        return ""
    frames = [frame for frame in traceback.extract_tb(trace) if not frame.filename.startswith(_LIBRARIES)]
    place = f"{frames[-1].filename}:{frames[-1].lineno}: " if frames else ""
    line = f" ({frames[-1].line})" if frames and frames[-1].line else ""
    first = text.splitlines()[0].split(". ")[0].rstrip(".")
    return f"{place}{what}{line}: {first}. Do it on the CPU, or convert with --target cuda or cpu"


def report(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
    """As sys.excepthook: an error that no `except` has met. Ends the process with status 2 where there is a reason."""
    said = reason(error, trace)
    if not said:
        sys.__excepthook__(kind, error, trace)
        return
    failures.record(dist.get_rank() if dist.is_initialized() else 0, said)
    print(f"ddpify: {said}", file=standard_streams.STDERR, flush=True)
    raise SystemExit(2)


if sys.excepthook is sys.__excepthook__:
    sys.excepthook = report
