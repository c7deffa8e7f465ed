"""A process group of torch.distributed whose collectives are Horovod's.

So every `dist` call of the runtime and of a script works over Horovod, as torch_xla does it for its devices. Horovod
reduces, gathers and broadcasts over all processes, tensors of some dtypes; the rest is composed of that:

- A tensor that only moves does so as its bytes, whatever its dtype, and as many on each rank as it likes.
- Numbers narrower than Horovod adds (bool, 8 and 16 bits, bfloat16) are reduced in wider ones, and sparse tensors
  gathered. What Horovod does not reduce (AND, OR, XOR) is gathered, and reduced on each rank in the order of the ranks.
- Horovod pairs the tensors of the ranks by name. Its own names count every call, so that ranks of which one has made a
  call more would never meet, and no name returns, which leaves its cache of answers unused. Here a name says what is
  sent and how often that was sent before, by a count that goes round.
- Groups of some of the processes are gloo's: Horovod would have to be told of them by the others too, which torch does
  not ask. It sends nothing from one process to another either: `dist.send` is an error.
"""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable, Sequence
from datetime import timedelta
from itertools import accumulate, pairwise
from typing import Any

import horovod.torch as hvd
import torch
import torch.distributed as dist
from torch import Tensor

from ...torch_internals import GROUP_METHODS

NAME = "horovod"

_IN_FLIGHT = 16  # collectives of one kind that may be under way at once; the oldest is waited for first

_OPERATIONS = (
    (dist.ReduceOp.SUM, hvd.Sum),
    (dist.ReduceOp.AVG, hvd.Average),
    (dist.ReduceOp.MIN, hvd.Min),
    (dist.ReduceOp.MAX, hvd.Max),
    (dist.ReduceOp.PRODUCT, hvd.Product),
)
_BITWISE: tuple[tuple[Any, Callable[[Tensor, Tensor], Tensor]], ...] = (
    (dist.ReduceOp.BAND, operator.and_),
    (dist.ReduceOp.BOR, operator.or_),
    (dist.ReduceOp.BXOR, operator.xor),
)
_WIDER = {
    torch.bool: torch.int32,
    torch.uint8: torch.int32,
    torch.int8: torch.int32,
    torch.int16: torch.int32,
    torch.bfloat16: torch.float32,
}

_ProcessGroup: Any = dist.ProcessGroup  # its stubs do not know that it can be derived from
_BaseWork: Any = dist.Work


class Work(_BaseWork):  # type: ignore[misc]
    """A collective under way; what it brings is written where it belongs when it is waited for."""

    def __init__(self, rank: int, name: str, handle: Any, finish: Callable[[Any], None]) -> None:
        super().__init__()
        self._rank, self._name, self._handle, self._finish = rank, name, handle, finish

    def wait(self, timeout: timedelta | None = None) -> bool:
        if self._handle is None:
            return True
        handle, self._handle = self._handle, None
        try:
            result = hvd.synchronize(handle)
        except hvd.HorovodInternalError as error:
            raise RuntimeError(f"ddpify: rank {self._rank} lost the other processes in {self._name}: {error}") from None
        with torch.inference_mode():  # where they were made in it, they can be written to nowhere else
            self._finish(result)
        self._finish = _nothing
        return True

    def is_completed(self) -> bool:
        return self._handle is None or (bool(hvd.poll(self._handle)) and self.wait())

    def get_future(self) -> torch.futures.Future[None]:
        self.wait()
        future: torch.futures.Future[None] = torch.futures.Future()
        future.set_result(None)
        return future


class ProcessGroup(_ProcessGroup):  # type: ignore[misc]
    """All processes of the run. The methods are those that `torch.distributed` calls, with its arguments."""

    def __init__(self, rank: int, size: int) -> None:
        super().__init__(rank, size)
        self._counts: dict[str, int] = {}
        self._sent: dict[str, Work] = {}

    def getBackendName(self) -> str:  # noqa: N802  torch's name
        return NAME

    def _set_group_name(self, name: str) -> None:
        self._name = name

    @property
    def group_name(self) -> str:
        return self._name

    def shutdown(self) -> None:
        hvd.shutdown()

    def barrier(self, opts: Any = None) -> Work:
        hvd.barrier()
        return self._done("barrier")

    def allreduce(self, tensors: Sequence[Tensor], opts: Any = None) -> Work:
        (tensor,) = tensors
        how = dist.ReduceOp.SUM if opts is None else opts.reduceOp
        if tensor.is_sparse:
            return self._sum_sparse(tensor, how)
        return self._reduce(tensor, how, _into(tensor))

    def reduce(self, tensors: Sequence[Tensor], opts: Any) -> Work:
        (tensor,) = tensors
        finish = _into(tensor) if self.rank() == opts.rootRank else _nothing
        return self._reduce(tensor.clone(), opts.reduceOp, finish)

    def reduce_scatter(self, outputs: Sequence[Tensor], inputs: Sequence[Sequence[Tensor]], opts: Any) -> Work:
        sizes = [each.numel() for each in inputs[0]]
        return self._reduce(
            torch.cat([each.reshape(-1) for each in inputs[0]]),
            opts.reduceOp,
            lambda whole: outputs[0].copy_(whole.split(sizes)[self.rank()].view_as(outputs[0])),
        )

    def reduce_scatter_single(self, output: Tensor, input: Tensor, opts: Any) -> Work:
        parts = input.reshape(-1).chunk(self.size())
        return self.reduce_scatter([output], [parts], opts)

    def broadcast(self, tensors: Sequence[Tensor], opts: Any) -> Work:
        tensor = tensors[opts.rootTensor]
        return self._broadcast(tensor, opts.rootRank, _into(tensor))

    def scatter(self, outputs: Sequence[Tensor], inputs: Sequence[Sequence[Tensor]], opts: Any) -> Work:
        (output,) = outputs
        whole = torch.stack(tuple(inputs[0])) if inputs else output.new_empty(self.size(), *output.shape)
        return self._broadcast(whole, opts.rootRank, lambda sent: output.copy_(sent[self.rank()]))

    def allgather(self, outputs: Sequence[Sequence[Tensor]], inputs: Sequence[Tensor], opts: Any = None) -> Work:
        return self._gather(inputs[0], outputs[0])

    def all_gather_single(self, output: Tensor, input: Tensor, opts: Any = None) -> Work:
        parts = [torch.empty_like(input) for _ in range(self.size())]
        return self._gather(input, parts, lambda: output.copy_(torch.cat([p.flatten() for p in parts]).view_as(output)))

    def gather(self, outputs: Sequence[Sequence[Tensor]], inputs: Sequence[Tensor], opts: Any) -> Work:
        (sent,) = inputs
        return self._gather(sent, outputs[0] if outputs else [torch.empty_like(sent) for _ in range(self.size())])

    def alltoall(self, outputs: Sequence[Tensor], inputs: Sequence[Tensor], opts: Any = None) -> Work:
        return self._exchange(inputs, outputs)

    def all_to_all_single(
        self, output: Tensor, input: Tensor, output_sizes: Sequence[int], input_sizes: Sequence[int], opts: Any = None
    ) -> Work:
        received = output if output.is_contiguous() else torch.empty_like(output)
        given, taken = (
            part.split(list(sizes) or part.size(0) // self.size())
            for part, sizes in ((input, input_sizes), (received, output_sizes))
        )
        return self._exchange(given, taken, lambda: None if received is output else output.copy_(received))

    def send(self, tensors: Sequence[Tensor], rank: int, tag: int) -> Work:
        raise RuntimeError(
            "ddpify: Horovod sends nothing from one process to another: use a collective, or --target cpu"
        )

    recv = recv_anysource = send
    alltoall_base = all_to_all_single  # its name before torch 2.13, as GROUP_METHODS are those of two others

    def _reduce(self, tensor: Tensor, how: Any, finish: Callable[[Tensor], Any]) -> Work:
        """Reduce over ranks; `finish` is given the result, of the same shape and dtype."""
        if not tensor.numel():
            return self._done("allreduce")
        combine = next((ours for theirs, ours in _BITWISE if how == theirs), None)
        if combine is not None:
            parts = [torch.empty_like(tensor) for _ in range(self.size())]
            return self._gather(tensor, parts, lambda: finish(functools.reduce(combine, parts)))
        operation = next((ours for theirs, ours in _OPERATIONS if how == theirs), None)
        if operation is None:
            raise RuntimeError(f"ddpify: Horovod cannot reduce by {how}")
        value = torch.view_as_real(tensor.detach()) if tensor.is_complex() else tensor.detach()
        sent = value.to(_WIDER.get(value.dtype, value.dtype)).contiguous()
        name = self._next(f"allreduce.{operation}.{sent.dtype}.{sent.numel()}")
        handle = hvd.allreduce_async_(sent, name=name, op=operation)

        def receive(result: Tensor) -> None:
            finish((torch.view_as_complex(result) if tensor.is_complex() else result).to(tensor.dtype))

        return self._under_way(name, handle, receive)

    def _sum_sparse(self, tensor: Tensor, how: Any) -> Work:
        """Add a sparse tensor over ranks, where it is: each has as many values as it likes."""
        if how != dist.ReduceOp.SUM:
            raise RuntimeError(f"ddpify: a sparse tensor is added over ranks, not reduced by {how}")
        given = tensor.coalesce()
        sent = (given.indices().t().contiguous(), given.values().contiguous())
        names = [self._next(f"allgather.sparse.{part.dtype}") for part in sent]
        with torch.inference_mode(False):
            handles = [hvd.allgather_async(part, name=name) for part, name in zip(sent, names, strict=True)]
        indices, values = map(hvd.synchronize, handles)
        tensor.copy_(torch.sparse_coo_tensor(indices.t(), values, tensor.shape, device=values.device).coalesce())
        return self._done("allreduce")

    def _broadcast(self, tensor: Tensor, root: int, finish: Callable[[Tensor], Any]) -> Work:
        """Send a tensor of one rank to all; `finish` is given it."""
        sent = tensor.detach().contiguous()
        if not sent.numel():
            return self._done("broadcast")
        name = self._next(f"broadcast.{root}.{sent.dtype}.{sent.numel()}")
        handle = hvd.broadcast_async_(_bytes(sent), root, name=name)
        return self._under_way(name, handle, lambda _: finish(sent))

    def _gather(self, sent: Tensor, received: Sequence[Tensor], then: Callable[[], Any] = lambda: None) -> Work:
        """Gather the tensors of all ranks, each in the shape in which it is expected; then call a function."""
        name = self._next(f"allgather.{sent.dtype}.{sum(each.numel() for each in received)}")
        with torch.inference_mode(False):  # Horovod resizes what it makes here, outside of that mode
            handle = hvd.allgather_async(_bytes(sent), name=name)

        def receive(whole: Tensor) -> None:
            _deliver(whole, received)
            then()

        return self._under_way(name, handle, receive)

    def _exchange(
        self, given: Sequence[Tensor], received: Sequence[Tensor], then: Callable[[], Any] = lambda: None
    ) -> Work:
        """Send to each rank a tensor, and receive one of each."""
        name = self._next("alltoall")
        parts = [_bytes(each) for each in given]
        sizes = torch.tensor([part.numel() for part in parts], dtype=torch.int32, device="cpu")
        with torch.inference_mode(False):
            handle = hvd.alltoall_async(torch.cat(parts), sizes, name=name)

        def receive(parts: tuple[Tensor, Tensor]) -> None:
            _deliver(parts[0], received)
            then()

        return self._under_way(name, handle, receive)

    def _next(self, kind: str) -> str:
        """A name for a collective that is begun; the same on each rank."""
        count = self._counts.get(kind, 0)
        self._counts[kind] = count + 1
        name = f"{kind}.{count % _IN_FLIGHT}"
        if name in self._sent:
            self._sent[name].wait()
        return name

    def _under_way(self, name: str, handle: Any, finish: Callable[[Any], Any]) -> Work:
        def end(result: Any) -> None:
            del self._sent[name]
            finish(result)

        self._sent[name] = work = Work(self.rank(), name.partition(".")[0], handle, end)
        return work

    def _done(self, name: str) -> Work:
        return Work(self.rank(), name, None, _nothing)


for _name, _method in zip(
    GROUP_METHODS, (ProcessGroup.all_gather_single, ProcessGroup.reduce_scatter_single), strict=True
):
    setattr(ProcessGroup, _name, _method)


def _bytes(tensor: Tensor) -> Tensor:
    return tensor.detach().contiguous().reshape(-1).view(torch.uint8)


def _deliver(whole: Tensor, received: Sequence[Tensor]) -> None:
    """Write bytes that were received into the tensors that they are, one after the other."""
    ends = accumulate((each.numel() * each.element_size() for each in received), initial=0)
    for (start, end), each in zip(pairwise(ends), received, strict=True):
        # A copy of the part: what it is viewed as asks for an address that is a multiple of its size.
        each.copy_(whole[start:end].clone().view(each.dtype).view(each.shape))


def _into(tensor: Tensor) -> Callable[[Tensor], Any]:
    """What writes a result into a tensor, where it was not made there."""
    return lambda result: None if result.data_ptr() == tensor.data_ptr() else tensor.copy_(result)


def _nothing(_: Any) -> None: ...


def _make(store: Any, rank: int, size: int, timeout: timedelta) -> Any:
    if (rank, size) == (hvd.rank(), hvd.size()):
        return ProcessGroup(rank, size)
    return dist.ProcessGroupGloo(store, rank, size, timeout)


dist.Backend.register_backend(NAME, _make, devices=["cpu", "cuda"])
