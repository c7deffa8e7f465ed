"""DDP303: learning by acting."""

from __future__ import annotations

import pytest
from ddpify_codemods.rules.refuse.reinforcement import RULE

from ..checks import assert_refused, assert_silent


@pytest.mark.parametrize(
    "source",
    ["meter.reset()\nmeter.step(1)", "import gym", "from gymnasium import spaces\nspaces.Discrete(2)"],
)
def test_no_environment_is_played(source: str) -> None:
    assert_silent(RULE, source)


@pytest.mark.parametrize("library", ["gym", "gymnasium as gym", "pettingzoo as gym"])
def test_environments(library: str) -> None:
    assert_refused(RULE, f"import {library}\nenv = gym.make('x')\nenv.reset()\nenv.reset()", line=3)
