"""Functions that take the place of Horovod's collectives, where torch has none that does the same."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from ...facts.header import last_leading_import
from ...facts.script import Script
from ...rule import Edit, Finding, Insert

_DIST, _NN = "import torch.distributed as dist", "import torch.distributed.nn.functional as dist_nn"
_REDUCED = """

def reduced_over_ranks(tensor, op=dist.ReduceOp.SUM):
    result = tensor.detach().contiguous().clone()
    dist.all_reduce(result, op)
    return result
"""
# Whole numbers that are averaged stay whole in Horovod 0.28.1 (measured: 3 and 4 give 3, -3 and -4 give -3).
_AVERAGE = """

def {name}(tensor):
    total, size = {total}(tensor), dist.get_world_size()
    return total / size if total.is_floating_point() else torch.div(total, size, rounding_mode="trunc")
"""
_TENSOR = """

def tensor_of_rank(tensor, rank):
    result = tensor.detach().contiguous().clone()
    dist.broadcast(result, rank)
    return result
"""
_OBJECT = """

def object_of_rank(value, rank=0):
    values = [value]
    dist.broadcast_object_list(values, rank)
    return values[0]
"""
_OBJECTS = """

def objects_of_ranks(value):
    values = [None] * dist.get_world_size()
    dist.all_gather_object(values, value)
    return values
"""
# Ranks may have different numbers of rows.
_ROWS = """

def rows_of_ranks(tensor):
    return torch.cat(objects_of_ranks(tensor.detach().cpu())).to(tensor.device)
"""
_HELPERS = {
    "reduced_over_ranks": (_REDUCED, (_DIST,)),
    "average_over_ranks": (
        _AVERAGE.format(name="average_over_ranks", total="reduced_over_ranks"),
        (_DIST, "import torch"),
    ),
    "average_with_gradients": (
        _AVERAGE.format(name="average_with_gradients", total="dist_nn.all_reduce"),
        (_DIST, _NN, "import torch"),
    ),
    "tensor_of_rank": (_TENSOR, (_DIST,)),
    "object_of_rank": (_OBJECT, (_DIST,)),
    "objects_of_ranks": (_OBJECTS, (_DIST,)),
    "rows_of_ranks": (_ROWS, ("import torch",)),
}


def functions(script: Script, rule: str, needed: Iterable[str]) -> Iterator[Edit | Finding]:
    """Insert the functions that a file calls now.

    Args: the file; the rule that calls them; their names.
    """
    anchor = last_leading_import(script.tree)
    for name in (each for each in _HELPERS if each in {*needed}):
        if name in script.defined or anchor is None:
            message = f"a function `{name}` is needed, and there is one, or no import above it"
            yield Finding(rule, "refused", 1, message, "give yours another name")
        else:
            code, modules = _HELPERS[name]
            yield Insert(
                anchor, code, "a function for what Horovod's collectives do", "after", modules=modules, last=True
            )
