"""torch's own devices and process groups: what is refused, and which device a process claims."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
from ddpify_runtime import accelerators
from ddpify_runtime.engines import native
from ddpify_runtime.launch import environment, start
from ddpify_runtime.launch.environment import Environment


def test_a_process_claims_the_device_of_its_local_rank(monkeypatch: pytest.MonkeyPatch) -> None:
    claimed: list[int] = []
    module = SimpleNamespace(device_count=lambda: 2, set_device=claimed.append)
    monkeypatch.setattr(accelerators, "module_of", lambda kind: module)
    native.claim("cuda", Environment(5, 8, 1))
    assert claimed == [1]


def test_more_processes_than_devices_end_with_a_line(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(accelerators, "module_of", lambda kind: SimpleNamespace(device_count=lambda: 2))
    with pytest.raises(SystemExit) as ended:
        native.claim("cuda", Environment(2, 4, 2))
    assert ended.value.code == 2
    assert "process 2 of this machine has no cuda device of its own (2 visible)" in capsys.readouterr().err


def test_host_tensors_travel_beside_those_of_the_device(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in {"RANK": "0", "WORLD_SIZE": "2", "LOCAL_RANK": "0"}.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(native, "claim", lambda *given: None)
    monkeypatch.setattr(start, "start_processes", lambda: None)
    monkeypatch.setattr(environment, "join", lambda: Environment(0, 2, 0))
    assert native.ENGINE.start("nccl", None) == ("cpu:gloo,cuda:nccl", None)
    assert native.ENGINE.start("gloo", "env://") == ("gloo", "env://")
    with pytest.raises(RuntimeError, match="backend 'smoke' cannot run here"):
        native.ENGINE.start("smoke", None)
    monkeypatch.setattr(environment, "join", lambda: Environment())
    assert native.ENGINE.start("gloo", None) is None
