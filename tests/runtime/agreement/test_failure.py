"""What one rank alone cannot go on from ends the run, and says why (L20, P8)."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
import torch

SHORT = "failure.LIMIT = failure.END_LIMIT = timedelta(seconds=3)"
SCRIPT = """
import sys
from datetime import timedelta
import torch
from ddpify_runtime import DistributedDataParallel, destroy_process_group, get_rank, init_process_group
from ddpify_runtime.agreement import failure

{limits}


class Careful(torch.nn.Linear):
    def forward(self, x):
        if float(x.max()) > 9:
            raise ValueError("out of range")
        return super().forward(x)


init_process_group("gloo")
model = DistributedDataParallel(Careful(4, 2))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
failed = 0
for step in range(8):
    x = torch.rand(6, 4)
    if step == 5:
        x[{rows}] = 10
    optimizer.zero_grad()
    try:
        loss = model(x).square().mean()
        loss.backward()
    except ValueError:
        failed += 1
        continue
    optimizer.step()
print("failed", failed, "times")
{end}
"""


def train(
    folder: Path, rows: str = "", end: str = "destroy_process_group()", limits: str = SHORT, script: str = SCRIPT
) -> subprocess.CompletedProcess[str]:
    """Limits are short where a rank waits for one that does not come: where it comes, a busy machine takes longer."""
    script = script.replace("{rows}", rows).replace("{end}", end).replace("{limits}", limits)
    (folder / "train.py").write_text(script)
    launcher = ("-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2")
    command = [sys.executable, *launcher, "train.py"]
    environment = os.environ | {"OMP_NUM_THREADS": "1"}
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, timeout=120)


def test_an_exception_on_every_rank_is_the_scripts_to_handle(tmp_path: Path) -> None:
    done = train(tmp_path, ":", limits="")
    assert (done.returncode, done.stdout) == (0, "failed 1 times\n"), done.stderr


def test_an_exception_on_one_rank_alone_ends_the_run(tmp_path: Path) -> None:
    done = train(tmp_path, "1")  # a row of rank 1
    assert done.returncode == 1 and done.stdout == ""
    assert "ddpify: ValueError in the training forward of Careful on rank 1 alone: out of range." in done.stderr


LOADING = """
from datetime import timedelta
import torch
from ddpify_runtime import DataLoader, DistributedDataParallel, destroy_process_group, init_process_group
from ddpify_runtime.agreement import failure

{limits}


class Rows(torch.utils.data.Dataset):
    def __len__(self):
        return 20

    def __getitem__(self, index):
        if index in ({broken}):
            raise OSError("cannot identify image file")
        return torch.rand(4)


if __name__ == "__main__":
    init_process_group("gloo")
    model = DistributedDataParallel(torch.nn.Linear(4, 2))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    batches, failed = iter(DataLoader(Rows(), batch_size=4, num_workers={workers})), 0
    while True:
        try:
            x = next(batches)
        except StopIteration:
            break
        except Exception:
            failed += 1
            continue
        optimizer.zero_grad()
        model(x).square().mean().backward()
        optimizer.step()
    print("failed", failed, "times")
    destroy_process_group()
"""


@pytest.mark.parametrize("workers", [0, 1])
def test_a_sample_that_one_rank_alone_cannot_read_ends_the_run(tmp_path: Path, workers: int) -> None:
    """The others would train on, with other batches, or wait."""
    alone = train(tmp_path, script=LOADING.replace("{broken}", "17,").replace("{workers}", str(workers)))
    assert alone.returncode == 1 and alone.stdout == ""
    assert "OSError in loading a part of a batch of Rows on rank 1 alone: " in alone.stderr
    both = LOADING.replace("{broken}", "16, 17").replace("{workers}", str(workers))
    done = train(tmp_path, limits="", script=both)
    assert (done.returncode, done.stdout) == (0, "failed 1 times\n"), done.stderr


@pytest.mark.nightly
def test_a_rank_that_leaves_alone_ends_the_run(tmp_path: Path) -> None:
    done = train(tmp_path, ":", "if get_rank(): sys.exit(0)\ntorch.distributed.barrier()")
    assert done.returncode == 1
    assert "ddpify: rank 1 has come to its end, and the others not within 3 s: sys.exit, or a decision" in done.stderr


INTERRUPTED = """
import os, signal, sys, threading, time
import torch
import torch.distributed as dist
from ddpify_runtime import DistributedDataParallel, get_rank, init_process_group, rank_zero_only

init_process_group("gloo")
model = DistributedDataParallel(torch.nn.Linear(4, 2))
optimizer = torch.optim.SGD(model.parameters(), lr=0.001)
store = dist.distributed_c10d._get_default_store()

def interrupt():
    time.sleep(1)  # rank 0 comes to the collective meanwhile; where it does not, it is interrupted on its way there
    os.kill(os.getpid(), signal.SIGINT)
    store.set("interrupted", "")

def wait_for_another():
    if get_rank() == 0:
        threading.Thread(target=interrupt).start()
    else:
        store.wait(["interrupted"])
        signal.raise_signal(signal.SIGINT)

try:
    for step in range(1_000_000):
        optimizer.zero_grad()
        loss = model(torch.ones(6, 4)).square().mean()
        {before}
        loss.backward()
        optimizer.step()
        if step == 9:
            print("started", flush=True)
except KeyboardInterrupt:
    rank_zero_only(torch.save)(model.state_dict(), "interrupted.pt")
    sys.exit(0)
"""


def run_interrupted(folder: Path, before: str, *, from_outside: bool) -> None:
    """Train until a Ctrl-C; what is saved then is there, before torchrun's 30 s are over."""
    (folder / "train.py").write_text(INTERRUPTED.replace("{before}", before))
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2", "train.py"]
    environment = os.environ | {"OMP_NUM_THREADS": "1"}
    with subprocess.Popen(
        command, cwd=folder, env=environment, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        assert process.stdout is not None and process.stdout.readline() == "started\n"
        if from_outside:
            process.send_signal(signal.SIGINT)
        try:
            _, said = process.communicate(timeout=100)
        finally:
            process.terminate()  # torchrun ends the ranks
    assert {path.name for path in folder.iterdir()} == {"train.py", "interrupted.pt"}, said
    assert set(torch.load(folder / "interrupted.pt")) == {"weight", "bias"}


@pytest.mark.nightly
def test_what_is_saved_when_a_run_is_interrupted_is_saved_once(tmp_path: Path) -> None:
    """Ctrl-C stops the ranks at different places (P9)."""
    run_interrupted(tmp_path, "", from_outside=True)


@pytest.mark.parametrize("collective", [pytest.param("loss", marks=pytest.mark.nightly), "float(loss)"])
def test_rank_zero_saves_when_it_is_interrupted_while_it_waits_for_another(tmp_path: Path, collective: str) -> None:
    """The other one has left, and does not come to the collective ("loss": to that of the backward)."""
    run_interrupted(tmp_path, f"if step == 10: wait_for_another(); {collective}", from_outside=False)


THREADS = """
import queue, threading
from ddpify_runtime import init_process_group
from ddpify_runtime.agreement import failure
from datetime import timedelta

{limits}


def load():
    for batch in range({rows}):
        batches.put(batch)


init_process_group("gloo")
batches = queue.Queue(2)
threading.Thread(target=load).start()
print(batches.get())
{end}
"""
CAUGHT = """
import sys, time
try:
    raise ValueError("handled")
except ValueError:
    sys.excepthook(*sys.exc_info())
time.sleep(5)
print(batches.get())
"""


def test_an_error_ends_the_run_where_threads_of_the_script_wait_for_ever(tmp_path: Path) -> None:
    done = train(tmp_path, "9", "raise ValueError('no batch')", script=THREADS)
    assert done.returncode == 1 and "ValueError: no batch" in done.stderr
    assert "ddpify: threads of the script have not come to an end within 3 s of the error in its main" in done.stderr


def test_a_script_that_goes_on_behind_an_error_keeps_its_threads(tmp_path: Path) -> None:
    done = train(tmp_path, "2", CAUGHT, script=THREADS)
    assert (done.returncode, done.stdout) == (0, "0\n1\n"), done.stderr
    assert "ValueError: handled" in done.stderr and "ddpify:" not in done.stderr
