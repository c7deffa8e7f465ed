"""A model on the device of another process ends the run with one line; as far as a machine without GPUs goes."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pytest
import torch
from ddpify_runtime import accelerators
from ddpify_runtime.agreement import failure
from ddpify_runtime.forward.own_device import require_own_device


def said(monkeypatch: pytest.MonkeyPatch, *devices: str) -> list[str]:
    """What process 1, whose GPU is the second one, says of a model with parameters on some devices."""
    found: list[str] = []
    monkeypatch.setattr(failure, "leave", found.append)
    gpus = SimpleNamespace(current_device=lambda: 1)
    monkeypatch.setattr(accelerators, "module_of", lambda kind: gpus if kind == "cuda" else None)
    parameters = [SimpleNamespace(device=torch.device(each)) for each in devices]
    require_own_device(cast(Any, SimpleNamespace(parameters=lambda: parameters)))
    return found


def test_a_number_from_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    (line,) = said(monkeypatch, "cuda:0")
    assert line.startswith("a model is on cuda:0, and the device of this process is cuda:1: the number comes from a")
    assert line.endswith("say `cuda` there")


@pytest.mark.parametrize("devices", [("cuda:1",), ("cpu",), ("meta", "cuda:1"), ()])
def test_a_model_in_its_place(monkeypatch: pytest.MonkeyPatch, devices: tuple[str, ...]) -> None:
    assert said(monkeypatch, *devices) == []
