"""What stands in front of a module's call, and divides it where that is right.

Forwards run on this rank's rows, with gradients through torch's DistributedDataParallel. What follows (loss, metrics,
decisions) sees outputs that look like those of the whole batch, on every rank, and are joined where the whole is
needed: any loss is exact, also one that couples samples (HAZARDS L1-L6, E6, L19, L20), and so is an evaluation (E1-E3).
"""

from __future__ import annotations

import warnings
import weakref
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from itertools import count
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor, nn

from .. import engines, report
from ..agreement import check
from ..gradients.reduction import NoReduction, PartOfReduction
from ..launch import environment
from ..lazy.batch import DistributedTensor
from ..lazy.held_rows import HeldRows, device_of
from ..sharding import graph_batches, structure
from ..sharding.collectives import divides, world_size
from ..sharding.structure import Form
from ..torch_internals import CALL, call_past_slot, default_group, uncompiled
from ..trial import own_numbers, script_variables
from ..trial.attempt import NotDivisible, fails
from ..trial.find_division import FAILS, confirmed, find, still_holds
from . import batch_norm, compiled, kept_attributes, parts, region, routes
from .divided import AnyReduction, divided, kind, name_of, region_of, whole_of
from .division import Division, is_compilable, watched
from .inventory import Inventory
from .own_device import require_own_device
from .settings import Settings

FEW = "it is given fewer samples than there are processes"
OTHERWISE = "its graphs do not lie as they did when it was first divided"
SINGLE = "a process would have a single sample to take the statistics of, with sync_batch_norm=False"
EARLY = 4  # the call at which what started at zero is looked at
ROOM = 8  # samples on each process below which a device has little to do
_numbers = count()  # `id` may be that of a module that is gone


def is_recorded() -> bool:
    """Whether torch.compile or torch.jit.trace records what a forward computes, for batches of any size."""
    return torch.compiler.is_compiling() or bool(torch.jit.is_tracing())  # type: ignore[attr-defined, no-untyped-call]


class RoutedCall:
    """Stands in front of one module's call.

    The module owns it, and nothing that it holds refers to the module: no cycle, so that a model which the script drops
    gives back its memory at once, as it does in one process, and not when the garbage collector comes.
    """

    remedy = "leave this module out of DistributedDataParallel"  # where it turns out that it cannot be divided

    def __init__(
        self,
        module: nn.Module,
        compiled: Callable[..., Any] | None,
        reduce: Callable[[nn.Module], AnyReduction],
        sync_batch_norm: bool,
        root: RoutedCall | None = None,
    ) -> None:
        """compiled: what was in its place, such as what torch.compile made of the module's call. root: the call of what
        the module is a part of, and divided where the root cannot be."""
        self.living = weakref.ref(module)
        self.root = None if root is None else weakref.ref(root)
        self.compiled = compiled
        self.reduce = reduce
        self.sync_batch_norm = sync_batch_norm
        self.draws_original = environment.draws_original()
        self.batch_norms: list[batch_norm.BatchNormCall] = []
        self.divisions: dict[Any, Division] = {}
        self.kept: dict[Any, tuple[tuple[kept_attributes.Attribute, ...], str]] = {}  # and why it was looked for
        self.form: Any = None  # of the input of the last call
        self.calls: dict[Any, int] = {}
        self.reductions: dict[Any, AnyReduction] = {}
        self.reduction: AnyReduction | None = None  # of what is trainable now
        self.now: Inventory | None = None
        self.states: dict[Any, int] = {}  # a number for all parts with their modes
        self.state = 0
        self.seen: tuple[Any, str] = (None, "")
        self.divided = False
        self.called = False
        self.said: set[str] = set()
        self.parts: dict[int, RoutedCall] = {}
        self.none = NoReduction()
        self.settings = Settings()
        self.last: tuple[tuple[Any, int, Any], region.Region | None] = (None, 0, None), None  # region, and what of
        self.parted = -1  # the state in which the parts were looked for
        self.ended = _Ended(self)  # the forward that is computed in parts
        self.number = next(_numbers)
        self.on_call: Callable[[nn.Module], None] | None = None  # in the first training forward
        routes.calls.add(self)

    @property
    def module(self) -> nn.Module:
        """The module, while it is called."""
        return self.living()  # type: ignore[return-value]

    @property
    def call(self) -> Callable[..., Any]:
        """What computes the module's output, past this."""
        return self.compiled or call_past_slot(self.module)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if is_recorded() or region.current() or region.is_apart() or default_group() is None:
            return self.call(*args, **kwargs)
        if self.root is not None and ((root := self.root()) is None or not parts.active(root.module)):
            return self.call(*args, **kwargs)
        leaves, spec = structure.flatten_call(args, kwargs)
        if not self.called and torch.is_grad_enabled():
            self.called = True
            if self.on_call is not None:
                self.on_call(self.module)
        found = self._division(leaves, spec)
        single = not found.reason and self._leaves_one(found, leaves)
        if not found.reason and not single:
            total, place = found.samples(leaves), device_of(leaves[found.batch[0]])
            if divides(total, place):
                self.divided = self.divided or torch.is_grad_enabled()
                reduction = self._reduction() if torch.is_grad_enabled() else self.none
                here = self._region(found, total, reduction)
                module, draws = self.module, self.draws_original
                output = divided(module, self.call, found, leaves, spec, here, place, reduction, draws)
                if not self.sync_batch_norm:
                    batch_norm.follow_first(self.batch_norms)
                self.settings.after_forward(module)
                return output
        reason = SINGLE if single else found.reason or FEW
        if reason == FEW and not found.reason and not self.divided and found.samples(leaves) >= dist.get_world_size():
            reason = (
                f"its batch of {found.samples(leaves)} samples does not divide by {dist.get_world_size()}, as "
                "devices need where all ranks run one program"
            )
        copies: structure.Copies = []
        if any(isinstance(leaf, DistributedTensor) for leaf in leaves):  # torch.compile would trace how they are joined
            given = args, kwargs
            args, kwargs = structure.unflatten(map(whole_of, leaves), spec)
            copies = structure.copies(given, (args, kwargs))
        before = kept_attributes.attributes(self.module) if self._may_be_kept(found.reason) else None
        in_parts = self.root is None and self._has_parts(found.reason, leaves)
        output = self._in_parts(args, kwargs) if in_parts else self.call(*args, **kwargs)
        structure.give_back(copies)
        if self.root is not None or (before is not None and self._note_kept(before, found.reason)):
            return output
        often = reason == FEW and self.divided  # the last batch of an epoch is short
        if single or (torch.is_grad_enabled() and not often):
            self.say(reason)
        return output

    def _region(self, found: Division, total: int, reduction: AnyReduction) -> region.Region:
        """The region of a forward, mostly that of the last one; where graphs lie in it is another thing each time."""
        last, here = self.last
        if found.graphs is not None or isinstance(reduction, PartOfReduction):
            return region_of(found, total, reduction)
        if here is None or last[0] is not found or last[1] != total or last[2] is not reduction:
            here = region_of(found, total, reduction)
            self.last = (found, total, reduction), here
        return here

    def _has_parts(self, reason: str, leaves: Sequence[Any]) -> bool:
        """Whether the parts of a module are tried where it cannot be divided as a whole."""
        recorded = any(isinstance(leaf, Tensor) and engines.of(leaf.device).records for leaf in leaves)
        return reason not in ("", FEW) and not recorded and not compiled.is_compiled(self.module)

    def _may_be_kept(self, reason: str) -> bool:
        """Whether it is worth a call to see what a module keeps of its samples, which stands against a division."""
        asked = reason.startswith(kept_attributes.KEEPS) and self.form not in self.kept
        return asked and self.root is None and not compiled.is_compiled(self.module)

    def _note_kept(self, before: dict[kept_attributes.Attribute, Any], reason: str) -> bool:
        """Whether the next call is tried again, with what a forward keeps as outputs.

        before: the attributes before the forward.
        """
        kept = kept_attributes.made_since(before, self.module)
        self.kept[self.form] = kept, reason
        if kept:
            del self.divisions[self.form]
        return bool(kept)

    def _in_parts(self, args: Any, kwargs: Any) -> Any:
        """The forward of the whole batch, with this rank's rows in those of its parts that can be divided."""
        if self.parted != self.state:
            self.parted = self.state
            for part in parts.of(self.module):
                if vars(part).get(CALL) is None:
                    self.parts[id(part)] = route(part, None, self.reduce, self.sync_batch_norm, self)
        self.ended = _Ended(self)
        with parts.within(self.module):
            output = self.call(*args, **kwargs)
        if torch.is_grad_enabled() and any(part.divided for part in self.parts.values()):
            self._inventory()  # it may freeze and unfreeze parameters
            self.ended.reduction = self._reduction()
        return output

    def say(self, reason: str) -> None:
        """What became of a forward that is not divided as a whole."""
        divided = dict.fromkeys(part.name for part in self.parts.values() if part.divided)
        if not divided:
            self.warn(reason)
            return
        what = f"{kind()} of {self.name}"
        text = f"{what} is divided in parts ({', '.join(divided)}); the rest runs whole on every process: {reason}"
        report.note(f"{self.number} {reason}", text)

    def _leaves_one(self, found: Division, leaves: Sequence[Any]) -> bool:
        """Whether a rank would have a single sample, of which it cannot tell how its features vary."""
        few = not self.sync_batch_norm and found.samples(leaves) < 2 * dist.get_world_size()
        return few and any(call.module.training for call in self.batch_norms)

    def warn(self, reason: str) -> None:
        """Once for each reason."""
        if reason in self.said:
            return
        self.said.add(reason)
        text = f"{kind()} of {self.name} runs whole on every process (exact, but no faster): {reason}"
        report.note(f"{self.number} {reason}", text)
        warnings.warn(f"ddpify: {text}", stacklevel=4)

    @property
    def name(self) -> str:
        return name_of(self.module)

    def _division(self, leaves: list[Any], spec: Form) -> Division:
        """How this form of input is divided.

        Tried again at calls 4, 16, 256, 4096, …, since a model may change its ways; from 16 on by its gradients.
        And before a call with other numbers, such as the epoch, that may tell it to.
        """
        now = self._inventory()
        if now.hooks and (reason := self._watched(now)):
            return Division(reason=reason)  # this time; not remembered
        # Layers may have been added, replaced or put into another mode since (M7).
        form = self.form = spec.text, torch.is_grad_enabled(), compiled.times(), self.state, *map(_form, leaves)
        kept, why = self.kept.get(form, ((), ""))
        calls = self.calls[form] = self.calls.get(form, 0) + 1
        known = self.divisions.get(form)
        due = calls == EARLY or (not calls & (calls - 1) and calls.bit_length() % 4 == 1)
        if known is not None and known.reason:
            return known
        few = known.samples(leaves) < world_size() if known else _few(leaves)
        told = known.settings(leaves) if known is not None else leaves
        new = not few and self.settings.are_new(form, self.module, now.parts, told)
        if known is not None and not (due or new):
            return known
        if few and (known or not due):
            otherwise = known is not None and known.graphs is not None and not known.samples(leaves)
            return Division(reason=OTHERWISE if otherwise else FEW)  # this time; not remembered

        def call(module: Any, values: Sequence[Any]) -> Any:
            args, kwargs = structure.unflatten(values, spec)
            try:
                output = kept_attributes.given_and_kept(module, kept, lambda: call_past_slot(module)(*args, **kwargs))
            except kept_attributes.NotKept as error:
                raise NotDivisible(why) from error
            left, form = structure.flatten_call(args, kwargs)
            if form != spec or any(after is not before for after, before in zip(left, values, strict=True)):
                raise NotDivisible("it changes its input")
            return output

        self.batch_norms = batch_norm.route(self.module, local=not self.sync_batch_norm)
        # What torch.compile(module) computes is what the module in it computes, which is cheaper to try.
        module = uncompiled(self.module)
        whole = [whole_of(leaf) for leaf in leaves]
        graphs = [*graph_batches.plans(whole, spec)]
        if self.root is not None:  # computed on each rank, and so equal up to rounding
            whole = [_as_on_rank_zero(leaf) for leaf in whole]
        for place in self.settings.arguments:
            whole[place] = own_numbers.watched_number(whole[place])
        gradients = new or calls != EARLY
        watched = own_numbers.watched(self.settings.attributes(self.module))
        with script_variables.kept(module), self.tried(), compiled.eagerly(), watched:
            again = known if gradients and not new and torch.is_grad_enabled() else None
            if again is not None and still_holds(module, call, whole, again):
                return again
            found = find(module, call, whole, known, gradients=gradients, graphs=graphs)
        if kept:
            found = replace(found, kept=kept, reason=found.reason and (found.reason if known else why))
        if not found.reason and compiled.is_compiled(self.module) and not is_compilable(module, found):
            found = replace(found, eager=True)
        if few and found.reason:
            return Division(reason=FEW)
        if found.reason:
            if known is not None and not new:
                if found.reason.startswith(FAILS) and fails(module, call, whole):  # the script may know what to do then
                    return known
                raise RuntimeError(
                    f"ddpify: {kind()} of {self.name} was divided over the processes, but at call {calls} "
                    f"{found.reason}. The steps since the last check may be wrong; {self.remedy}"
                )
        elif torch.is_grad_enabled():

            def same() -> bool:
                with script_variables.kept(module), self.tried():
                    return confirmed(module, call, whole, found)

            with compiled.eagerly():
                check.gradient(self.module, same)
        if known is None and not found.reason and self.root is None:
            key = f"{self.number} {kind()}"
            report.note(key, self._how(found, found.samples(leaves)), detail=not torch.is_grad_enabled())
        self.divisions[form] = found
        return found

    def tried(self) -> AbstractContextManager[None]:
        """While a division is tried on copies of the module."""
        return nullcontext()

    def _inventory(self) -> Inventory:
        """What the module consists of now."""
        if self.now is None or not self.now.holds():
            require_own_device(self.module)
            self.now, self.reduction = Inventory(self.module), None
            self.state = self.states.setdefault(self.now.parts, len(self.states))
        return self.now

    def _watched(self, now: Inventory) -> str:
        """As `watched`; looked at once as long as the parts and their hooks are the same."""
        seen = now.parts, now.hooks
        if self.seen[0] != seen:
            self.seen = seen, watched(self.module, self.root is not None)
        return self.seen[1]

    def _how(self, found: Division, samples: int) -> str:
        """A line about a division, for people."""
        world_size = dist.get_world_size()
        text = f"{kind()} of {self.name} is divided: {samples} samples, {samples // world_size} per rank"
        if found.eager:
            text += "; not compiled, since it draws, normalises batches, computes its loss or decides by its samples"
        if not self.sync_batch_norm and self.batch_norms:
            text += "; BatchNorm takes the statistics of each rank's rows"
        if samples < ROOM * world_size:
            text += f"; the batch stays the global one: give it {world_size} times as many to fill the devices"
        return text

    def _reduction(self) -> AnyReduction:
        """One reducer for each set of trainable parameters: freezing and unfreezing changes the set (M5, M6)."""
        if self.root is not None and (root := self.root()) is not None:
            return PartOfReduction(root.ended.enter)
        if self.reduction is None:
            assert self.now is not None
            trainable = self.now.trainable
            if trainable not in self.reductions:
                self.reductions[trainable] = self.reduce(self.module)
            self.reduction = self.reductions[trainable]
        return self.reduction


class _Ended:
    """The reduction for what is trained at the end of a forward; meanwhile, that for what is trained so far."""

    def __init__(self, call: RoutedCall) -> None:
        self.call = weakref.ref(call)
        self.reduction: AnyReduction | None = None

    def enter(self) -> None:
        if self.reduction is not None:
            self.reduction.enter()
        elif (call := self.call()) is not None:
            call._reduction().enter()


def route(
    module: nn.Module,
    compiled: Callable[..., Any] | None,
    reduce: Callable[[nn.Module], AnyReduction],
    sync_batch_norm: bool,
    root: RoutedCall | None = None,
    kind: type[RoutedCall] | None = None,
) -> RoutedCall:
    """Put a routed call in front of a module's, of some kind; other arguments as for RoutedCall."""
    routes.release(module.parameters())  # another module that has them gets no view from now on
    routed = (kind or RoutedCall)(module, compiled, reduce, sync_batch_norm, root)
    # Past any __setattr__ of the module: torch.compile's wrapper forwards attributes to the module that it wraps.
    vars(module)[CALL] = routed
    return routed


def _as_on_rank_zero(leaf: Any) -> Any:
    if not isinstance(leaf, Tensor) or leaf.layout is not torch.strided:
        return leaf
    sent = leaf.detach().clone(memory_format=torch.contiguous_format)
    dist.broadcast(sent, 0)
    return sent.requires_grad_(leaf.requires_grad)


def _form(leaf: Any) -> Any:
    """What a division depends on, of one input."""
    if isinstance(leaf, Tensor):
        rows = leaf._rows if type(leaf) is not Tensor and isinstance(leaf, HeldRows) else leaf
        return rows.dim(), rows.dtype
    return leaf if isinstance(leaf, (bool, str, type(None))) else type(leaf)


def _few(leaves: Sequence[Any]) -> bool:
    """Whether an input seems to have fewer samples than there are processes, so that nothing can be learnt from it.

    (It may have them in its second dimension, like the hidden state of a recurrent network.)
    """
    sizes = [len(leaf) for leaf in leaves if isinstance(leaf, Tensor) and leaf.dim()]
    return bool(sizes) and sizes[0] < dist.get_world_size()
