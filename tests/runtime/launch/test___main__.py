"""`python -m ddpify_runtime.launch COMMAND`: the launcher's status, or the signal that ended it."""

from __future__ import annotations

import pytest
from ddpify_runtime.launch import __main__ as launch


def test_no_command(capsys: pytest.CaptureFixture[str]) -> None:
    assert launch.main([]) == 2
    assert "use: python -m ddpify_runtime.launch COMMAND" in capsys.readouterr().err
