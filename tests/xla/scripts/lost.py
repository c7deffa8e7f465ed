"""Rank 1 goes away ("gone") or does something else ("elsewhere") while rank 0 trains."""

import os
import sys
import time
from datetime import timedelta

import ddpify_runtime.engines.xla.process_group
import torch
import torch.distributed as dist
import torch_xla
from ddpify_runtime import get_rank, init_process_group

ddpify_runtime.engines.xla.process_group.LIMIT = timedelta(seconds=5)
init_process_group("xla", init_method="xla://")
value = torch.ones(2).to(torch_xla.device())
dist.all_reduce(value)
print(value.tolist(), flush=True)
if get_rank() == 1:
    if sys.argv[1] == "gone":
        os._exit(5)
    time.sleep(300)
dist.all_reduce(value)
