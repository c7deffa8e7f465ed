"""A forward on this rank's rows: its inputs are split, and its outputs look like those of the whole batch.

Rows of a loaded batch, or of another divided forward, are taken as they are; outputs are joined when somebody needs the
whole of them (lazy/outputs.py).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import torch
from torch import Tensor, nn

from .. import engines
from ..agreement import failure
from ..gradients.reduction import NoReduction, Reduction
from ..lazy import outputs
from ..lazy.batch import DistributedTensor
from ..lazy.held_rows import size
from ..lazy.partial import Partial, partial
from ..sharding import structure
from ..sharding.collectives import Rows, count, gather_with_grad, leave, split, spread
from ..sharding.given_whole import enter_whole
from ..sharding.graphs import AnyRows, Segment, at
from ..sharding.structure import Form
from ..torch_internals import uncompiled
from . import compiled, kept_attributes, region
from .division import Division, computed

AnyReduction: TypeAlias = Reduction | NoReduction

_FIRST = Rows(0)


def region_of(found: Division, total: int, reduction: AnyReduction) -> region.Region:
    """Where a forward handles this rank's of `total` samples."""
    here = region.Region("shard", total, count(total), places=found.places, over_samples=list(found.losses))
    here.decides, here.counts, here.enter = found.decides, found.counts, reduction.enter
    here.drawn = found.drawn
    return here


def kind() -> str:
    """What a forward is for, for people."""
    return "the training forward" if torch.is_grad_enabled() else "the forward without gradients"


def name_of(module: nn.Module) -> str:
    """What a module is called, for people."""
    return type(uncompiled(module)).__name__


def divided(
    module: nn.Module,
    call: Callable[..., Any],
    found: Division,
    leaves: list[Any],
    spec: Form,
    here: region.Region,
    device: torch.device,
    reduction: AnyReduction,
    draws_original: bool,
) -> Any:
    """What a module returns for a batch, of which each rank computes its rows.

    Args:
        module: whose forward it is. call: computes it. found: how it is divided. leaves, spec: its arguments, and their
            structure.
        here: the region of its samples. device: where they are.
        reduction: of the gradients. draws_original: whether to draw the numbers of one process.
    Raises:
        RuntimeError: the forward has failed on another rank, or no longer draws, or returns, what it did when its
            division was found.
    """
    led: Callable[[Tensor], Tensor] | None = None
    total = here.total
    layout = None if found.graphs is None else found.graphs.layout(leaves)
    if found.graphs is not None and layout is not None:
        values = layout.own([*map(whole_of, leaves)], found.graphs.places, reduction.enter)
        led, values = _entering(values, found.graphs.places, reduction)
    elif len(leaves) == 1 and found.inputs[0] is not None:
        values = [_rows(leaves[0], total, found.inputs[0], reduction)]
    else:
        taken: dict[Any, Any] = {}  # what is given twice stays one
        values = [
            _once(taken, leaf, rows, lambda leaf, rows: _rows(leaf, total, rows, reduction)) if rows else whole_of(leaf)
            for leaf, rows in zip(leaves, found.inputs, strict=True)
        ]
        led, values = _entering(values, found.inputs, reduction)
    args, kwargs = structure.unflatten(values, spec)
    held = kept_attributes.places(module, found.kept) if found.kept else []
    kept_before = [attributes.get(name) for attributes, name in held]
    if layout is not None:
        here.layout, here.row_numbers = layout, found.row_numbers(values)
    original = draws_original or engines.of(device).records  # it would send a seed for each forward
    before = torch.get_rng_state() if original and not found.places else None
    try:
        own = None if original else device
        if found.eager:
            with compiled.eagerly():
                output = computed(here, own, call, args, kwargs)
        else:
            output = computed(here, own, call, args, kwargs)
    except Exception as error:  # whatever the user's forward raises
        remedy = "Raise what depends on the data before the model is called"
        failure.require_everywhere(error, f"{kind()} of {name_of(module)}", remedy)
        raise
    if before is not None and not torch.equal(before, torch.get_rng_state()):
        raise RuntimeError(
            f"ddpify: the forward of {name_of(module)} began to draw random numbers after it had been "
            "divided; let it draw from its first training step on, or leave it out of DistributedDataParallel"
        )
    parts, form = structure.flatten(output)
    if led is not None:
        parts = [_led(part, led) for part in parts]
    outputs_at = found.outputs[: len(found.outputs) - len(held)]
    if len(parts) != len(outputs_at):
        raise RuntimeError(f"ddpify: {name_of(module)} returned another structure than before")
    if found.sizes:
        _require_equal_sizes(module, parts, found)
    if len(parts) == 1 and outputs_at[0] is not None and not held:
        return structure.unflatten([_output(module, parts[0], here, outputs_at[0])], form)
    made: dict[Any, Any] = {}

    def whole(part: Any, rows: AnyRows | None) -> Any:
        if rows is None:
            return _left(part, reduction)
        return _once(made, part, rows, lambda part, rows: _output(module, part, here, rows))

    for (attributes, name), before, rows in zip(held, kept_before, found.outputs[len(parts) :], strict=True):
        part = attributes.get(name)
        if part is not before and isinstance(part, Tensor):
            attributes[name] = whole(part if led is None else _led(part, led), rows)
    return structure.unflatten([*map(whole, parts, outputs_at)], form)


def _require_equal_sizes(module: nn.Module, parts: Sequence[Any], found: Division) -> None:
    """A collective."""
    sizes = [
        size
        for part, rows in zip(parts, found.outputs, strict=True)
        if rows
        for dim, size in enumerate(part.shape)
        if dim != rows.dim
    ]
    if spread(torch.tensor([hash(tuple(sizes)) >> 1], device="cpu")).any():
        raise RuntimeError(
            f"ddpify: {kind()} of {name_of(module)} returned rows of another size on "
            f"another rank, here {sizes}: it takes a size from the values of its batch, such as the longest "
            "sequence. Give it that size as an argument, or leave it out of DistributedDataParallel"
        )


def _output(module: nn.Module, part: Tensor, here: region.Region, rows: AnyRows) -> Tensor:
    if isinstance(rows, Segment):
        return gather_with_grad(part, here.total, at(here.layout, rows), here.enter)
    if part.size(rows.dim) % here.local:
        raise RuntimeError(
            f"ddpify: {part.size(rows.dim)} rows for {here.local} samples in an output of {name_of(module)}"
        )
    return outputs.output(part, here.total, rows, here.enter)


def _once(made: dict[Any, Any], tensor: Tensor, rows: Any, make: Callable[[Tensor, Any], Tensor]) -> Tensor:
    key = id(tensor), rows
    if key not in made:
        made[key] = make(tensor, rows)
    whole: Tensor = made[key]
    return whole


def _rows(leaf: Tensor, total: int, rows: Rows, reduction: AnyReduction) -> Tensor:
    if type(leaf) is not Tensor and isinstance(leaf, DistributedTensor) and rows == _FIRST and size(leaf, 0) == total:
        held = leaf.rows
        if held is not None:
            return held
    return split(whole_of(leaf), total, rows, reduction.enter)


def _entering(
    values: list[Any], inputs: Sequence[Any], reduction: AnyReduction
) -> tuple[Callable[[Tensor], Tensor] | None, list[Any]]:
    """As `enter_whole`, of the tensors with gradients among some values that are whole; None if there are none."""
    trained = [
        isinstance(value, Tensor) and rows is None and value.requires_grad
        for value, rows in zip(values, inputs, strict=True)
    ]
    if not any(trained) or not torch.is_grad_enabled():
        return None, values
    led, inside = enter_whole(
        [value for value, is_trained in zip(values, trained, strict=True) if is_trained], reduction.enter
    )
    given = iter(inside)
    return led, [next(given) if is_trained else value for value, is_trained in zip(values, trained, strict=True)]


def _led(part: Any, led: Callable[[Tensor], Tensor]) -> Any:
    if isinstance(part, Partial):
        if part.is_partial and part._part.requires_grad:
            return partial(led(part._part), part._common, part._on_enter, part._divisor, part._operation)
        if part.is_partial:
            return part
        part = part.whole()
    return led(part) if isinstance(part, Tensor) and part.requires_grad else part


def _left(part: Any, reduction: AnyReduction) -> Any:
    if isinstance(part, Partial):
        return part.left()
    return leave(part, reduction.enter) if isinstance(part, Tensor) and part.requires_grad else part


def whole_of(leaf: Any) -> Any:
    """An input as every rank takes it whole; a collective where each holds its rows of it."""
    return leaf.whole() if isinstance(leaf, DistributedTensor) else leaf
