"""The functions that bring tensors together from all ranks, with gradients through them (DDP639)."""

from __future__ import annotations

from ...facts.header import functions_place
from ...facts.script import Script
from ...rule import Insert
from ...targets import Target

_GUARD = """\
    if not torch.is_grad_enabled():  # an evaluation
        return value
"""
_SUM = '''\


class DifferentiableSum(torch.autograd.Function):
    """The sum of a tensor over all processes, and of the gradients that come back to it."""

    @staticmethod
    def forward(context, value):
        total = value.contiguous().clone()
        {all_reduce}
        return total

    backward = forward
'''
_BATCH = '''\


class DifferentiableBatch(torch.autograd.Function):
    """The rows of all processes, in the order of the batch; the gradients that come back to this one's are summed."""

    @staticmethod
    def forward(context, value):
        value = value.contiguous()
        {all_gather}
        return torch.stack(parts, 1).flatten(0, 1)

    @staticmethod
    def backward(context, gradient):
        total = gradient.contiguous().clone()
        {all_reduce}
        return total[{rank} :: {world_size}]
'''
_FUNCTION = '''\


def differentiable_{name}(value):
    """The {meaning} over all processes, through which gradients pass."""
{guard}    return {value}
'''
_VALUES = {
    "sum": ("sum of a tensor", "DifferentiableSum.apply(value)"),
    "mean": ("mean of a tensor", "DifferentiableSum.apply(value) / {world_size}"),
    "batch": ("rows of a batch", "DifferentiableBatch.apply(value)"),
}


def joining_functions(script: Script, kinds: dict[str, bool], target: Target) -> Insert:
    """The functions that bring together what a file has; kinds: which, and whether evaluations use them, too."""
    words = target.words
    all_gather = "\n        ".join(words.all_gather).format("value")
    said = {"rank": words.rank, "world_size": words.world_size, "all_gather": all_gather}
    said["all_reduce"] = words.all_reduce.format("total")
    code = (_SUM.format(**said) if kinds.keys() - {"batch"} else "") + (
        _BATCH.format(**said) if "batch" in kinds else ""
    )
    for name, (meaning, value) in _VALUES.items():
        if name in kinds:
            guard = _GUARD if kinds[name] else ""
            code += _FUNCTION.format(name=name, meaning=meaning, guard=guard, value=value.format(**said))
    at, where = functions_place(script)
    message = "functions that bring tensors together from all ranks, with gradients"
    return Insert(at, code.rstrip("\n"), message, where, modules=(*words.imports, "import torch"))
