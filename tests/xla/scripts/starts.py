"""Prints how a run would be started on a TPU with 4 chips, in the environment that it finds itself in."""

import torch_xla.runtime
from ddpify_runtime.engines.xla import start

start.torch_xla.runtime.device_type = lambda: "TPU"
start.torch_xla.runtime.addressable_device_count = lambda: 1
start.tpu.num_available_chips = lambda: 4
start.pjrt.initialize_singleprocess = lambda: None
start.launch = lambda: print("launch")
print(start.rendezvous())
start._launched = True
print(start.rendezvous())
