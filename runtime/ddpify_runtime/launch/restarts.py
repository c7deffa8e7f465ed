"""Where the ranks meet that torchrun has started again (--max-restarts): a part of its store that is theirs alone.

torch 2.13 (`_create_c10d_store` in distributed/rendezvous.py) takes for granted that each start has a new store, but
the ranks are given torchrun's own, in which the addresses of those that died still are: of six restarts over gloo three
ended with "Connection refused", and one hung. With several torchruns the counts of restarts need not be the same;
there TORCH_DISABLE_SHARE_RDZV_TCP_STORE=1, which `ddpify run` sets, is the way round it.
"""

from __future__ import annotations

import os
from collections.abc import Mapping

from torch.distributed import PrefixStore, Store, TCPStore  # type: ignore[attr-defined]


def store(environ: Mapping[str, str] = os.environ) -> Store | None:
    """The store for this start; None for the one that torch finds by itself."""
    restarts = environ.get("TORCHELASTIC_RESTART_COUNT", "0")
    shared = environ.get("TORCHELASTIC_USE_AGENT_STORE") == "True" and environ.get("GROUP_WORLD_SIZE") == "1"
    if restarts == "0" or not shared:
        return None
    address, port = environ["MASTER_ADDR"], int(environ["MASTER_PORT"])
    return PrefixStore(f"restart {restarts}", TCPStore(address, port, is_master=False))
