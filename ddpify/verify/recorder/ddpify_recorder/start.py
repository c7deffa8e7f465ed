"""Begins to record in a process, as its environment asks for; the first module here that imports torch."""

from __future__ import annotations

import atexit
import os
from pathlib import Path

import torch
from torch.optim.optimizer import register_optimizer_step_post_hook, register_optimizer_step_pre_hook

from ddpify_recorder import changes, loaders, neutral, remarks, training, unions
from ddpify_recorder.noise import Noise
from ddpify_recorder.recorder import Recorder


def start(folder: Path, seed: int) -> None:
    """Record what the script does from now on.

    Args:
        folder: where the records go. seed: for torch's generators.
    """
    plain, size = "DDPIFY_PLAIN" in os.environ, float(os.environ.get("DDPIFY_NOISE", "0"))
    noise = Noise(size, int(os.environ.get("DDPIFY_NOISE_SEED", "0"))) if size else None
    recorder = Recorder(folder, int(os.environ.get("DDPIFY_STEPS", "0")), noise, plain)
    atexit.register(recorder.end)  # the first to be registered runs last
    training.watch(recorder)
    loaders.watch(recorder)
    remarks.watch(recorder)
    if "DDPIFY_INPUTS" in os.environ:
        training.watch_inputs(recorder)
    register_optimizer_step_pre_hook(recorder.before)
    register_optimizer_step_post_hook(recorder.after)
    if plain:
        changes.descend_plainly()
    if os.environ.get("DDPIFY_DROPOUT") == "off":
        changes.switch_off_dropout()
    if "DDPIFY_NEUTRAL" in os.environ:
        neutral.normalize_each_sample()
        neutral.draw_by_sample()
        neutral.leave_out_noise()
        neutral.draw_orders_apart()
    if "DDPIFY_UNIONS" in os.environ:
        unions.give(Path(os.environ["DDPIFY_UNIONS"]))
    torch.manual_seed(seed)
