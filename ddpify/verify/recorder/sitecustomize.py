"""Records what the script that this interpreter runs trains; Python imports it before the script.

It needs torch and nothing else; tensors of any device are copied to the CPU. Environment variables tell what to do:

DDPIFY_PRETEND  modules to be installed first
DDPIFY_RECORD   a folder. After each event one pickle is appended to `rank<RANK>.pkl` there, so that a process which
                crashes or is killed leaves all that it did. Events: see `Recorder`
DDPIFY_STEPS    end the process, as by sys.exit(0), after so many optimizer steps
DDPIFY_PLAIN    replace every optimizer by plain gradient descent with its learning rates
DDPIFY_NOISE    add normal noise to the gradients: so large, in units of the root mean square of all of them
DDPIFY_DROPOUT  "off" makes torch.nn.functional's dropouts do nothing
DDPIFY_INPUTS   record what the samples are that modules are called with
DDPIFY_PROTECT  folders in which Python code may not write
"""

from __future__ import annotations

import atexit
import contextlib
import ctypes
import functools
import gc
import hashlib
import importlib
import io
import os
import pickle
import random
import sys
import types
import weakref
import zlib
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

if TYPE_CHECKING:
    import torch
    from torch import nn
    from torch.optim import Optimizer

WHOLE = 10_000  # elements: a larger tensor is recorded as a sample of this size, its norm and its digest
SMALL = 500  # the same on ranks other than 0, which are only held against rank 0
SEED = 1234
Trace = tuple[str, bytes, float, str]  # dtype, values, norm, digest
DROPOUTS = ("dropout", "dropout1d", "dropout2d", "dropout3d", "alpha_dropout", "feature_alpha_dropout")


class Recorder:
    """Writes one file a rank; each record is (kind, values).

    names: the optimizer's number in order of creation, its class, the names of its parameters; at its first step.
    step: see `after`. pass: the number of a pass over a loader, and what it is of, see `_pass`. batch: the number of
    the pass, the ids of the samples (their indices, or digests of them where a data set is a stream). look: a forward
    of DistributedDataParallel without gradients. loaded: how many keys a load_state_dict missed. hash: of a word.
    stopped: DDPIFY_STEPS were made.
    """

    def __init__(self, folder: Path, steps: int, noise: float) -> None:
        self.folder, self.steps, self.noise = folder, steps, noise
        self.streams: dict[int, BinaryIO] = {}
        self.numbers: weakref.WeakKeyDictionary[Optimizer, int] = weakref.WeakKeyDictionary()
        self.buffers: weakref.WeakKeyDictionary[nn.Module, None] = weakref.WeakKeyDictionary()
        self.depths: dict[int, int] = {}
        self.grads: dict[int, list[Trace | None]] = {}
        self.named: set[int] = set()
        self.losses: list[float] = []
        self.rows: list[int] = []
        self.norms: list[Any] = []
        self.inputs: list[tuple[tuple[int, ...], ...]] = []
        self.synced: list[bool] = []
        self.shadowed: list[str] = []
        self.carried = self.replaced = False
        self.penalties = self.nested = self.looks = self.begun = 0
        self.made = self.forwards = self.backwards = self.passes = 0
        self.stopped = False
        self.generator: torch.Generator | None = None

    def write(self, kind: str, values: Any) -> None:
        rank = _rank()
        if rank not in self.streams:
            self.streams[rank] = (self.folder / f"rank{rank}.pkl").open("ab", buffering=0)
        self.streams[rank].write(pickle.dumps((kind, values), protocol=5))

    def number_of(self, optimizer: Optimizer) -> int:
        return self.numbers.setdefault(optimizer, len(self.numbers))

    def before(self, optimizer: Optimizer, args: Any, kwargs: Any) -> None:
        number = self.number_of(optimizer)
        self.depths[number] = self.depths.get(number, 0) + 1
        if self.depths[number] == 1:  # a subclass that calls super().step() is one step
            if self.noise:
                self.disturb(_parameters(optimizer))
            self.grads[number] = _gradients(optimizer)
            self.begun = self.backwards

    def after(self, optimizer: Optimizer, args: Any, kwargs: Any) -> None:
        number = self.number_of(optimizer)
        self.depths[number] -= 1
        if self.depths[number]:
            return
        used = self.grads.pop(number)
        if len(args) > 1 or kwargs.get("closure") is not None:  # the closure computed them within the step
            used = _gradients(optimizer)
        if not self.named:
            self.write("hash", hash("ddpify"))
        if number not in self.named:
            self.named.add(number)
            self.write("names", (number, type(optimizer).__name__, _names(_parameters(optimizer))))
        step = {
            "optimizer": number,
            "params": [_trace(parameter) for parameter in _parameters(optimizer)],
            "grads": used,
            "buffers": [_trace(buffer) for buffer in _statistics(self.buffers)],
            "rates": [float(group.get("lr", 0.0)) for group in optimizer.param_groups],
            "losses": self.losses,  # what .backward() was called on since the step before
            "forwards": self.forwards,  # of torch's DistributedDataParallel, so far
            "rows": self.rows,  # of the first input of each such forward since the step before
            "backwards": self.backwards,  # so far
            "draws": _random_states(),
            # Since the step before: what the samples were that modules were called with; whether a module was given
            # what it had returned; the norms that were clipped; calls of autograd.grad that can be differentiated;
            # backwards within another one
            "inputs": self.inputs,
            "carried": self.carried,
            "norms": [float(norm) for norm in self.norms],
            "penalties": self.penalties,
            "nested": self.nested,
            "closures": self.backwards - self.begun,  # backwards within the step
            "looks": self.looks,  # those of the forwards that had no gradients
            "synced": self.synced,  # of each forward since the step before: not in no_sync()
            "shadowed": self.shadowed,  # attributes of the module that were set on its wrapper
            "replaced": self.replaced,  # whether the module has parameters that it did not have when it was wrapped
        }
        self.losses, self.rows, self.norms, self.inputs, self.synced = [], [], [], [], []
        self.carried, self.penalties, self.nested = False, 0, 0
        self.write("step", step)
        self.made += 1
        if self.steps and self.made >= self.steps:
            self.stop()

    def stop(self) -> None:
        """End the script as it would end itself: its files are closed, what it has registered for its exit runs."""
        if self.made > self.steps:  # it has caught the SystemExit
            _leave()
        self.write("stopped", self.steps)
        self.stopped = True
        raise SystemExit(0)

    def end(self) -> None:
        if self.stopped:
            _leave()

    def disturb(self, parameters: list[torch.Tensor]) -> None:
        import torch

        self.generator = self.generator or torch.Generator().manual_seed(SEED)
        grads = [p.grad for p in parameters if p.grad is not None and p.grad.layout is torch.strided]
        count = sum(grad.numel() for grad in grads) or 1
        size = sum(float(grad.detach().double().abs().square().sum()) for grad in grads)
        for grad in grads:
            noise = torch.randn(grad.shape, generator=self.generator).to(grad.device, grad.dtype)
            grad.data.add_(noise, alpha=self.noise * (size / count) ** 0.5)


def _leave() -> None:
    """End at once: gloo aborts an interpreter that ends while a process group is still there."""
    for value in gc.get_objects():
        if isinstance(value, io.IOBase) and not value.closed and value.writable():
            value.flush()
    os._exit(0)


def _install(folder: Path) -> None:
    seed = SEED + int(os.environ.get("RANK", "0"))
    _seed(seed)

    import torch
    from torch.optim.optimizer import register_optimizer_step_post_hook, register_optimizer_step_pre_hook

    recorder = Recorder(folder, int(os.environ.get("DDPIFY_STEPS", "0")), float(os.environ.get("DDPIFY_NOISE", "0")))
    atexit.register(recorder.end)  # the first to be registered runs last
    _watch_optimizers(recorder)
    _watch_backward(recorder)
    _watch_wrapper(recorder)
    _watch_loaders(recorder)
    _watch_loading(recorder)
    if "DDPIFY_INPUTS" in os.environ:
        _watch_inputs(recorder)
    torch.nn.modules.module.register_module_buffer_registration_hook(
        lambda module, name, buffer: recorder.buffers.setdefault(module, None)
    )
    register_optimizer_step_pre_hook(recorder.before)
    register_optimizer_step_post_hook(recorder.after)
    if os.environ.get("DDPIFY_DROPOUT") == "off":
        for name in DROPOUTS:
            setattr(torch.nn.functional, name, lambda input, *args, **kwargs: input)
    torch.manual_seed(seed)


def _watch_optimizers(recorder: Recorder) -> None:
    from torch.optim.optimizer import Optimizer

    plain = Optimizer.profile_hook_step(_plain_step) if "DDPIFY_PLAIN" in os.environ else None
    original = Optimizer.__init__

    @functools.wraps(original)
    def init(self: Optimizer, *args: Any, **kwargs: Any) -> None:
        original(self, *args, **kwargs)
        recorder.number_of(self)
        if plain is not None:
            self.step = types.MethodType(plain, self)  # type: ignore[method-assign]

    Optimizer.__init__ = init  # type: ignore[method-assign]


def _plain_step(self: Optimizer, closure: Callable[[], Any] | None = None) -> Any:
    """One step of gradient descent: no momentum, no decay, nothing that amplifies rounding."""
    import torch

    with torch.enable_grad():
        loss = None if closure is None else closure()
    with torch.no_grad():
        for group in self.param_groups:
            for parameter in group["params"]:
                if parameter.grad is not None:
                    parameter.add_(parameter.grad, alpha=-float(group.get("lr", 0.01)))
    return loss


def _watch_backward(recorder: Recorder) -> None:
    import torch
    from torch.nn.utils import clip_grad

    backward, grad, clip = torch.autograd.backward, torch.autograd.grad, clip_grad.clip_grad_norm_

    @functools.wraps(backward)
    def recorded_backward(tensors: Any, grad_tensors: Any = None, *args: Any, **kwargs: Any) -> None:
        if torch._C._current_graph_task_id() == -1:  # not one that checkpointing runs within another
            recorder.backwards += 1
            first = tensors if isinstance(tensors, torch.Tensor) else next(iter(tensors))
            if first.numel() == 1:
                recorder.losses.append(float(first.detach()))
        else:
            recorder.nested += 1
        backward(tensors, grad_tensors, *args, **kwargs)

    @functools.wraps(grad)
    def recorded_grad(*args: Any, **kwargs: Any) -> Any:
        recorder.penalties += bool(kwargs.get("create_graph"))
        return grad(*args, **kwargs)

    @functools.wraps(clip)
    def recorded_clip(*args: Any, **kwargs: Any) -> Any:
        norm = clip(*args, **kwargs)
        recorder.norms.append(norm)
        return norm

    torch.autograd.backward, torch.autograd.grad = recorded_backward, recorded_grad
    torch.nn.utils.clip_grad_norm_ = clip_grad.clip_grad_norm_ = recorded_clip


def _watch_wrapper(recorder: Recorder) -> None:
    import torch
    from torch.nn.parallel import DistributedDataParallel

    init, forward = DistributedDataParallel.__init__, DistributedDataParallel.forward
    first: weakref.WeakKeyDictionary[nn.Module, tuple[set[str], set[int]]] = weakref.WeakKeyDictionary()

    @functools.wraps(init)
    def recorded_init(self: DistributedDataParallel, *args: Any, **kwargs: Any) -> None:
        init(self, *args, **kwargs)
        first[self] = {*vars(self)}, {id(parameter) for parameter in self.module.parameters()}

    @functools.wraps(forward)
    def recorded_forward(self: DistributedDataParallel, *args: Any, **kwargs: Any) -> Any:
        recorder.forwards += 1
        if torch.is_grad_enabled() and self in first:  # not a copy of another one
            attributes, parameters = first[self]
            of_module = {*vars(self.module), *vars(type(self.module))}
            recorder.shadowed = sorted({*recorder.shadowed, *({*vars(self)} - attributes & of_module)})
            recorder.replaced |= any(id(p) not in parameters for p in self.module.parameters() if p.requires_grad)
        if torch.is_grad_enabled():
            recorder.rows += [len(value) for value in args[:1] if isinstance(value, torch.Tensor) and value.dim()]
            recorder.synced.append(bool(self.require_backward_grad_sync))
        else:
            recorder.looks += 1
            recorder.write("look", recorder.looks)
        return forward(self, *args, **kwargs)  # type: ignore[no-untyped-call]

    DistributedDataParallel.__init__ = recorded_init  # type: ignore[method-assign]
    DistributedDataParallel.forward = recorded_forward  # type: ignore[method-assign]


def _watch_inputs(recorder: Recorder) -> None:
    """Of the outermost module that is called and trained: what identifies the samples in its first input of data."""
    import torch
    from torch import nn
    from torch.utils._pytree import tree_leaves

    call = nn.Module.__call__
    returned: weakref.WeakKeyDictionary[nn.Module, list[torch.Tensor]] = weakref.WeakKeyDictionary()
    inside = False

    @functools.wraps(call)
    def recorded_call(self: nn.Module, *args: Any, **kwargs: Any) -> Any:
        nonlocal inside
        if inside or torch.compiler.is_compiling() or not torch.is_grad_enabled():
            return call(self, *args, **kwargs)
        if not any(parameter.requires_grad for parameter in self.parameters()):
            return call(self, *args, **kwargs)
        given = [leaf for leaf in tree_leaves((args, kwargs)) if isinstance(leaf, torch.Tensor) and leaf.dim()]
        data = next((leaf for leaf in given if not leaf.requires_grad), None)
        if data is not None:
            recorder.inputs.append(tuple(_digests(data, dimension) for dimension in (0, 1)))
        before = {tensor.untyped_storage().data_ptr() for tensor in returned.get(self, ())}
        recorder.carried |= any(leaf.untyped_storage().data_ptr() in before for leaf in given)
        inside = True
        try:
            result = call(self, *args, **kwargs)
        finally:
            inside = False
        returned[self] = [leaf.detach() for leaf in tree_leaves(result) if isinstance(leaf, torch.Tensor)]
        return result

    nn.Module.__call__ = recorded_call  # type: ignore[method-assign]


def _watch_loading(recorder: Recorder) -> None:
    from torch import nn

    load = nn.Module.load_state_dict

    @functools.wraps(load)
    def recorded_load(self: nn.Module, *args: Any, **kwargs: Any) -> Any:
        result = load(self, *args, **kwargs)
        recorder.write("loaded", len(result.missing_keys))
        return result

    nn.Module.load_state_dict = recorded_load  # type: ignore[method-assign]


def _watch_loaders(recorder: Recorder) -> None:
    from torch.utils.data.dataloader import _BaseDataLoaderIter as Pass

    init, reset, next_index, next_batch = Pass.__init__, Pass._reset, Pass._next_index, Pass.__next__

    def number(self: Any, loader: Any) -> None:
        recorder.passes += 1
        self._ddpify_pass = recorder.passes
        recorder.write("pass", _pass(recorder.passes, loader))

    @functools.wraps(init)
    def recorded_init(self: Any, loader: Any, *args: Any, **kwargs: Any) -> None:
        number(self, loader)
        init(self, loader, *args, **kwargs)

    @functools.wraps(reset)
    def recorded_reset(self: Any, loader: Any, first_iter: bool = False) -> None:
        if not first_iter:
            number(self, loader)
        reset(self, loader, first_iter)

    @functools.wraps(next_index)
    def recorded_index(self: Any) -> Any:
        index = next_index(self)  # type: ignore[no-untyped-call]
        drawn = index if isinstance(index, list | tuple) else [index]
        if all(isinstance(place, int) for place in drawn):
            recorder.write("batch", (self._ddpify_pass, _in_full_set(self._dataset, drawn)))
        return index

    @functools.wraps(next_batch)
    def recorded_batch(self: Any) -> Any:
        batch = next_batch(self)
        if self._dataset_kind == 1 and (rows := _rows(batch)):  # a stream: nothing but the content names a sample
            recorder.write("batch", (self._ddpify_pass, rows))
        return batch

    Pass.__init__, Pass._reset = recorded_init, recorded_reset  # type: ignore[method-assign]
    Pass._next_index, Pass.__next__ = recorded_index, recorded_batch  # type: ignore[method-assign]


def _in_full_set(dataset: Any, places: Sequence[int]) -> tuple[int, ...]:
    """The indices in the set that a Subset, of a random split as a rule, is a part of."""
    from torch.utils.data import Subset

    while isinstance(dataset, Subset):
        places, dataset = [int(dataset.indices[place]) for place in places], dataset.dataset
    return tuple(places)


def _pass(number: int, loader: Any) -> dict[str, Any]:
    """What a pass is of: the loader's classes and lengths, and which part of a set it draws from."""
    from torch.utils.data import Subset

    sampler, dataset = loader.sampler if loader.batch_sampler is None else loader.batch_sampler, loader.dataset
    part = zlib.crc32(repr([*map(int, dataset.indices)]).encode()) if isinstance(dataset, Subset) else 0
    length = None
    with contextlib.suppress(TypeError, NotImplementedError):
        length = len(dataset)
    return {
        "number": number,
        "batch_sampler": type(sampler).__name__,
        "sampler": type(getattr(sampler, "sampler", sampler)).__name__,
        "length": length,
        "part": part,
        "stream": loader._dataset_kind == 1,
        "workers": loader.num_workers,
    }


def _rows(batch: Any) -> tuple[int, ...]:
    import torch
    from torch.utils._pytree import tree_leaves

    first = next((leaf for leaf in tree_leaves(batch) if isinstance(leaf, torch.Tensor) and leaf.dim()), None)
    return () if first is None else _digests(first, 0)


def _digests(tensor: Any, dimension: int) -> tuple[int, ...]:
    """What names the slices of a tensor along a dimension: nothing, if it has none or very many."""
    if tensor.dim() <= dimension or tensor.size(dimension) > WHOLE or tensor.layout is not _strided():
        return ()
    slices = tensor.detach().cpu().movedim(dimension, 0).contiguous()
    return tuple(zlib.crc32(_memory(each.reshape(-1))) for each in slices)


def _strided() -> Any:
    import torch

    return torch.strided


def _seed(seed: int) -> None:
    """Unseeded scripts become comparable; each rank starts elsewhere, so that a missing broadcast shows (S1)."""
    random.seed(seed)
    with contextlib.suppress(ImportError):
        import numpy

        numpy.random.seed(seed)


def _rank() -> int:
    """The rank by the launcher's word, else by the process group's: not every launcher sets RANK."""
    if "RANK" in os.environ:
        return int(os.environ["RANK"])
    import torch.distributed as dist

    return dist.get_rank() if dist.is_available() and dist.is_initialized() else 0


def _random_states() -> tuple[int, ...]:
    """Digests of the host's generators (torch's, Python's, numpy's); equal ones have drawn the same."""
    import torch

    numpy = sys.modules.get("numpy")
    digests = [zlib.crc32(_memory(state := torch.get_rng_state())), zlib.crc32(repr(random.getstate()).encode())]
    if numpy:
        key, *place = numpy.random.get_state()[1:]
        digests.append(zlib.crc32(repr(place).encode(), zlib.crc32(key.tobytes())))
    del state  # its memory was read
    return tuple(digests)


def _parameters(optimizer: Optimizer) -> list[torch.Tensor]:
    """Its parameters; on XLA everything recorded so far is run first, rather than a part of it for each of them."""
    if "torch_xla" in sys.modules:
        sys.modules["torch_xla"].sync()
    return [parameter for group in optimizer.param_groups for parameter in group["params"]]


def _gradients(optimizer: Optimizer) -> list[Trace | None]:
    return [None if p.grad is None else _trace(p.grad) for p in _parameters(optimizer)]


def _statistics(modules: weakref.WeakKeyDictionary[nn.Module, None]) -> Iterator[torch.Tensor]:
    """The running statistics of every module that lives, in order of creation."""
    for module in list(modules):
        for name, buffer in module._buffers.items():
            if buffer is not None and name in ("running_mean", "running_var"):
                yield buffer


def _names(parameters: list[torch.Tensor]) -> list[str]:
    """What the parameters are called in the outermost module that holds them; "" for a tensor outside of modules."""
    from torch import nn

    modules = [value for value in gc.get_objects() if issubclass(type(value), nn.Module) and "_modules" in vars(value)]
    inner = {id(child) for module in modules for child in module._modules.values()}
    names: dict[int, str] = {}
    for module in modules:
        if id(module) not in inner:
            for name, parameter in module.named_parameters():
                names.setdefault(id(parameter), f"{type(module).__name__}.{name}")
    return [names.get(id(parameter), "") for parameter in parameters]


def _trace(tensor: torch.Tensor) -> Trace:
    """Return (dtype, values, norm, digest): all values and no digest, or a random sample and the digest of all."""
    import torch

    tensor = tensor.detach().cpu()
    if tensor.is_sparse:
        tensor = tensor.to_dense()
    if tensor.is_complex():
        tensor = torch.view_as_real(tensor)
    if tensor.dtype in (torch.bfloat16, torch.float16):
        tensor = tensor.float()
    values = tensor.reshape(-1).contiguous()
    norm, digest = float(values.double().norm()), ""
    if values.numel() > SMALL:
        digest = hashlib.sha256(_memory(values)).hexdigest()
        limit = WHOLE if _rank() == 0 else SMALL
        values = values if values.numel() <= limit else values[_sample(values.numel(), limit)]
    return str(values.dtype).removeprefix("torch."), bytes(_memory(values)), norm, digest


def _memory(values: torch.Tensor) -> Any:
    """The bytes of a contiguous tensor, without numpy; it must outlive them."""
    return (ctypes.c_char * values.nbytes).from_address(values.data_ptr()) if values.nbytes else b""


@functools.cache
def _sample(size: int, count: int) -> torch.Tensor:
    import torch

    places = torch.randint(size, (count,), generator=torch.Generator().manual_seed(0))
    return places.sort().values


def _protect(folders: list[str]) -> None:
    """Let no Python code write to these folders: absolute paths and links may lead there from a scratch copy."""
    import torch

    def watch(event: str, args: tuple[Any, ...]) -> None:
        if event == "open":
            path, _, flags = args
            writes = isinstance(flags, int) and flags & (os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC)
        elif event in ("os.mkdir", "os.remove", "os.rmdir", "os.truncate", "os.rename", "shutil.rmtree"):
            path, writes = args[0], True
        else:
            return
        if not writes or not isinstance(path, str | bytes | os.PathLike):
            return
        above, name = os.path.split(os.path.abspath(os.fsdecode(path)))
        place = os.path.join(os.path.realpath(above), name)
        if event == "open":
            place = os.path.realpath(place)
        if any(place == folder or place.startswith(folder + os.sep) for folder in folders):
            raise PermissionError(f"ddpify verify: the script writes to {place}, outside of the copy that it runs in")

    original = torch.save

    @functools.wraps(original)
    def save(obj: Any, f: Any, *args: Any, **kwargs: Any) -> None:
        if isinstance(f, str | os.PathLike):
            sys.audit("open", f, "wb", os.O_WRONLY)  # it writes by C++, which tells nobody
        original(obj, f, *args, **kwargs)

    torch.save = save
    sys.addaudithook(watch)


def _next_sitecustomize() -> None:
    """Import the sitecustomize that this one hides, if there is one."""
    here = str(Path(__file__).parent)
    sys.path[:] = [place for place in sys.path if place != here]
    own = sys.modules.pop(__name__)
    with contextlib.suppress(ImportError):
        importlib.import_module(__name__)
    sys.modules[__name__] = own


for _module in os.environ.get("DDPIFY_PRETEND", "").split():
    importlib.import_module(_module).install()
if "DDPIFY_PROTECT" in os.environ:
    _protect([os.path.realpath(folder) for folder in os.environ["DDPIFY_PROTECT"].split(os.pathsep)])
if "DDPIFY_RECORD" in os.environ:
    _install(Path(os.environ["DDPIFY_RECORD"]))
_next_sitecustomize()
