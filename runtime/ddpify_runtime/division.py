"""Whether and how a module's forward can be divided by samples: found by trying, before it is relied upon.

The source rarely says where the batch is in a tensor, or that samples do not meet. So the first training forward of
each form of input is computed twice on every rank without communication: on the whole batch, and on this rank's rows.
The rows must come out as they do in the whole. What does not pass is computed whole on every rank, which is exact and
merely not faster.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from copy import deepcopy
from dataclasses import dataclass, field
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.nn.modules.batchnorm import _BatchNorm
from torch.utils._pytree import tree_flatten

from . import random_states
from .batch_norm import route
from .collectives import Rows, count, divides, share
from .draws import Draws, UnknownDraw
from .losses import Losses, UnknownLoss
from .region import Region, entered
from .state import different_state, same, tolerance, tolerance_times


@dataclass(frozen=True)
class Division:
    """How one form of input is divided.

    inputs: where the samples lie in each input leaf, None for a leaf that every rank takes whole. batch: the leaf and
    dim that tell the number of samples. outputs: the same for the output leaves; None for one that is the same on every
    rank, such as a loss. places: where the samples lie in the random numbers that the forward draws, by operation;
    empty if it draws none. losses: whether it reduces over the whole batch. reason: why it cannot be divided; "" if it
    can.
    """

    inputs: tuple[Rows | None, ...] = ()
    batch: tuple[int, int] = (0, 0)
    outputs: tuple[Rows | None, ...] = ()
    places: dict[tuple[str, int], Rows | None] = field(default_factory=dict)
    losses: bool = False
    reason: str = ""

    def samples(self, leaves: Sequence[Any]) -> int:
        """The number of samples in the whole input."""
        leaf, dim = self.batch
        return int(leaves[leaf].size(dim))


@contextmanager
def shared(region: Region, losses: bool) -> Iterator[None]:
    """Be in a shared region; handle what it draws, and its losses if it has any."""
    with (
        entered(region),
        Draws(region) if region.places else nullcontext(),
        Losses(region) if losses else nullcontext(),
    ):
        yield


class NotDivisible(Exception):
    """Why a division does not hold."""


@dataclass(frozen=True)
class _Trial:
    """For each output leaf its possible forms, and which of them hold on this rank; the random draws; any losses."""

    forms: list[list[Rows | None]]
    matches: list[list[bool]]
    places: dict[tuple[str, int], Rows | None]
    losses: bool


def find(module: nn.Module, call: Callable[..., Any], leaves: Sequence[Any], known: Division | None = None) -> Division:
    """Try the divisions of an input until one holds; the ranks agree on the answer. A collective.

    Args:
        module: the module whose state must not change by the trial.
        call: takes the input leaves and gives the module's output.
        leaves: the input, flattened.
        known: the division that held before: only this one is tried.

    Raises:
        RuntimeError: the ranks were given different inputs.
    """
    with tolerance_times(_AGAIN if known else 1.0):
        if any(isinstance(leaf, Tensor) and leaf.device.type == "xla" for leaf in leaves):
            from .xla.host import on_host

            found = _find(*on_host(module, leaves), call, known)
            if not found.reason.startswith(_FAILS):  # as it does on the host where it makes tensors on the device
                return found
        return _find(module, leaves, call, known)


# A repeated trial may differ by this many times more: other rows and weights round worse, and failing stops the run.
_AGAIN = 10.0
_FAILS = "it cannot compute a part of the batch"


def _find(module: nn.Module, leaves: Sequence[Any], call: Callable[..., Any], known: Division | None) -> Division:
    _require_equal_inputs(leaves)
    if known is None:
        _require_equal_weights(module)
    if any(isinstance(leaf, Tensor) and leaf.layout is not torch.strided for leaf in leaves):
        return Division(reason="a tensor in its input is sparse")
    if random_states.has_generator(module):
        return Division(reason="it draws from a generator of its own")
    try:
        _copy_of(module)
    except Exception:  # noqa: BLE001  whatever cannot be copied
        return known or Division(reason="it cannot be copied, to try the division on the copy")
    reasons: list[str] = []
    for inputs, batch in [(known.inputs, known.batch)] if known else _candidates(leaves):
        # A few rows tell as much as the whole batch; one less than a multiple of the ranks, so that shares are uneven.
        first, dim = leaves[batch[0]], batch[1]
        total = min(first.size(dim), 4 * dist.get_world_size() - (first.device.type != "xla"))
        few = [leaf.narrow(rows.dim, 0, total) if rows else leaf for leaf, rows in zip(leaves, inputs, strict=True)]
        trial = None
        try:
            trial = _try(module, call, few, inputs, total)
            reasons.append("the outputs of a sample depend on the rest of the batch")
        except (NotDivisible, UnknownDraw, UnknownLoss) as error:
            reasons.append(str(error))
        except Exception as error:  # noqa: BLE001  whatever user code raises on an input that it was not made for
            reasons.append(f"{_FAILS} ({type(error).__name__})")
        agreed = _agree(trial.matches if trial else [[False]])
        if agreed is not None and trial is not None:
            outputs = tuple(forms[choice] for forms, choice in zip(trial.forms, agreed, strict=True))
            found = Division(inputs, batch, outputs, trial.places, trial.losses)
            try:
                if same_gradients(module, call, few, found, total):
                    return found
                reasons[-1] = "the gradients of a sample depend on the rest of the batch"
            except NotDivisible as error:
                reasons[-1] = str(error)
    return Division(reason=reasons[0] if reasons else "no tensor in its input has a sample for every process")


def _require_equal_inputs(leaves: Sequence[Any]) -> None:
    tensors = [leaf for leaf in leaves if isinstance(leaf, Tensor) and not leaf.is_complex()]
    tensors = [leaf for leaf in tensors if leaf.layout is torch.strided]
    digest = torch.nan_to_num(torch.tensor([float(len(leaves)), *map(_digest, tensors[:15])], dtype=torch.float64))
    digest = torch.cat([digest, digest.new_zeros(16 - len(digest))])
    lowest, highest = digest.clone(), digest.clone()
    dist.all_reduce(lowest, dist.ReduceOp.MIN)
    dist.all_reduce(highest, dist.ReduceOp.MAX)
    if not torch.equal(lowest, highest):
        raise RuntimeError(
            "ddpify: the processes drew different batches, so they would train something else. Something in the "
            "script differs between processes: the order of a set (start with PYTHONHASHSEED=0), a seed taken from "
            "the time, or a generator without a seed"
        )


def _require_equal_weights(module: nn.Module) -> None:
    """Before the first division only: later, what is computed outside of it may differ in the last digits on GPUs."""
    tensors = [p for p in module.parameters() if not (nn.parameter.is_lazy(p) or p.is_complex())]
    sizes = [
        float(sum(len(name) for name, _ in module.named_parameters())),
        float(sum(tensor.numel() for tensor in tensors)),
    ]
    weights = sum(map(_digest, tensors), 0.0)
    scale = sum((_digest(tensor.abs()) for tensor in tensors), 0.0)
    lowest = torch.nan_to_num(torch.tensor([*sizes, weights], dtype=torch.float64))
    highest = lowest.clone()
    dist.all_reduce(lowest, dist.ReduceOp.MIN)
    dist.all_reduce(highest, dist.ReduceOp.MAX)
    difference = highest - lowest
    if difference[:2].any() or float(difference[2]) > 1e-3 * scale:
        raise RuntimeError(
            f"ddpify: {type(module).__name__} is not the same on every process: its size or its first weights differ. "
            "Something in the script differs between processes: the order of a set (start with PYTHONHASHSEED=0), a "
            "seed taken from the time, or a generator without a seed"
        )


def _digest(tensor: Tensor) -> float:
    """A number that tells two tensors apart, also by the order of their values."""
    flat = tensor.detach().double().flatten()
    return float(flat @ torch.linspace(1, 2, len(flat), dtype=flat.dtype, device=flat.device))


def is_watched(module: nn.Module) -> bool:
    """Whether something would see, in a divided forward or backward, a part of the batch or a local gradient."""
    for part in module.modules():
        if part._forward_hooks or part._backward_hooks or part._backward_pre_hooks:
            return True
        if any(not type(hook).__module__.startswith("torch.") for hook in part._forward_pre_hooks.values()):
            return True
    return any(p._backward_hooks or (p.requires_grad and not p.is_leaf) for p in module.parameters())


def is_compilable(module: nn.Module, found: Division) -> bool:
    """Whether a compiled module can take its share: it needs no mode that sees its operations, and sends nothing."""
    batch_statistics = any(isinstance(part, _BatchNorm) for part in module.modules())
    return not (found.places or found.losses or batch_statistics)


def _candidates(leaves: Sequence[Any]) -> Iterator[tuple[tuple[Rows | None, ...], tuple[int, int]]]:
    """Ways to see a batch in an input: the first tensor's dim 0, then its dim 1; other tensors follow by their size."""
    first = next((i for i, leaf in enumerate(leaves) if isinstance(leaf, Tensor) and leaf.dim()), None)
    if first is None:
        return
    for batch in range(min(2, leaves[first].dim())):
        total = leaves[first].size(batch)
        if not divides(leaves[first], batch):
            continue
        places: list[Rows | None] = []
        for i, leaf in enumerate(leaves):
            sizes = list(leaf.shape) if isinstance(leaf, Tensor) else []
            dims = [dim for dim in (batch, 0, 1) if dim < len(sizes) and sizes[dim] == total]
            places.append(Rows(batch if i == first else dims[0]) if dims else None)
        yield tuple(places), (first, batch)


def _try(
    module: nn.Module,
    call: Callable[..., Any],
    leaves: Sequence[Any],
    inputs: Sequence[Rows | None],
    total: int,
) -> _Trial:
    """Compute the whole and this rank's rows, and compare."""
    whole_region = Region("record", total, total)
    whole_module, local_module = _copy_of(module), _copy_of(module)
    with random_states.kept(), torch.no_grad(), entered(whole_region), Draws(whole_region), Losses(whole_region):
        given = [_copied(leaf) for leaf in leaves]
        whole, whole_spec = tree_flatten(call(whole_module, given))
        for before, after in zip(leaves, given, strict=True):
            if isinstance(before, Tensor) and not same(before, after):
                raise NotDivisible("it changes its input in place")
    losses = len(whole_region.losses)
    local_region = Region(
        "replay", total, count(total), whole_region.statistics, list(whole_region.draws), list(whole_region.losses)
    )
    with random_states.kept(), torch.enable_grad(), entered(local_region), Draws(local_region), Losses(local_region):
        parts = [
            share(leaf.detach(), total, rows) if rows else _copied(leaf)
            for leaf, rows in zip(leaves, inputs, strict=True)
        ]
        local, local_spec = tree_flatten(call(local_module, parts))
        if _trained(local) - {id(parameter) for parameter in module.parameters()}:
            raise NotDivisible("it uses a trained tensor that is not one of its parameters")
    if whole_spec != local_spec:
        raise NotDivisible("its output has another structure for a part of the batch")
    kept = next(different_state(whole_module, local_module), None)
    if kept is not None:
        raise NotDivisible(f"it keeps {kept}, which depends on the whole batch")
    forms, matches = [], []
    for full, part in zip(whole, local, strict=True):
        possible = _forms(full, total)
        forms.append(possible)
        matches.append([_holds(full, part, total, rows, losses > 0) for rows in possible])
    return _Trial(forms, matches, local_region.places, losses > 0)


def same_gradients(
    module: nn.Module, call: Callable[..., Any], leaves: Sequence[Any], found: Division, total: int
) -> bool:
    """Whether the gradients of the shares add up to those of the whole. A collective.

    Outputs alone do not show a backward of one's own that mixes samples, nor a mixing that starts at zero.

    Raises:
        NotDivisible: its backward fills `.grad` by itself, past the reduction; alike on every rank.
    """
    parameters = [parameter for parameter in module.parameters() if parameter.requires_grad]
    generator = torch.Generator().manual_seed(0)
    with random_states.kept(), torch.enable_grad():
        try:
            expected = tree_flatten(call(_copy_of(module), [_copied(leaf) for leaf in leaves]))[0]
            weights = [
                torch.randn(output.shape, generator=generator).to(output) if _needs_gradient(output) else None
                for output in expected
            ]
            whole = _gradients(expected, weights, parameters)
        except RuntimeError:  # alike on every rank; for example reentrant checkpointing, which forbids autograd.grad
            return False
    region = Region("share", total, count(total), places=found.places)
    with random_states.kept(), torch.enable_grad(), shared(region, found.losses):
        parts = [
            share(leaf.detach(), total, rows) if rows else _copied(leaf)
            for leaf, rows in zip(leaves, found.inputs, strict=True)
        ]
        outputs = tree_flatten(call(_copy_of(module), parts))[0]
    for output, value, rows in zip(outputs, expected, found.outputs, strict=True):
        if rows is None and isinstance(value, Tensor) and not same(value, output):
            return False
    weights = [
        None if weight is None else share(weight, total, rows) if rows else weight / dist.get_world_size()
        for weight, rows in zip(weights, found.outputs, strict=True)
    ]
    try:
        summed = _gradients(outputs, weights, parameters)
    except RuntimeError:  # alike on every rank: checkpointing, which computes its forward again outside the region
        return False
    for gradient in summed:
        dist.all_reduce(gradient)
    largest = max((float(gradient.norm()) for gradient in whole), default=0.0)
    return all(
        float((ours - true).norm()) <= 10 * tolerance(true) * max(float(true.norm()), 0.01 * largest)
        for ours, true in zip(summed, whole, strict=True)
    )


def _needs_gradient(output: Any) -> bool:
    return isinstance(output, Tensor) and output.requires_grad


def _gradients(
    outputs: Sequence[Any], weights: Sequence[Tensor | None], parameters: list[nn.Parameter]
) -> list[Tensor]:
    """The gradients of the weighted sum of some outputs, as dense tensors of their own."""
    pairs = [(output, weight) for output, weight in zip(outputs, weights, strict=True) if weight is not None]
    if not pairs or not parameters:
        return []
    before = [parameter.grad for parameter in parameters]
    try:
        for parameter in parameters:
            parameter.grad = None
        gradients = torch.autograd.grad(
            [output for output, _ in pairs], parameters, [weight for _, weight in pairs], allow_unused=True
        )
        if any(parameter.grad is not None for parameter in parameters):
            raise NotDivisible("its backward runs a backward of its own, as that of reversible layers does")
    finally:
        for parameter, gradient in zip(parameters, before, strict=True):
            parameter.grad = gradient
    return [
        torch.zeros_like(parameter) if gradient is None else gradient.to_dense().clone()
        for gradient, parameter in zip(gradients, parameters, strict=True)
    ]


def _trained(outputs: Sequence[Any]) -> set[int]:
    """The ids of the leaf tensors that get a gradient through these outputs."""
    found: set[int] = set()
    seen: set[Any] = set()
    nodes = [output.grad_fn for output in outputs if isinstance(output, Tensor) and output.grad_fn is not None]
    while nodes:
        node = nodes.pop()
        if node in seen:
            continue
        seen.add(node)
        if hasattr(node, "variable"):
            found.add(id(node.variable))
        nodes += [following for following, _ in node.next_functions if following is not None]
    return found


def _forms(whole: Any, total: int) -> list[Rows | None]:
    if not isinstance(whole, Tensor):
        return [None]
    forms: list[Rows | None] = [Rows(dim) for dim, size in enumerate(whole.shape) if size == total]
    for dim, size in enumerate(whole.shape):
        if size > total and size % total == 0:
            forms += [Rows(dim), Rows(dim, major=False)]
    return [*forms, None]


def _holds(whole: Any, part: Any, total: int, rows: Rows | None, losses: bool) -> bool:
    if not isinstance(whole, Tensor):
        plain = whole is None or isinstance(whole, (bool, str))  # a number may be equal by accident
        return plain and type(whole) is type(part) and bool(whole == part)
    if rows is None:
        return losses and whole.dim() == 0 and same(whole, part)
    expected = share(whole, total, rows)
    return same(expected, part)


def _agree(matches: list[list[bool]]) -> list[int] | None:
    """For each output leaf the first form that holds on every rank; None if a leaf has none."""
    most = 16
    flags = torch.zeros(64 * most, dtype=torch.int32)
    for i, row in enumerate(matches[:64]):
        for j, flag in enumerate(row[:most]):
            flags[i * most + j] = int(flag)
    dist.all_reduce(flags, dist.ReduceOp.MIN)
    choices: list[int] = []
    for i in range(len(matches)):
        agreed = flags[i * most : (i + 1) * most].nonzero().flatten().tolist() if i < 64 else []
        if not agreed:
            return None
        choices.append(agreed[0])
    return choices


def _copied(leaf: Any) -> Any:
    return leaf.detach().clone() if isinstance(leaf, Tensor) else leaf


def _copy_of(module: nn.Module) -> nn.Module:
    """A copy to try things on, with the same trainable parameters."""
    memo: dict[int, Any] = {id(p): p for p in module.parameters() if p.requires_grad}
    for part in module.modules():
        for leaf in tree_flatten(list(vars(part).values()))[0]:
            if isinstance(leaf, Tensor) and leaf.grad_fn is not None:  # torch refuses to copy what it computed
                memo[id(leaf)] = leaf.detach().clone()
    copied = deepcopy(module, memo)
    route(copied)
    return copied
