"""`ddpify verify` as a person uses it: real processes, exit codes, files that stay as they were."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.ddpify.command import COMMAND, REFUSED, ddpify, environment

SCRIPT = """\
import sys
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
rows = torch.tensor([[float(word) for word in line.split()] for line in open("data/rows.txt")])
loader = DataLoader(TensorDataset(rows[:, :4], rows[:, 4:]), batch_size=8, shuffle=True)
model = nn.Sequential(nn.Linear(4, 8), nn.Dropout(0.2), nn.Linear(8, 1))
optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
for epoch in range(2):
    for x, y in loader:
        optimizer.zero_grad()
        loss = nn.functional.mse_loss(model(x), y)
        loss.backward()
        optimizer.step()
    print(f"epoch {epoch} loss {loss.item():.6f}")
torch.save(model.state_dict(), "model.pt")
open("log.txt", "a").write("done\\n")
"""
# The same with a bar, which draws itself as often as it has time to, and lines that are written above it.
WITH_BAR = (
    SCRIPT.replace("import sys\n", "from tqdm import tqdm\n")
    .replace("    for x, y", "    bar = tqdm(total=len(loader), mininterval=0)\n    for x, y")
    .replace("optimizer.step()\n", "optimizer.step()\n        bar.update()\n")
    .replace("print(", "tqdm.write(")
)


def project(folder: Path, script: str = SCRIPT) -> Path:
    """A project that has been trained in before."""
    (folder / "data").mkdir(parents=True)
    (folder / "train.py").write_text(script)
    lines = [" ".join(str((7 * row + 3 * column) % 11 / 11) for column in range(5)) for row in range(30)]
    (folder / "data" / "rows.txt").write_text("\n".join(lines))
    (folder / "model.pt").write_bytes(b"precious")
    (folder / "log.txt").write_text("begun\n")
    return folder


def contents(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_equal_with_pictures_and_without_a_change_to_the_project(tmp_path: Path) -> None:
    folder, temporary = project(tmp_path / "project", WITH_BAR), tmp_path / "tmp"
    temporary.mkdir()
    before = contents(folder)
    words = ["verify", "train.py", "-o", str(tmp_path / "out")]
    done = ddpify(*words, cwd=folder, TMPDIR=str(temporary))
    said = done.stdout.decode()
    assert "EQUAL: train.py in one process, and its conversion in 2 processes, over 8 optimizer steps" in said
    assert "files           log.txt, model.pt\n" in said
    assert "hold the samples of the original" in said
    assert "the same draws before every step" in said
    assert "note: " not in said
    assert contents(folder) == before
    assert not list(temporary.iterdir())
    assert (tmp_path / "out" / "curves.png").read_bytes().startswith(b"\x89PNG")
    page = (tmp_path / "out" / "report.html").read_text()
    assert "data:image/png;base64," in page
    assert "http" not in page.split("base64,")[0]


@pytest.mark.nightly
def test_local_batch_norm_is_compared_as_that_of_the_batch(tmp_path: Path) -> None:
    script = SCRIPT.replace("nn.Dropout(0.2)", "nn.BatchNorm1d(8), nn.ReLU()")
    folder = project(tmp_path / "project", script)
    ddpify("train.py", "--target", "cpu", "--batch-norm", "local", cwd=folder)
    before = contents(folder)
    done = ddpify("verify", "train.py", "--sgd", cwd=folder)
    said = done.stdout.decode()
    assert "\nEQUAL" in said
    assert "note: BatchNorm took the statistics of the whole batch here" in said
    assert contents(folder) == before


# The gradient of its weights is a sum over 73,728 pixels, whose terms nearly cancel: halves of a batch differ by 3e-6.
CANCELLING = """\
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
images = torch.rand(16, 3, 96, 96)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.second = nn.Conv2d(3, 3, 1), nn.Conv2d(3, 3, 3, padding=1)
        self.last = nn.Conv2d(6, 3, 5, padding=2)

    def forward(self, x):
        first = self.first(x).relu()
        second = self.second(first).relu()
        third = self.last(torch.cat((first, second), 1)).relu()
        return (third * x - third + 1).relu()


model = Net()
for p in model.parameters():
    nn.init.normal_(p, std=0.02)
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
for x, y in DataLoader(TensorDataset(images, images.flip(3)), batch_size=8):
    optimizer.zero_grad()
    loss = nn.functional.mse_loss(model(x), y)
    loss.backward()
    optimizer.step()
"""


def test_sums_of_a_batch_in_another_order_are_rounding(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(CANCELLING)
    said = ddpify("verify", "train.py", cwd=tmp_path).stdout.decode()
    assert "\nEQUAL" in said


def test_hand_made_conversion_is_held_against_its_original(tmp_path: Path) -> None:
    folder = project(tmp_path / "project")
    by_hand = SCRIPT.replace(
        "torch.manual_seed(0)",
        "import torch.distributed as dist\ndist.init_process_group('gloo')\ntorch.manual_seed(0)",
    )
    by_hand = by_hand.replace("\noptimizer =", "\nmodel = nn.parallel.DistributedDataParallel(model)\noptimizer =")
    by_hand = by_hand.replace(
        "in loader:\n", "in loader:\n        x, y = x[dist.get_rank()::2], y[dist.get_rank()::2]\n"
    )
    by_hand = by_hand.replace("mse_loss(model(x), y)", "mse_loss(model(x), y, reduction='sum')")
    (folder / "ddp.py").write_text(by_hand)
    (folder / "train.py").write_text(SCRIPT.replace("mse_loss(model(x), y)", "mse_loss(model(x), y, reduction='sum')"))
    done = ddpify("verify", "train.py", "--against", "ddp.py", "--sgd", "--steps", "3", cwd=folder, code=1)
    said = done.stdout.decode()
    assert "NOT EQUAL: train.py and ddp.py" in said
    assert "first: step 1: gradients" in said
    assert "in Sequential.0.weight" in said
    assert "likely L1 or L2: every gradient is 1/2 of the original's" in said
    assert "note: both were ended after 3 optimizer steps" in said
    assert "note: dropout was switched off in both" in said


GROUP = 'import torch.distributed\ntorch.distributed.init_process_group("gloo")\n'


@pytest.mark.parametrize(
    ("script", "words", "message"),
    [
        ("import torch\nraise ValueError('unwell').backward(optimizer)", [], "train.py: has nothing to convert"),
        (REFUSED, [], "train.py: cannot be converted"),
        (GROUP + SCRIPT, [], "train.py: cannot be converted: train.py:2: it uses torch.distributed.init_process_group"),
        pytest.param(SCRIPT, ["--target", "xla"], "target xla is not run here", marks=pytest.mark.nightly),
        (SCRIPT, ["-n", "0"], "-n must be at least 1"),
        pytest.param(SCRIPT, ["--against", "nowhere.py"], "nowhere.py: no such script", marks=pytest.mark.nightly),
        pytest.param(
            SCRIPT, ["--link", "elsewhere"], "--link names something that is not in", marks=pytest.mark.nightly
        ),
    ],
)
def test_bad_input_is_one_line(tmp_path: Path, script: str, words: list[str], message: str) -> None:
    folder = project(tmp_path / "project", script)
    done = ddpify("verify", "train.py", *words, cwd=folder, code=2)
    (line,) = done.stderr.decode().splitlines()
    assert message in line


@pytest.mark.parametrize("missing", ["numpy", "torch", "ddpify_runtime"])
def test_what_is_not_installed_is_one_line(tmp_path: Path, missing: str) -> None:
    (tmp_path / "train.py").write_text(SCRIPT)
    code = f"import sys; sys.modules[{missing!r}] = None; from ddpify.cli import main; main()"
    words = [sys.executable, "-c", code, "verify", "train.py"]
    done = subprocess.run(words, cwd=tmp_path, env=environment(), capture_output=True, text=True, timeout=60)
    assert done.returncode == 2
    (line,) = done.stderr.splitlines()
    remedy = "in a checkout of ddpify: pip install ./runtime '.[verify]'"
    assert line == f"ddpify verify: needs {missing} in this environment; {remedy}"


@pytest.mark.parametrize(
    ("old", "new", "words", "message"),
    [
        ("rows = ", "rows = undefined, ", [], "NameError: name 'undefined'"),
        pytest.param("range(2)", "range(0)", [], "made no step of a torch optimizer", marks=pytest.mark.nightly),
        pytest.param(
            "        optimizer.step()",
            "        while True: pass",
            ["--timeout", "8"],
            "the original was at step 0",
            marks=pytest.mark.nightly,
        ),
    ],
    ids=["error", "no steps", "hang"],
)
def test_original_that_cannot_run(tmp_path: Path, old: str, new: str, words: list[str], message: str) -> None:
    folder = project(tmp_path / "project", SCRIPT.replace(old, new))
    done = ddpify("verify", "train.py", *words, cwd=folder, code=2)
    assert "train.py: could not run: " in done.stdout.decode()
    assert message in done.stdout.decode()


@pytest.mark.nightly
def test_absolute_path_into_the_project_is_not_written(tmp_path: Path) -> None:
    folder = project(tmp_path / "project")
    (folder / "train.py").write_text(SCRIPT.replace('"model.pt"', repr(str(folder / "model.pt"))))
    done = ddpify("verify", "train.py", cwd=folder, code=2)
    assert "outside of the copy that it runs in" in done.stdout.decode()
    assert (folder / "model.pt").read_bytes() == b"precious"


@pytest.mark.nightly
def test_what_the_runtime_stops_is_not_equal(tmp_path: Path) -> None:
    script = SCRIPT.replace("import sys\n", "import os\n").replace("model(x)", "model(x + os.getpid() % 97)")
    done = ddpify("verify", "train.py", cwd=project(tmp_path / "project", script), code=1)
    said = done.stdout.decode()
    assert "NOT EQUAL: the converted script was stopped" in said
    assert "the processes drew different batches" in said


@pytest.mark.skipif(sys.platform != "linux", reason="sees processes in /proc")
def test_interrupt_ends_all_and_leaves_nothing(tmp_path: Path) -> None:
    folder, temporary = project(tmp_path / "project"), tmp_path / "tmp"
    temporary.mkdir()
    (folder / "train.py").write_text(SCRIPT.replace("range(2)", "range(10**9)"))
    words = [*COMMAND, "verify", "train.py", "--steps", "0"]
    pipe = subprocess.PIPE
    variables = {**environment(), "TMPDIR": str(temporary)}
    with subprocess.Popen(words, cwd=folder, stdout=pipe, stderr=pipe, env=variables) as process:
        assert process.stdout
        process.stdout.readline()  # running the original
        while not list(temporary.glob("*/record/rank0.pkl")):
            assert process.poll() is None
        process.send_signal(signal.SIGINT)
        assert process.wait(60) == 130
    assert not list(temporary.iterdir())
    assert not [pid for pid in os.listdir("/proc") if pid.isdigit() and _works_in(pid, temporary)]


def _works_in(pid: str, folder: Path) -> bool:
    try:
        return Path(f"/proc/{pid}/cwd").resolve().is_relative_to(folder)
    except OSError:
        return False


def test_what_is_distributed_by_hand_has_no_form_for_one_process(tmp_path: Path) -> None:
    by_hand = Path(__file__).parents[2] / "e2e" / "by_hand" / "trainer.cuda.py"
    (tmp_path / "train.py").write_text(by_hand.read_text())
    done = ddpify("verify", "train.py", cwd=tmp_path, code=2)
    assert b"train.py: is distributed by hand already" in done.stdout + done.stderr


def test_a_module_far_from_the_script_is_not_copied_with_all_that_lies_between(tmp_path: Path) -> None:
    far, script = tmp_path / "elsewhere" / "far.py", tmp_path / "project" / "train.py"
    for path in (far, script):
        path.parent.mkdir()
    far.write_text("import torch\n\n\ndef build():\n    return torch.nn.Linear(4, 2)\n")
    script.write_text(
        "import torch\nfrom far import build\nmodel = build()\n"
        "optimizer = torch.optim.SGD(model.parameters(), lr=0.1)\n"
        "model(torch.ones(4, 4)).mean().backward()\noptimizer.step()\n"
    )
    variables = environment() | {"PYTHONPATH": str(far.parent), "TMPDIR": str(tmp_path)}
    ran = subprocess.run(
        [*COMMAND, "verify", "train.py"], cwd=script.parent, env=variables, capture_output=True, text=True, check=False
    )
    assert ran.returncode == 2
    (line,) = ran.stderr.splitlines()
    assert line.startswith(f"{far}: lies far from the script: {tmp_path} would be copied for each run; keep it near")


@pytest.mark.nightly
def test_a_script_in_the_folder_of_temporary_files_may_write_to_its_copy(tmp_path: Path) -> None:
    folder = project(tmp_path)
    before = contents(folder)
    done = ddpify("verify", "train.py", cwd=folder, TMPDIR=str(folder))
    assert done.stdout.decode().count("EQUAL: train.py") == 1, done.stderr.decode()
    assert contents(folder) == before


@pytest.mark.nightly
def test_a_plain_conversion_that_fails_is_told_from_an_original_that_does(tmp_path: Path) -> None:
    raises = "if os.environ.get('MASTER_PORT'):\n    raise ValueError('unwell')\n"
    folder = project(tmp_path / "project", SCRIPT.replace("import sys\n", "import os\nimport sys\n") + raises)
    said = ddpify("verify", "train.py", "--style", "plain", "--target", "cpu", cwd=folder, code=2).stdout.decode()
    assert "the converted script: could not run: it fails after" in said and "the original does not:" in said
    assert "ValueError: unwell" in said
