"""Every private name of torch that the runtime uses: why, and which public one was weighed.

Nothing else here names one. tests/runtime/torch_internals.py holds each to what it is used for, on the oldest and the
newest torch that we claim; a torch that changes one of them fails there, by its name.
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from operator import attrgetter, itemgetter
from typing import Any

import torch
from torch import Tensor, nn
from torch.autograd import Function, Variable
from torch.distributed import distributed_c10d
from torch.jit import _recursive
from torch.nn.modules import batchnorm

# Documented for "Extending PyTorch" under this name; it has no public one.
from torch.utils._python_dispatch import TorchDispatchMode as TorchDispatchMode

# The leaves of nested values, and the classes that libraries have registered. There is no torch.utils.pytree, and
# optree, which torch.utils._cxx_pytree asks for, knows other classes.
from torch.utils._pytree import TreeSpec as TreeSpec
from torch.utils._pytree import tree_flatten as tree_flatten
from torch.utils._pytree import tree_leaves as tree_leaves
from torch.utils._pytree import tree_map_only as tree_map_only
from torch.utils._pytree import tree_unflatten as tree_unflatten
from torch.utils.data import dataloader

# Pins a value of any structure, as a loader does; the public way is a method of each tensor.
from torch.utils.data._utils.pin_memory import pin_memory as pin_memory

# The store of the process group, through which a rank is heard that is in no collective. A TCPStore of our own would
# need a port that is free on the first machine.
default_store = distributed_c10d._get_default_store

# What all batch normalisations derive from, those of libraries too: nn.BatchNorm1d, 2d and 3d are only some of them.
BatchNorm = batchnorm._BatchNorm

# The indices that any loader draws. A sampler would have to be wrapped in every loader that is made anywhere.
LoaderIterator = dataloader._BaseDataLoaderIter
DRAW_INDICES = "_next_index"

# Whether an iterator over a loader pins its batches: asked for, and something to pin them for, as each torch sees it.
pins = attrgetter("_pin_memory")

# Where a module keeps a call of its own, past its class: torch's slot for `module.compile()`, which pickles and copies
# leave out. A forward hook cannot take the place of the forward, and another class or wrapper is not the user's module.
CALL = "_compiled_call_impl"

# torch.jit.script takes whatever a module keeps for an attribute of its own, and this by a type that it refuses.
# `__jit_ignored_attributes__`, which a class may have, is for names that the scripted module is given as well.
_recursive.ignored_attributes.append(CALL)

# What a module keeps besides attributes of its own; `children()` and `buffers()` cannot be told from these in `vars`.
BUFFERS, MODULES = "_buffers", "_modules"
HOOKS = "_hooks"  # in the name of everything that keeps hooks of some kind

# The kernel behind `pad_packed_sequence`, as a function mode is told it; how long to pad is its last argument.
PADS_PACKED = "_pad_packed_sequence"


@contextmanager
def loaded_as_in_one_process() -> Iterator[None]:
    """Let an iterator over a loader be made that asks for no rank: torch's gives each rank other samples of a DataPipe
    with a `sharding_filter`. There is no argument for it.
    """
    before = dataloader._get_distributed_settings
    dataloader._get_distributed_settings = lambda: (1, 0)
    try:
        yield
    finally:
        dataloader._get_distributed_settings = before


def sampler_of(iterator: Any) -> Any:
    """What a loader's iterator draws indices from; the loader, which would tell, is not at hand there."""
    return iterator._index_sampler


def indices_of(iterator: Any) -> Iterator[Any]:
    """The indices of a loader's batches, drawn as its iterator does where it has no workers.

    Args: a loader's iterator.
    """
    draw = getattr(iterator, DRAW_INDICES)
    with suppress(StopIteration):
        while True:
            yield draw()


def draw_without_loading(iterator: Any, batches: int) -> int:
    """Draw the indices of a loader's next batches, which are not loaded then. A sampler is only the iterator's own.

    Args: a loader's iterator; of how many batches.

    Returns:
        How many of them are to be taken still: what the workers were asked for before.
    """
    asked = min(batches, getattr(iterator, "_tasks_outstanding", 0))
    for _ in range(batches - asked):
        getattr(iterator, DRAW_INDICES)()
    return asked


def call_past_slot(module: nn.Module) -> Callable[..., Any]:
    """The call of a module with its hooks, past CALL. `module.forward` would leave out the hooks."""
    call: Callable[..., Any] = module._call_impl
    return call


def register_state_dict_hook(module: nn.Module, hook: Callable[..., Any]) -> Any:
    """Have a hook make another one of a module's state; the public one may only change it."""
    return module._register_state_dict_hook(hook)


def read_sharded(read: Callable[[Any], Any]) -> None:
    """Have a function read the number in a DTensor (`item()`, `float()`): torch gives that of a rank's own part."""
    from torch.distributed.tensor import DTensor

    handlers: Any = DTensor._op_dispatcher._custom_op_handlers
    handlers[torch.ops.aten._local_scalar_dense.default] = lambda operation, args, kwargs: read(args[0])


def check_dims(module: BatchNorm, input: Tensor) -> None:
    """Refuse an input of the wrong number of dimensions, in the words of its class; there is no public check."""
    module._check_input_dim(input)


def hooks(module: nn.Module) -> tuple[Mapping[int, Any], ...]:
    """The hooks before and after the forward, before and after the backward; torch lets them be set, not asked for."""
    return module._forward_pre_hooks, module._forward_hooks, module._backward_pre_hooks, module._backward_hooks


def contents(module: nn.Module) -> tuple[Mapping[str, nn.Parameter | None], Mapping[str, nn.Module | None]]:
    """The parameters and the parts of one module: `parameters()` and `children()` make names, and take three times as
    long before every forward."""
    return module._parameters, module._modules


# The same in loops that run in C: what is in the `vars` of a module, in turn, and in a parameter.
KEPT_IN_MODULE = itemgetter("_parameters", "_modules", "training")
HOOKS_IN_MODULE = itemgetter("_forward_pre_hooks", "_forward_hooks", "_backward_pre_hooks", "_backward_hooks")
HOOKS_AFTER_GRADIENT, HOOKS_BEFORE_GRADIENT = attrgetter("_post_accumulate_grad_hooks"), attrgetter("_backward_hooks")


def gradient_hooks(parameter: Tensor) -> tuple[Mapping[int, Any] | None, Mapping[int, Any] | None]:
    """The hooks on a gradient: before it is accumulated, and after; as for `hooks`."""
    return parameter._backward_hooks, parameter._post_accumulate_grad_hooks


def copy_all(to: Sequence[Tensor], given: Sequence[Any]) -> None:
    """Copy tensors into others of the same sizes; for small ones `copy_` in a loop takes three times as long."""
    torch._foreach_copy_(to, given)  # type: ignore[arg-type]


def forget_empty_hooks(parameter: Tensor) -> None:
    """After the last hook is removed: torch would not see, when parameters are swapped, that there is none."""
    if not parameter._post_accumulate_grad_hooks:
        parameter._post_accumulate_grad_hooks = None  # type: ignore[assignment]


def apply(function: type[Function], *arguments: Any) -> Any:
    """As `function.apply`, without what it does for torch.func, which would be refused all the same."""
    if torch._C._are_functorch_transforms_active():
        return function.apply(*arguments)
    return super(Function, function).apply(*arguments)  # type: ignore[misc]


# What the pickle of a tensor calls for its values, with those saved as by `torch.save`: a function that takes no
# `map_location`.
LOADS_STORAGE = "torch.storage", "_load_from_bytes"

# Whether a class that derives from Tensor is asked what is done to its objects. torch.DisableTorchFunctionSubclass can
# be entered again instead, for three times as long.
asks_subclasses: Callable[[], bool] = torch._C._is_torch_function_enabled


def made_wrapper(cls: type[Tensor], size: Any, like: Tensor) -> Any:
    """A tensor of a subclass without memory of its own; `as_subclass` would need that of the whole."""
    return Tensor._make_wrapper_subclass(cls, size, dtype=like.dtype, device=like.device)


def base_of(tensor: Tensor) -> Tensor:
    """What a tensor is a view of, or itself; addresses tell it elsewhere, and XLA tensors have none."""
    return tensor if tensor._base is None else tensor._base


def is_view(tensor: Tensor) -> bool:
    """Whether a tensor is a view of another one; as `base_of`."""
    return tensor._base is not None


def version_of(tensor: Tensor) -> int:
    """How often a tensor was written to; comparing its values would cost as much as loading them."""
    return tensor._version


def versions_of(tensors: Iterable[Tensor]) -> Iterator[int]:
    """As `version_of`, of several tensors, in a loop that runs in C."""
    return map(_VERSION, tensors)


_VERSION = attrgetter("_version")


def address_of(generator: torch.Generator) -> int:
    """Where a generator is in memory: `get_state()` makes a tensor of what it holds, around each batch and forward."""
    address: int = generator._cdata  # type: ignore[attr-defined]
    return address


def schema(func: Any) -> Any:
    """The arguments of an operation that a dispatch mode sees; `inspect.signature` knows nothing of it."""
    return func._schema


def default_group() -> Any:
    """The process group of all ranks, or None; `dist.group.WORLD` calls three functions for it."""
    return distributed_c10d._world.default_pg


def begin_all_to_all(output: Tensor, input: Tensor) -> Any:
    """As `dist.all_to_all_single` of equal parts, in less time; the work to wait for. torch 2.9 has the older name."""
    group = default_group()
    begin = getattr(group, "all_to_all_single", None) or group.alltoall_base
    return begin(output, input, [], [])


def graph_task() -> int:
    """The number of the backward pass that runs, -1 outside of one; nothing public tells two passes apart."""
    number: int = torch._C._current_graph_task_id()
    return number


def after_backward(function: Callable[[], None]) -> None:
    """Have a function called when all of the pass that runs is done, as DistributedDataParallel does. Hooks on tensors
    are called for what gets a gradient only."""
    Variable._execution_engine.queue_callback(function)


def see_passes(run: Callable[..., Any]) -> None:
    """Have every backward pass go through a function, which gets torch's own and its arguments: the outputs, their
    gradients, retain_graph, create_graph, the inputs, allow_unused, and accumulate_grad by name (whether it is a
    `.backward()`). Replacing torch.autograd.grad would leave out those who have imported it before."""
    engine: Any = torch.autograd._engine_run_backward  # type: ignore[attr-defined]
    if not hasattr(engine, "_ddpify"):
        through = functools.partial(run, engine)
        through._ddpify = True  # type: ignore[attr-defined]
        torch.autograd._engine_run_backward = through  # type: ignore[attr-defined]


_kept: dict[str, Any] = {}  # for torch 2.9, which cannot take out what a thread keeps: kept for the whole process
_KEEPS_IN_THREAD = hasattr(torch._C, "_remove_obj_from_tls")


def put_in_thread(name: str, value: Any) -> None:
    """Keep something for this thread, and for those on which torch computes the passes that begin on it; a
    `threading.local` is this thread's alone."""
    if _KEEPS_IN_THREAD:
        torch._C._stash_obj_in_tls(name, value)
    else:
        _kept[name] = value


def get_in_thread(name: str) -> Any:
    """What is kept under a name, None if nothing is."""
    if not _KEEPS_IN_THREAD:
        return _kept.get(name)
    return torch._C._get_obj_in_tls(name) if torch._C._is_key_in_tls(name) else None


def take_from_thread(name: str) -> None:
    """Keep it no more: at the end of a thread it would wait for ever."""
    if _KEEPS_IN_THREAD:
        torch._C._remove_obj_from_tls(name)
    else:
        _kept.pop(name, None)


def saved_tensor_hooks() -> Any:
    """The hooks on saved tensors that are active, as in checkpointing, or None; torch lets them be set only."""
    return torch._C._autograd._top_saved_tensors_default_hooks(False)


def uncompiled(module: nn.Module) -> nn.Module:
    """The module that torch.compile was given, or the same one; the wrapper has no public way to it."""
    return getattr(module, "_orig_mod", module)


def is_compiled_wrapper(module: nn.Module) -> bool:
    """Whether torch.compile made this of a module; asked without importing the compiler, which takes seconds."""
    dynamo = sys.modules.get("torch._dynamo.eval_frame")
    return dynamo is not None and isinstance(module, dynamo.OptimizedModule)


def compiles() -> bool:
    """Whether anything has been compiled, or could have been."""
    return "torch._dynamo.eval_frame" in sys.modules


def has_compiled() -> bool:
    """Whether anything has been compiled by torch.compile; its public counters need the compiler."""
    dynamo = sys.modules.get("torch._dynamo.utils")
    return dynamo is not None and bool(dynamo.counters["frames"])


def original_of(function: Any) -> Any:
    """The function that torch.compile was given, None for one that is not compiled; `__wrapped__` is set by others."""
    return getattr(function, "_torchdynamo_orig_callable", None)


# Where torch.compile calls what it knows the answer of, on behalf of the code that it compiles: the caller of all that
# is not the code's own. There is no way to tell it another answer.
TRACER = "torch._dynamo.variables"


# For devices with an engine of their own.


def finished(future: torch.futures.Future[Any]) -> Any:
    """A collective of a process group written in Python, from its future; dist.Work cannot be made of one."""
    from torch._C._distributed_c10d import _create_work_from_future  # type: ignore[attr-defined]

    return _create_work_from_future(future)


# Methods that torch's process groups have beside those with public names; one written in Python has to have them too.
GROUP_METHODS = ("_allgather_base", "_reduce_scatter_base")


def register_device_module(name: str, module: Any) -> None:
    """Make a module `torch.<name>`; torch.utils.rename_privateuse1_backend is for a device that has no name yet."""
    torch._register_device_module(name, module)


def functionalized(tensor: Tensor) -> Tensor:
    """A tensor whose views see what is written to it, where the device has no memory to share; torch.func.functionalize
    is for whole functions."""
    if torch._is_functional_tensor(tensor):
        return tensor
    wrapped: Tensor = torch._to_functional_tensor(tensor)
    return wrapped


def elu_backward() -> Any:
    """The gradient of elu in other operations, as torch's compiler computes it; the public one is the device's own."""
    from torch._decomp.decompositions import elu_backward

    return elu_backward


# What `module.to()` and its like call for each module; the hooks of a module see no move.
MOVE = "_apply"


def give_threads_groups() -> None:
    """Give each thread a default process group of its own; torch has one for a process, this one is for its tests."""
    from torch.testing._internal.distributed import multi_threaded_pg

    multi_threaded_pg._install_threaded_pg()
    torch._C._distributed_c10d._set_thread_isolation_mode(True)  # type: ignore[attr-defined]
