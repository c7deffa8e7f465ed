"""The targets: one record each, with all that the rules and the command ask of it. A new accelerator is one more.

No rule compares the name of a target. What a script says in the words of GPUs (`.cuda()`, "cuda:0",
`torch.cuda.is_available()`) stays where those are the target's own words. It becomes the same words of the target's
`module`, which are answered in the run; or, where torch has no such module, its `device`, and the answers that the
target gives while the script is read.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

from .plain_words import HOROVOD, IGNITE, TORCH, Words


@dataclass(frozen=True)
class Target:
    """What the converted source says for one kind of accelerator.

    name: the word after `--target`. aliases: what else people call it.
    backend: first argument of init_process_group. init_arguments: its further arguments, as source.
    device_type: as in torch.device, `tensor.device.type` and torch.autocast. device: the source of the expression that
        replaces a device string such as "cuda:0".
    module: what torch has for such devices, `torch.cuda` or a module with the same functions; "" for none.
    wrapper_arguments: arguments of ddpify_runtime's DistributedDataParallel after the module, as source.
    imports: names of ddpify_runtime that these expressions use. modules: import lines that the target needs; with a
        step or a seed one of ddpify_runtime, by which a converted file is known.
    launch: how to start the converted script with two processes; `{module}` is "-m " where it is started as a module.
        torchrun's options end at its `--`: else it takes the script's `--s` for an ambiguous one of its own.
    step: the call that ends each optimizer step. seed: the function that seeds the device after torch.manual_seed.
    loads_on_host: whether torch.load cannot restore tensors to the device. scales_gradients: whether GradScaler does
        something there. has_inference_mode: whether it knows torch.inference_mode.
    tensor_types: where the legacy types of its tensors are, as source, for `torch.cuda.FloatTensor`; "" for nowhere.
    lacking: how names of operations begin that it cannot run (a method with a dot before), and what is said of them.
    options: the options of the command that are for such targets alone. alternatives: this target with other backends.
    retargets: how programs that are distributed by hand already are moved to it: "backend", by naming another backend
        of torch and other devices; "own", by rules of its own; "", not at all.
    starts_itself: whether a converted script, started as one process, starts one for each device.
    shards_optimizers: whether each process is to keep a part of the optimizers' state. shards_models: and of the model.
    resume: the folder of checkpoints that the command asks for; "" for none.

    Of the plain style: plain_wrapper_arguments of torch's DistributedDataParallel; plain_moves_inputs: that which lets
    it move its inputs to the device, as nn.DataParallel does; may_stay_on_host: whether the script may be told to leave
    the model on the CPU, where it cannot. plain_backend: the source of the
    argument of torch's init_process_group, by default the backend. plain_environment: statements above it, for a
    launcher that does not set torchrun's variables; that of LOCAL_RANK only where it is read. synchronizes_batch_norm:
    whether torch.nn.SyncBatchNorm knows the device. plain_by_way_of: the target whose plain code is moved on to this.
    words: what it says to its engine. only_plain: whether there is no other style for it.
    """

    name: str
    backend: str
    device_type: str
    device: str
    aliases: tuple[str, ...] = ()
    module: str = ""
    init_arguments: str = ""
    wrapper_arguments: str = ""
    imports: tuple[str, ...] = ()
    modules: tuple[str, ...] = ()
    launch: str = "torchrun --standalone --nproc-per-node 2 {module}-- {script}"
    step: str = ""
    seed: str = ""
    loads_on_host: bool = False
    scales_gradients: bool = True
    has_inference_mode: bool = True
    tensor_types: str = ""
    lacking: tuple[tuple[str, str], ...] = ()
    options: tuple[str, ...] = ()
    alternatives: tuple[Target, ...] = ()
    retargets: Literal["", "backend", "own"] = ""
    starts_itself: bool = False
    shards_optimizers: bool = False
    shards_models: bool = False
    resume: str = ""
    plain_wrapper_arguments: str = ""
    plain_moves_inputs: str = ""
    may_stay_on_host: bool = False
    plain_backend: str = ""
    plain_environment: tuple[str, ...] = ()
    synchronizes_batch_norm: bool = False
    plain_by_way_of: str = ""
    words: Words = TORCH
    only_plain: bool = False

    @property
    def is_accelerator(self) -> bool:
        """Whether it has devices other than the CPU."""
        return self.device_type != "cpu"

    @property
    def has_cuda_words(self) -> bool:
        """Whether the words that scripts use for GPUs are its own."""
        return self.module == "torch.cuda"

    @property
    def renames(self) -> bool:
        """Whether each word for GPUs has one of its own, which the run answers as it answers those for GPUs."""
        return bool(self.module) and not self.has_cuda_words

    @property
    def names_device(self) -> bool:
        """Whether a string names its device, as "cuda" does."""
        return self.device == f'"{self.device_type}"'

    @property
    def device_object(self) -> str:
        """The source of a torch.device of its."""
        return f"torch.device({self.device})" if self.names_device else self.device

    @property
    def device_modules(self) -> tuple[str, ...]:
        """The import lines that its device needs where it is written."""
        return () if self.names_device else self.modules

    @property
    def plain_modules(self) -> tuple[str, ...]:
        """The import lines that the plain style needs."""
        return tuple(line for line in self.modules if not line.startswith("import ddpify_runtime"))

    @property
    def load_device(self) -> str:
        """The type of the device onto which torch.load puts tensors."""
        return "cpu" if self.loads_on_host else self.device_type

    @property
    def load_devices(self) -> str:
        """The `map_location` that leads what was saved from the first device to the own one; "" for no such devices."""
        if not self.is_accelerator or self.loads_on_host:
            return ""
        return f'{{"{self.device_type}:0": "{self.device_type}"}}'

    @property
    def backends(self) -> tuple[str, ...]:
        """The first arguments of init_process_group that stand for it."""
        return (self.backend, *(each.backend for each in self.alternatives))

    def with_backend(self, backend: str) -> Target:
        """The target with one of its backends; "" for the usual one."""
        return next((each for each in self.alternatives if each.backend == backend), self)

    @property
    def processes(self) -> str:
        """The source of the number of processes that a script starts itself; "" where its launcher has to."""
        if not self.starts_itself and (self.only_plain or not self.launch.startswith("torchrun")):
            return ""
        return f"{self.module}.device_count()" if self.module else "2"

    def on_host(self) -> Target:
        """The target for plain code that names no device: gloo sends what its model leaves on the CPU."""
        return replace(self.with_host(), plain_wrapper_arguments="", plain_moves_inputs="")

    def with_host(self) -> Target:
        """The target for plain code whose ranks agree on numbers of the host too, by gloo: no batch waits for a GPU."""
        return replace(self, plain_backend=f'"cpu:gloo,{self.device_type}:{self.backend}"')

    def by_choice(self) -> Target:
        """The target for plain code that is told in the run whether its model stays on the CPU."""
        return replace(self.with_host(), may_stay_on_host=True)

    @property
    def reduces_on_host(self) -> bool:
        """Whether its process group also takes tensors of the host."""
        return not self.is_accelerator or self.plain_backend.startswith('"cpu:')

    def starting_itself(self) -> Target:
        """The target whose scripts start their own processes."""
        arguments = ", ".join(filter(None, (self.init_arguments, f"nprocs={self.processes}")))
        modules = (*self.modules, "import torch") if self.module else self.modules
        launch = "python {module}{script}"
        return replace(self, starts_itself=True, init_arguments=arguments, modules=modules, launch=launch)


# The first stands for torch_xla.distributed.xla_backend, and says what to install where there is no torch_xla.
XLA_MODULES = ("import ddpify_runtime.xla", "import torch_xla")

# The wrapper's arguments on XLA for gradients that torch_xla reduces, without DistributedDataParallel.
NATIVE_REDUCTION = 'reduction="native"'

_CPU = Target(
    "cpu",
    "gloo",
    "cpu",
    '"cpu"',
    aliases=("gloo",),
    tensor_types="torch",
    options=("optimizer-sharding", "fully-sharded"),
    retargets="backend",
)
_CUDA = Target(
    "cuda",
    "nccl",
    "cuda",
    '"cuda"',
    aliases=("gpu", "nvidia", "nccl"),
    module="torch.cuda",
    wrapper_arguments="device_ids=[get_local_rank()]",
    imports=("get_local_rank",),
    tensor_types="torch.cuda",
    options=("sync-batchnorm", "optimizer-sharding", "fully-sharded"),
    retargets="backend",
    plain_moves_inputs="device_ids=[torch.cuda.current_device()]",
    synchronizes_batch_norm=True,
)
# PyTorch-Ignite's ignite.distributed, which finds its backend and its device in the run.
_IGNITE = Target(
    "ignite",
    "ignite",
    "cuda",
    '"cuda"',
    aliases=("idist", "pytorch-ignite"),
    module="torch.cuda",
    tensor_types="torch.cuda",
    options=("sync-batchnorm",),
    synchronizes_batch_norm=True,
    words=IGNITE,
    only_plain=True,
)
_XLA = Target(
    "xla",
    "xla",
    "xla",
    "torch_xla.device()",
    aliases=("tpu",),
    init_arguments='init_method="xla://"',
    wrapper_arguments="gradient_as_bucket_view=True",
    modules=XLA_MODULES,
    launch="ddpify run --target xla {module}{script}",
    step="torch_xla.sync()",
    seed="torch_xla.manual_seed",
    loads_on_host=True,
    scales_gradients=False,
    has_inference_mode=False,
    tensor_types="ddpify_runtime.xla",
    lacking=(
        ("torch.nn.utils.rnn.pack_", "torch_xla 2.9 has no packed sequences"),
        ("torch.sparse_", "torch_xla 2.9 has no sparse tensors"),
        ("torch.sparse.", "torch_xla 2.9 has no sparse tensors"),
        (".to_sparse", "torch_xla 2.9 has no sparse tensors"),
    ),
    options=("modernize", "xla-reduce"),
    retargets="own",
    plain_by_way_of="cuda",
)

_ONE_MACHINE = (
    'os.environ.setdefault("MASTER_ADDR", "127.0.0.1")',
    'os.environ.setdefault("MASTER_PORT", "29500")',
)
# torch 2.9 and newer has torch.xpu itself; Intel's extension, which older ones needed, refuses to be imported there.
_CCL_XPU = Target(
    "xpu",
    "ccl",
    "xpu",
    '"xpu"',
    module="torch.xpu",
    wrapper_arguments="device_ids=[get_local_rank()]",
    imports=("get_local_rank",),
    modules=("import oneccl_bindings_for_pytorch",),
    launch="mpirun -n 2 -l python {module}{script}",
    retargets="backend",
    plain_moves_inputs="device_ids=[torch.xpu.current_device()]",
    plain_environment=(  # what Intel MPI sets, where torch looks for torchrun's
        'os.environ.setdefault("RANK", os.environ.get("PMI_RANK", "0"))',
        'os.environ.setdefault("WORLD_SIZE", os.environ.get("PMI_SIZE", "1"))',
        'os.environ.setdefault("LOCAL_RANK", os.environ.get("MPI_LOCALRANKID", "0"))',
        *_ONE_MACHINE,
    ),
    synchronizes_batch_norm=True,
)
_XPU = replace(
    _CCL_XPU,
    backend="xccl",
    aliases=("intel", "xccl", "ccl"),
    modules=(),
    launch=Target.launch,
    options=("sync-batchnorm", "xpu-backend", "optimizer-sharding", "fully-sharded"),
    alternatives=(_CCL_XPU,),
    plain_environment=(),
)
_MPI = replace(
    _CPU,
    name="mpi",
    backend="mpi",
    aliases=("mpirun", "openmpi", "mpich"),
    launch="mpirun -np 2 python {module}{script}",
    plain_backend='"mpi" if dist.is_mpi_available() and not dist.is_torchelastic_launched() else "gloo"',
    plain_environment=(  # what MPICH and Intel MPI set, or Open MPI
        'os.environ.setdefault("RANK", os.environ.get("PMI_RANK", os.environ.get("OMPI_COMM_WORLD_RANK", "0")))',
        'os.environ.setdefault("WORLD_SIZE", os.environ.get("PMI_SIZE", os.environ.get("OMPI_COMM_WORLD_SIZE", "1")))',
        'os.environ.setdefault("LOCAL_RANK", os.environ.get("MPI_LOCALRANKID", '
        'os.environ.get("OMPI_COMM_WORLD_LOCAL_RANK", "0")))',
        *_ONE_MACHINE,
    ),
)

# Horovod carries tensors of GPUs and of the host: what a script says of GPUs stays, and without one it trains on CPUs.
_HOROVOD = replace(
    _CUDA,
    name="horovod",
    backend="horovod",
    aliases=("hvd", "horovodrun"),
    wrapper_arguments="",
    imports=(),
    launch="horovodrun -np 2 python {module}{script}",
    options=(),
    retargets="",
    synchronizes_batch_norm=False,
    words=HOROVOD,
)

TARGETS = {target.name: target for target in (_CPU, _CUDA, _HOROVOD, _IGNITE, _MPI, _XLA, _XPU)}


def of_backend(backend: str) -> Target | None:
    """The target for which a script is converted that joins a group of this backend, or of `cpu:gloo,cuda:nccl`."""
    backend = backend.rpartition(":")[2]
    return next((each.with_backend(backend) for each in TARGETS.values() if backend in each.backends), None)


def own_calls() -> set[str]:
    """The functions that conversions call in statements of their own, for one target or another."""
    return {name for each in TARGETS.values() for name in (each.step.partition("(")[0], each.seed) if name}


def own_devices() -> set[str]:
    """The expressions that conversions write for devices which no string names."""
    return {each.device for each in TARGETS.values() if not each.names_device}


def own_modules() -> set[str]:
    """The modules that conversions import for one target or another."""
    every = [record for each in TARGETS.values() for record in (each, *each.alternatives)]
    return {line.removeprefix("import ") for record in every for line in record.modules}
