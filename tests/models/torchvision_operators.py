"""torchvision beside a torch without CUDA: the wheels of package indexes hold operators that are compiled for CUDA.

Importing this before torchvision gives it the one in Python without which it does not start: non-maximum suppression.
"""

from __future__ import annotations

import importlib.util
import itertools
import sys
from pathlib import Path
from typing import Any

import torch
from torch import Tensor


def _are_compiled() -> bool:
    """Whether torchvision's own operators can be loaded."""
    spec = importlib.util.find_spec("torchvision")
    if spec is None or spec.origin is None:
        return True
    try:
        for library in itertools.chain.from_iterable(
            Path(spec.origin).parent.glob(f"_C*.{end}") for end in ("so", "pyd")
        ):
            torch.ops.load_library(library)
    except OSError:
        return False
    return True


def _suppressed(boxes: Tensor, scores: Tensor, limit: float) -> Tensor:
    """The boxes that no better one covers, the best first."""
    from torchvision.ops import box_iou

    order = scores.sort(descending=True, stable=True).indices
    overlaps = box_iou(boxes[order], boxes[order]) > limit
    kept = torch.ones(len(order), dtype=torch.bool)
    for place in range(len(order)):
        if kept[place]:
            kept[place + 1 :] &= ~overlaps[place, place + 1 :]
    return order[kept]


if not _are_compiled():
    _operators = torch.library.Library("torchvision", "DEF")
    for name in ("nms", "qnms"):
        _operators.define(f"{name}(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")
        _operators.impl(name, _suppressed, "CPU")
    import torchvision.ops.boxes

    torchvision.ops.boxes._assert_has_ops = lambda: None
    pooling: Any = sys.modules["torchvision.ops.roi_align"]
    pooling._roi_align = pooling._roi_align.__wrapped__  # without compiling it
