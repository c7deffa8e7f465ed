"""Noise predictors of diffusers."""

from __future__ import annotations

from functools import partial
from typing import Any

import diffusers
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from .table import Entry


def unet(dropout: float) -> Any:
    return diffusers.UNet2DModel(
        sample_size=16,
        in_channels=3,
        out_channels=3,
        layers_per_block=1,
        block_out_channels=(8, 16),
        norm_num_groups=4,
        down_block_types=("DownBlock2D", "AttnDownBlock2D"),
        up_block_types=("AttnUpBlock2D", "UpBlock2D"),
        attention_head_dim=8,
        dropout=dropout,
    )


def conditioned(dropout: float) -> Any:
    return diffusers.UNet2DConditionModel(
        sample_size=16,
        in_channels=3,
        out_channels=3,
        layers_per_block=1,
        block_out_channels=(8, 16),
        norm_num_groups=4,
        down_block_types=("CrossAttnDownBlock2D", "DownBlock2D"),
        up_block_types=("UpBlock2D", "CrossAttnUpBlock2D"),
        attention_head_dim=4,
        cross_attention_dim=12,
        dropout=dropout,
    )


def noisy(samples: int) -> dict[str, Tensor]:
    shape = samples, 3, 16, 16
    return {"x": torch.randn(shape), "noise": torch.randn(shape), "t": torch.randint(0, 1000, (samples,))}


def with_text(samples: int) -> dict[str, Tensor]:
    return noisy(samples) | {"text": torch.randn(samples, 7, 12)}


def loss(model: nn.Module, batch: dict[str, Any]) -> Tensor:
    given = [batch["x"] + batch["noise"], batch["t"], *([batch["text"]] if "text" in batch else [])]
    return F.mse_loss(model(*given).sample, batch["noise"])


entry = partial(Entry, library="diffusers", loss=loss, dropout=True)

ENTRIES = [
    entry("UNet2D", build=unet, batch=noisy),
    entry("UNet2DCondition", build=conditioned, batch=with_text),
]
