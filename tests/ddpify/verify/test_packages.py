"""What `ddpify verify` needs beside ddpify itself."""

from __future__ import annotations

import importlib.util

import pytest

from ddpify.files import BadInput
from ddpify.verify.packages import require


def test_what_is_missing_is_named_with_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    require()
    found = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None if name == "numpy" else found(name))
    with pytest.raises(BadInput, match="needs numpy in this environment"):
        require()
