"""DDP645: numbers and objects of all ranks are brought together by torch."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from ...facts.horovod import calls_of, given, horovod_name, is_constant
from ...facts.script import Script
from ...facts.without_gradient import carries_none
from ...rule import Edit, Finding, Replace, Rule
from ...targets import Target
from .functions import functions

_DIST, _NN = "import torch.distributed as dist", "import torch.distributed.nn.functional as dist_nn"
_OPERATIONS = {
    "Average": "",
    "Sum": "",
    "Min": ", dist.ReduceOp.MIN",
    "Max": ", dist.ReduceOp.MAX",
    "Product": ", dist.ReduceOp.PRODUCT",
}
_REMEDY = "write `x = hvd.allreduce(tensor.detach(), op=…)`, for all processes together"


# What else brings tensors or objects together: the name of its argument, and the functions that it takes.
_GATHERS = {
    "broadcast": ("tensor", ["tensor_of_rank"]),
    "broadcast_object": ("obj", ["object_of_rank"]),
    "allgather": ("tensor", ["objects_of_ranks", "rows_of_ranks"]),
    "allgather_object": ("obj", ["objects_of_ranks"]),
}


def check(script: Script, target: Target) -> Iterator[Edit | Finding]:
    """Replace Horovod's reductions, which leave their tensor alone and let gradients pass, and its gathering."""
    needed: dict[str, None] = {}
    for call in calls_of(script, "allreduce", "allreduce_"):
        yield from _reduced(script, call, needed)
    for call in calls_of(script, *_GATHERS):
        parameter, used = _GATHERS[horovod_name(script, call.func)]
        words = given(script, call)
        value = None if words is None else words.get(parameter)
        if words is None or value is None or "process_set" in words:
            yield _refused(call, "is called for some of the processes, or with arguments that cannot be seen")
        elif parameter == "tensor" and not carries_none(script, value, call):
            yield _refused(call, "may let gradients pass")
        else:
            needed |= dict.fromkeys(used)
            parts = (value, words["root_rank"]) if "root_rank" in words else (value,)
            template = f"{used[-1]}({', '.join('{}' for _ in parts)})"
            yield Replace(call, template, "bring it together from all ranks", parts=parts)
    yield from functions(script, RULE.id, needed)


def _refused(call: ast.Call, what: str) -> Finding:
    return Finding(RULE.id, "refused", call.lineno, f"`{ast.unparse(call.func)}` {what}", _REMEDY)


def _reduced(script: Script, call: ast.Call, needed: dict[str, None]) -> Iterator[Edit | Finding]:
    words = given(script, call)
    in_place = horovod_name(script, call.func) == "allreduce_"
    tensor = None if words is None else words.get("tensor")
    if words is None or tensor is None:
        yield _refused(call, "has arguments that cannot be seen")
        return
    scaled = not all(is_constant(words.get(name), 1, 1.0) for name in ("prescale_factor", "postscale_factor"))
    compressed = "compression" in words and horovod_name(script, words["compression"]) != "Compression.none"
    operation = _operation(script, words)
    if not operation or scaled or compressed or "process_set" in words:
        yield _refused(call, "scales, compresses, combines otherwise or is for some of the processes")
    elif in_place and (operation == "Average" or not isinstance(script.parents[call], ast.Expr)):
        yield _refused(call, "averages in place, or is used as a value")
    elif in_place:
        template = f"dist.all_reduce({{}}{_OPERATIONS[operation]})"
        yield Replace(call, template, "reduce over all ranks", modules=(_DIST,), parts=(tensor,))
    elif carries_none(script, tensor, call):
        needed["reduced_over_ranks"] = None
        needed |= {"average_over_ranks": None} if operation == "Average" else {}
        name = "average_over_ranks" if operation == "Average" else "reduced_over_ranks"
        template = f"{name}({{}}{_OPERATIONS[operation]})"
        yield Replace(call, template, "reduce over all ranks", modules=(_DIST,), parts=(tensor,))
    elif operation == "Average":
        needed["average_with_gradients"] = None
        yield Replace(call, "average_with_gradients({})", "average over all ranks", parts=(tensor,))
    elif operation == "Sum":
        yield Replace(call, "dist_nn.all_reduce({})", "reduce over all ranks", modules=(_NN,), parts=(tensor,))
    else:
        yield _refused(call, f"takes gradients through hvd.{operation}")


def _operation(script: Script, words: dict[str, ast.expr]) -> str:
    """Average, Sum, Min, Max or Product; "" for what is not known before the run."""
    average, operation = words.get("average"), words.get("op")
    if operation is not None and not is_constant(operation, None):
        name = horovod_name(script, operation)
        return name if name in _OPERATIONS and is_constant(average, None) else ""
    if is_constant(average, None, True):
        return "Average"
    return "Sum" if is_constant(average, False) else ""


RULE = Rule(
    id="DDP645",
    title="Average over ranks with torch's all_reduce",
    why="""\
hvd.allreduce averages unless told otherwise, and leaves its tensor alone; torch's all_reduce sums in place. Whole
numbers stay whole, as in Horovod. Horovod lets gradients pass: where a tensor is not known to carry none, sums and
averages are taken by torch.distributed.nn.functional, which does so too. hvd.allgather puts tensors of different
lengths one after the other; torch's wants them equal, so they travel as objects.""",
    before="""\
import horovod.torch as hvd
import torch

hvd.init()
model = torch.nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
optimizer = hvd.DistributedOptimizer(optimizer, named_parameters=model.named_parameters())
for step in range(10):
    optimizer.zero_grad()
    loss = model(torch.rand(8, 4)).mean()
    loss.backward()
    optimizer.step()
    mean = hvd.allreduce(loss.detach(), name="loss")
    worst = hvd.allreduce(loss.detach(), op=hvd.Max)
names = hvd.allgather_object(f"rank {hvd.rank()}")
rows = hvd.allgather(torch.ones(1 + hvd.rank()))
""",
    after="""\
import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel


def reduced_over_ranks(tensor, op=dist.ReduceOp.SUM):
    result = tensor.detach().contiguous().clone()
    dist.all_reduce(result, op)
    return result


def average_over_ranks(tensor):
    total, size = reduced_over_ranks(tensor), dist.get_world_size()
    return total / size if total.is_floating_point() else torch.div(total, size, rounding_mode="trunc")


def objects_of_ranks(value):
    values = [None] * dist.get_world_size()
    dist.all_gather_object(values, value)
    return values


def rows_of_ranks(tensor):
    return torch.cat(objects_of_ranks(tensor.detach().cpu())).to(tensor.device)

dist.init_process_group()
model = torch.nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
ddp_model = DistributedDataParallel(model, broadcast_buffers=False)
for step in range(10):
    optimizer.zero_grad()
    loss = ddp_model(torch.rand(8, 4)).mean()
    loss.backward()
    optimizer.step()
    mean = average_over_ranks(loss.detach())
    worst = reduced_over_ranks(loss.detach(), dist.ReduceOp.MAX)
names = objects_of_ranks(f"rank {dist.get_rank()}")
rows = rows_of_ranks(torch.ones(1 + dist.get_rank()))
""",
    check=check,
    target="cpu",
)
