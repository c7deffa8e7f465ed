"""A number of which every rank has a part: the whole is their sum, as of a loss over samples that the ranks hold.

It is summed over the ranks when somebody reads it, and not before: a backward pass, a factor, and adding two such
numbers or what is the same on every rank (a penalty on weights) need no communication. Everything else gets the whole.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor, nn
from torch.autograd import Function

from ..forward import region
from ..gradients.reduction import is_in_pass, run_pass
from ..sharding.collectives import add_over_ranks, leave, sum_over_ranks, world_size
from ..torch_internals import apply, asks_subclasses, made_wrapper
from .batch import QUESTIONS, DistributedTensor, as_it_is, entering, same_memory, wholes
from .partial_gradients import Total, WholeOfPartial, inside

_OnEnter = tuple[Callable[[], None], ...]


_READS = {
    *(Tensor.__bool__, Tensor.__float__, Tensor.__format__, Tensor.__index__, Tensor.__int__),
    *(Tensor.__ge__, Tensor.__gt__, Tensor.__le__, Tensor.__lt__, Tensor.item, Tensor.tolist),
    *(Tensor.isfinite, Tensor.isinf, Tensor.isnan, torch.isfinite, torch.isinf, torch.isnan),
}
_FORMS = {torch.empty_like, torch.full_like, torch.ones_like, torch.zeros_like}
_LINEAR = {
    *(Tensor.clone, Tensor.cpu, Tensor.cuda, Tensor.xpu, Tensor.double, Tensor.float, Tensor.to),
    *(Tensor.neg, Tensor.__neg__),
    *(Tensor.mean, Tensor.squeeze, Tensor.sum, torch.mean, torch.squeeze, torch.sum),
}
_DATA = Tensor.data.__get__  # type: ignore[attr-defined]
_ADD = {Tensor.add, Tensor.__add__, Tensor.__radd__, torch.add}
_SUBTRACT = {Tensor.sub, Tensor.__sub__, torch.sub}
_MULTIPLY = {Tensor.mul, Tensor.__mul__, Tensor.__rmul__, torch.mul}
_NODES = "SubBackward0", "AddBackward0"
_DIVIDE = {Tensor.div, Tensor.true_divide, Tensor.__truediv__, torch.div}


class Partial(DistributedTensor):
    """The sum over ranks of `part`, divided by `divisor`, and `common`, which every rank has alike."""

    _whole: Tensor | None = None
    _source: tuple[Partial, Callable[[Tensor], Tensor]] | None = None  # whose memory it has, and how
    _part: Tensor
    _common: Tensor | None
    _divisor: int
    _on_enter: _OnEnter
    _node: Any = None  # the autograd node that made this
    _value: Tensor | None = None  # of the whole, without a graph, once it was read
    _viewed = False  # whether another tensor has the same memory
    _operation = ""  # the autograd node that one process would have made, by its name

    @staticmethod
    def __new__(cls, part: Tensor, common: Tensor | None, divisor: int, on_enter: _OnEnter) -> Partial:
        made: Partial = made_wrapper(cls, part.shape, part)
        made._part, made._common, made._divisor, made._on_enter = part, common, divisor, on_enter
        return made

    @property
    def is_partial(self) -> bool:
        """Whether the parts still make it up; not once the whole has been used, since it may have been changed."""
        source = self._source
        return self._whole is None and (source is None or source[0].is_partial) and not self._is_foreign

    # What a step calls, past __torch_function__, which takes as long as a small layer.

    def backward(
        self, gradient: Any = None, retain_graph: Any = None, create_graph: bool = False, inputs: Any = None
    ) -> None:
        """As Tensor.backward."""
        if self.is_partial:
            _backward(self, gradient, retain_graph, create_graph, inputs)
        else:
            super().backward(gradient, retain_graph, create_graph, inputs)  # type: ignore[no-untyped-call]

    def detach(self) -> Tensor:
        """As Tensor.detach."""
        with torch.DisableTorchFunctionSubclass():
            made = _detached(self, Tensor.detach)
        return super().detach() if made is None else made

    def item(self) -> Any:
        """As Tensor.item; a collective the first time."""
        with torch.DisableTorchFunctionSubclass():
            return self.value().item()

    @property
    def _is_foreign(self) -> bool:
        """Whether a Function of the user's own has returned this, so that it has another gradient than its parts."""
        return _node(self) is not self._node

    def _is_like(self, other: Partial) -> bool:
        """Whether the sum of both is that of their parts, in all else the same."""
        mine = self._divisor, self._on_enter, self._part.dtype
        alone = self._common is None and other._common is None
        return alone and mine == (other._divisor, other._on_enter, other._part.dtype)

    @property
    def enter(self) -> Callable[[], None]:
        """Called when a backward pass enters the shared regions that this comes from."""
        return entering(self._on_enter)

    def whole(self) -> Tensor:
        """The whole; a collective the first time."""
        if self._whole is None:
            with torch.enable_grad():
                if self._is_foreign:
                    self._whole = WholeOfPartial.apply(self)  # type: ignore[no-untyped-call]
                elif self._source is not None:
                    source, make = self._source
                    self._whole = make(source.whole())
                elif region.current() is not None:  # a loss of the forward, of which the forward makes use
                    whole = sum_over_ranks(self.addend)
                    self._whole = whole if self._common is None else whole + self._common
                else:
                    self._whole = Total.apply(self.addend, self.value(), self._common, self.enter)  # type: ignore[no-untyped-call]
        return self._whole

    def left(self) -> Tensor:
        """This number, where a forward that has computed it returns it."""
        return self if self.is_partial else leave(self.whole(), self.enter)

    def value(self) -> Tensor:
        """The value of the whole; a collective the first time."""
        if not self.is_partial:
            return self.whole().detach()
        if self._value is None:
            region.require_all_ranks("a number")
            value = self._part.detach().clone()
            add_over_ranks(value)
            if self._divisor > 1:
                value /= self._divisor
            self._value = value if self._common is None else value + self._common.detach()
        return self._value

    @property
    def addend(self) -> Tensor:
        """This rank's part of the sum."""
        return self._part if self._divisor == 1 else self._part / self._divisor

    @classmethod
    def __torch_function__(
        cls,
        func: Callable[..., Any],
        types: Sequence[type],
        args: tuple[Any, ...] = (),
        kwargs: dict[str, Any] | None = None,
    ) -> Any:
        kwargs = kwargs or {}
        first = args[0] if args else None
        if func in (Tensor.backward, torch.autograd.backward) and isinstance(first, Partial) and first.is_partial:
            return _backward(*args, **kwargs)
        if func is torch.autograd.grad and any(
            kind is not cls for kind in types if issubclass(kind, DistributedTensor)
        ):
            return NotImplemented  # an output knows what was computed from its samples
        if func is torch.autograd.grad and region.current() is not None:
            return _differentiated(*args, **kwargs)
        with torch.DisableTorchFunctionSubclass():
            if func in _IN_EACH_STEP and len(args) < 3 and not kwargs:
                made = _IN_EACH_STEP[func](*args)
                if made is not None:
                    return made
            if func in QUESTIONS:
                return func(*as_it_is(args), **kwargs)
            if isinstance(first, Partial):
                if func is Tensor.requires_grad.__get__ and first.is_partial:  # type: ignore[attr-defined]
                    return any(each is not None and each.requires_grad for each in (first._part, first._common))
                if func in _READS and not any(isinstance(value, Tensor) for value in args[1:]):
                    return func(first.value(), *args[1:], **kwargs)
                if func is Tensor.__repr__:
                    return _shown(first)
                if func in _FORMS:
                    return func(first._part, *args[1:], **kwargs)
            result = _sum_of_parts(func, args, kwargs)
            return func(*wholes(args), **wholes(kwargs)) if result is None else result

    @classmethod
    def __torch_dispatch__(  # type: ignore[override]
        cls, func: Any, types: Sequence[type], args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        """For callers that go past __torch_function__; below autograd, so without a graph."""
        return func(*(each.value() if isinstance(each, Partial) else each for each in args), **(kwargs or {}))


def partial(part: Tensor, common: Tensor | None, on_enter: _OnEnter, divisor: int = 1, operation: str = "") -> Partial:
    """A number of which every rank has a part.

    Args:
        part: this rank's. common: what is added to the sum of the parts, the same on every rank, or None.
        on_enter: called when a backward pass enters the shared regions that `part` comes from.
        divisor: of the sum of the parts, which is then divided as one process would.
        operation: the autograd node that one process would have made; that of `part`, if not given.
    """
    if not (torch.is_grad_enabled() and (part.requires_grad or (common is not None and common.requires_grad))):
        common = None if common is None else common.detach()
        return Partial.__new__(Partial, part.detach(), common, divisor, on_enter)
    operation = operation or type(part.grad_fn).__name__
    made: Partial = apply(_Made, part, common, divisor, on_enter)
    made._part, made._common, made._node, made._operation = part, common, _node(made), operation
    return made


def _shown(number: Partial) -> str:
    """As torch shows it in one process: `tensor(0.5, grad_fn=<MseLossBackward0>)`."""
    text = repr(number.value().detach())
    return f"{text[:-1]}, grad_fn=<{number._operation}>)" if number._operation else text


def _node(made: Partial) -> Any:
    if not asks_subclasses():
        return made.grad_fn
    with torch.DisableTorchFunctionSubclass():
        return made.grad_fn


def _backward(
    number: Partial, gradient: Any = None, retain_graph: Any = None, create_graph: bool = False, inputs: Any = None
) -> None:
    part, plain = number._part, gradient is None and number._common is None and not create_graph and inputs is None
    if plain and part.grad_fn is not None and not is_in_pass():  # past the node of the number, which is Python
        seed = torch.full_like(part, world_size() / number._divisor)
        run_pass(number.enter, lambda: torch.autograd.backward(part, seed, retain_graph))
        return
    gradient = torch.ones_like(part) if gradient is None else wholes(gradient)
    with torch.DisableTorchFunctionSubclass():
        torch.autograd.backward(number, gradient, retain_graph, create_graph, inputs=inputs)


def _differentiated(outputs: Any, inputs: Any, *args: Any, **kwargs: Any) -> tuple[Tensor | None, ...]:
    """torch.autograd.grad within a divided forward, of a sum over samples with respect to some: forces, of energies.

    What a rank's own samples do to the sum, they do to its own part.
    """
    of_samples = not any(
        isinstance(each, nn.Parameter) for each in ([inputs] if isinstance(inputs, Tensor) else inputs)
    )

    def part(each: Any) -> Any:
        is_part = of_samples and isinstance(each, Partial) and each.is_partial and each._common is None
        return each.addend if is_part else wholes(each)

    given = part(outputs) if isinstance(outputs, Tensor) else [part(each) for each in outputs]
    with torch.DisableTorchFunctionSubclass():
        found: tuple[Tensor | None, ...] = torch.autograd.grad(given, inputs, *wholes(args), **wholes(kwargs))
    return found


def _sum_of_parts(func: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """The result as a sum of parts, or None where it is not known to be one."""
    if any(isinstance(value, Partial) and (not value.is_partial or value.dim()) for value in args):
        return None
    first, others = (args[0], args[1:]) if args else (None, ())
    tensors = any(isinstance(value, Tensor) for value in (*others, *kwargs.values()))
    if func in _LINEAR and isinstance(first, Partial) and not tensors:
        return _changed_in_form(first, func, others, kwargs)
    if kwargs or len(args) != 2:
        return None
    if func in _ADD or func in _SUBTRACT:
        return _added(*args, operator.add if func in _ADD else operator.sub)
    if func in _MULTIPLY and not isinstance(first, Partial):
        args = args[1], first
    if func in _MULTIPLY or func in _DIVIDE:
        return _scaled(*args, operator.mul if func in _MULTIPLY else operator.truediv)
    return None


def _changed_in_form(source: Partial, func: Callable[..., Any], others: tuple[Any, ...], kwargs: Any) -> Partial | None:
    part = func(source._part, *others, **kwargs)
    if part is source._part:  # as torch does where there is nothing to change
        return source
    if same_memory(part, source._part) or (source.is_floating_point() and not part.is_floating_point()):
        return None
    common = None if source._common is None else func(source._common, *others, **kwargs)
    return partial(part, common, source._on_enter, source._divisor)


def _detached(source: Partial, func: Callable[..., Any]) -> Partial | None:
    if not source.is_partial or source.dim():
        return None
    common = None if source._common is None else source._common.detach()
    made = Partial.__new__(Partial, source._part.detach(), common, source._divisor, source._on_enter)
    made._source = source, func
    made._value = source._value
    made._viewed = source._viewed = True
    return made


def _added_parts(one: Any, other: Any) -> Partial | None:
    """The sum of two losses of one batch, as of the real and the made images of a GAN."""
    if not (type(one) is type(other) is Partial and one._is_like(other) and one.is_partial and other.is_partial):
        return None
    if one.dim() or other.dim():
        return None
    return partial(one._part + other._part, None, one._on_enter, one._divisor, _NODES[1])


def _added(one: Any, other: Any, add: Callable[[Any, Any], Any]) -> Partial | None:
    if isinstance(one, Partial) and isinstance(other, Partial) and one._is_like(other):  # a running sum, in each step
        return partial(add(one._part, other._part), None, one._on_enter, one._divisor, _NODES[add is operator.add])
    if not all(isinstance(value, Partial) or _is_replicated(value) for value in (one, other)):
        return None
    numbers = [value for value in (one, other) if isinstance(value, Partial)]
    if len({*(value.dtype for value in numbers), add(*_forms(one, other)).dtype}) > 1:
        return None
    divisors = {value._divisor for value in numbers}
    divisor = divisors.pop() if len(divisors) == 1 else 1
    parts = [
        None if not isinstance(each, Partial) else each._part if divisor > 1 else each.addend for each in (one, other)
    ]
    on_enter = numbers[0]._on_enter
    if len(numbers) > 1 and numbers[1]._on_enter != on_enter:
        on_enter = tuple(dict.fromkeys(each for number in numbers for each in number._on_enter))
    part = _sum(parts[0], parts[1], add)
    commons = [value._common if isinstance(value, Partial) else value for value in (one, other)]
    if commons[1] is None and isinstance(one, Tensor) and one is commons[0]:
        commons[0] = one + 0  # the script may change its tensor before the sum is read
    common = _sum(commons[0], commons[1], add)
    if common is not None and not isinstance(common, Tensor):
        common = None if common == 0 else torch.full_like(part, common)
    return partial(part, common, on_enter, divisor, _NODES[add is operator.add])


def _sum(one: Any, other: Any, add: Any) -> Any:
    if one is None:
        return None if other is None else add(0, other)
    return one if other is None else add(one, other)


def _added_in_place(one: Any, other: Any) -> Partial | None:
    """A running sum of what has no gradient."""
    if not isinstance(one, Partial) or one._viewed or one.requires_grad or getattr(other, "requires_grad", False):
        return None
    if any(isinstance(each, Partial) and (not each.is_partial or each.dim()) for each in (one, other)):
        return None
    if isinstance(other, Partial) and one._is_like(other):
        one._part, one._value = one._part + other._part, None
        return one
    made = _added(one, other, operator.add)
    if made is None:
        return None
    one._part, one._common, one._divisor, one._value = made._part, made._common, made._divisor, None
    return one


def _scaled(one: Any, other: Any, scale: Callable[[Any, Any], Any]) -> Partial | None:
    if not isinstance(one, Partial) or isinstance(other, Partial) or not _is_replicated(other):
        return None
    if not one.is_floating_point() or (isinstance(other, Tensor) and other.requires_grad):
        return None
    if one._common is None and not (torch.is_grad_enabled() and one._part.requires_grad):
        # A count of hits is divided as a whole: two counts that are equal are equal rates, however ranks share them.
        if scale is operator.truediv and isinstance(other, int) and other > 0 and one._divisor == 1:
            return partial(one._part, None, one._on_enter, other)
        if scale is operator.mul:
            return partial(scale(one._part, other), None, one._on_enter, one._divisor)
    part = scale(one.addend, other)
    return partial(part, None if one._common is None else scale(one._common, other), one._on_enter)


def _is_replicated(value: Any) -> bool:
    """Whether it is a number that every rank has alike."""
    plain = isinstance(value, Tensor) and not isinstance(value, DistributedTensor) and not value.dim()
    return plain or (isinstance(value, (int, float)) and not isinstance(value, bool))


def _forms(*values: Any) -> list[Any]:
    return [value._part.detach() if isinstance(value, Partial) else value for value in values]


# What a running sum of losses calls, looked for first.
_IN_EACH_STEP: dict[Any, Callable[..., Partial | None]] = {
    Tensor.detach: lambda source: _detached(source, Tensor.detach),
    _DATA: lambda source: _detached(source, _DATA),
    **dict.fromkeys((Tensor.__iadd__, Tensor.add_), _added_in_place),
    **dict.fromkeys((Tensor.add, Tensor.__add__, torch.add), lambda one, other: _added_parts(one, other)),
}


class _Made(Function):
    """For callers that go past __torch_function__, such as torch.autograd.backward: the number has a gradient."""

    @staticmethod
    def forward(ctx: Any, part: Tensor, common: Tensor | None, divisor: int, on_enter: _OnEnter) -> Tensor:
        ctx.arguments = on_enter, common is not None, divisor
        return Partial.__new__(Partial, part, common, divisor, on_enter)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, Tensor | None, None, None]:
        functions, has_common, divisor = ctx.arguments
        for on_enter in functions:
            on_enter()
        return inside(gradients[0], divisor), gradients[0] if has_common else None, None, None
