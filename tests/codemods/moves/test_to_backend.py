"""DDP221 to DDP227: hand-written DistributedDataParallel from one backend of torch to another."""

from __future__ import annotations

from pathlib import Path

import pytest
from ddpify_codemods import Finding, convert

from tests.e2e import fixtures

PATH = Path("train.py")
NCCL = "dist.init_process_group('nccl')"
SCRIPT = """\
import os

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel as DDP

rank = int(os.environ["LOCAL_RANK"])
{0}
model = DDP(torch.nn.Linear(4, 1).cuda(rank))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
{1}
model(torch.ones(2, 4).cuda(rank)).mean().backward()
optimizer.step()
"""
# What Intel's documentation of oneCCL writes in a script for DistributedDataParallel (seeds/002).
CCL = ["import oneccl_bindings_for_pytorch", "dist.init_process_group('ccl')", "torch.xpu.set_device(device)"]


def moved(join: str = NCCL, line: str = "pass", target: str = "cpu", **options: str) -> str:
    """What becomes of two lines of the script, or of the whole where more changes."""
    result = convert({PATH: SCRIPT.format(join, line)}, target)[PATH]
    assert not [finding for finding in result.findings if finding.severity == "refused"], result.findings
    return result.code


def refused(join: str = NCCL, line: str = "pass", target: str = "cpu") -> Finding:
    result = convert({PATH: SCRIPT.format(join, line)}, target)[PATH]
    assert result.code == SCRIPT.format(join, line)
    [finding] = [finding for finding in result.findings if finding.severity == "refused"]
    return finding


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("dist.init_process_group('nccl')", "dist.init_process_group('gloo')"),
        ("dist.init_process_group('cpu:gloo,cuda:nccl')", "dist.init_process_group('gloo')"),
        ("dist.init_process_group(backend='nccl', rank=0)", "dist.init_process_group(backend='gloo', rank=0)"),
        ("dist.init_process_group()", "dist.init_process_group()"),
        ("name = 'nccl'\ndist.init_process_group(name)", "name = 'gloo'\ndist.init_process_group(name)"),
        ("dist.init_process_group('nccl', device_id=torch.device(rank))", "dist.init_process_group('gloo')"),
        ("assert dist.is_nccl_available()", "assert dist.is_gloo_available()"),
        (
            "name = dist.get_default_backend_for_device('cpu')\ndist.init_process_group(name)",
            "name = dist.get_default_backend_for_device('cpu')\ndist.init_process_group(name)",
        ),
    ],
)
def test_the_backend_changes_where_it_is_written(before: str, after: str) -> None:
    join = "" if "init_process_group" in before else "dist.init_process_group('gloo')\n"
    assert f"\n{join}{after}\nmodel" in moved(join + before)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("x = torch.ones(2).to(rank)", 'x = torch.ones(2).to("cpu")'),
        ("x = torch.ones(2, device=f'cuda:{rank}')", "x = torch.ones(2, device='cpu')"),
        ("x = torch.ones(2, device=torch.cuda.current_device())", 'x = torch.ones(2, device="cpu")'),
        ("d = torch.device('cuda', rank)", 'd = torch.device("cpu")'),
        ("s = torch.load('a', map_location={'cuda:0': f'cuda:{rank}'})", "s = torch.load('a', map_location=\"cpu\")"),
        ("torch.cuda.synchronize()", ""),
        ("assert torch.cuda.is_available()", ""),
        ("x = torch.cuda.FloatTensor(3)", "x = torch.FloatTensor(3)"),
        ("print(torch.cuda.device_count())", "print(torch.cuda.device_count())"),
    ],
)
def test_devices_stay_on_the_cpu(before: str, after: str) -> None:
    assert moved(line=before).split("lr=0.1)\n")[1].split("model(")[0].strip("\n") == after


CHOOSES = """\
import os

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel as DDP

rank = int(os.environ["LOCAL_RANK"])
dist.init_process_group("nccl" if torch.cuda.is_available() else "gloo")
device = torch.device(f"cuda:{rank}" if torch.cuda.is_available() else "cpu")
if torch.cuda.is_available():
    torch.cuda.set_device(device)
model = DDP(torch.nn.Linear(4, 1).to(device), device_ids=[rank] if torch.cuda.is_available() else None)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
model(torch.ones(2, 4).to(device)).mean().backward()
optimizer.step()
"""


@pytest.mark.parametrize("target", ["cpu", "cuda"])
def test_what_the_run_chooses_stays(target: str) -> None:
    assert convert({PATH: CHOOSES}, target)[PATH].code == CHOOSES


def test_the_choice_of_the_run_is_between_the_targets_gpus_and_the_cpu() -> None:
    code = convert({PATH: CHOOSES}, "xpu")[PATH].code
    assert code == CHOOSES.replace("cuda", "xpu").replace("nccl", "xccl")
    assert convert({PATH: code}, "cuda")[PATH].code == CHOOSES


@pytest.mark.parametrize(
    ("join", "line", "word"),
    [
        ("dist.init_process_group(os.environ['BACKEND'])", "pass", "not known"),
        (
            "dist.init_process_group('nccl')",
            "model = torch.nn.SyncBatchNorm.convert_sync_batchnorm(model)",
            "SyncBatch",
        ),
        ("dist.init_process_group('nccl')", "scale = torch.cuda.device_count()", "device_count() is 0"),
        ("dist.init_process_group('nccl')", "from torch.distributed.fsdp import fully_shard\nfully_shard", "fsdp"),
    ],
)
def test_what_cpus_have_not_is_refused(join: str, line: str, word: str) -> None:
    assert word in refused(join, line).message


def test_an_option_for_synchronized_statistics_is_left_off() -> None:
    line = "if os.environ.get('SYNC'):\n    model = torch.nn.SyncBatchNorm.convert_sync_batchnorm(model)"
    result = convert({PATH: SCRIPT.format("dist.init_process_group('nccl')", line)}, "cpu")[PATH]
    assert [(finding.rule, finding.severity) for finding in result.findings] == [("DDP223", "note")]


@pytest.mark.parametrize("name", ["xpu", "mpi"])
def test_tensors_of_the_host_go_on_over_gloo(name: str) -> None:
    sends = "dist.all_reduce(torch.ones(1))"
    assert "init_process_group('nccl')" in moved("dist.init_process_group('gloo')", target="cuda")
    code = moved("dist.init_process_group('gloo')", sends, target="cuda")
    assert "init_process_group('cpu:gloo,cuda:nccl')" in code and sends in code
    assert convert({PATH: code}, "cuda")[PATH].code == code


def test_ccl_is_said_as_intel_documents_it() -> None:
    before = SCRIPT.format(
        "device = f'cuda:{rank}'\ntorch.cuda.set_device(device)\ndist.init_process_group('nccl')", "pass"
    )
    result = convert({PATH: before}, "xpu", backend="ccl")[PATH]
    lines = result.code.splitlines()
    assert all(line in lines for line in CCL) and "device = f'xpu:{rank}'" in lines
    assert 'os.environ.setdefault("RANK", os.environ.get("PMI_RANK", "0"))' in lines
    assert result.launch == "mpirun -n 2 -l python {module}{script}"
    assert convert({PATH: result.code}, "xpu")[PATH].code == result.code  # its backend is one of the target's
    assert "oneccl" not in convert({PATH: result.code}, "cuda")[PATH].code


def test_mpirun_starts_what_reads_the_environment() -> None:
    code = moved(target="mpi")
    assert 'os.environ.get("OMPI_COMM_WORLD_LOCAL_RANK", "0")' in code  # the script reads it
    assert 'init_process_group("mpi" if dist.is_mpi_available()' in code
    assert convert({PATH: code}, "mpi")[PATH].code == code


@pytest.mark.parametrize("join", [NCCL, "name = 'nccl'\ndist.init_process_group(name)"])
def test_the_choice_of_mpi_is_written_once_and_taken_back(join: str) -> None:
    code = moved(join, target="mpi")
    assert convert({PATH: code}, "mpi")[PATH].code == code
    for target, backend in (("cpu", "gloo"), ("cuda", "nccl")):
        back = convert({PATH: code}, target)[PATH].code
        assert f'"{backend}"' in back and "_available" not in back and "torchelastic" not in back


def test_an_older_launchers_option_is_asked_of_the_environment() -> None:
    line = "import argparse\nparser = argparse.ArgumentParser()\n"
    line += "parser.add_argument('--local_rank', required=True, type=int)"
    before = SCRIPT.replace('int(os.environ["LOCAL_RANK"])', "0").format("dist.init_process_group('nccl')", line)
    code = convert({PATH: before}, "cuda")[PATH].code
    assert "parser.add_argument('--local_rank', type=int, default=int(os.environ.get(\"LOCAL_RANK\", 0)))" in code
    assert convert({PATH: code}, "cuda")[PATH].code == code


PLAIN = ["main_guard", "trainer_class", "grad_accumulation"]


@pytest.mark.parametrize("name", PLAIN)
@pytest.mark.parametrize("target", ["cpu", "cuda", "mpi", "xpu"])
def test_plain_code_is_right_for_its_target_and_moves_to_the_others(name: str, target: str) -> None:
    program = fixtures.program(fixtures.load(name))
    plain = {path: result.code for path, result in convert(program, "cuda", style="plain").items()}
    results = convert(plain, target)
    if target == "cuda":
        assert {path: result.code for path, result in results.items()} == plain
        return
    codes = "".join(result.code for result in results.values())
    assert f'{"xccl" if target == "xpu" else "gloo"}"' in codes and "nccl" not in codes
    if target == "xpu":
        assert codes == "".join(each.code for each in convert(program, "xpu", style="plain").values())


# The form of PyTorch's tutorial "Writing Distributed Applications".
STARTED = """\
import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from torch.nn.parallel import DistributedDataParallel as DDP


def run(rank, size):
    dist.init_process_group("gloo", rank=rank, world_size=size)
    model = DDP(torch.nn.Linear(4, 1))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    model(torch.ones(2, 4)).mean().backward()
    optimizer.step()


if __name__ == "__main__":
    for rank in range(2):
        mp.Process(target=run, args=(rank, 2)).start()
"""


def test_processes_that_a_script_starts_are_not_those_of_a_launcher() -> None:
    result = convert({PATH: STARTED}, "cuda")[PATH]
    assert "torch.cuda.set_device(dist.get_rank() % torch.cuda.device_count())" in result.code
    assert "LOCAL_RANK" not in result.code and result.launch == "python {module}{script}"
    [finding] = [each for each in convert({PATH: STARTED}, "mpi")[PATH].findings if each.severity == "refused"]
    assert (finding.rule, finding.line) == ("DDP227", 17)


def test_a_model_that_nothing_wraps_is_not_left_on_the_cpu_alone() -> None:
    source = STARTED.replace("DDP(torch.nn.Linear(4, 1))", "torch.nn.Linear(4, 1)")
    source = source.replace(
        "    optimizer.step()",
        "    for p in model.parameters():\n        dist.all_reduce(p.grad)\n    optimizer.step()",
    )
    result = convert({PATH: source}, "cuda")[PATH]
    assert (result.code, [each.rule for each in result.findings if each.severity == "refused"]) == (source, ["DDP225"])
