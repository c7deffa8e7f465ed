"""Whether and how a module's forward can be divided by samples: found by trying, before it is relied upon.

The source rarely says where the batch is in a tensor, or that samples do not meet. So the first training forward of
each form of input is computed twice on every rank without communication: on the whole batch, and on this rank's rows.
The rows must come out as they do in the whole. What does not pass is computed whole on every rank, which is exact and
merely not faster.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor, nn

from .. import accelerators, engines
from ..agreement import random_states
from ..forward.division import Division
from ..forward.draws import IN_KERNEL, UnknownDraw
from ..forward.losses import UnknownLoss
from ..forward.region import Draw
from ..launch.environment import draws_original
from ..sharding.collectives import Rows, broadcast_object, divides, gather_objects, played, spread, world_size
from ..sharding.graphs import AnyRows, OwnNumbers, Plan
from ..torch_internals import BatchNorm
from .attempt import REENTRANT, NoCopy, NotDivisible, Places, Trial, attempt, same_gradients
from .closeness import tolerance_times
from .copies import changed, in_float64, on_host
from .equal_ranks import require_equal_inputs, require_equal_weights
from .extreme_draws import EXTREMES
from .reads import ReadsSamples


def find(
    module: nn.Module,
    call: Callable[..., Any],
    leaves: Sequence[Any],
    known: Division | None = None,
    gradients: bool = True,
    graphs: Sequence[Plan] = (),
) -> Division:
    """Try the divisions of an input until one holds; the ranks agree on the answer. A collective.

    Args:
        module: the module whose state must not change by the trial.
        call: takes the input leaves and gives the module's output.
        leaves: the input, flattened.
        known: the division that held before: only this one is tried.
        gradients: whether to compare gradients too, where there are any, which costs three times the outputs.
        graphs: how the input may hold graphs.

    Raises:
        RuntimeError: the ranks were given different inputs.
    """
    with random_states.read_once():
        if not any(isinstance(leaf, Tensor) and engines.of(leaf.device).records for leaf in leaves):
            return _found(module, leaves, call, known, gradients, graphs)
        found = _found(*changed(module, leaves, on_host), call, known, gradients)
        if not found.reason.startswith(FAILS):  # as it does on the host where it makes tensors on the device
            return found
        with tolerance_times(_AGAIN if known else 1.0):
            return _find(module, leaves, call, known, gradients, ())


def _found(
    module: nn.Module,
    leaves: Sequence[Any],
    call: Callable[..., Any],
    known: Division | None,
    gradients: bool,
    graphs: Sequence[Plan] = (),
) -> Division:
    """As `find`; what fails is tried once more in float64, and what held only there is tried there from then on.

    In float32 rounding alone turns a ReLU over here and there, and one in a million moves a gradient by 1e-3: then the
    gradients alone are looked at again.
    """
    found = None
    if known is None or not known.in_float64:
        found = _find(module, leaves, call, known, gradients, graphs)
        if not found.reason or found.reason.startswith(_FOR_GOOD):
            return found
        if found.reason == _GRADIENTS:
            return replace(found, reason="") if _same_in_float64(module, call, leaves, found) else found
    with _default_dtype(torch.float64), suppress(NoCopy):
        exact = _find(*_in_float64(module, leaves), call, known, gradients, graphs)
        if not exact.reason:
            return replace(exact, in_float64=True)
    if known is None:
        assert found is not None
        return found
    with tolerance_times(_AGAIN):
        return replace(_find(module, leaves, call, known, gradients, graphs), in_float64=known.in_float64)


def confirmed(module: nn.Module, call: Callable[..., Any], leaves: Sequence[Any], found: Division) -> bool:
    """Whether the gradients of a whole batch are the sum of those of the parts, if need be in float64. A collective."""
    if same_gradients(module, call, leaves, found, found.samples(leaves)):
        return True
    with _default_dtype(torch.float64), suppress(NoCopy):
        copied, wide = _in_float64(module, leaves)
        return same_gradients(copied, call, wide, found, found.samples(leaves))
    return False


def still_holds(module: nn.Module, call: Callable[..., Any], leaves: Sequence[Any], known: Division) -> bool:
    """Whether a division holds for two or three rows of some ranks, by gradients and outputs of these. A collective.

    It is not asked what a forward reads or keeps, as `find` does with two more passes. False also where `find` has to
    say what is so.
    """
    if known.in_float64 or any(isinstance(leaf, Tensor) and engines.of(leaf.device).records for leaf in leaves):
        return False
    require_equal_inputs(leaves)
    try:
        with random_states.read_once(), played(_ranks_of_gradients(module, leaves, known)):
            few, total = _fewer(leaves, known, uneven=True)
            return same_gradients(module, call, few, known, total)
    except Exception:  # noqa: BLE001  whatever user code raises; on all ranks, which compute the same whole first
        return False


def _same_in_float64(module: nn.Module, call: Callable[..., Any], leaves: Sequence[Any], found: Division) -> bool:
    with _default_dtype(torch.float64), suppress(NoCopy, NotDivisible, UnknownLoss):
        return _same_gradients_of_few(*_in_float64(module, leaves), call, found)
    return False


def _same_gradients_of_few(module: nn.Module, leaves: Sequence[Any], call: Callable[..., Any], found: Division) -> bool:
    """Whether gradients add up for a few rows of each rank; where the output has a number with a gradient, in uneven
    shares, too. Of samples that are all alike a mean over a part is that over the whole, and of shares as large as each
    other so are its gradients."""
    few, total = _fewer(leaves, found)
    if not same_gradients(module, call, few, found, total):
        return False
    total = _uneven(found, leaves) if found.gives_loss else 0
    if not total or not divides(total, leaves[found.batch[0]].device):
        return True
    few = found.first(leaves, total)
    return not found.may_mix(few) or same_gradients(module, call, few, found, total)


def _uneven(found: Division, leaves: Sequence[Any]) -> int:
    """How many rows make shares that are not as large as each other; 0 if a batch has too few.

    Two for each rank at least where something is drawn: what is drawn for one alone may lie otherwise in memory.
    """
    size, ranks = found.samples(leaves), world_size()
    least = 2 * ranks + 1 if size > 2 * ranks or found.places else 2 * ranks - 1
    return least if least <= size else 0


def _few(leaves: Sequence[Any], way: Division, even: bool = False) -> tuple[list[Any], int]:
    """Some rows for each rank, which tell as much as the whole batch, and how many these are in all.

    One less than a multiple of the ranks, so that shares are uneven, where they may be; even: as many for each. With
    two ranks one trial then shows what else takes a second one (`_otherwise`): a repeated one takes half of the time.
    """
    uneven = not (even or engines.of(leaves[way.batch[0]].device).records)
    total = min(way.samples(leaves), _ROWS * world_size() - uneven)
    few = way.first(leaves, total)
    return (few, total) if way.may_mix(few) else ([*leaves], way.samples(leaves))


def _ranks(device: torch.device, size: int) -> int:
    """How many ranks a trial of outputs divides a batch for: three show of any number what a division may go wrong in.

    All of them where one has few rows, of which `squeeze()` and the like make something else.
    """
    ranks = world_size()
    return ranks if size < _ROWS * ranks or engines.of(device).records else min(_RANKS, ranks)


def _ranks_of_gradients(module: nn.Module, leaves: Sequence[Any], known: Division) -> int:
    """How many ranks a repeated trial of gradients divides a batch for: three, whose shares are uneven, show as much.

    All of them where something is sent that is no sum, or by other threads than this one.
    """
    ranks, device = world_size(), leaves[known.batch[0]].device
    sends = known.graphs is not None
    if accelerators.module_of(device.type) is not None:  # where backwards have threads of their own
        sends = sends or bool(known.places or known.losses or known.decides)
        sends = sends or any(isinstance(part, BatchNorm) for part in module.modules())
    return ranks if sends or known.samples(leaves) < 2 * ranks else min(_RANKS, ranks)


def _fewer(leaves: Sequence[Any], way: Division, uneven: bool = False) -> tuple[list[Any], int]:
    """Two rows for each rank, or one: gradients take most of a trial, and outputs were tried on more rows of a rank.

    As many for each: an even number, which shows of two ranks what an odd one does not (`_otherwise`). uneven: one row
    more where there are more ranks, of whose shares not all can be their own reverse.
    """
    ranks = world_size()
    fewer = min(2, way.samples(leaves) // ranks) * ranks
    fewer += uneven and 2 < ranks < fewer < way.samples(leaves)
    few = way.first(leaves, fewer)
    return (few, fewer) if way.may_mix(few) else ([*leaves], way.samples(leaves))


def _in_float64(module: nn.Module, leaves: Sequence[Any]) -> tuple[nn.Module, list[Any]]:
    try:
        return changed(module, leaves, in_float64)
    except Exception as error:  # whatever a module may hold
        raise NoCopy from error


@contextmanager
def _default_dtype(dtype: torch.dtype) -> Iterator[None]:
    before = torch.get_default_dtype()
    torch.set_default_dtype(dtype)
    try:
        yield
    finally:
        torch.set_default_dtype(before)


# A repeated trial may differ by this many times more: other rows and weights round worse, and failing stops the run.
_AGAIN = 10.0
_RANKS = 3
_ROWS = 3  # for each rank in a trial; of one alone, the order of its dimensions in memory is not to be seen
FAILS = "it cannot compute a part of the batch"
_DRAWS = 4  # times that a trial begins anew, knowing more of what is drawn
_SPARSE = "a tensor in its input is sparse"
_ITERATOR = "something in its input can be read only once"
_GENERATOR = "it draws from a generator of its own"
_NO_COPY = "it cannot be copied, to try the division on the copy"
_NO_SAMPLES = "no tensor in its input has a sample for every process"
_NOTHING_TO_MIX = "its graphs have no edges, or only those of one process, by which to try it"
_GRADIENTS = "the gradients of a sample depend on the rest of the batch"
_KNOWN = (NotDivisible, ReadsSamples, UnknownDraw, UnknownLoss)
_FOR_GOOD = (IN_KERNEL, FAILS, _SPARSE, _ITERATOR, _GENERATOR, _NO_COPY, _NO_SAMPLES, _NOTHING_TO_MIX, REENTRANT)


def _find(
    module: nn.Module,
    leaves: Sequence[Any],
    call: Callable[..., Any],
    known: Division | None,
    gradients: bool,
    graphs: Sequence[Plan],
) -> Division:
    require_equal_inputs(leaves)
    if known is None:
        require_equal_weights(module)
    if any(isinstance(leaf, Tensor) and leaf.layout is not torch.strided for leaf in leaves):
        return Division(reason=_SPARSE)
    if any(hasattr(type(leaf), "__next__") for leaf in leaves):
        return Division(reason=_ITERATOR)
    gradients = gradients and torch.is_grad_enabled()
    if random_states.has_generator(module):
        return Division(reason=_GENERATOR)
    reasons: list[str] = []
    said = 0  # which of them is
    doubtful = None
    for way in [known] if known else _candidates(leaves, graphs):
        size = way.samples(leaves)
        with played(_ranks(leaves[way.batch[0]].device, size)):  # nothing below is sent but verdicts
            few, total = _few(leaves, way, even=known is not None and dist.get_world_size() == 2)
            try:
                if known or way.may_mix(few):
                    trial, agreed, reason = _tried(module, call, few, way, total, drawn_before=way.in_own_size)
                else:
                    trial, agreed, reason = None, None, _NOTHING_TO_MIX
            except NoCopy:
                return known or Division(reason=_NO_COPY)
            if agreed and trial and trial.numbers and total < size:  # for a few it may be alike by accident
                trial, agreed, reason = _tried(module, call, leaves, way, size, drawn_before=way.in_own_size)
            if agreed and trial:
                trial, why = _otherwise(module, call, few, way, total, trial, agreed, not gradients)
                agreed, reason = (None, why) if why else (agreed, reason)
        reasons.append(reason)
        if graphs and way.graphs is graphs[0]:  # why graphs are none tells more than why their rows are none
            said = len(reasons) - 1
        if agreed is not None and trial is not None:
            outputs = _chosen(trial, agreed)
            try:
                losses, sizes = _anywhere(trial.losses), _anywhere([trial.sizes])
                found = Division(
                    way.inputs, way.batch, outputs, trial.places, losses, trial.decides, trial.counts, bool(sizes)
                )
                found = replace(found, rounded=trial.rounded, graphs=way.graphs, gives_loss=trial.gives_loss)
                if not gradients:
                    return found
                if _same_gradients_of_few(module, leaves, call, found):
                    return found
                reasons[-1] = _GRADIENTS
                doubtful = doubtful or replace(found, reason=_GRADIENTS)
            except (NotDivisible, UnknownLoss) as error:
                reasons[-1] = str(error)
    # A rank's own rows may fail in a way of their own; what follows of the reason has to be the same on every rank.
    reason = broadcast_object(reasons[said]) if reasons else _NO_SAMPLES
    return doubtful if doubtful is not None and reason == _GRADIENTS else Division(reason=reason)


def _otherwise(
    module: nn.Module,
    call: Callable[..., Any],
    leaves: Sequence[Any],
    way: Division,
    total: int,
    trial: Trial,
    agreed: list[int],
    reverses: bool,
) -> tuple[Trial | None, str]:
    """What a division that holds in a trial shows in others; why it does not hold in one, "" if it does. A collective.

    Of an odd number of rows, every second one is every second one from the end too, as in `x.flip(0)`; gradients are
    compared of an even one, and reverses: whether an even one is tried here. What is drawn once for all samples may
    decide, also what else is drawn, as whether a layer with dropout is left out.
    """
    drawn = trial.draws_outside or None in trial.places.values()
    odd = dist.get_world_size() == 2 and total % 2 == 1
    if odd:
        total -= 1
        leaves = way.first(leaves, total)
    for extreme in [*([None] if odd and reverses else []), *(EXTREMES if drawn else ())]:
        other, as_before, why = _tried(module, call, leaves, way, total, extreme, trial.places)
        if other is None or as_before is None or _chosen(other, as_before) != _chosen(trial, agreed):
            return None, why if extreme is None else f"{why}, for some of what it draws"
        trial = replace(trial, places=other.places)
    return trial, ""


def _chosen(trial: Trial, agreed: Sequence[int]) -> tuple[AnyRows | None, ...]:
    """The form of each output leaf, of those that are possible with as many rows as were tried."""
    return tuple(forms[choice] for forms, choice in zip(trial.forms, agreed, strict=True))


def _tried(
    module: nn.Module,
    call: Callable[..., Any],
    leaves: Sequence[Any],
    way: Division,
    total: int,
    extreme: float | None = None,
    drawn_before: Places | None = None,
) -> tuple[Trial | None, list[int] | None, str]:
    """A trial, as `attempt`; the form of each output leaf on which the ranks agree; why there is none. A collective."""
    known = dict(drawn_before or {})
    for _ in range(_DRAWS):
        trial, reason = None, ""
        own: Sequence[Draw] = ()
        try:
            try:
                trial = attempt(module, call, leaves, way, total, extreme, known)
            except RuntimeError as error:
                if isinstance(error, _KNOWN) or not torch.is_grad_enabled():
                    raise
                # It may differentiate, as models of forces do.
                trial = attempt(module, call, leaves, way, total, extreme, known, differentiates=True)
            reason = trial.reason or "the outputs of a sample depend on the rest of the batch"
            own = trial.several if trial.reason else ()  # rows of packed sequences may be as many for each by accident
        except NoCopy:
            raise
        except _KNOWN as error:
            reason = str(error)
            own = error.draws if isinstance(error, UnknownDraw) else ()
        except Exception as error:  # noqa: BLE001  whatever user code raises on an input that it was not made for
            reason = f"{FAILS} ({type(error).__name__})"
        original = draws_original() or engines.here().records
        agreed, differ = _agree(trial, bool(own) and not original)
        if not differ or original:
            break
        added = dict.fromkeys(_in_own_size(own, trial.places if trial else {}), OwnNumbers())
        if not added.keys() - known.keys():
            break
        known |= added
    return trial, agreed, reason


def _in_own_size(own: Sequence[Draw], places: Places) -> list[Draw]:
    """What is drawn in a size that depends on the samples of a part, on any rank; a collective.

    Also what seems to be drawn for all samples on one rank, whose size may be that of the whole by accident.
    """
    found: list[Draw] = []
    everywhere = gather_objects(([*own], places))
    for draws, there in everywhere:
        found += draws
        found += [draw for draw, rows in there.items() if any(draw in of and of[draw] != rows for _, of in everywhere)]
    return [*dict.fromkeys(found)]


def _candidates(leaves: Sequence[Any], graphs: Sequence[Plan]) -> Iterator[Division]:
    """Ways to see a batch in an input: rows, then graphs, or graphs where a library's batch says where they lie."""
    of_graphs = [Division(graphs=plan, batch=(plan.first, 0)) for plan in graphs]
    of_graphs = [way for way in of_graphs if divides(way.samples(leaves), leaves[way.batch[0]].device)]
    if any(plan.is_told for plan in graphs):
        yield from of_graphs
        return
    yield from _rows(leaves)
    yield from of_graphs


def _rows(leaves: Sequence[Any]) -> Iterator[Division]:
    """The first tensor's dim 0, then its dim 1; other tensors follow by their size."""
    first = next((i for i, leaf in enumerate(leaves) if isinstance(leaf, Tensor) and leaf.dim()), None)
    if first is None:
        return
    for batch in range(min(2, leaves[first].dim())):
        total = leaves[first].size(batch)
        if not divides(total, leaves[first].device):
            continue
        places: list[Rows | None] = []
        for i, leaf in enumerate(leaves):
            sizes = list(leaf.shape) if isinstance(leaf, Tensor) else []
            dims = [dim for dim in (batch, 0, 1) if dim < len(sizes) and sizes[dim] == total]
            places.append(Rows(batch if i == first else dims[0]) if dims else None)
        yield Division(tuple(places), (first, batch))


def _agree(trial: Trial | None, draws_otherwise: bool) -> tuple[list[int] | None, bool]:
    """For each output leaf the first form that holds on every rank, None if a leaf has none; whether draws differ."""
    most = 16
    matches, places = (trial.matches, trial.places) if trial else ([[False]], {})
    seen = zlib.crc32(repr(sorted((name, dims, str(rows)) for (name, dims, _), rows in places.items())).encode())
    fails = trial is None and not draws_otherwise
    numbers = [len(matches), -len(matches), seen, -seen, -int(draws_otherwise), -int(fails)]
    asked = torch.tensor(numbers, device="cpu")
    dist.all_reduce(asked, dist.ReduceOp.MIN)
    differ = bool(asked[2:4].sum() or asked[4]) and not asked[5]
    if int(asked[:2].sum()) or differ or asked[5]:  # not as many on every rank, say
        return None, differ
    flags = torch.zeros(len(matches), most, dtype=torch.int32, device="cpu")
    for i, row in enumerate(matches):
        flags[i, : len(row[:most])] = torch.tensor(row[:most], dtype=torch.int32, device="cpu")
    dist.all_reduce(flags, dist.ReduceOp.MIN)
    choices = [agreed.nonzero().flatten().tolist() for agreed in flags]
    return [choice[0] for choice in choices] if all(choices) else None, False


def _anywhere(flags: list[bool]) -> tuple[bool, ...]:
    """Which flags are set on any rank; empty if none is. A collective."""
    if spread(torch.tensor([len(flags)], device="cpu")).any():
        raise NotDivisible("it computes more losses on one rank than on another")
    if not flags:
        return ()
    found = torch.tensor(flags, dtype=torch.int32, device="cpu")
    dist.all_reduce(found, dist.ReduceOp.MAX)
    return tuple(bool(flag) for flag in found) if found.any() else ()
