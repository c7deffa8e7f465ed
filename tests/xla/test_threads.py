"""The helper that gives a torch_xla script several CPU devices."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.xla import runs

nightly = pytest.mark.nightly


def test_collectives() -> None:
    printed = runs.xla(runs.SCRIPTS / "collectives.py", 4, "the arguments arrive")
    assert "ddpify: 4 XLA devices on this CPU, for correctness, not for speed" in printed
    for rank in range(4):
        assert f"rank {rank} of 4 is right" in printed


@pytest.mark.parametrize(
    ("devices", "reduction"),
    [(2, "ddp"), *(pytest.param(*each, marks=nightly) for each in ((2, "native"), (4, "ddp")))],
)
def test_the_runtime_trains_over_torch_xlas_own_process_group(devices: int, reduction: str) -> None:
    """What a TPU runs: torch's reducer failed there in its second backward, in the broadcast of its buckets."""
    printed = runs.xla(runs.SCRIPTS / "own_group.py", devices, reduction)
    found = sorted(line.split() for line in printed.splitlines() if line[:1].isdigit())
    assert [line[:2] for line in found] == [[str(rank), str(16 // devices)] for rank in range(devices)], printed
    assert all(float(line[2]) < 1e-5 for line in found)


@pytest.mark.parametrize(
    ("how", "message"),
    [
        pytest.param("fails", "ValueError: rank 1 has had enough", marks=nightly),
        ("ends", "RuntimeError: a collective waits for ranks that do not come: rank 1 has ended"),
    ],
)
def test_ranks_that_part(how: str, message: str) -> None:
    printed = runs.xla(runs.SCRIPTS / "uneven.py", 2, how, code=1)
    assert printed.splitlines()[-1].startswith(message)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--devices", "0", "x.py"], "--devices 0: there must be at least one"),
        pytest.param(["--devices", "two", "x.py"], "invalid int value: 'two'", marks=nightly),
        (["--devices", "2", "no_such_script.py"], "no such script: no_such_script.py"),
        pytest.param(["x.py"], "the following arguments are required: --devices", marks=nightly),
    ],
)
def test_wrong_words(tmp_path: Path, words: list[str], message: str) -> None:
    (tmp_path / "x.py").touch()
    printed = runs.helper(words, tmp_path, code=2)
    assert message in printed.splitlines()[-1] and "Traceback" not in printed
