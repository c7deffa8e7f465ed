"""Stands in for wandb where it is not installed: a run of this process, with a name and settings of its own."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from typing import Any

run: Run | None = None
config: Config | None = None


class Config:
    """Settings, as items and as attributes."""

    def __init__(self, settings: Mapping[str, Any]) -> None:
        self._settings = dict(settings)

    def __getitem__(self, key: str) -> Any:
        return self._settings[key]

    def __getattr__(self, name: str) -> Any:
        return self._settings[name]


class Run:
    """What is written to a folder of its own."""

    def __init__(self, project: str, settings: Mapping[str, Any], disabled: bool) -> None:
        self.id = "dummy" if disabled else f"{project}-{os.environ.get('RANK', '0')}"
        self.dir = os.path.join("wandb", self.id)
        self.config = Config(settings)
        self.summary: dict[str, Any] = {}
        if not disabled:
            os.makedirs(self.dir)
        self._log = open(os.devnull if disabled else os.path.join(self.dir, "log.jsonl"), "w")  # noqa: SIM115

    def log(self, values: Mapping[str, Any]) -> None:
        self._log.write(json.dumps(dict(values)) + "\n")

    def finish(self) -> None:
        self._log.write(json.dumps(self.summary) + "\n")
        self._log.close()


def init(project: str, config: Mapping[str, Any], mode: str | None = None) -> Run:
    """Begin a run; mode "disabled": one that writes nothing."""
    global run
    run = Run(project, config, mode == "disabled")
    globals()["config"] = run.config
    return run


def log(values: Mapping[str, Any]) -> None:
    """Write to the run."""
    assert run is not None, "call init() first"
    run.log(values)
