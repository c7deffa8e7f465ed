"""What is particular to XLA in the runtime: on CPU devices of real torch_xla, one process each."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from tests import forked
from tests.xla.runs import FLAGS, INTERPRETER, LIMIT, ROOT, SCRIPTS, XLA_PYTHON

nightly = pytest.mark.nightly
Done = subprocess.CompletedProcess[str]


def train(folder: Path, script: str, *arguments: str, devices: int = 1) -> Done:
    """Run a script in a folder, in one process for each device, which have imported torch_xla already."""
    words = [str(SCRIPTS / script), *arguments]
    return Done(words, *forked.start(words, devices, folder, _environment(), LIMIT, INTERPRETER))


def started(
    folder: Path,
    script: str,
    *arguments: str,
    devices: int = 1,
    python: str = XLA_PYTHON,
    env: dict[str, str] | None = None,
) -> Done:
    """Run a script as a person would start it."""
    settings = _environment() | (env or {})
    if devices > 1:
        settings["DDPIFY_NPROC"] = str(devices)
    words = [python, str(SCRIPTS / script), *arguments]
    return subprocess.run(words, cwd=folder, env=settings, capture_output=True, text=True, timeout=LIMIT, check=False)


def _environment() -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("PJRT_", "MASTER_", "RANK"))}
    settings = {"PYTHONPATH": str(ROOT / "runtime"), "OMP_NUM_THREADS": "1", "PJRT_DEVICE": "CPU", "XLA_FLAGS": FLAGS}
    return kept | settings


def printed(done: Done) -> list[list[str]]:
    assert done.returncode == 0, done.stderr
    return [line.split() for line in done.stdout.splitlines()]


def test_draws_on_the_device_are_those_of_one_device(tmp_path: Path) -> None:
    """A tensor made in an intercepted forward came out bare once: writes to its views were lost, gradients zero."""
    alone, two = (printed(train(tmp_path, "draws.py", devices=devices)) for devices in (1, 2))
    assert len(alone) == 6
    for one, other in zip(alone, two, strict=True):
        assert [float(value) for value in other] == pytest.approx([float(value) for value in one], rel=1e-5)


def test_collectives_of_the_runtime(tmp_path: Path) -> None:
    values = [float(each) for each in range(6)]
    two = [[float(each) for each in line] for line in printed(train(tmp_path, "runtime_collectives.py", devices=2))]
    assert two == [
        [*(2 * each + 10 for each in values), 10, 14, 16, 20, 3, 3],
        [each + 5 for each in values],
        [10, 11, 12, 13, 14, 15, 10, 13, 11, 14, 12, 15],
        [*values, *(each + 10 for each in values)],
        [*values, 0, *(each + 10 for each in values), 1],
        [2 * each + 10 for each in values],
        [0, 1],
    ]
    alone = [[float(each) for each in line] for line in printed(train(tmp_path, "runtime_collectives.py"))]
    assert alone[0] == [*values, 0, 2, 3, 5, 1, 1] and alone[1] == alone[5] == values
    assert alone[3:5] == [values, [*values, 0]] and alone[6] == [0]


def test_operations_give_what_they_give_on_the_host(tmp_path: Path) -> None:
    """torch_xla has some of them wrong; see runtime/ddpify_runtime/engines/xla/corrected.py."""
    assert printed(train(tmp_path, "operations.py")) == [["102"]]


@pytest.mark.parametrize(
    ("kind", "executions"),
    [
        ("plain", 0),
        ("batch_norm", 2),  # one collective forward, one backward
    ],
)
def test_a_step_compiles_nothing_and_runs_the_graphs_of_hand_written_code(
    tmp_path: Path, kind: str, executions: int
) -> None:
    """Over gloo each collective ends a graph; on an accelerator it is a part of it."""
    ((*by_hand,),) = printed(train(tmp_path, "counters.py", "ddp", kind, devices=2))
    for reduction in ("ddpify", "native"):
        ((*ours,),) = printed(train(tmp_path, "counters.py", reduction, kind, devices=2))
        assert (by_hand[0], ours[0]) == ("0", "0")
        assert int(ours[1]) == int(by_hand[1]) + executions


@pytest.mark.parametrize("kind", ["plain", "batch_norm"])
def test_with_collectives_in_the_graph_a_step_costs_what_hand_written_code_costs(tmp_path: Path, kind: str) -> None:
    """One graph, the samples and labels sent to it, and nothing read."""
    for how in ("ddp", "ddpify", "native"):
        assert printed(train(tmp_path, "counters.py", how, kind, "in_graph", devices=2)) == [["0", "1", "2", "0"]]


@pytest.mark.parametrize("where", ["", "in_graph"])
def test_local_batch_norm_adds_one_collective_to_a_step(tmp_path: Path, where: str) -> None:
    """The running statistics of rank 0."""
    by_hand, ours = (
        printed(train(tmp_path, "counters.py", how, "batch_norm", where, devices=2))[0] for how in ("ddp", "local")
    )
    assert ours[0] == "0" and int(ours[1]) == int(by_hand[1]) + (not where)
    assert ours[2:] == by_hand[2:] or not where


def test_local_batch_norm_keeps_the_statistics_of_the_first_rank(tmp_path: Path) -> None:
    train(tmp_path, "local_norm.py", devices=2)
    first, second = (torch.load(tmp_path / f"state{rank}.pt") for rank in (0, 1))
    assert all(torch.equal(first[name], second[name]) for name in first)
    norm = torch.nn.BatchNorm1d(6)
    for step in range(5):
        norm(torch.arange(8 * 6).view(8, 6)[::2].sin() * (step + 1))
    for name, value in norm.named_buffers():
        torch.testing.assert_close(first[f"0.{name}"], value)


@pytest.mark.parametrize("devices", [1, 2])
def test_a_longer_evaluation_compiles_nothing(tmp_path: Path, devices: int) -> None:
    """X5: without a step boundary each number of batches is a program of its own."""
    ((first, second, right),) = printed(train(tmp_path, "validation.py", devices=devices))
    assert int(first) and (second, right) == ("0", "True")


def test_one_device_runs_one_graph_a_step(tmp_path: Path) -> None:
    ((compilations, executions, *_),) = printed(train(tmp_path, "counters.py", "ddpify", "plain"))
    assert (compilations, executions) == ("0", "1")


def test_a_model_may_be_moved_after_its_optimizer_was_built(tmp_path: Path) -> None:
    """X1, X2, X7, X10: the same parameters, still tied, in a file for hosts without torch_xla, and running_var."""
    saved = []
    for devices in (1, 2):
        assert printed(train(tmp_path, "moved_late.py", devices=devices)) == [["True", "3"]]
        saved.append(torch.load(tmp_path / "state.pt", weights_only=True))
    reference = trained_on_the_host()
    for state in saved:
        assert torch.equal(state["model"]["embed.weight"], state["model"]["out.weight"])
        for name, value in reference.items():
            assert torch.allclose(state["model"][name], value, rtol=1e-5, atol=1e-6), name
        assert all(entry["momentum_buffer"].device.type == "cpu" for entry in state["optimizer"]["state"].values())


def trained_on_the_host() -> dict[str, torch.Tensor]:
    torch.manual_seed(0)
    embed, norm, out = torch.nn.Embedding(6, 4), torch.nn.BatchNorm1d(4), torch.nn.Linear(4, 6, bias=False)
    out.weight = embed.weight
    optimizer = torch.optim.SGD([embed.weight, *norm.parameters()], lr=0.1, momentum=0.9)
    for _ in range(5):
        x = torch.randint(0, 6, (12,))
        optimizer.zero_grad()
        torch.nn.functional.cross_entropy(out(norm(embed(x))), (x + 1) % 6).backward()
        optimizer.step()
    assert norm.running_var is not None
    return {
        "embed.weight": embed.weight.detach(),
        "norm.bias": norm.bias.detach(),
        "norm.running_var": norm.running_var,
    }


@pytest.mark.parametrize("status", [pytest.param("0", marks=nightly), "3"])
def test_torch_xla_launch_runs_a_script_from_its_first_line(tmp_path: Path, status: str) -> None:
    done = started(tmp_path, "launched.py", status)
    assert done.returncode == int(status), done.stderr
    assert done.stdout.split() == ["__main__", status, "2"]


def test_a_process_that_torch_xla_launch_made_says_why_it_failed(tmp_path: Path) -> None:
    done = started(tmp_path, "launched.py", "error")
    assert done.returncode == 1
    assert "ValueError: as asked for" in done.stderr
    assert "BrokenProcessPool" not in done.stderr


@pytest.mark.parametrize(
    ("environment", "line"),
    [
        ({}, "launch"),
        pytest.param({"DDPIFY_NPROC": "1"}, "None", marks=nightly),
        pytest.param({"DDPIFY_NPROC": "4"}, "launch", marks=nightly),
        pytest.param(
            {"DDPIFY_NPROC": "8"}, "ddpify: 8 processes do not fit the 4 TPU chips of this machine", marks=nightly
        ),
        pytest.param({"DDPIFY_NPROC": "2"}, "DDPIFY_NPROC=2, but this TPU is set up for 4 processes", marks=nightly),
        pytest.param({"TPU_PROCESS_BOUNDS": "1,2,1", "DDPIFY_NPROC": "2"}, "launch", marks=nightly),
        ({"TORCHELASTIC_RUN_ID": "x", "LOCAL_WORLD_SIZE": "4", "RANK": "0", "WORLD_SIZE": "4"}, "xla://"),
    ],
)
def test_starts_on_a_tpu(tmp_path: Path, environment: dict[str, str], line: str) -> None:
    """As far as the first device call: there was no TPU to try more."""
    done = started(tmp_path, "starts.py", env=environment)
    assert line in (done.stdout + done.stderr), done.stderr
    assert done.returncode == (2 if " " in line else 0)
    assert "Traceback" not in done.stderr


def test_wrong_device_is_one_line(tmp_path: Path) -> None:
    done = started(tmp_path, "counters.py", "ddpify", "plain", env={"PJRT_DEVICE": "CUDA"})
    assert done.returncode == 2
    assert "ddpify: PJRT_DEVICE='CUDA' is no device of torch_xla" in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize(
    ("what", "devices", "message"),
    [
        pytest.param(
            *("sparse", 1, ":14: torch_xla 2.9.0 cannot do this on its devices (torch.sparse_coo_tensor("),
            marks=nightly,
        ),
        ("packed", 1, ":17: torch_xla 2.9.0 cannot do this on its devices (rnn("),
        pytest.param("cuda", 2, ":19: this needs an NVIDIA GPU (x.cuda()): ", marks=nightly),
    ],
)
def test_what_xla_lacks_is_one_line(tmp_path: Path, what: str, devices: int, message: str) -> None:
    done = started(tmp_path, "lacking.py", what, devices=devices)
    assert done.returncode == 2, done.stderr
    lines = [line for line in done.stderr.splitlines() if message in line]
    assert lines and all(line.startswith(("ddpify: ", "  ")) for line in lines)  # each rank, and a sum
    assert "Traceback" not in done.stderr


def test_without_torch_xla_the_script_says_what_to_install(tmp_path: Path) -> None:
    done = started(tmp_path, "counters.py", "ddpify", "plain", python=sys.executable)
    assert done.returncode == 2
    assert done.stderr.startswith("ddpify: this script was converted for XLA, and torch_xla is not installed: pip ")
    assert done.stderr.count("\n") == 1


@pytest.mark.parametrize(
    ("how", "message"),
    [pytest.param("gone", "", marks=nightly), ("elsewhere", "ddpify: rank 0 lost the other processes")],
)
def test_a_rank_that_is_lost_ends_the_run(tmp_path: Path, how: str, message: str) -> None:
    done = started(tmp_path, "lost.py", how, devices=2)
    assert done.returncode
    assert done.stdout.split("\n")[0] == "[2.0, 2.0]"
    assert message in done.stderr
