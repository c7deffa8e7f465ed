"""DistributedDataParallel with nn.DataParallel's contract: the whole batch goes in, the whole outputs come out.

The module stays the user's own object: same identity, type, attributes, state_dict keys and pickle. Only its call is
routed, through the per-instance slot that torch keeps for `module.compile()` and leaves out of pickles and copies.
Training forwards (training mode, gradients on) run on this rank's rows through torch's DistributedDataParallel, and the
outputs are joined; what follows (loss, metrics, decisions) is computed from the whole batch on every rank, so any loss
is exact, also one that couples samples (HAZARDS L1-L6, E6, L19, L20). Every other call runs whole on every rank and
communicates nothing (E1, M1).

torch's reducer is armed when a backward pass enters a shared region rather than by the forward, so that two backwards
of one forward, or two forwards before two backwards, are each reduced (L10, L11), and passes that go round the forward
(M3) are left alone: they are equal on every rank anyway.
"""

from __future__ import annotations

import gc
import sys
import warnings
import weakref
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Literal, TypeAlias, TypeVar

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.utils._pytree import TreeSpec, tree_flatten, tree_unflatten

from . import batch_norm, check, failure, outputs, region
from .batch import Share
from .collectives import Rows, count, divides, leave, split, spread
from .division import Division, is_compilable, is_watched, shared
from .find_division import confirmed, find
from .native_reduction import NativeReduction
from .reduction import Reduction

Module = TypeVar("Module", bound=nn.Module)
AnyReduction: TypeAlias = Reduction | NativeReduction

FEW = "fewer samples than processes"

_routed: weakref.WeakSet[TrainingCall] = weakref.WeakSet()


def DistributedDataParallel(  # noqa: N802  the name that readers know
    module: Module,
    device_ids: Sequence[int | torch.device] | None = None,
    *,
    gradient_as_bucket_view: bool = False,
    sync_batch_norm: bool = True,
    reduction: Literal["ddp", "native"] = "ddp",
) -> Module:
    """Divide the training forwards of a module over the processes and average its gradients; returns the same module.

    Args:
        module: any module, on its device or not yet. Calling this again for the same module changes nothing.
        device_ids: the one device of this process, as for torch's DistributedDataParallel.
        gradient_as_bucket_view: as for torch's; needed on XLA.
        sync_batch_norm: normalise training batches with the statistics of the whole batch, as one process would (M8).
        reduction: "ddp": torch's DistributedDataParallel; "native": one all-reduce after each backward, as torch_xla
            recommends for XLA. The result is the same up to rounding.

    Returns:
        `module` itself. With one process nothing else happens.

    Raises:
        ValueError: there is no such reduction.
    """
    if not dist.is_initialized() or dist.get_world_size() == 1:
        if "torch_xla" in sys.modules:
            batch_norm.route(module)
        return module
    current = vars(module).get("_compiled_call_impl")
    if isinstance(current, TrainingCall):
        return module
    if reduction not in ("ddp", "native"):
        raise ValueError(f"reduction must be 'ddp' or 'native', not {reduction!r}")

    def reduce(call: Callable[..., Any]) -> AnyReduction:
        if reduction == "native":
            return NativeReduction(module, call)
        options: dict[str, Any] = {}
        if device_ids is not None and all(parameter.is_cuda for parameter in module.parameters()):
            options["device_ids"] = list(device_ids)
        # No gradient is a view of two buckets.
        options["gradient_as_bucket_view"] = gradient_as_bucket_view and not _shares_parameters(module)
        return Reduction(module, call, options)

    release(module.parameters())  # another module that has them gets no view from now on
    # Past any __setattr__ of the module: torch.compile's wrapper forwards attributes to the module that it wraps.
    vars(module)["_compiled_call_impl"] = TrainingCall(module, current or module._call_impl, reduce, sync_batch_norm)
    return module


def replicate(module: nn.Module, device_ids: Sequence[int | torch.device] | None = None, **options: Any) -> None:
    """Make a module distributed where it is, like torch's composable `replicate`; for `self`, which cannot be assigned.

    Args:
        module: any module. device_ids: the one device of this process. options: as for DistributedDataParallel.
    """
    DistributedDataParallel(module, device_ids, **options)


class DataParallel(nn.DataParallel[Module]):
    """nn.DataParallel's face for one device: `.module`, and "module." before the state_dict's keys.

    For scripts that were written for nn.DataParallel, so that their checkpoints load in both versions (M13).
    """

    def __init__(self, module: Module) -> None:
        nn.Module.__init__(self)
        self.module = module
        self.device_ids = []

    def __reduce__(self) -> tuple[Any, ...]:
        return nn.DataParallel, (self.module,), self.__getstate__()  # type: ignore[no-untyped-call]


class TrainingCall:
    """Stands in front of one module's call."""

    def __init__(
        self,
        module: nn.Module,
        call: Callable[..., Any],
        reduce: Callable[[Callable[..., Any]], AnyReduction],
        sync_batch_norm: bool,
    ) -> None:
        self.module = module
        self.call = call
        self.reduce = reduce
        self.sync_batch_norm = sync_batch_norm
        self.divisions: dict[Any, Division] = {}
        self.calls: dict[Any, int] = {}
        self.reductions: dict[Any, AnyReduction] = {}
        self.divided = False
        _routed.add(self)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if torch.compiler.is_compiling() or region.current() or region.alone() or not dist.is_initialized():
            return self.call(*args, **kwargs)
        leaves, spec = tree_flatten((args, kwargs))
        if self.module.training and torch.is_grad_enabled() and not is_watched(self.module):
            found = self._division(leaves, spec)
            if not found.reason and divides(leaves[found.batch[0]], found.batch[1]):
                self.divided = True
                return self._divided(found, leaves, spec)
            if not found.reason:
                self._warn_of_uneven_batches(found.samples(leaves))
        if any(isinstance(leaf, Share) for leaf in leaves):  # torch.compile would trace how they are joined
            args, kwargs = tree_unflatten(map(_whole, leaves), spec)
        return self.call(*args, **kwargs)

    def _warn_of_uneven_batches(self, samples: int) -> None:
        """Once, if no batch was divided before: the last one of an epoch is often short."""
        if not self.divided and samples >= dist.get_world_size():
            self.divided = True
            warnings.warn(
                f"ddpify: the training forward of {type(self.module).__name__} runs whole on every process where its "
                f"batch does not divide by {dist.get_world_size()}, as XLA devices need: here {samples} samples",
                stacklevel=4,
            )

    def _division(self, leaves: list[Any], spec: TreeSpec) -> Division:
        """How this form of input is divided. Tried again at calls 4, 16, 64, …, since a model may change its ways."""
        # Layers may have been added, replaced or put into another mode since (M7).
        parts = tuple((id(part), part.training) for part in self.module.modules())
        form = str(spec), parts, *map(_form, leaves)
        calls = self.calls[form] = self.calls.get(form, 0) + 1
        known = self.divisions.get(form)
        due = not calls & (calls - 1) and calls.bit_length() % 2 == 1
        if known is not None and (known.reason or not due):
            return known
        few = known.samples(leaves) < dist.get_world_size() if known else _few(leaves)
        if few and (known or not due):
            return Division(reason=FEW)  # this time; not remembered

        def call(module: Any, values: Sequence[Any]) -> Any:
            args, kwargs = tree_unflatten(list(values), spec)
            return module._call_impl(*args, **kwargs)

        if self.sync_batch_norm:
            batch_norm.route(self.module)
        # What torch.compile(module) computes is what the module in it computes, which is cheaper to try.
        module = getattr(self.module, "_orig_mod", self.module)
        whole = [_whole(leaf) for leaf in leaves]
        found = find(module, call, whole, known)
        compiled = module is not self.module or self.call != module._call_impl
        if compiled and not found.reason and not is_compilable(module, found):
            found = Division(reason="it is compiled, and draws random numbers, normalises batches or computes its loss")
        if few and found.reason:
            return Division(reason=FEW)
        name = type(module).__name__
        if found.reason:
            if known is not None:
                raise RuntimeError(
                    f"ddpify: the training forward of {name} was divided over the processes, but at call {calls} "
                    f"{found.reason}. The steps since the last check may be wrong; leave this module out of "
                    "DistributedDataParallel"
                )
            warnings.warn(
                f"ddpify: the training forward of {name} runs whole on every process (exact, but no faster): "
                f"{found.reason}",
                stacklevel=4,
            )
        if not found.reason:
            check.gradient(self.module, lambda: confirmed(module, call, whole, found))
        self.divisions[form] = found
        return found

    def _divided(self, found: Division, leaves: list[Any], spec: TreeSpec) -> Any:
        total = found.samples(leaves)
        reduction = self._reduction()
        values = [
            _rows(leaf, total, rows, reduction) if rows else _whole(leaf)
            for leaf, rows in zip(leaves, found.inputs, strict=True)
        ]
        args, kwargs = tree_unflatten(values, spec)
        here = region.Region("share", total, count(total), places=found.places, over_samples=list(found.losses))
        before = None if found.places else torch.get_rng_state()
        try:
            with shared(here):
                output = reduction.forward(*args, **kwargs)
        except Exception as error:  # whatever the user's forward raises
            failure.require_everywhere(error, f"the training forward of {type(self.module).__name__}")
            raise
        if before is not None and not torch.equal(before, torch.get_rng_state()):
            raise RuntimeError(
                f"ddpify: the forward of {type(self.module).__name__} began to draw random numbers after it had been "
                "divided; let it draw from its first training step on, or leave it out of DistributedDataParallel"
            )
        parts, form = tree_flatten(output)
        if len(parts) != len(found.outputs):
            raise RuntimeError(f"ddpify: {type(self.module).__name__} returned another structure than before")
        if found.sizes:
            self._require_equal_sizes(parts, found)
        whole = [
            self._joined(part, total, rows, reduction) if rows else _left(part, reduction)
            for part, rows in zip(parts, found.outputs, strict=True)
        ]
        return tree_unflatten(whole, form)

    def _require_equal_sizes(self, parts: Sequence[Any], found: Division) -> None:
        """A collective."""
        sizes = [
            size
            for part, rows in zip(parts, found.outputs, strict=True)
            if rows
            for dim, size in enumerate(part.shape)
            if dim != rows.dim
        ]
        if spread(torch.tensor([hash(tuple(sizes)) >> 1])).any():
            raise RuntimeError(
                f"ddpify: the training forward of {type(self.module).__name__} returned rows of another size on "
                f"another rank, here {sizes}: it takes a size from the values of its batch, such as the longest "
                "sequence. Give it that size as an argument, or leave it out of DistributedDataParallel"
            )

    def _joined(self, part: Tensor, total: int, rows: Rows, reduction: AnyReduction) -> Tensor:
        if part.size(rows.dim) % count(total):
            name = type(self.module).__name__
            raise RuntimeError(f"ddpify: {part.size(rows.dim)} rows for {count(total)} samples in an output of {name}")
        return outputs.output(part, total, rows, reduction.enter)

    def _reduction(self) -> AnyReduction:
        """One reducer for each set of trainable parameters: freezing and unfreezing changes the set (M5, M6)."""
        trainable = tuple((id(p), p.dtype, p.device) for p in self.module.parameters() if p.requires_grad)
        if trainable not in self.reductions:
            self.reductions[trainable] = self.reduce(self.call)
        return self.reductions[trainable]


def _rows(leaf: Tensor, total: int, rows: Rows, reduction: AnyReduction) -> Tensor:
    held = leaf.rows if isinstance(leaf, Share) and rows == Rows(0) and len(leaf) == total else None
    return held if held is not None else split(_whole(leaf), total, rows, reduction.enter)


def _left(part: Any, reduction: AnyReduction) -> Any:
    return leave(part, reduction.enter) if isinstance(part, Tensor) and part.requires_grad else part


def _whole(leaf: Any) -> Any:
    return leaf.whole() if isinstance(leaf, Share) else leaf


def _form(leaf: Any) -> Any:
    """What a division depends on, of one input."""
    if isinstance(leaf, Tensor):
        return leaf.dim(), leaf.dtype
    return leaf if isinstance(leaf, (bool, str, type(None))) else type(leaf)


def _few(leaves: Sequence[Any]) -> bool:
    """Whether an input seems to have fewer samples than there are processes, so that nothing can be learnt from it.

    (It may have them in its second dimension, like the hidden state of a recurrent network.)
    """
    sizes = [len(leaf) for leaf in leaves if isinstance(leaf, Tensor) and leaf.dim()]
    return bool(sizes) and sizes[0] < dist.get_world_size()


def _shares_parameters(module: nn.Module) -> bool:
    """Whether another divided module has some of its parameters."""
    mine = {id(parameter) for parameter in module.parameters()}
    return any(id(p) in mine for other in routed() if other is not module for p in other.parameters())


def routed() -> list[nn.Module]:
    """The modules whose training forwards are divided."""
    return [call.module for call in _routed]


def release(parameters: Iterable[nn.Parameter] | None = None) -> None:
    """Drop everything that holds the process group, or some parameters; the next forward makes it again."""
    wanted = None if parameters is None else {id(parameter) for parameter in parameters}
    dropped = False
    for call in list(_routed):
        for trainable in list(call.reductions):
            if wanted is None or any(number in wanted for number, _, _ in trainable):
                call.reductions.pop(trainable).release()
                dropped = True
    if dropped:
        gc.collect()
