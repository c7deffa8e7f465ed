"""One trial of a division: outputs and gradients of the parts against those of the whole batch."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from typing import Any, TypeAlias

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.utils.checkpoint import CheckpointFunction

from .. import engines
from ..agreement import random_states
from ..forward.batch_norm import route
from ..forward.compiled import copied
from ..forward.decisions import Decisions
from ..forward.division import Division, sharded
from ..forward.draws import FUSED, Draws
from ..forward.layer_copies import is_without_parts
from ..forward.losses import Losses
from ..forward.region import Draw, Region, within
from ..launch.environment import draws_original
from ..lazy.batch import wholes
from ..sharding import structure
from ..sharding.collectives import AnyPlace, Rows, add_over_ranks, count, once, shard, world_size
from ..sharding.graphs import AnyDrawn, AnyRows, Layout, OwnNumbers, Segment, at
from ..torch_internals import tree_leaves
from . import outliving, own_numbers
from .closeness import different_state, rounded_as, same, tolerance
from .extreme_draws import drawn_outside_of_torch
from .held import held, noted
from .projections import projected
from .reads import Reads

REENTRANT = "it checkpoints with use_reentrant=True, which forbids to try its gradients"

Places: TypeAlias = dict[Draw, AnyDrawn | None]


class NotDivisible(Exception):
    """Why a division does not hold."""


class NoCopy(Exception):
    """A module cannot be copied, for one that has parameters without a size yet."""


@dataclass(frozen=True)
class Trial:
    """For each output leaf its possible forms, and which of them hold on this rank; the rest as in Division.

    numbers, gives_loss: whether there is a number among them without a gradient, and with one. several: as in Region.
    reason: of a leaf that has no form that holds; "" if all have one.
    """

    forms: list[list[AnyRows | None]]
    matches: list[list[bool]]
    places: Places
    draws_outside: bool
    losses: list[bool]
    decides: bool
    counts: dict[tuple[str, int, int], bool]
    sizes: bool
    rounded: torch.dtype | None
    numbers: bool
    gives_loss: bool
    several: Sequence[Draw]
    reason: str


def attempt(
    module: nn.Module,
    call: Callable[..., Any],
    leaves: Sequence[Any],
    way: Division,
    total: int,
    extreme: float | None = None,
    known: Places | None = None,
    differentiates: bool = False,
) -> Trial:
    """Compute the whole and this rank's rows, and compare.

    Args:
        way: where the samples lie in the leaves. total: how many there are.
        extreme: what is drawn once for all samples, as in Region; None: any. known: where the samples lay in what other
            trials drew. differentiates: whether the forward may ask for gradients of its own, which takes more memory.
    """
    trial, made = _attempt(module, call, leaves, way, total, extreme, known, differentiates)
    if outliving.is_left(made):
        raise NotDivisible("it leaves values of its samples outside of itself, as in a list that is global")
    return trial


def fails(module: nn.Module, call: Callable[..., Any], leaves: Sequence[Any]) -> bool:
    """Whether a forward of the whole batch raises an exception."""
    try:
        with random_states.kept(), torch.no_grad():
            call(copy_of(module), [structure.copied(leaf) for leaf in leaves])
    except Exception:  # noqa: BLE001  whatever user code raises
        return True
    return False


def _attempt(
    module: nn.Module,
    call: Callable[..., Any],
    leaves: Sequence[Any],
    way: Division,
    total: int,
    extreme: float | None,
    known: Places | None,
    differentiates: bool,
) -> tuple[Trial, outliving.Noted]:
    """As `attempt`; and what was made of the samples of the part."""
    layout = way.layout(leaves)
    given = [structure.copied(leaf) for leaf in leaves]
    whole_region = Region("record", total, total, places=known or {}, extreme=extreme, layout=layout)
    whole_region.row_numbers = way.row_numbers(given)
    whole_module, local_module = copy_of(module), copy_of(module)
    outside = random_states.outside_of_torch()
    with (
        _kept_trainable(module, whole_module),
        random_states.kept(),
        torch.set_grad_enabled(differentiates),
        _noted(whole_region, extreme),
        noted(whole_module) as normalised,
    ):
        whole, whole_spec = structure.flatten(call(whole_module, given))
        for before, after in zip(leaves, given, strict=True):
            if isinstance(before, Tensor) and not same(before, after):
                raise NotDivisible("it changes its input in place")
        outside_after = random_states.outside_of_torch()
    local_region = Region(
        "replay", total, count(total), whole_region.statistics, list(whole_region.draws), list(whole_region.losses)
    )
    local_region.decisions = list(whole_region.decisions)
    local_region.places, local_region.layout = dict(known or {}), layout
    parts = way.own(leaves, layout)
    local_region.row_numbers = way.row_numbers(parts)
    with random_states.kept(), torch.enable_grad(), _noted(local_region, extreme):
        samples = way.samples_in(parts)
        counters = own_numbers.changed(module, whole_module, local_module)
        with (
            own_numbers.watched(counters),
            Reads(samples, own_numbers.tensors(counters), local_region.row_numbers) as reads,
            held(local_module, normalised, total),
        ):
            local, local_spec = structure.flatten(call(local_module, parts))
            reads.require_none(local)
        if random_states.outside_of_torch() != outside_after:
            raise NotDivisible("it draws random numbers of Python or numpy for each sample")
        own = {id(parameter) for parameter in module.parameters()}
        if _trained(local) - own - reads.samples.keys():  # a forward may want the gradient of its samples
            raise NotDivisible("it uses a trained tensor that is not one of its parameters")
    if None in local_region.places.values() and OwnNumbers() in local_region.places.values():
        raise NotDivisible("it draws numbers that are the same for every sample, and others in a size of their own")
    if reads.merges and {None, OwnNumbers()} & {*local_region.places.values()}:
        raise NotDivisible("it draws for values that several of its samples may have")
    if local_region.decisions:
        raise NotDivisible("it decides less often for a part of the batch")
    if whole_spec != local_spec:
        raise NotDivisible("its output has another structure for a part of the batch")
    rounded = torch.float32 if reads.rounds else None
    with rounded_as(rounded):
        kept = next(different_state(whole_module, local_module), None)
    if kept is not None:
        raise NotDivisible(f"it keeps {kept}, which depends on the whole batch")
    forms, matches = [], []
    for full, part in zip(whole, local, strict=True):
        possible = _forms(full, total, layout)
        forms.append(possible)
        loss = isinstance(part, Tensor) and part.dim() == 0 and bool(local_region.over_samples)
        constant = not (reads.comes_from_samples(part) or _needs_gradient(part))
        with rounded_as(rounded):
            matches.append([_holds(full, part, total, rows, layout, loss or constant) for rows in possible])
    failing = [full for full, holds in zip(whole, matches, strict=True) if not any(holds)]
    trial = Trial(
        forms,
        matches,
        local_region.places,
        outside_after != outside,
        local_region.over_samples,
        bool(whole_region.decisions),
        local_region.counts,
        reads.sizes,
        rounded,
        any(map(_is_number, local)),  # computed with gradients, if it has any
        any(isinstance(part, Tensor) and part.dim() == 0 and part.requires_grad for part in local),
        [*local_region.several],
        _why(failing[0], total) if failing else "",
    )
    mine = {id(leaf) for leaf in leaves}
    return trial, outliving.noted(tensor for tensor in reads.made() if id(tensor) not in mine)


@contextmanager
def _kept_trainable(module: nn.Module, copy: nn.Module) -> Iterator[None]:
    """Raises NotDivisible if a forward of a copy, which has the same trainable parameters, changes which are trained.

    The reduction of a divided forward is made before it.
    """
    before = [parameter.requires_grad for parameter in module.parameters()]
    yield
    changed = [parameter.requires_grad for parameter in copy.parameters()] != before
    for parameter, trained in zip(module.parameters(), before, strict=True):
        parameter.requires_grad_(trained)
    if changed:
        raise NotDivisible("it freezes or unfreezes parameters")


@contextmanager
def _noted(region: Region, extreme: float | None) -> Iterator[None]:
    with within(region), Draws(region), Losses(region), Decisions(region), drawn_outside_of_torch(extreme):
        yield


def same_gradients(
    module: nn.Module, call: Callable[..., Any], leaves: Sequence[Any], found: Division, total: int
) -> bool:
    """Whether the gradients of the shares add up to those of the whole, and the outputs are its rows. A collective.

    Outputs alone do not show a backward of one's own that mixes samples, nor a mixing that starts at zero. Where inputs
    have gradients, as those of a part of a module, theirs are compared too: what is checkpointed reentrantly has one
    for its parameters then only.

    Raises:
        NotDivisible: its backward fills `.grad` by itself, past the reduction, or forbids autograd.grad; alike on every
            rank.
    """
    parameters = [parameter for parameter in module.parameters() if parameter.requires_grad]
    layout = found.layout(leaves)
    inputs = found.inputs_at(layout)
    outputs_at = [rows and at(layout, rows) for rows in found.outputs]
    of_rows = [rows for leaf, rows in zip(leaves, inputs, strict=True) if _needs_gradient(leaf) and rows]
    generator = torch.Generator().manual_seed(0)
    expected: list[Any] = []
    with random_states.kept(), torch.enable_grad():
        try:
            own = FUSED in found.places or OwnNumbers() in found.places.values()
            with Draws(Region("record", total, total, places=found.places)) if own else nullcontext():
                copy, (given, wanted, apart) = copy_of(module), _differentiable(leaves, leaves, inputs)
                with noted(copy) as normalised:
                    expected = structure.flatten(call(copy, given))[0]
                weights = [
                    torch.randn(output.shape, generator=generator, device="cpu").to(output)
                    if _needs_gradient(output)
                    else None
                    for output in expected
                ]
                gradients, whole_apart = _gradients(expected, weights, [*parameters, *wanted], apart)
        except RuntimeError as error:  # alike on every rank
            if any(node.name() == f"{CheckpointFunction.__name__}Backward" for node in _nodes(expected)):
                raise NotDivisible(REENTRANT) from error
            return False
    norms, whole = [float(gradient.norm()) for gradient in gradients], projected(gradients)
    expected = [value.detach() if isinstance(value, Tensor) else value for value in expected]
    del gradients
    region = Region("shard", total, count(total), places=found.places, over_samples=list(found.losses))
    region.decides, region.counts, region.layout = found.decides, found.counts, layout
    copy, (given, wanted, apart) = copy_of(module), _differentiable(leaves, found.own(leaves, layout), inputs)
    region.row_numbers = found.row_numbers(given)
    with random_states.kept(), torch.enable_grad(), sharded(region), held(copy, normalised, total):
        outputs = wholes(structure.flatten(call(copy, given))[0])
    with rounded_as(found.rounded):
        differs = any(
            isinstance(value, Tensor) and not same(shard(value, total, rows) if rows else value, output)
            for output, value, rows in zip(outputs, expected, outputs_at, strict=True)
        )
    weights = [
        None if weight is None else shard(weight, total, rows) if rows else weight / world_size()
        for weight, rows in zip(weights, outputs_at, strict=True)
    ]
    # What is checkpointed draws again in its backward: this rank's own numbers, which the state of its stream gives.
    own = not draws_original() and not any(
        engines.of(output.device).records for output in outputs if isinstance(output, Tensor)
    )
    again = own and bool(found.places) and None not in found.places.values()
    try:
        with Draws(region) if again else nullcontext():
            gradients, part_apart = _gradients(outputs, weights, [*parameters, *wanted], apart)
    except RuntimeError:  # alike on every rank: checkpointing, which computes its forward again outside the region
        return False
    summed = projected(gradients)
    add_over_ranks(once(summed))
    largest = max(norms, default=0.0)
    with rounded_as(found.rounded):
        differs = (
            differs
            or any(
                float(difference.norm()) > 10 * tolerance(parameter) * max(norm, 0.01 * largest)
                for difference, parameter, norm in zip(
                    summed - whole, [*parameters, *wanted], norms, strict=False
                )  # none where nothing is trained
            )
            or any(
                float((shard(full, total, rows) - part).norm()) > 10 * tolerance(part) * float(full.norm())
                for full, part, rows in zip(whole_apart, part_apart, of_rows, strict=False)
            )
        )
    verdict = torch.tensor([int(differs)], device="cpu")
    dist.all_reduce(verdict, dist.ReduceOp.MAX)
    return not int(verdict)


def _differentiable(
    leaves: Sequence[Any], values: Sequence[Any], inputs: Sequence[AnyPlace | None]
) -> tuple[list[Any], list[Tensor], list[Tensor]]:
    """Copies of some values, with gradients where the leaves of the input have some.

    Returns:
        The copies, as a forward gets them; those with gradients that every rank has whole; those of which it has rows.
    """
    given: list[Any] = []
    wanted: list[Tensor] = []
    apart: list[Tensor] = []
    for leaf, value, rows in zip(leaves, values, inputs, strict=True):
        copy = structure.copied(value)
        if _needs_gradient(leaf):
            (apart if rows else wanted).append(copy.requires_grad_())
            copy = copy.clone()  # a forward may change it in place
        given.append(copy)
    return given, wanted, apart


def _needs_gradient(output: Any) -> bool:
    return isinstance(output, Tensor) and output.requires_grad


def _gradients(
    outputs: Sequence[Any], weights: Sequence[Tensor | None], summed: list[Tensor], apart: list[Tensor]
) -> tuple[list[Tensor], list[Tensor]]:
    """The gradients of the weighted sum of some outputs, dense: of what is summed over ranks, and of rows."""
    pairs = [(output, weight) for output, weight in zip(outputs, weights, strict=True) if weight is not None]
    wanted = [*summed, *apart]
    if not pairs or not wanted:
        return [], []
    before = [each.grad for each in wanted]
    try:
        for each in wanted:
            each.grad = None
        gradients = torch.autograd.grad(
            [output for output, _ in pairs], wanted, [weight for _, weight in pairs], allow_unused=True
        )
        if any(each.grad is not None for each in wanted):
            raise NotDivisible("its backward runs a backward of its own, as that of reversible layers does")
    finally:
        for each, gradient in zip(wanted, before, strict=True):
            each.grad = gradient
    dense = [
        torch.zeros_like(each) if gradient is None else gradient.to_dense()
        for gradient, each in zip(gradients, wanted, strict=True)
    ]
    return dense[: len(summed)], dense[len(summed) :]


def _trained(outputs: Sequence[Any]) -> set[int]:
    """The ids of the leaf tensors that get a gradient through these outputs."""
    return {id(node.variable) for node in _nodes(outputs) if hasattr(node, "variable")}


def _nodes(outputs: Sequence[Any]) -> Iterator[Any]:
    """What computes the gradients of these outputs."""
    seen: set[Any] = set()
    nodes = [output.grad_fn for output in outputs if isinstance(output, Tensor) and output.grad_fn is not None]
    while nodes:
        node = nodes.pop()
        if node in seen:
            continue
        seen.add(node)
        yield node
        nodes += [following for following, _ in node.next_functions if following is not None]


def _forms(whole: Any, total: int, layout: Layout | None) -> list[AnyRows | None]:
    if not isinstance(whole, Tensor):
        return [None]
    forms: list[AnyRows | None] = [Rows(dim) for dim, size in enumerate(whole.shape) if size == total]
    if layout is not None:
        axes = enumerate(layout.axes)
        of_axes = [Segment(dim, at) for at, axis in axes for dim, size in enumerate(whole.shape) if size == len(axis)]
        return [*forms, *of_axes, None]
    for dim, size in enumerate(whole.shape):
        if size > total and size % total == 0:
            forms += [Rows(dim), Rows(dim, major=False)]
    return [*forms, None]


def _holds(whole: Any, part: Any, total: int, rows: AnyRows | None, layout: Layout | None, may_be_equal: bool) -> bool:
    """alike: whether a tensor may be the same for the whole and a part, as a loss of the whole is, or a constant."""
    if not isinstance(whole, Tensor):
        return structure.equal(whole, part)
    if rows is None:
        return may_be_equal and same(whole, part)
    expected = shard(whole, total, at(layout, rows))
    return same(expected, part)


def _is_number(leaf: Any) -> bool:
    """Whether a leaf may be the same for a whole and its part by accident."""
    if isinstance(leaf, Tensor):
        return leaf.dim() == 0 and not leaf.requires_grad
    return isinstance(leaf, (int, float, complex)) and not isinstance(leaf, bool)


def _why(whole: Any, total: int) -> str:
    """Why an output leaf has no form that holds."""
    if isinstance(whole, structure.PLAIN):
        return f"it returns {whole!r}, which is something else for a part of the batch"
    if not isinstance(whole, Tensor):
        return f"it returns a {type(whole).__name__}, of which it is not known where the samples are"
    if not any(size and size % total == 0 for size in whole.shape):
        return f"it returns a tensor of size {list(whole.shape)} for {total} samples, which holds none for each"
    return "the outputs of a sample depend on the rest of the batch"


def copy_of(module: nn.Module) -> nn.Module:
    """A copy to try things on, with the same trainable parameters.

    Raises:
        NoCopy: something that it holds cannot be copied.
    """
    memo: dict[int, Any] = {id(p): p for p in module.parameters() if p.requires_grad}
    for part in module.modules():
        for leaf in tree_leaves([value for value in vars(part).values() if not is_without_parts(value)]):
            if isinstance(leaf, Tensor) and leaf.grad_fn is not None:  # torch refuses to copy what it computed
                memo[id(leaf)] = leaf.detach().clone()
    try:
        made = copied(module, memo)
    except Exception as error:  # whatever a module may hold
        raise NoCopy from error
    route(made)
    return made
