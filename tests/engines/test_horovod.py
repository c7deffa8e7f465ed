"""Horovod for real: conversions for it under horovodrun, held against one process at every step; its collectives."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

from ddpify.verify import compare, processes
from tests.e2e import fixtures, harness
from tests.e2e.test_plain import differences

OWN = Path(__file__).parents[2] / ".venv-engines" / "bin"
RUNTIME = Path(__file__).parents[2] / "runtime"
SAID = re.compile(r"^\[\d+\]<std(?:out|err)>:", re.MULTILINE)  # what horovodrun writes before each line
LIMIT = 120.0

# A script whose ranks do not all come to its end, for each way in which that happens.
BEGIN = "import sys, os, time\nimport torch\nimport torch.distributed as dist\nimport ddpify_runtime as d\n" + (
    'd.init_process_group("horovod")\nrank = d.get_rank()\n'
)
ENDS = {
    "raise": ("if rank == 1:\n    raise ValueError('mine')\ndist.all_reduce(torch.ones(1))\n", 1),
    "status": ("dist.all_reduce(torch.ones(1))\nd.destroy_process_group()\nsys.exit(3)\n", 3),
    "exit": ("dist.all_reduce(torch.ones(1))\n", 0),
    "killed": ("if rank == 1:\n    os.kill(os.getpid(), 9)\ndist.all_reduce(torch.ones(1))\n", 1),
}


@pytest.mark.nightly
@pytest.mark.parametrize("ranks", [2, 3])
def test_every_collective_is_that_of_gloo(ranks: int, tmp_path: Path) -> None:
    rc, stdout, stderr = start([str(Path(__file__).with_name("horovod_collectives.py"))], ranks, tmp_path, {})
    assert (rc, stdout) == (0, f"9 kinds on {ranks} processes\n"), stderr


@pytest.mark.nightly
@pytest.mark.parametrize(
    ("name", "ranks"), [("main_guard", 2), ("ragged", 3), ("batchnorm", 3), ("gan", 2), ("skipgram", 3)]
)
def test_conversion_trains_the_same(name: str, ranks: int) -> None:
    fixture = fixtures.load(name)
    sources = {path: file.read_bytes() for path, file in fixtures.files(fixture).items()}
    sources |= fixtures.converted(fixture, "horovod")
    converted = harness.run_sources(fixture, sources, ranks, start=start)
    differences = list(compare.equivalent(harness.run_original(fixture), converted, ranks, fixture.tolerance))
    differences += compare.divided(converted)
    assert not differences, "\n".join([*differences, "--- stderr", converted.stderr[-3000:]])


@pytest.mark.nightly
@pytest.mark.parametrize(("name", "ranks"), [("main_guard", 2), ("ragged", 3), ("amp", 2), ("batchnorm", 2)])
def test_plain_conversion_trains_the_same(name: str, ranks: int) -> None:
    def found(precise: bool) -> list[str]:
        every = differences(fixtures.load(name), ranks, precise, target="horovod", start=start)
        # Forwards are counted in DistributedDataParallel, which is not there.
        return [each for each in every if not each.startswith("nothing was divided")]

    different = found(precise=False) and found(precise=True)  # a ReLU that rounding turns over: in float64 it does not
    assert not different, "\n".join(different)


@pytest.mark.nightly
@pytest.mark.parametrize("way", ENDS)
def test_its_end(way: str, tmp_path: Path) -> None:
    body, status = ENDS[way]
    (tmp_path / "train.py").write_text(BEGIN + body)
    rc, _, stderr = start(["train.py"], 2, tmp_path, {"PYTHONPATH": str(RUNTIME)})
    assert (rc == 0) == (status == 0), stderr
    if status:
        assert f"Exit code: {status}" in stderr or "Exit code: -9" in stderr or "Exit code: 137" in stderr, stderr
    if way == "raise":
        assert "ValueError: mine" in stderr


def start(
    words: Sequence[str], ranks: int, folder: Path, environment: Mapping[str, str], limit: float = LIMIT
) -> tuple[int, str, str]:
    """Run a script under horovodrun, where Horovod is installed."""
    command = [OWN / "horovodrun", "-np", str(ranks), OWN / "python", *words]
    variables = {"PYTHONPATH": str(RUNTIME), "OMP_NUM_THREADS": "1", **environment}
    variables["PATH"] = f"{OWN}:{variables.get('PATH', '/usr/bin:/bin')}"
    rc, *texts = processes.execute([str(word) for word in command], folder, variables, limit)
    stdout, stderr = (SAID.sub("", text) for text in texts)
    return rc, stdout, stderr
