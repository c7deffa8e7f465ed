"""The checkpoint's file: written by rank 0 beside the one before, which stays good until the new one is on the disk."""

from __future__ import annotations

import glob
import io
import os
from typing import Any

import torch

from ..process_group import get_rank, get_world_size
from ..sharding.collectives import broadcast_object

NAME = "checkpoint.pt"


def write(folder: str, data: dict[str, Any]) -> None:
    """Put a checkpoint into a folder in the place of the one before, at once or not at all."""
    if get_rank():
        return
    os.makedirs(folder, exist_ok=True)
    path = os.path.join(folder, NAME)
    new = f"{path}.{os.getpid()}"  # a process that outlived its launcher may still write another
    with open(new, "wb") as file:
        torch.save(data, file)
        file.flush()
        os.fsync(file.fileno())
    os.replace(new, path)
    _sync_folder(folder)


def read(folder: str) -> dict[str, Any] | None:
    """The checkpoint that rank 0 finds in a folder, on every rank; None if there is none. A collective."""
    path = os.path.join(folder, NAME)
    content = None
    if get_rank() == 0 and os.path.exists(path):
        with open(path, "rb") as file:
            content = file.read()
        for unfinished in glob.glob(f"{glob.escape(path)}.*"):
            os.remove(unfinished)
    if get_world_size() > 1:
        content = broadcast_object(content)
    if content is None:
        return None
    data: dict[str, Any] = torch.load(io.BytesIO(content), map_location="cpu", weights_only=False)
    return data


def _sync_folder(folder: str) -> None:
    """The new name too is on the disk then; where folders cannot be synced (Windows), it comes there later."""
    if not hasattr(os, "O_DIRECTORY"):
        return
    descriptor = os.open(folder, os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
