"""What the rules of the plain style say to an engine: torch.distributed, or another one's words for the same."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Words:
    """The words of one engine, as source.

    name: of the engine. imports: the lines of import that the others need. rank, world_size: expressions. barrier: a
    statement. all_reduce, broadcast: statements that sum a tensor over the processes, or take that of rank 0, under the
    name of it, `{0}`. of_rank_0: statements of a function that returns what rank 0 has as `value`. join: the statement
    that joins the processes, with the source of the backend for `{0}`. leave: the statement that leaves them.

    What an engine has where torch has nothing of its own: prepare: statements before processes are joined. parallel:
    those that run a function, `{0}`, in all processes. flags: what the command takes for that. device: the device of
    this process, wherever a tensor is put for it. loader, optimizer: what makes a loader that divides its batches, or
    wraps an optimizer `{}`. model, synchronized: what wraps a model with arguments `{}`, and the argument for
    BatchNorm. may_not_wrap: whether that may be the model itself. replicas: arguments of DistributedSampler.
    has_sampler: the test whether a loader has one. first: what lets rank 0 go first. joins: the functions by which a
    program is known. differs: what is not as in one process, and what to do about it. averaging: what an optimizer
    `{}` of `{model}` is wrapped in, where that averages gradients in place of a wrapper of the model. parameters: the
    statement that then gives all processes the model `{0}` of rank 0. pin: statements that take this process's device
    once it has joined. on_host_too: whether its processes compute on the
    host where they have no such device. all_reduce_max: all_reduce, of the largest.
    """

    name: str
    imports: tuple[str, ...]
    rank: str
    world_size: str
    barrier: str
    all_reduce: str
    broadcast: str
    of_rank_0: tuple[str, ...]
    join: str
    leave: str
    joins: tuple[str, ...]
    all_gather: tuple[str, ...] = ()
    prepare: tuple[str, ...] = ()
    parallel: tuple[str, ...] = ()
    flags: tuple[str, ...] = ()
    device: str = ""
    loader: str = ""
    optimizer: str = ""
    model: str = "DistributedDataParallel({})"
    synchronized: str = ""
    may_not_wrap: bool = False
    replicas: str = ""
    has_sampler: str = ""
    first: str = ""
    differs: tuple[tuple[str, str], ...] = ()
    averaging: str = ""
    parameters: str = ""
    pin: tuple[str, ...] = ()
    on_host_too: bool = False
    all_reduce_max: str = ""

    @property
    def joined(self) -> tuple[str, ...]:
        """The functions by which a program is known, as it calls them: `hvd.init`."""
        alias = self.imports[0].rpartition(" ")[2]
        return tuple(f"{alias}.{name.rpartition('.')[2]}" for name in self.joins)

    @property
    def is_rank_0(self) -> str:
        """The test for what rank 0 alone does."""
        return f"{self.rank} == 0"

    @property
    def shard(self) -> str:
        """The samples of this rank out of a data set, for which `{}` stands: every W-th."""
        return f"range({self.rank}, len({{}}), {self.world_size})"

    @property
    def shard_of_batches(self) -> str:
        """The samples of this rank out of a data set and a batch size: those of every W-th batch."""
        return f"[i for i in range(len({{}})) if i // {{}} % {self.world_size} == {self.rank}]"


TORCH = Words(
    name="torch",
    imports=("import torch.distributed as dist",),
    rank="dist.get_rank()",
    world_size="dist.get_world_size()",
    barrier="dist.barrier()",
    all_reduce="dist.all_reduce({0})",
    broadcast="dist.broadcast({0}, 0)",
    of_rank_0=("values = [value]", "dist.broadcast_object_list(values)", "return values[0]"),
    join="dist.init_process_group({0})",
    leave="dist.destroy_process_group()",
    joins=("torch.distributed.init_process_group",),
    all_gather=(
        "parts = [torch.empty_like({0}) for _ in range(dist.get_world_size())]",
        "dist.all_gather(parts, {0})",
    ),
    all_reduce_max="dist.all_reduce({0}, dist.ReduceOp.MAX)",
)

# The facts are those of Ignite 0.5.5: ignite/distributed/auto.py, launcher.py and comp_models/.
_COMMAND = (
    "launcher = argparse.ArgumentParser(add_help=False, allow_abbrev=False)",
    'launcher.add_argument("--backend", default="nccl" if torch.cuda.is_available() else "gloo")',
)
_PROCESSES = 'launcher.add_argument("--nproc_per_node", type=int)'
_PARSED = "launched, sys.argv[1:] = launcher.parse_known_args()"
IGNITE = Words(
    name="Ignite",
    imports=("import ignite.distributed as idist",),
    rank="idist.get_rank()",
    world_size="idist.get_world_size()",
    barrier="idist.barrier()",
    all_reduce="{0} = idist.all_reduce({0})",
    broadcast="{0}.copy_(idist.broadcast({0}))",  # Horovod's is not in place
    of_rank_0=("return idist.all_gather((value,))[0][0]",),  # idist.broadcast makes numbers float32
    join="idist.initialize(launched.backend)",
    leave="idist.finalize()",
    joins=("ignite.distributed.Parallel", "ignite.distributed.initialize", "ignite.distributed.spawn"),
    all_gather=("parts = idist.all_gather({0}).chunk(idist.get_world_size())",),
    prepare=(*_COMMAND, _PARSED),
    parallel=(
        *_COMMAND,
        _PROCESSES,
        _PARSED,
        "with idist.Parallel(launched.backend, launched.nproc_per_node) as parallel:",
        "    parallel.run({0})",
    ),
    flags=("--backend", "--nproc_per_node"),
    device="idist.device()",
    loader="idist.auto_dataloader",
    optimizer="idist.auto_optim({})",
    model="idist.auto_model({})",
    synchronized="sync_bn=True",
    may_not_wrap=True,  # in one process, and for Horovod
    replicas=", num_replicas=idist.get_world_size(), rank=idist.get_rank()",
    has_sampler="idist.get_world_size() > 1",
    first="idist.one_rank_first()",
    differs=(
        (
            "auto_dataloader divides the batch size by the number of processes, unless it is smaller: then each of W "
            "processes takes all of it, and batches are W times as large",
            "start no more processes than a batch has samples",
        ),
        (
            "started alone on a machine with several GPUs, auto_model makes an nn.DataParallel",
            "let it see one: CUDA_VISIBLE_DEVICES=0",
        ),
    ),
    all_reduce_max='{0} = idist.all_reduce({0}, op="MAX")',
)

# Horovod 0.28.1. It averages each gradient by its parameter's name, from hooks of the optimizer.
HOROVOD = Words(
    name="Horovod",
    imports=("import horovod.torch as hvd",),
    rank="hvd.rank()",
    world_size="hvd.size()",
    barrier="hvd.barrier()",
    all_reduce="hvd.allreduce_({0}, op=hvd.Sum)",
    broadcast="hvd.broadcast_({0}, root_rank=0)",
    of_rank_0=("return hvd.broadcast_object(value, root_rank=0)",),
    join="hvd.init()",
    leave="hvd.shutdown()",
    joins=("horovod.torch.init",),
    replicas=", num_replicas=hvd.size(), rank=hvd.rank()",
    averaging="hvd.DistributedOptimizer({{}}, named_parameters={model}.named_parameters())",
    parameters="hvd.broadcast_parameters({0}.state_dict(), root_rank=0)",
    pin=("if torch.cuda.is_available():", "    torch.cuda.set_device(hvd.local_rank())"),
    on_host_too=True,
)
