"""What the engine for Horovod does where Horovod is not, or not what started the processes."""

from __future__ import annotations

import importlib.util
import sys
from types import ModuleType

import pytest
from ddpify_runtime import init_process_group
from ddpify_runtime.launch import environment, meeting

TWO = {"HOROVOD_RANK": "1", "HOROVOD_SIZE": "2", "HOROVOD_LOCAL_RANK": "1", "HOROVOD_LOCAL_SIZE": "2"}
MET = {"MASTER_ADDR": meeting.LOOPBACK, "MASTER_PORT": "29500"}


@pytest.fixture
def started(monkeypatch: pytest.MonkeyPatch) -> None:
    """As the second of two processes of horovodrun."""
    for name in ("RANK", "WORLD_SIZE", "LOCAL_RANK"):  # what joining writes down goes again
        monkeypatch.setenv(name, "")
        monkeypatch.delenv(name)
    for name, value in {**TWO, **MET}.items():
        monkeypatch.setenv(name, value)


def test_alone_it_imports_no_horovod() -> None:
    init_process_group("horovod")
    assert "horovod" not in sys.modules
    assert environment.read().world_size == 1


def test_without_horovod_one_line_says_so(
    started: None, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    find = importlib.util.find_spec
    monkeypatch.setattr(
        importlib.util, "find_spec", lambda name, *more: None if name == "horovod" else find(name, *more)
    )
    with pytest.raises(SystemExit) as ended:
        init_process_group("horovod")
    assert ended.value.code == 2
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == 1 and "HOROVOD_WITH_PYTORCH=1 pip install horovod" in lines[0]


def test_processes_that_horovod_does_not_see_are_refused(
    started: None, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """As under torchrun: each would train for itself."""
    alone, package = ModuleType("horovod.torch"), ModuleType("horovod")
    vars(alone).update(init=lambda: None, rank=lambda: 0, size=lambda: 1)
    vars(package).update(torch=alone, __path__=[], __spec__=importlib.util.spec_from_loader("horovod", None))
    monkeypatch.setitem(sys.modules, "horovod", package)
    monkeypatch.setitem(sys.modules, "horovod.torch", alone)
    with pytest.raises(SystemExit) as ended:
        init_process_group("horovod")
    assert ended.value.code == 2
    assert "rank 1 of 2, Horovod rank 0 of 1: start it by horovodrun" in capsys.readouterr().err


def test_it_starts_no_processes_itself(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setenv("DDPIFY_NPROC", "3")
    with pytest.raises(SystemExit):
        init_process_group("horovod")
    assert "horovodrun -np 3 python" in capsys.readouterr().err
