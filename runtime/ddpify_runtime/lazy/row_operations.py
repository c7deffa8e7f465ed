"""The operations that are known to keep samples apart: done to a rank's samples, they give its samples of the result.

Each as it comes to `__torch_function__`: a method of Tensor, torch's function of the same name, or both.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor

# These give the same memory, or a copy, in another shape.
SHAPES = {
    Tensor.view,
    Tensor.reshape,
    Tensor.flatten,
    Tensor.squeeze,
    Tensor.unsqueeze,
    torch.reshape,
    torch.flatten,
    torch.squeeze,
    torch.unsqueeze,
}
# Dimensions in another order, where the first one stays the first.
ORDERS_OF_DIMS = {
    getattr(where, name)
    for where in (Tensor, torch)
    for name in ("movedim", "moveaxis", "permute", "swapaxes", "swapdims", "transpose")
}
# Which of both tells the form of the tensor.
VIEWS_OR_COPIES = {Tensor.contiguous, Tensor.flatten, Tensor.reshape, torch.flatten, torch.reshape}
# The same values, in the same memory or elsewhere.
COPIES = {
    *(Tensor.bfloat16, Tensor.bool, Tensor.contiguous, Tensor.cpu, Tensor.cuda, Tensor.xpu, Tensor.detach),
    *(Tensor.double, Tensor.float, Tensor.half, Tensor.int, Tensor.long, Tensor.pin_memory, Tensor.to),
    Tensor.data.__get__,  # type: ignore[attr-defined]
}
# The same size, whatever the values are.
FORMS = {torch.empty_like, torch.full_like, torch.ones_like, torch.zeros_like}
# Another size, and nothing of the tensor but its kind.
KINDS = {Tensor.new_empty, Tensor.new_full, Tensor.new_ones, Tensor.new_tensor, Tensor.new_zeros}
# Each number by itself.
UNARY = {
    *(getattr(Tensor, name) for name in ("abs", "exp", "log", "log1p", "neg", "__neg__", "relu", "sigmoid", "square")),
    *(
        getattr(Tensor, name)
        for name in ("sqrt", "tanh", "clamp", "pow", "__pow__", "round", "logical_not", "__invert__")
    ),
    *(getattr(torch, name) for name in ("abs", "clamp", "exp", "log", "log1p", "neg", "pow", "relu", "sigmoid")),
    *(getattr(torch, name) for name in ("sqrt", "square", "tanh", "round", "logical_not")),
    *(F.logsigmoid, F.sigmoid, F.softplus, F.tanh),
}
# Number by number; a number or a tensor that is the same for every sample goes with it too.
BINARY = {
    *(
        getattr(Tensor, name)
        for name in ("add", "sub", "mul", "div", "true_divide", "__radd__", "__rsub__", "__rmul__")
    ),
    *(getattr(Tensor, name) for name in ("__add__", "__sub__", "__mul__", "__truediv__", "__rtruediv__")),
    *(torch.add, torch.sub, torch.mul, torch.div),
    *(getattr(Tensor, f"__{name}__") for name in ("eq", "ne", "lt", "le", "gt", "ge", "and", "or")),
    *(getattr(Tensor, name) for name in ("eq", "ne", "lt", "le", "gt", "ge", "logical_and", "logical_or")),
    *(getattr(torch, name) for name in ("eq", "ne", "lt", "le", "gt", "ge", "logical_and", "logical_or")),
}
# The same shape, over a dimension that is named.
OVER_A_DIM = {Tensor.softmax, Tensor.log_softmax, torch.softmax, torch.log_softmax, F.softmax, F.log_softmax}
# Without the dimensions that are named.
REDUCE_DIMS = {
    getattr(where, name)
    for where in (Tensor, torch)
    for name in ("all", "any", "amax", "amin", "argmax", "argmin", "max", "mean", "min", "sum")
}
# Values and indices, over a dimension that is named, the last one if none is.
SORTED = {Tensor.sort, Tensor.topk, torch.sort, torch.topk}
