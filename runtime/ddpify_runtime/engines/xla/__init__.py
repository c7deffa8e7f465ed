"""All that is XLA's own: importing it readies torch_xla for what the rest of the runtime asks of an engine."""

from __future__ import annotations

import importlib.util
import sys

if importlib.util.find_spec("torch_xla") is None:
    print(
        "ddpify: this script was converted for XLA, and torch_xla is not installed: "
        "pip install torch==2.9.0 torch_xla==2.9.0 (on TPUs: torch_xla[tpu]==2.9.0)",
        file=sys.stderr,
    )
    raise SystemExit(2)

from . import settings as settings  # isort: skip
from . import corrected as corrected
from . import device_module as device_module
from . import failure as failure
from . import moves as moves
from . import tensor_types as tensor_types
from .engine import Engine

ENGINE = Engine()
