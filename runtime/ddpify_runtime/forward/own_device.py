"""A model on the device of another process: that device's number came from settings, or from the command line."""

from __future__ import annotations

from torch import nn

from .. import accelerators
from ..agreement import failure


def require_own_device(module: nn.Module) -> None:
    """End this process with one line, where a module is on a device of another one; NCCL would say less, or hang.

    Args:
        module: what is divided. Its first parameter stands for all.
    """
    parameter = next(iter(module.parameters()), None)
    kind = None if parameter is None else accelerators.module_of(parameter.device.type)
    if parameter is None or kind is None:
        return
    device, own = parameter.device, kind.current_device()
    if device.index != own:
        failure.leave(
            f"a model is on {device}, and the device of this process is {device.type}:{own}: the number comes from a "
            f"settings file, the command line or an environment variable; say `{device.type}` there"
        )
