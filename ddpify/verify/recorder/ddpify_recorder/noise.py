"""Noise as large as rounding, on gradients and on the first weights: what a training makes of it is what it makes of
rounding. A deep network of ReLUs turns the last digit of its weights into the third one of its first gradient."""

from __future__ import annotations

import functools
from typing import Any

import torch
from torch import nn
from torch.optim import Optimizer

from ddpify_recorder.seeds import SEED
from ddpify_recorder.states import parameters_of

Arguments = tuple[tuple[Any, ...], dict[str, Any]]


class Noise:
    """Normal noise. size: in units of the root mean square of all gradients of an optimizer. seed: each has other."""

    def __init__(self, size: float, seed: int) -> None:
        self.size = size
        self.generator = torch.Generator().manual_seed(SEED + seed)

    def on_weights(self, parameters: list[torch.Tensor]) -> None:
        """Round the parameters of a new optimizer otherwise: each changes by about half a unit of its last digit."""
        with torch.no_grad():
            for p in parameters:
                if p.is_floating_point() and p.layout is torch.strided:
                    noise = torch.randn(p.shape, generator=self.generator, device="cpu").to(p.device, p.dtype)
                    p.data.addcmul_(p.data, noise, value=torch.finfo(p.dtype).eps / 2)

    def before(self, optimizer: Optimizer, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Arguments:
        """Disturb the gradients of a step; return its arguments, with a closure that disturbs those it computes anew.

        Args:
            optimizer: whose step begins. args, kwargs: of its step; the optimizer is the first.
        """
        self.disturb(parameters_of(optimizer))
        places = {1: self._disturbed(args[1], optimizer)} if len(args) > 1 else {}
        names = {"closure": self._disturbed(kwargs["closure"], optimizer)} if "closure" in kwargs else {}
        return tuple(places.get(place, value) for place, value in enumerate(args)), kwargs | names

    def _disturbed(self, closure: Any, optimizer: Optimizer) -> Any:
        if not callable(closure) or isinstance(closure, nn.Module):
            return closure

        @functools.wraps(closure)
        def disturbed(*args: Any, **kwargs: Any) -> Any:
            loss = closure(*args, **kwargs)
            self.disturb(parameters_of(optimizer))
            return loss

        return disturbed

    def disturb(self, parameters: list[torch.Tensor]) -> None:
        """Add the noise to the gradients of these parameters."""
        grads = [p.grad for p in parameters if p.grad is not None and p.grad.layout is torch.strided]
        count = sum(grad.numel() for grad in grads) or 1
        size = sum(float(grad.detach().double().abs().square().sum()) for grad in grads)
        for grad in grads:
            noise = torch.randn(grad.shape, generator=self.generator, device="cpu").to(grad.device, grad.dtype)
            grad.data.add_(noise, alpha=self.size * (size / count) ** 0.5)
