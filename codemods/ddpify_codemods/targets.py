"""The targets: one record each. A new accelerator is one record more."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Target:
    """What the converted source says for one kind of accelerator.

    name: the word after `--target`. backend: first argument of init_process_group.
    init_arguments: further arguments of init_process_group, as source.
    device: the source of the expression that replaces a device string such as "cuda:0".
    wrapper_arguments: arguments of DistributedDataParallel after the module, as source.
    imports: names of ddpify_runtime that these expressions use. modules: import lines that they need.
    launch: how to start the converted script with two processes; `{module}` is "-m " where it is started as a module.
        torchrun's options end at its `--`: else it takes the script's `--s` for an ambiguous one of its own.
    """

    name: str
    backend: str
    device: str
    init_arguments: str = ""
    wrapper_arguments: str = ""
    imports: tuple[str, ...] = ()
    modules: tuple[str, ...] = ()
    launch: str = "torchrun --standalone --nproc-per-node 2 {module}-- {script}"


# The first stands for torch_xla.distributed.xla_backend, and says what to install where there is no torch_xla.
XLA_MODULES = ("import ddpify_runtime.xla", "import torch_xla")

TARGETS = {
    target.name: target
    for target in (
        Target("cpu", backend="gloo", device='"cpu"'),
        Target(
            "cuda",
            backend="nccl",
            device='"cuda"',
            wrapper_arguments="device_ids=[get_local_rank()]",
            imports=("get_local_rank",),
        ),
        Target(
            "xla",
            backend="xla",
            device="torch_xla.device()",
            init_arguments='init_method="xla://"',
            wrapper_arguments="gradient_as_bucket_view=True",
            modules=XLA_MODULES,
            launch="ddpify run --target xla {module}{script}",
        ),
    )
}
