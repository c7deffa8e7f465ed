"""What of torch is wrapped to see how a script trains: optimizers, backwards, modules and DistributedDataParallel."""

from __future__ import annotations

import functools
import sys
import weakref
from typing import Any

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.nn.utils import clip_grad
from torch.optim import Optimizer
from torch.utils._pytree import tree_leaves

from ddpify_recorder.recorder import Recorder
from ddpify_recorder.states import parameters_of
from ddpify_recorder.traces import digests


def watch(recorder: Recorder) -> None:
    """Tell a recorder of all that a script does with optimizers, gradients and modules, but for their inputs."""
    _watch_optimizers(recorder)
    _watch_backward(recorder)
    _watch_wrapper(recorder)
    _watch_runtime(recorder)
    _watch_loading(recorder)
    torch.nn.modules.module.register_module_buffer_registration_hook(
        lambda module, name, buffer: recorder.statistics.add(module, name)
    )


def _watch_optimizers(recorder: Recorder) -> None:
    original = Optimizer.__init__

    @functools.wraps(original)
    def init(self: Optimizer, *args: Any, **kwargs: Any) -> None:
        original(self, *args, **kwargs)
        if recorder.number_of(self) >= 0 and recorder.noise:
            recorder.noise.on_weights(parameters_of(self))

    Optimizer.__init__ = init  # type: ignore[method-assign]


def _watch_backward(recorder: Recorder) -> None:
    backward, grad, clip = torch.autograd.backward, torch.autograd.grad, clip_grad.clip_grad_norm_

    @functools.wraps(backward)
    def recorded_backward(tensors: Any, grad_tensors: Any = None, *args: Any, **kwargs: Any) -> None:
        if torch._C._current_graph_task_id() == -1:  # not one that checkpointing runs within another
            recorder.backwards += 1
            first = tensors if isinstance(tensors, torch.Tensor) else next(iter(tensors))
            if first.numel() == 1:
                recorder.losses.append(float(first.detach()))
        else:
            recorder.nested += 1
        backward(tensors, grad_tensors, *args, **kwargs)

    @functools.wraps(grad)
    def recorded_grad(*args: Any, **kwargs: Any) -> Any:
        recorder.penalties += bool(kwargs.get("create_graph"))
        return grad(*args, **kwargs)

    @functools.wraps(clip)
    def recorded_clip(*args: Any, **kwargs: Any) -> Any:
        norm = clip(*args, **kwargs)
        recorder.norms.append(norm)
        return norm

    torch.autograd.backward, torch.autograd.grad = recorded_backward, recorded_grad
    torch.nn.utils.clip_grad_norm_ = clip_grad.clip_grad_norm_ = recorded_clip


def _watch_wrapper(recorder: Recorder) -> None:
    init, forward = DistributedDataParallel.__init__, DistributedDataParallel.forward
    first: weakref.WeakKeyDictionary[nn.Module, tuple[set[str], set[int]]] = weakref.WeakKeyDictionary()

    @functools.wraps(init)
    def recorded_init(self: DistributedDataParallel, *args: Any, **kwargs: Any) -> None:
        init(self, *args, **kwargs)
        first[self] = {*vars(self)}, {id(parameter) for parameter in self.module.parameters()}

    @functools.wraps(forward)
    def recorded_forward(self: DistributedDataParallel, *args: Any, **kwargs: Any) -> Any:
        recorder.forwards += 1
        if torch.is_grad_enabled() and self in first:  # not a copy of another one
            attributes, parameters = first[self]
            of_module = {*vars(self.module), *vars(type(self.module))}
            recorder.shadowed = sorted({*recorder.shadowed, *({*vars(self)} - attributes & of_module)})
            recorder.replaced |= any(id(p) not in parameters for p in self.module.parameters() if p.requires_grad)
        if torch.is_grad_enabled():
            recorder.rows += [len(value) for value in args[:1] if isinstance(value, torch.Tensor) and value.dim()]
            recorder.synced.append(bool(self.require_backward_grad_sync))
        else:
            recorder.looks += 1
            recorder.write("look", recorder.looks)
        return forward(self, *args, **kwargs)  # type: ignore[no-untyped-call]

    DistributedDataParallel.__init__ = recorded_init  # type: ignore[method-assign]
    DistributedDataParallel.forward = recorded_forward  # type: ignore[method-assign]


def _watch_runtime(recorder: Recorder) -> None:
    """The forwards that ddpify_runtime divides, which go through no DistributedDataParallel of torch's.

    It is looked for when a process group is joined: whatever the launcher, and never in a run of one process.
    """
    join = dist.init_process_group

    @functools.wraps(join)
    def recorded_join(*args: Any, **kwargs: Any) -> None:
        join(*args, **kwargs)
        if "ddpify_runtime" in sys.modules:
            _count_reduced(recorder)

    dist.init_process_group = recorded_join


def _count_reduced(recorder: Recorder) -> None:
    import ddpify_runtime.forward.routed_call
    from ddpify_runtime.fully_sharded.call import ReducedByTorch
    from ddpify_runtime.gradients.reduction import Reduction

    routed: Any = ddpify_runtime.forward.routed_call
    divided = routed.divided

    @functools.wraps(divided)
    def recorded(module: nn.Module, call: Any, *args: Any) -> Any:
        @functools.wraps(call)
        def counted(*values: Any, **named: Any) -> Any:
            recorder.forwards += 1
            recorder.rows += [len(value) for value in values[:1] if isinstance(value, torch.Tensor) and value.dim()]
            recorder.synced.append(True)
            return call(*values, **named)

        is_reduced = any(isinstance(each, (Reduction, ReducedByTorch)) for each in args)
        return divided(module, counted if is_reduced else call, *args)

    routed.divided = recorded


def watch_inputs(recorder: Recorder) -> None:
    """Of the outermost module that is called and trained: what identifies the samples in its first input of data."""
    call = nn.Module.__call__
    returned: weakref.WeakKeyDictionary[nn.Module, list[torch.Tensor]] = weakref.WeakKeyDictionary()
    inside = False

    @functools.wraps(call)
    def recorded_call(self: nn.Module, *args: Any, **kwargs: Any) -> Any:
        nonlocal inside
        if inside or torch.compiler.is_compiling() or not torch.is_grad_enabled():
            return call(self, *args, **kwargs)
        if not any(parameter.requires_grad for parameter in self.parameters()):
            return call(self, *args, **kwargs)
        given = [leaf for leaf in tree_leaves((args, kwargs)) if isinstance(leaf, torch.Tensor) and leaf.dim()]
        data = next((leaf for leaf in given if not leaf.requires_grad), None)
        if data is not None:
            recorder.inputs.append(tuple(digests(data, dimension) for dimension in (0, 1)))
        before = {tensor.untyped_storage().data_ptr() for tensor in returned.get(self, ())}
        recorder.carried |= any(leaf.untyped_storage().data_ptr() in before for leaf in given)
        inside = True
        try:
            result = call(self, *args, **kwargs)
        finally:
            inside = False
        returned[self] = [leaf.detach() for leaf in tree_leaves(result) if isinstance(leaf, torch.Tensor)]
        return result

    nn.Module.__call__ = recorded_call  # type: ignore[method-assign]


def _watch_loading(recorder: Recorder) -> None:
    load = nn.Module.load_state_dict

    @functools.wraps(load)
    def recorded_load(self: nn.Module, *args: Any, **kwargs: Any) -> Any:
        result = load(self, *args, **kwargs)
        recorder.write("loaded", len(result.missing_keys))
        return result

    nn.Module.load_state_dict = recorded_load  # type: ignore[method-assign]
