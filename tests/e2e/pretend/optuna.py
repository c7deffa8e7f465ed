"""Stands in for optuna where it is not installed: a search that draws, in each process, what no other one draws."""

from __future__ import annotations

import os
import random
from collections.abc import Callable
from typing import Any

_system = random.Random(int(os.environ.get("RANK", "0")))  # rank 0 draws what one process does


class TrialPruned(Exception):
    """Raised by an objective that goes on no longer."""


class Trial:
    """Settings that are drawn as they are asked for."""

    def __init__(self, study: Study, number: int) -> None:
        self.study, self.number = study, number
        self.params: dict[str, Any] = {}
        self.reported: list[float] = []
        self.state = "RUNNING"
        self.value: float | None = None

    def suggest_float(self, name: str, low: float, high: float) -> float:
        return self._drawn(name, _system.uniform(low, high))  # type: ignore[no-any-return]

    def suggest_int(self, name: str, low: int, high: int) -> int:
        return self._drawn(name, _system.randint(low, high))  # type: ignore[no-any-return]

    def suggest_categorical(self, name: str, choices: list[Any]) -> Any:
        return self._drawn(name, _system.choice(choices))

    def _drawn(self, name: str, value: Any) -> Any:
        self.params[name] = value
        return value

    def report(self, value: float, step: int) -> None:
        self.reported.append(value)

    def should_prune(self) -> bool:
        return self.number == 2 and len(self.reported) == 1


class Study:
    """Trials, one after the other."""

    def __init__(self) -> None:
        self.trials: list[Trial] = []

    def optimize(self, objective: Callable[[Trial], float], n_trials: int) -> None:
        for _ in range(n_trials):
            trial = Trial(self, len(self.trials))
            self.trials.append(trial)
            try:
                trial.value, trial.state = objective(trial), "COMPLETE"
            except TrialPruned:
                trial.state = "PRUNED"

    @property
    def best_trial(self) -> Trial:
        return min((trial for trial in self.trials if trial.value is not None), key=lambda trial: trial.value or 0.0)

    @property
    def best_params(self) -> dict[str, Any]:
        return self.best_trial.params

    @property
    def best_value(self) -> float | None:
        return self.best_trial.value


def create_study(direction: str) -> Study:
    """A new search."""
    return Study()
