"""Random projections of gradients: whether two sums are equal is told by some numbers of each, which are sent at once.

A tensor is projected from both sides of the matrix that its values are laid out in, which costs one pass over them
(Johnson and Lindenstrauss 1984: in the mean the sum of squares is kept; of a matrix of rank one, too).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

_WIDTH = 64  # of the matrix that a gradient's values are laid out in
_COUNT = 8  # of projections of each side


def projected(gradients: Sequence[Tensor]) -> Tensor:
    """The projections of each, the same on every rank; the norm of all of one tensor's is about its own norm.

    Args:
        gradients: dense tensors, of any dtype.

    Returns:
        A tensor of size [len(gradients), 64] in float64 on the host.
    """
    generator = torch.Generator().manual_seed(0)
    on_host: Any = {"dtype": torch.float64, "device": "cpu"}
    of_columns = torch.randn(_WIDTH, _COUNT, generator=generator, **on_host)
    lines = max((_lines(gradient) for gradient in gradients), default=0)
    of_lines = torch.randn(_COUNT, lines, generator=generator, **on_host)
    flat = [_project(gradient, of_columns, of_lines) for gradient in gradients]
    return torch.stack(flat) / _COUNT if flat else torch.zeros(0, _COUNT * _COUNT, **on_host)


def _lines(gradient: Tensor) -> int:
    return (torch.view_as_real(gradient) if gradient.is_complex() else gradient).numel() // _WIDTH + 1


def _project(gradient: Tensor, of_columns: Tensor, of_lines: Tensor) -> Tensor:
    real = torch.view_as_real(gradient) if gradient.is_complex() else gradient
    flat = real.detach().flatten()
    flat = flat if flat.dtype in (torch.float32, torch.float64) else flat.float()
    lines, columns = of_lines[:, : len(flat) // _WIDTH + 1].to(flat), of_columns.to(flat)
    end = len(flat) // _WIDTH * _WIDTH
    of_rest = torch.outer(lines[:, -1], flat[end:] @ columns[: len(flat) - end])
    return (lines[:, :-1] @ flat[:end].view(-1, _WIDTH) @ columns + of_rest).flatten().cpu().double()
