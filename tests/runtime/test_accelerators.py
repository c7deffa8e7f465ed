"""Intel's GPUs and MPI, as far as a machine without them goes: a module of torch that says what a real one would."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch
import torch.distributed as dist
from ddpify_runtime import accelerators, engines
from ddpify_runtime.forward import rank_stream
from ddpify_runtime.loading import streams

from tests.forked import free_port
from tests.runtime.processes import run


class Devices:
    """Two devices, each with a generator, which is one of the host here."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, name: str = "xpu") -> None:
        self.current = 0
        self.generators = [torch.Generator(), torch.Generator()]
        module = getattr(torch, name)
        for function in ("device_count", "set_device", "is_initialized", "get_rng_state", "set_rng_state"):
            monkeypatch.setattr(module, function, getattr(self, function))
        monkeypatch.setattr(torch.accelerator, "current_accelerator", lambda: torch.device(name))

    def device_count(self) -> int:
        return len(self.generators)

    def set_device(self, index: int) -> None:
        self.current = index

    def is_initialized(self) -> bool:
        return True

    def get_rng_state(self, device: torch.device | None = None) -> torch.Tensor:
        return self._of(device).get_state()

    def set_rng_state(self, state: torch.Tensor, device: torch.device | None = None) -> None:
        self._of(device).set_state(state)

    def _of(self, device: torch.device | None) -> torch.Generator:
        return self.generators[self.current if device is None or device.index is None else device.index]


@pytest.fixture(params=["xpu", "cuda"])
def devices(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Devices:
    return Devices(monkeypatch, request.param)


def test_the_host_and_devices_without_such_a_module_have_none() -> None:
    assert accelerators.module_of("cuda") is torch.cuda and accelerators.module_of("xpu") is torch.xpu
    assert not any(map(accelerators.module_of, ("cpu", "meta", "mps", "xla", "distributed")))
    assert accelerators.module_in_use() is None


@pytest.mark.parametrize(("backend", "kind"), [("xccl", "xpu"), ("ccl", "xpu"), ("nccl", "cuda")])
def test_a_process_claims_the_device_of_its_local_rank(
    backend: str, kind: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    devices = Devices(monkeypatch, kind)
    for name, value in {
        "RANK": "3",
        "WORLD_SIZE": "4",
        "LOCAL_RANK": "1",
        "MASTER_ADDR": "localhost",
        "MASTER_PORT": "1",
    }.items():
        monkeypatch.setenv(name, value)
    assert engines.named(backend).start(backend, None) == (f"cpu:gloo,{kind}:{backend}", None)
    assert devices.current == 1
    monkeypatch.setenv("LOCAL_RANK", "2")
    with pytest.raises(SystemExit):
        engines.named(backend).start(backend, None)
    assert f"no {kind} device of its own (2 visible)" in capsys.readouterr().err


def test_the_random_numbers_of_the_device_are_kept(devices: Devices) -> None:
    engine = engines.named("gloo")
    state = engine.random_state()
    torch.rand(3, generator=devices.generators[0])
    assert not torch.equal(engine.random_state(), state)
    engine.set_random_state(state)
    assert torch.equal(engine.random_state(), state)


def test_draws_on_the_device_are_seen(devices: Devices) -> None:
    marks = streams.marks()
    assert not streams.moved(marks)
    torch.rand(3, generator=devices.generators[0])
    assert streams.moved(marks) == {"device"}


def test_a_rank_draws_its_own_numbers_on_the_device(devices: Devices, monkeypatch: pytest.MonkeyPatch) -> None:
    kind = torch.accelerator.current_accelerator()
    assert kind is not None
    made = torch.Generator
    monkeypatch.setattr(torch, "Generator", lambda device: made())
    monkeypatch.setattr(dist, "get_rank", lambda: 1)
    monkeypatch.setattr(rank_stream, "_own", {})
    common = devices.get_rng_state()
    drawn = []
    for _ in range(2):
        with rank_stream.own_random_numbers(kind):
            drawn.append(torch.rand(4, generator=devices.generators[0]))
        assert torch.equal(devices.get_rng_state(), common)  # which all ranks share
    assert not torch.equal(drawn[0], drawn[1])
    assert not torch.equal(torch.rand(4, generator=devices.generators[0]), drawn[0])


SCRIPT = """\
import ddpify_runtime
ddpify_runtime.init_process_group("{backend}")
print("never")
"""


@pytest.mark.parametrize(("backend", "kind"), [("xccl", "xpu"), ("ccl", "xpu"), ("nccl", "cuda")])
def test_without_a_device_the_run_ends_with_one_line(backend: str, kind: str, tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(SCRIPT.format(backend=backend))
    settings = {"RANK": "0", "WORLD_SIZE": "2", "LOCAL_RANK": "0", "MASTER_ADDR": "localhost", "MASTER_PORT": "1"}
    done = subprocess.run(
        [sys.executable, "train.py"],
        cwd=tmp_path, env=os.environ | settings, capture_output=True, text=True, timeout=60,
    )  # fmt: skip
    assert (done.returncode, done.stdout) == (2, "")
    [line] = done.stderr.splitlines()
    assert line.startswith(f"ddpify: process 0 of this machine has no {kind} device of its own (0 visible): start")


def test_mpi_is_torchs_own_where_it_is_built_in_and_mpirun_started_it(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in {
        "RANK": "0",
        "WORLD_SIZE": "2",
        "LOCAL_RANK": "0",
        "MASTER_ADDR": "localhost",
        "MASTER_PORT": "1",
    }.items():
        monkeypatch.setenv(name, value)
    engine = engines.named("mpi")
    assert engine.start("mpi", None) == ("gloo", None)
    monkeypatch.setattr(dist, "is_mpi_available", lambda: True)
    assert engine.start("mpi", None) == ("gloo", None)  # torchrun's processes would be one each for MPI
    monkeypatch.setenv("PMI_SIZE", "2")
    assert engine.start("mpi", None) == ("mpi", None)


def summed(_: Any = None) -> float:
    import ddpify_runtime

    ddpify_runtime.init_process_group("mpi")
    values = torch.tensor([float(dist.get_rank() + 1)])
    dist.all_reduce(values)
    return float(values)


@pytest.mark.skipif(dist.is_mpi_available(), reason="this torch has MPI")
def test_without_torchs_mpi_it_is_gloo() -> None:
    assert run(2, summed, None, port=int(free_port())) == [3.0, 3.0]
