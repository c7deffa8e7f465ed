"""`python -m ddpify_runtime.launch.spawn N SCRIPT ARGS`."""

from __future__ import annotations

import pytest
from ddpify_runtime.launch import spawn


@pytest.mark.parametrize("words", [[], ["2"], ["two", "train.py"], ["0", "train.py"], ["2", "-m"]])
def test_a_command_that_names_no_script(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert spawn.main(words) == 2
    assert "use: python -m ddpify_runtime.launch.spawn N [-m] SCRIPT ARGS" in capsys.readouterr().err
