"""Noise on gradients, as large as rounding: what a training makes of it is what it makes of rounding."""

from __future__ import annotations

import torch

from ddpify_recorder.seeds import SEED


class Noise:
    """Normal noise. size: in units of the root mean square of all gradients of an optimizer."""

    def __init__(self, size: float) -> None:
        self.size = size
        self.generator = torch.Generator().manual_seed(SEED)

    def disturb(self, parameters: list[torch.Tensor]) -> None:
        """Add the noise to the gradients of these parameters."""
        grads = [p.grad for p in parameters if p.grad is not None and p.grad.layout is torch.strided]
        count = sum(grad.numel() for grad in grads) or 1
        size = sum(float(grad.detach().double().abs().square().sum()) for grad in grads)
        for grad in grads:
            noise = torch.randn(grad.shape, generator=self.generator).to(grad.device, grad.dtype)
            grad.data.add_(noise, alpha=self.size * (size / count) ** 0.5)
