"""What a conversion is asked for, by names."""

from __future__ import annotations

from pathlib import Path

import pytest
from ddpify_codemods import TARGETS, convert
from ddpify_codemods.options import ONE_DEVICE, ConversionOptions


def test_going_back_is_no_target() -> None:
    assert ONE_DEVICE not in TARGETS


def test_what_is_not_asked_for_stays_as_it_is() -> None:
    assert not any(
        getattr(ConversionOptions(), name) for name in ("target", "style", "backend", "entry", "batch_norm", "resume")
    )


def test_an_option_that_does_not_exist() -> None:
    with pytest.raises(TypeError, match="syle"):
        convert({Path("train.py"): "import torch\n"}, "cpu", syle="plain")
