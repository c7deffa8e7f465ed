"""What each private name of torch has to do for us: `python torch_internals_checks.py` holds them to it.

Without pytest, so that any interpreter can run it: prints a line of JSON, the torch that it met and what failed.
"""

from __future__ import annotations

import json
import sys
import tempfile
import traceback
from contextlib import nullcontext
from functools import partial
from types import FunctionType
from typing import Any

import torch
import torch.distributed as dist
import torch.nn.functional as F
from ddpify_runtime import torch_internals as internals
from torch import Tensor, nn
from torch.nn.utils import rnn
from torch.overrides import TorchFunctionMode
from torch.utils.checkpoint import checkpoint
from torch.utils.data import DataLoader, TensorDataset, dataloader


class Doubled(nn.Linear):
    """Of another class, with the same parameters."""


class Held(Tensor):
    """A tensor that is none."""

    @staticmethod
    def __new__(cls, size: tuple[int, ...], like: Tensor) -> Held:
        made: Held = internals.made_wrapper(cls, size, like)
        return made

    @classmethod
    def __torch_dispatch__(  # type: ignore[override]
        cls, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Any = None
    ) -> Any:
        return torch.full((3,), float("nan")) if "add" in func.overloadpacket.__name__ else NotImplemented


def a_wrapper_has_a_size_and_no_memory() -> None:
    held = Held((10**6, 10**6), torch.zeros(1, dtype=torch.float64))
    assert held.shape == (10**6, 10**6) and held.dtype == torch.float64
    assert torch.add(held, 1).isnan().all()


class Twice(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, tensor: Tensor) -> Tensor:
        return 2 * tensor

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> Tensor:
        return 2 * gradients[0]


def subclasses_are_asked() -> None:
    with torch.DisableTorchFunctionSubclass():
        assert not internals.asks_subclasses()
    assert internals.asks_subclasses()


def a_function_is_applied() -> None:
    tensor = torch.ones(2, requires_grad=True)
    internals.apply(Twice, tensor).sum().backward()
    assert tensor.grad is not None and tensor.grad.tolist() == [2, 2]
    try:
        torch.func.grad(lambda each: internals.apply(Twice, each).sum())(torch.ones(2))
    except RuntimeError as error:
        assert "setup_context" in str(error)
    else:
        raise AssertionError("torch.func went through it")


def trees_are_taken_apart_and_put_together() -> None:
    value = {"a": [1, (torch.ones(2), None)]}
    leaves, form = internals.tree_flatten(value)
    assert isinstance(form, internals.TreeSpec) and len(leaves) == form.num_leaves == len(internals.tree_leaves(value))
    assert internals.tree_unflatten(leaves, form) == value
    assert internals.tree_map_only(int, lambda number: number + 1, value)["a"][0] == 2
    size = internals.tree_flatten([torch.Size([1])], is_leaf=lambda each: isinstance(each, torch.Size))[0]
    assert size == [torch.Size([1])]


def a_dispatch_mode_sees_what_is_drawn() -> None:
    seen = []

    class Mode(internals.TorchDispatchMode):
        def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            arguments = [argument.name for argument in internals.schema(func).arguments]
            seen.append((torch.Tag.nondeterministic_seeded in func.tags, arguments))
            return func(*args, **(kwargs or {}))

    with Mode():  # type: ignore[no-untyped-call]
        F.dropout(torch.ones(3), 0.5)
    assert any(draws for draws, _ in seen) and any("p" in arguments for _, arguments in seen)


def a_call_in_the_slot_is_called_and_stays_behind() -> None:
    import copy

    module, seen = nn.Linear(2, 2), []
    module.register_forward_hook(lambda *_: seen.append("hook"))

    def call(input: Tensor) -> Any:
        seen.append("slot")
        return internals.call_past_slot(module)(input)

    vars(module)[internals.CALL] = call
    module(torch.ones(1, 2))
    assert seen == ["slot", "hook"]
    assert vars(copy.deepcopy(module)).get(internals.CALL) is None
    assert internals.CALL not in module.state_dict()
    module.compile(backend="eager")
    assert vars(module)[internals.CALL] is not call


class Squared(nn.Module):
    """Without annotations of its own: torch.jit takes those of nn.Module."""

    def forward(self, input: Tensor) -> Tensor:
        return input * input


def a_call_in_the_slot_stays_out_of_a_scripted_module() -> None:
    module = Squared()

    def call(input: Tensor) -> Any:
        return internals.call_past_slot(module)(input) + 1

    vars(module)[internals.CALL] = routed = partial(call)  # no function, which torch.jit would pass over
    scripted: Any = torch.jit.script(module)
    given = torch.ones(1, 2)
    assert torch.equal(scripted(given) + 1, module(given))
    assert internals.CALL not in vars(scripted) and vars(module)[internals.CALL] is routed


def a_state_is_made_another_one() -> None:
    module = nn.Linear(2, 2)
    handle = internals.register_state_dict_hook(module, lambda *given: {"names": [*given[1]]})
    assert module.state_dict() == {"names": ["weight", "bias"]}
    handle.remove()
    assert [*module.state_dict()] == ["weight", "bias"]


def a_number_in_a_divided_tensor_is_read() -> None:
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.tensor import Shard, distribute_tensor

    internals.read_sharded(lambda tensor: tensor.full_tensor().item() + 10)
    mesh = init_device_mesh("cpu", (1,))
    assert distribute_tensor(torch.ones(3), mesh, [Shard(0)]).sum().item() == 13


def a_view_is_seen() -> None:
    tensor = torch.ones(2, requires_grad=True) * 2
    assert internals.is_view(tensor[:1]) and not internals.is_view(tensor)


def hooks_and_contents_are_seen() -> None:
    module = nn.Sequential(nn.Linear(2, 2))
    assert not any(internals.hooks(module))
    for place, register in enumerate(
        (
            module.register_forward_pre_hook,
            module.register_forward_hook,
            module.register_full_backward_pre_hook,
            module.register_full_backward_hook,
        )
    ):
        handle = register(lambda *_: None)  # type: ignore[operator]
        assert [bool(each) for each in internals.hooks(module)] == [each == place for each in range(4)]
        handle.remove()
    parameters, parts = internals.contents(module)
    assert not parameters and list(parts.values()) == [module[0]]
    assert list(internals.contents(module[0])[0].values()) == list(module.parameters())
    assert {internals.BUFFERS, internals.MODULES} <= vars(module).keys()
    kept = [value for key, value in vars(module).items() if internals.HOOKS in key]
    assert all(any(each is hooks for hooks in kept) for each in internals.hooks(module))


def what_modules_and_parameters_keep_is_told() -> None:
    module = nn.Sequential(nn.Linear(2, 2))
    parameters, parts, mode = internals.KEPT_IN_MODULE(vars(module))
    assert (parameters, parts, mode) == (*internals.contents(module), True)
    assert internals.HOOKS_IN_MODULE(vars(module)) == internals.hooks(module)
    parameter = module[0].bias
    for get, register in (
        (internals.HOOKS_BEFORE_GRADIENT, parameter.register_hook),
        (internals.HOOKS_AFTER_GRADIENT, parameter.register_post_accumulate_grad_hook),
    ):
        assert not get(parameter)
        register(lambda _: None)  # type: ignore[operator]
        assert len(get(parameter)) == 1


def hooks_on_gradients_are_seen_and_forgotten() -> None:
    parameter = nn.Parameter(torch.ones(2))
    assert not any(internals.gradient_hooks(parameter))
    before = parameter.register_hook(lambda gradient: gradient)
    after = parameter.register_post_accumulate_grad_hook(lambda _: None)
    assert all(internals.gradient_hooks(parameter))
    before.remove()
    after.remove()
    assert not any(internals.gradient_hooks(parameter))
    internals.forget_empty_hooks(parameter)
    torch.utils.swap_tensors(parameter, nn.Parameter(torch.zeros(2)))
    assert not parameter.any()


def many_are_copied() -> None:
    to, given = [torch.zeros(3), torch.zeros(2, 2)], [torch.ones(3), torch.ones(2, 2).t()]
    internals.copy_all(to, given)
    assert all(torch.equal(*pair) for pair in zip(to, given, strict=True))


def views_and_writes_are_told() -> None:
    whole = torch.zeros(4)
    assert internals.base_of(whole[1:]) is whole and internals.base_of(whole) is whole
    before = internals.version_of(whole)
    whole[1:].add_(1)
    assert internals.version_of(whole) > before
    assert [*internals.versions_of([whole])] == [internals.version_of(whole)]


def a_backward_pass_has_a_number_and_an_end() -> None:
    told: list[Any] = []
    leaf = torch.ones(2, requires_grad=True)
    value = leaf * 2

    def seen(_: Tensor) -> None:
        told.append(internals.graph_task())
        internals.after_backward(lambda: told.append(leaf.grad is not None))

    value.register_hook(seen)
    assert internals.graph_task() == -1
    value.sum().backward(retain_graph=True)
    value.sum().backward()
    first, ended, second, ended_again = told
    assert ended is ended_again is True and first != second and -1 not in (first, second)


def passes_are_seen() -> None:
    engine, seen = torch.autograd._engine_run_backward, []  # type: ignore[attr-defined]
    grad = torch.autograd.grad  # as somebody has imported it before

    def run(engine: Any, outputs: Any, *args: Any, **kwargs: Any) -> Any:
        internals.put_in_thread("seen", args[3])
        seen.append(kwargs["accumulate_grad"])
        found = engine(outputs, *args, **kwargs)
        internals.take_from_thread("seen")
        return [3 * each for each in found] if found else found

    leaf = torch.ones(2, requires_grad=True)
    inputs: list[Any] = []
    value = leaf * 2
    value.register_hook(lambda _: inputs.append(internals.get_in_thread("seen")))
    internals.see_passes(run)
    try:
        (found,) = grad(value.sum(), [leaf], retain_graph=True)
        value.sum().backward()
    finally:
        torch.autograd._engine_run_backward = engine  # type: ignore[attr-defined]
    assert seen == [False, True] and torch.equal(found, torch.full((2,), 6.0))
    assert inputs[0][0] is leaf and inputs[1] == () and internals.get_in_thread("seen") is None


def checkpointing_is_seen() -> None:
    seen = []

    def forward(input: Tensor) -> Tensor:
        seen.append(internals.saved_tensor_hooks() is not None)
        return input * 2

    checkpoint(forward, torch.ones(2, requires_grad=True), use_reentrant=False)
    assert seen == [True] and internals.saved_tensor_hooks() is None


class LastArguments(TorchFunctionMode):
    """Notes the last argument of each call of torch, by its name."""

    def __init__(self) -> None:
        super().__init__()
        self.seen: dict[str, Any] = {}

    def __torch_function__(self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Any = None) -> Any:
        self.seen[getattr(func, "__name__", "")] = args[-1] if args else None
        return func(*args, **(kwargs or {}))


def how_long_packed_sequences_are_padded_is_told() -> None:
    packed = rnn.pack_padded_sequence(torch.ones(2, 5, 1), torch.tensor([3, 2]), batch_first=True)
    with LastArguments() as noted:
        rnn.pad_packed_sequence(packed)
    assert noted.seen[internals.PADS_PACKED] == 3


def a_batch_normalisation_is_told_and_checks_its_input() -> None:
    module = nn.BatchNorm2d(3)
    assert isinstance(module, internals.BatchNorm) and type(module).forward is internals.BatchNorm.forward
    try:
        internals.check_dims(module, torch.ones(2, 3))
    except ValueError as error:
        assert "4D" in str(error)
    else:
        raise AssertionError("it takes any input")


def the_indices_that_a_loader_draws_are_told() -> None:
    drawn, original = [], getattr(internals.LoaderIterator, internals.DRAW_INDICES)
    loader = DataLoader(TensorDataset(torch.arange(5)), batch_size=2)

    def draw(self: Any) -> Any:
        drawn.append(original(self))
        assert internals.sampler_of(self) is loader.batch_sampler
        return drawn[-1]

    setattr(internals.LoaderIterator, internals.DRAW_INDICES, draw)
    try:
        list(loader)
    finally:
        setattr(internals.LoaderIterator, internals.DRAW_INDICES, original)
    assert drawn == [[0, 1], [2, 3], [4]]
    assert list(internals.indices_of(iter(loader))) == drawn


def a_loader_that_asks_for_no_rank_reads_all() -> None:
    asked: list[tuple[int, int]] = []
    original = dataloader._get_distributed_settings  # what it is when a process group is there
    dataloader._get_distributed_settings = lambda: (2, 1)
    try:
        for within in (nullcontext(), internals.loaded_as_in_one_process()):
            with within:
                batches: Any = iter(DataLoader(TensorDataset(torch.arange(5))))
            asked.append((batches._world_size, batches._rank))
    finally:
        dataloader._get_distributed_settings = original
    assert asked == [(2, 1), (1, 0)]


def batches_can_be_drawn_without_loading() -> None:
    for workers in (0, 1):
        iterator = iter(DataLoader(TensorDataset(torch.arange(12)), batch_size=2, num_workers=workers))
        asked = internals.draw_without_loading(iterator, 4)
        assert asked == 2 * workers
        left = [batch.tolist() for (batch,) in iterator]
        assert left[asked:] == [[8, 9], [10, 11]] and len(left) == asked + 2


def a_value_can_be_pinned() -> None:
    value = {"a": [torch.ones(2)], "b": "text"}
    assert not internals.pins(iter(DataLoader(TensorDataset(torch.arange(5)))))
    if torch.cuda.is_available():
        assert internals.pins(iter(DataLoader(TensorDataset(torch.arange(5)), pin_memory=True)))
        value = internals.pin_memory(value)
        assert value["a"][0].is_pinned()


def what_was_compiled_is_known() -> None:
    module = nn.Linear(2, 2)
    assert internals.uncompiled(module) is module and not internals.is_compiled_wrapper(module)
    made: Any = torch.compile(module, backend="eager")
    assert internals.compiles() and internals.is_compiled_wrapper(made) and internals.uncompiled(made) is module

    def function(number: Tensor) -> Tensor:
        return number + 1

    assert internals.original_of(function) is None
    assert internals.original_of(torch.compile(function, backend="eager")) is function
    before = internals.has_compiled()
    made(torch.ones(1, 2))
    assert not before and internals.has_compiled()


def all_ranks_have_a_group() -> None:
    assert internals.default_group() is dist.group.WORLD is not None


def every_rank_is_given_a_part() -> None:
    output = torch.zeros(3)
    internals.begin_all_to_all(output, torch.arange(3.0)).wait()
    assert output.tolist() == [0, 1, 2]


def the_group_has_a_store() -> None:
    store = internals.default_store()
    store.set("ddpify", "here")
    assert store.get("ddpify") == b"here" and store.add("ddpify number", 2) == 2


def a_collective_can_be_made_of_a_future() -> None:
    future: torch.futures.Future[Any] = torch.futures.Future()
    future.set_result([torch.ones(1)])
    assert internals.finished(future).wait()
    for name in internals.GROUP_METHODS:
        assert hasattr(dist.ProcessGroup, name)


def a_tensor_can_be_functionalized() -> None:
    wrapped = internals.functionalized(torch.zeros(2))
    wrapped[0].add_(1)
    assert internals.functionalized(wrapped) is wrapped


def the_gradient_of_elu_is_torchs() -> None:
    leaf = torch.linspace(-2, 2, 9, requires_grad=True)
    F.elu(leaf).sum().backward()
    found = internals.elu_backward()(torch.ones(9), 1.0, 1.0, 1.0, False, leaf.detach())
    assert leaf.grad is not None
    torch.testing.assert_close(found, leaf.grad)


def a_move_goes_through_every_module() -> None:
    moved, original = [], getattr(nn.Module, internals.MOVE)

    def move(self: nn.Module, *args: Any, **kwargs: Any) -> Any:
        moved.append(type(self))
        return original(self, *args, **kwargs)

    setattr(nn.Module, internals.MOVE, move)
    try:
        nn.Sequential(nn.ReLU()).to(torch.float64)
    finally:
        setattr(nn.Module, internals.MOVE, original)
    assert moved == [nn.Sequential, nn.ReLU]


def a_module_can_be_that_of_a_device() -> None:
    import types

    module = types.ModuleType("made_up")
    if not hasattr(torch, "xla"):
        internals.register_device_module("xla", module)
        assert torch.xla is module  # type: ignore[attr-defined]


def a_generator_has_its_seed_in_memory() -> None:
    import ctypes

    generator = torch.Generator()
    generator.manual_seed(0x1234_5678_9ABC)
    memory = bytes((ctypes.c_char * 256).from_address(internals.address_of(generator)))
    assert (0x1234_5678_9ABC).to_bytes(8, "little") in memory


def compiled_code_asks_by_the_tracer() -> None:
    def asked() -> bool:  # runs among the globals of torch's module
        import builtins
        import sys

        builtins.asked_by.append(sys._getframe(1).f_globals["__name__"])  # type: ignore[attr-defined]
        return True

    import builtins

    code, builtins.asked_by = dist.is_initialized.__code__, []  # type: ignore[attr-defined]
    dist.is_initialized.__code__ = asked.__code__
    try:
        torch.compile(lambda x: x + dist.is_initialized(), backend="eager", fullgraph=True)(torch.zeros(()))
    finally:
        dist.is_initialized.__code__ = code
    assert any(name.startswith(internals.TRACER) for name in builtins.asked_by)  # type: ignore[attr-defined]


def a_pickled_tensor_names_what_loads_it() -> None:
    import io
    import pickle

    found = []

    class Unpickler(pickle.Unpickler):
        def find_class(self, module: str, name: str) -> Any:
            found.append((module, name))
            return super().find_class(module, name)

    Unpickler(io.BytesIO(pickle.dumps(nn.Linear(2, 2)))).load()
    assert internals.LOADS_STORAGE in found


CHECKS = [
    value for value in list(globals().values()) if isinstance(value, FunctionType) and value.__module__ == __name__
]


def main() -> None:
    failed = {}
    with tempfile.TemporaryDirectory() as folder:
        dist.init_process_group("gloo", init_method=f"file://{folder}/store", rank=0, world_size=1)
        for check in CHECKS:
            try:
                check()
            except Exception:  # noqa: BLE001  whatever another torch does instead
                failed[check.__name__] = traceback.format_exc()
        dist.destroy_process_group()
    names = [check.__name__ for check in CHECKS]
    json.dump({"torch": torch.__version__.partition("+")[0], "checks": names, "failed": failed}, sys.stdout)


if __name__ == "__main__":
    main()
