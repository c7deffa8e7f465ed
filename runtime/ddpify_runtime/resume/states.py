"""The states of what a training loop changes: taken as data that can be written, and put back in place.

An object stays the object that it is, since others may hold it; what cannot be changed, such as a number, is replaced.
"""

from __future__ import annotations

import copy
import io
import random
import sys
import types
from collections import Counter, OrderedDict, defaultdict, deque
from collections.abc import Iterator
from pathlib import PurePath
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils.data import DataLoader, Dataset, Sampler, SubsetRandomSampler, WeightedRandomSampler

from ..forward.libraries import is_installed
from ..lazy.batch import DistributedTensor
from ..lazy.entries import Entries
from ..remote.objects import Remote

_PLAIN = (bool, int, float, complex, str, bytes, type(None), torch.Size, torch.dtype, torch.device, PurePath, range)
_CONTAINERS = (list, dict, set, deque)
# What the loop uses and does not change, or what takes what it is given and gives nothing back.
_WITHOUT_STATE = (type, types.ModuleType, types.FunctionType, types.BuiltinFunctionType, types.MethodType, Remote)
_WITHOUT_STATE += (Dataset, DataLoader, Sampler)  # type: ignore[assignment]
_SHOW = {"logging", "tqdm", "rich", "tensorboardX", "wandb", "visdom", "mlflow"}
_LEFT = ("left", None)
_FEW = 100  # a container with more entries holds data


class CannotCarry(Exception):
    """Something of which it is not known what it holds."""


def taken(value: Any, name: str, seen: set[int] | None = None) -> Any:
    """The state of a value, as data; a collective where it is held in parts.

    Args:
        value: an object of the script. name: what the script calls it, for messages. seen: those taken already;
            None for a variable, whose tensors are taken without the graph of their gradients.

    Raises:
        CannotCarry: it is not known what it holds.
    """
    if isinstance(value, _PLAIN):
        return "value", value
    if isinstance(value, (DistributedTensor, Entries)):
        value = value.whole()
    if isinstance(value, Tensor) and not isinstance(value, nn.Parameter):
        if value.grad_fn is not None and seen is not None:  # a later backward pass may still go through it
            raise CannotCarry(f"`{name}` is a tensor with the graph of its gradient: add .item() or .detach() to it")
        return "tensor", (value.detach().cpu(), value.device.type, value.requires_grad and value.is_leaf)
    if isinstance(value, tuple):  # such as the two hidden states of an LSTM
        return "list", (type(value), [taken(each, f"{name}[{at}]", seen) for at, each in enumerate(value)])
    seen = set() if seen is None else seen
    if id(value) in seen:
        return _LEFT
    seen.add(id(value))
    if _generator_state(value) is not None:
        return "generator", _generator_state(value)
    if isinstance(value, nn.Module):
        return "module", _module(value, name, seen)
    if _is_changing_sampler(value):
        return "sampler", _sampler(value)
    if isinstance(value, _WITHOUT_STATE):
        return _LEFT
    if hasattr(value, "state_dict") and hasattr(value, "load_state_dict"):
        return "state_dict", value.state_dict()
    if isinstance(value, (set, frozenset)):
        return ("set", (type(value), list(value))) if isinstance(value, set) else ("value", value)
    if isinstance(value, dict):
        _require(isinstance(value, (defaultdict, Counter, OrderedDict)) or type(value) is dict, value, name)
        items = [(key, taken(each, f"{name}[{key!r}]", seen)) for key, each in value.items()]
        return "dict", (type(value), items)
    if isinstance(value, (list, deque)):
        return "list", (type(value), [taken(each, f"{name}[{at}]", seen) for at, each in enumerate(value)])
    if _is_of_numpy(value):
        return "array", value
    return _object(value, name, seen)


def put_back(value: Any, state: Any) -> Any:
    """Give a value the state that was taken of it, in place where it can be changed.

    Args:
        value: what the script has made anew. state: as `taken` returned it.

    Returns:
        The same object, or what stands in its place.
    """
    kind, data = state
    if kind == "left":
        return value
    if kind in ("value", "tensor", "array"):
        return data if kind != "tensor" else data[0].to(data[1]).requires_grad_(data[2])
    if kind in ("set", "dict", "list"):
        return _put_container_back(value, *data)
    if value is None:
        raise RuntimeError(
            "ddpify: the checkpoint holds an object that the script has not made yet: make it before the loop"
        )
    if kind == "generator":
        _put_generator_back(value, data)
    elif kind == "module":
        _put_module_back(value, data)
    elif kind == "sampler":
        _put_sampler_back(value, data)
    elif kind == "state_dict":
        value.load_state_dict(data)
    elif kind == "object":
        for name, each in data.items():
            if each != _LEFT:
                object.__setattr__(value, name, put_back(vars(value).get(name), each))
    return value


def generators(value: Any, depth: int = 6, seen: set[int] | None = None) -> Iterator[Any]:
    """The random number generators that a value holds, each once, and the samplers that count or weigh for themselves;
    torch's common generator is not among them.
    """
    seen = {id(torch.default_generator)} if seen is None else seen
    if id(value) in seen or not depth or isinstance(value, (*_PLAIN, Tensor, type, types.ModuleType)):
        return
    seen.add(id(value))
    if _generator_state(value) is not None or _is_changing_sampler(value):
        yield value
        return
    inside = list(vars(value).values()) if hasattr(value, "__dict__") else []
    if isinstance(value, (list, tuple, dict)) and len(value) <= _FEW:
        inside += value.values() if isinstance(value, dict) else value
    for part in inside:
        yield from generators(part, depth - 1, seen)


def in_place(value: Any, state: Any) -> None:
    """Give what the script holds under a name of its own a state; a tensor keeps its memory.

    Raises:
        CannotCarry: it is a number or the like, of which the script has a copy.
    """
    kind, data = state
    if isinstance(value, Tensor) and kind == "tensor":
        with torch.no_grad():
            value.copy_(data[0])
    elif kind == "array" and hasattr(value, "__setitem__"):
        value[...] = data
    else:
        put_back(value, state)


def _put_container_back(value: Any, kind: type[Any], data: list[Any]) -> Any:
    before = value if isinstance(value, kind) else kind()
    if isinstance(before, dict):
        items = {key: put_back(before.get(key), each) for key, each in data}
        before.clear()
        before.update(items)
        return before
    if isinstance(before, set):
        before.clear()
        before.update(data)
        return before
    held = [*before, *([None] * len(data))]
    after = [put_back(old, each) for old, each in zip(held, data, strict=False)]
    if isinstance(before, tuple):
        return kind(*after) if hasattr(kind, "_fields") else tuple(after)
    before.clear()
    before.extend(after)
    return before


def _module(module: nn.Module, name: str, seen: set[int]) -> dict[str, Any]:
    """Parameters with their gradients, all buffers, and the plain attributes of each part."""
    parts = {}
    for place, part in module.named_modules():
        own = {key: each for key, each in vars(part).items() if not key.startswith("_")}
        parts[place] = {key: state for key, each in own.items() if (state := _attribute(each)) is not None}
    return {
        "parameters": [
            (key, each.detach().cpu(), each.requires_grad, None if each.grad is None else each.grad.detach().cpu())
            for key, each in module.named_parameters()
        ],
        "buffers": [(key, each.detach().cpu()) for key, each in module.named_buffers()],
        "attributes": parts,
    }


def _is_changing_sampler(value: Any) -> bool:
    """Whether what a sampler draws may depend on more than random numbers: on the passes that it counts, on weights."""
    of_torch = type(value).__module__.partition(".")[0] in ("torch", "ddpify_runtime")
    return isinstance(value, (WeightedRandomSampler, SubsetRandomSampler) if of_torch else Sampler)


def _sampler(value: Any) -> dict[str, Any]:
    states = {name: state for name, each in vars(value).items() if (state := _attribute(each)) is not None}
    return copy.deepcopy(states)  # which may be kept while the sampler goes on


def _put_sampler_back(value: Any, data: dict[str, Any]) -> None:
    """Give back the attributes; tensors keep their memory, which the script may hold by another name."""
    for name, state in copy.deepcopy(data).items():
        held = vars(value).get(name)
        if state[0] == "tensor" and isinstance(held, Tensor) and held.shape == state[1][0].shape:
            in_place(held, state)
        else:
            vars(value)[name] = put_back(held, state)


def _attribute(value: Any) -> Any:
    """The state of an attribute, of a module or a sampler, if it is made of numbers and tensors; else None."""
    try:
        state = taken(value, "")
    except CannotCarry:
        return None
    return None if state == _LEFT or state[0] in ("module", "object", "state_dict") else state


def _put_module_back(module: nn.Module, data: dict[str, Any]) -> None:
    parameters, buffers = dict(module.named_parameters()), dict(module.named_buffers())
    with torch.no_grad():
        for name, value, requires_grad, gradient in data["parameters"]:
            parameters[name].copy_(value)
            parameters[name].requires_grad_(requires_grad)
            parameters[name].grad = None if gradient is None else gradient.to(value.dtype).to(parameters[name].device)
        for name, value in data["buffers"]:
            buffers[name].copy_(value)
    for place, part in module.named_modules():
        for name, state in data["attributes"].get(place, {}).items():
            vars(part)[name] = put_back(vars(part).get(name), state)


def _object(value: Any, name: str, seen: set[int]) -> Any:
    """The attributes of an object of the script's own; objects of libraries must be known."""
    package = type(value).__module__.partition(".")[0]
    if package in _SHOW or type(value).__module__.startswith("torch.utils.tensorboard"):
        return _LEFT
    if isinstance(value, io.IOBase):
        _require("w" not in getattr(value, "mode", "") or getattr(value, "name", "") == "/dev/null", value, name)
        return _LEFT
    own = not is_installed(package) and package not in sys.stdlib_module_names
    _require((own or package in ("argparse", "types")) and hasattr(value, "__dict__"), value, name)
    return "object", {key: taken(each, f"{name}.{key}", seen) for key, each in vars(value).items()}


def _require(known: bool, value: Any, name: str) -> None:
    if not known:
        kind = f"{type(value).__module__}.{type(value).__qualname__}"
        if isinstance(value, io.IOBase):
            raise CannotCarry(f"`{name}` is a file that is begun anew at each start: open it with mode 'a'")
        raise CannotCarry(f"`{name}` is a {kind}, which has no state_dict and load_state_dict")


def _is_of_numpy(value: Any) -> bool:
    numpy = sys.modules.get("numpy")
    return numpy is not None and isinstance(value, (numpy.ndarray, numpy.generic))


def _generator_state(value: Any) -> Any:
    numpy = sys.modules.get("numpy")
    if isinstance(value, torch.Generator):
        return value.get_state()
    if isinstance(value, random.Random):
        return value.getstate()
    if numpy is not None and isinstance(value, numpy.random.RandomState):
        return value.get_state()
    if numpy is not None and isinstance(value, numpy.random.Generator):
        return value.bit_generator.state
    return None


def _put_generator_back(value: Any, state: Any) -> None:
    if isinstance(value, random.Random):
        value.setstate(state)
    elif hasattr(value, "bit_generator"):
        value.bit_generator.state = state
    else:
        value.set_state(state)
