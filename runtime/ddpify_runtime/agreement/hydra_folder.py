"""The folder of a run of Hydra, which is named by the time at which a process comes to it: that of rank 0, for all."""

from __future__ import annotations

import sys
from datetime import datetime
from types import SimpleNamespace
from typing import Any

from ..sharding.collectives import broadcast_object


def agree() -> None:
    """Let `${now:…}` be one time on all ranks, where Hydra has been imported; collective."""
    utils: Any = sys.modules.get("hydra.core.utils")
    if utils is None:
        return
    begun = broadcast_object(datetime.now())
    if hasattr(utils, "datetime"):  # 1.3.8; before, `localtime`
        utils.datetime = SimpleNamespace(now=lambda: begun)
    if hasattr(utils, "localtime"):
        utils.localtime = begun.timetuple
