"""Collectives in torch's words, the same on every engine, of lists of tensors too; in a process alone the identity.

Beside what torch.distributed does: a list of tensors travels as one tensor of each dtype; tensors of other sizes on
another rank are an error on all ranks (gloo adds what lies behind, or ends with a lost connection); tensors may have
gaps or be transposed (gloo 2.13 adds the wrong numbers of them, and says nothing); AVG and reduce_scatter are there
where an engine has none (torch_xla, MPI).

In a converted script a loss, an output or a metric is that of all ranks already: only what a script has computed for
its own rank is to be added.
"""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor

from . import engines
from .forward import region
from .lazy.batch import DistributedTensor
from .sharding.collectives import broadcast_object, gather_objects, gather_objects_on, spread
from .torch_internals import finished

SUM, AVG = dist.ReduceOp.SUM, dist.ReduceOp.AVG
Tensors = Tensor | Sequence[Tensor]


def all_reduce(tensor: Tensors, op: Any = SUM, group: Any = None, async_op: bool = False) -> Any:
    """Put the sum over the ranks into each tensor, where it is.

    Args:
        tensor: a tensor or several; of one shape and dtype on all ranks. op: of torch.distributed.ReduceOp.
        group: of torch's new_group. async_op: return at once, with a work to `wait()` for.

    Raises:
        ValueError: the ranks give other shapes, or it is the same on all ranks already.
    """
    tensors = _listed(tensor)
    if _passes("all_reduce", tensors, group, tensors) is not False:
        return _done(async_op)
    size = dist.get_world_size(group)
    if async_op and op != AVG and isinstance(tensor, Tensor) and tensor.is_contiguous():
        return dist.all_reduce(tensor, op, group, async_op=True)
    for parts, flat in _packed(tensors):
        dist.all_reduce(flat, SUM if op == AVG else op, group)
        _unpack(parts, _mean(flat, size) if op == AVG else flat)
    return _done(async_op)


def broadcast_tensors(tensor: Tensors, src: int, group: Any = None, async_op: bool = False) -> Any:
    """Put the tensors of rank `src` into those of all ranks. As `all_reduce` otherwise."""
    tensors = _listed(tensor)
    if _passes("broadcast", tensors, group, tensors) is not False:
        return _done(async_op)
    if async_op and isinstance(tensor, Tensor) and tensor.is_contiguous():
        return dist.broadcast(tensor, src, group, async_op=True)
    for parts, flat in _packed(tensors):
        dist.broadcast(flat, src, group)
        _unpack(parts, flat)
    return _done(async_op)


def all_gather(tensor_list: Sequence[Tensors], tensor: Tensors, group: Any = None, async_op: bool = False) -> Any:
    """Put the tensors of all ranks into `tensor_list`, in their order.

    Args:
        tensor_list: for each rank what is shaped as `tensor`: a tensor, or as many as it has.
        tensor, group, async_op: as for `all_reduce`.

    Raises:
        ValueError: the ranks give other shapes, or the list has another length or other shapes.
    """
    return _gather("all_gather", tensor_list, tensor, None, group, async_op)


def gather(
    tensor: Tensors,
    gather_list: Sequence[Tensors] | None = None,
    dst: int = 0,
    group: Any = None,
    async_op: bool = False,
) -> Any:
    """As `all_gather`, for rank `dst` alone.

    Args:
        tensor, group, async_op: as for `all_reduce`.
        gather_list: as `tensor_list` of `all_gather`, on rank `dst`; None on the others.
        dst: the rank that gets them.

    Raises:
        ValueError: as `all_gather`.
    """
    return _gather("gather", gather_list, tensor, dst, group, async_op)


def _gather(
    name: str, lists: Sequence[Tensors] | None, tensor: Tensors, dst: int | None, group: Any, async_op: bool
) -> Any:
    tensors = _listed(tensor)
    is_alone = _passes(name, tensors, group)
    if is_alone is None:
        return _done(async_op)
    receives = dst is None or is_alone or dist.get_rank() == dst
    size = 1 if is_alone else dist.get_world_size(group)
    places = [_listed(each) for each in lists or ()] if receives else []
    shapes = _shapes(tensors)
    if receives and [_shapes(each) for each in places] != [shapes] * size:
        raise ValueError(f"{name}: the list must have {size} entries, each with the shapes and dtypes of the tensor")
    if is_alone:
        for mine, given in zip(places[0], tensors, strict=True):
            mine.copy_(given)
        return _done(async_op)
    for kind, (_, flat) in enumerate(_packed(tensors)):
        received = [torch.empty_like(flat) for _ in range(size)] if receives else None
        if dst is None:
            dist.all_gather(received, flat, group)
        else:
            dist.gather(flat, received, dst, group)
        for place, whole in zip(places, received or (), strict=True):
            _unpack(_packed_parts(place)[kind], whole)
    return _done(async_op)


def reduce_scatter(
    output: Tensor, input_list: Sequence[Tensor], op: Any = SUM, group: Any = None, async_op: bool = False
) -> Any:
    """Put the sum over the ranks of the tensor that is this rank's in their lists into `output`.

    Args:
        output: shaped as each of the list. input_list: a tensor for each rank. op, group, async_op: as above.

    Raises:
        ValueError: as for `all_gather`.
    """
    is_alone = _passes("reduce_scatter", [*input_list], group, [output])
    if is_alone is None:
        return _done(async_op)
    size = 1 if is_alone else dist.get_world_size(group)
    if [_shapes([each]) for each in input_list] != [_shapes([output])] * size:
        raise ValueError(f"reduce_scatter: the list must have {size} entries, each with the output's shape and dtype")
    if is_alone:
        output.copy_(input_list[0])
        return _done(async_op)
    given, place = [each.contiguous() for each in input_list], output.contiguous()
    summed = SUM if op == AVG else op
    if dist.get_backend(group) == "mpi":  # which has none
        whole = torch.stack(given)
        dist.all_reduce(whole, summed, group)
        place = whole[dist.get_rank(group)]
    else:
        dist.reduce_scatter(place, given, summed, group)
    output.copy_(_mean(place, size) if op == AVG else place)
    return _done(async_op)


def all_gather_object(object_list: list[Any], obj: Any, group: Any = None) -> None:
    """Put what the ranks give into `object_list`, in their order.

    Args:
        object_list: an entry for each rank, which is replaced.
        obj: what this rank gives: anything that can be pickled, of any size. group: as for `all_reduce`.

    Raises:
        ValueError: the list has another length.
    """
    if _is_alone(group):
        _fill("all_gather_object", object_list, [obj])
    elif _is_member(group):
        _fill("all_gather_object", object_list, gather_objects(obj, group))


def gather_object(obj: Any, object_gather_list: list[Any] | None = None, dst: int = 0, group: Any = None) -> None:
    """As `all_gather_object`, for rank `dst` alone.

    Args:
        obj, group: as for `all_gather_object`. dst: the rank that gets them.
        object_gather_list: an entry for each rank, on rank `dst`; None on the others.

    Raises:
        ValueError: the list has another length.
    """
    if _is_alone(group):
        _fill("gather_object", object_gather_list, [obj])
    elif _is_member(group):
        gathered = gather_objects_on(dst, obj, group)
        if gathered:
            _fill("gather_object", object_gather_list, gathered)


def broadcast_object_list(object_list: list[Any], src: int = 0, group: Any = None, device: Any = None) -> None:
    """Put what rank `src` has in its list into those of all.

    Args:
        object_list: what can be pickled; on the other ranks whatever is to be replaced. src: the rank that gives it.
        group: as for `all_reduce`. device: not used: objects travel on the host.
    """
    if not _is_alone(group) and _is_member(group):
        object_list[:] = broadcast_object(object_list, src, group)


def print_by_rank(*values: Any, sep: str = " ", end: str = "\n", group: Any = None) -> None:
    """Print what every rank has to say, in their order: rank 0 prints it. A collective.

    Args:
        values, sep, end: as for `print`. group: as for `all_reduce`.
    """
    texts: list[str] = [""] * (1 if _is_alone(group) else dist.get_world_size(group))
    all_gather_object(texts, sep.join(map(str, values)), group)
    if _is_alone(group) or dist.get_rank() == 0:
        for text in texts:
            print(text, end=end, flush=True)


def _fill(name: str, object_list: list[Any] | None, gathered: list[Any]) -> None:
    if object_list is None or len(object_list) != len(gathered):
        raise ValueError(f"{name}: the list must have {len(gathered)} entries, one for each rank")
    object_list[:] = gathered


def _is_alone(group: Any) -> bool:
    if region.alone():
        raise RuntimeError("ddpify: a collective is called by all ranks; this is what one of them does alone")
    return not dist.is_initialized() or dist.get_world_size(group) == 1


def _is_member(group: Any) -> bool:
    return dist.get_rank(group) >= 0


def _passes(name: str, given: Sequence[Tensor], group: Any, written: Sequence[Tensor] = ()) -> bool | None:
    """Whether this process is alone in the group; None where it is not in it. All ranks must give the same shapes."""
    if any(isinstance(each, DistributedTensor) for each in written):
        raise ValueError(f"{name}: this tensor is that of the whole batch, and the same on every rank already")
    if _is_alone(group):
        return True
    if not _is_member(group):
        return None
    if any(engines.of(each.device).records for each in given):
        return False  # all ranks record one program
    shapes = _shapes(given)
    digest = torch.tensor([zlib.crc32(repr(shapes).encode())], device="cpu")
    if spread(digest, group).any():
        said = "; ".join(f"rank {rank}: {each}" for rank, each in enumerate(gather_objects(shapes, group)))
        raise ValueError(f"{name}: the ranks give tensors of other shapes or dtypes: {said}")
    return False


def _listed(tensor: Tensors) -> list[Tensor]:
    return [tensor] if isinstance(tensor, Tensor) else [*tensor]


def _shapes(tensors: Sequence[Tensor]) -> list[tuple[str, tuple[int, ...]]]:
    return [(str(each.dtype).removeprefix("torch."), tuple(each.shape)) for each in tensors]


def _packed_parts(tensors: Sequence[Tensor]) -> list[list[Tensor]]:
    """Tensors by dtype and device."""
    kinds: dict[Any, list[Tensor]] = {}
    for each in tensors:
        kinds.setdefault((each.dtype, each.device), []).append(each)
    return [*kinds.values()]


def _packed(tensors: Sequence[Tensor]) -> list[tuple[list[Tensor], Tensor]]:
    """Tensors by dtype and device, and one contiguous tensor of all values of each; itself, where it is one."""
    return [
        (parts, parts[0] if len(parts) == 1 and parts[0].is_contiguous() else torch.cat([p.flatten() for p in parts]))
        for parts in _packed_parts([each.detach() for each in tensors])
    ]


def _unpack(parts: Sequence[Tensor], flat: Tensor) -> None:
    if flat is parts[0]:
        return
    with torch.no_grad():
        for part, values in zip(parts, flat.flatten().split([part.numel() for part in parts]), strict=True):
            part.copy_(values.view(part.shape))


def _mean(total: Tensor, size: int) -> Tensor:
    with torch.no_grad():
        return total.div_(size) if total.is_floating_point() or total.is_complex() else total.floor_divide_(size)


def _done(async_op: bool) -> Any:
    """The work of a collective that is done, where one was asked for."""
    if not async_op:
        return None
    future: torch.futures.Future[Any] = torch.futures.Future()
    future.set_result(None)
    return finished(future)
