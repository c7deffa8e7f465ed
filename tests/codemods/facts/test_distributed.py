"""Each origin of a rank, both ways: under whatever name it goes, and the usual names where they are something else."""

from __future__ import annotations

import ast

import pytest
from ddpify_codemods.facts.distributed import depends_on_rank, is_guarded, is_one_rank, is_rank, may_depend_on_rank

from tests.codemods.checks import script_of

HEAD = """\
import argparse, os
import torch
import torch.distributed as dist
import torch.multiprocessing as mp
import horovod.torch as hvd
import ignite.distributed as idist
import torch_xla
import torch_xla.core.xla_model as xm
import torch_xla.runtime as xr
from mpi4py import MPI
from torch.distributed import get_rank as whoami
"""

# Statements that make `x`.
RANKS = [
    "x = dist.get_rank()",
    "x = whoami()",
    "x = int(os.environ['RANK'])",
    "x = int(os.environ.get('SLURM_PROCID', 0))",
    "x = int(os.getenv('OMPI_COMM_WORLD_LOCAL_RANK'))",
    "x = os.environ.get('PMI_RANK', '0')",
    "x = xm.get_ordinal()",
    "x = xr.global_ordinal()",
    "x = hvd.local_rank()",
    "x = idist.get_rank()",
    "x = MPI.COMM_WORLD.Get_rank()",
    "x = MPI.COMM_WORLD.rank",
    "x = dist.get_rank() if dist.is_initialized() else 0",
    "x = 0\nif dist.is_initialized():\n    x = dist.get_rank()",
    "x, n = dist.get_rank(), dist.get_world_size()",
    "def place():\n    return dist.get_rank(), dist.get_world_size()\nx, n = place()",
    "def place():\n    if not dist.is_initialized():\n        return 0\n    return dist.get_rank()\nx = place()",
    "x = dist.get_rank() % torch.cuda.device_count()",
    "x = dist.get_rank() + 4 * 2",
    "p = argparse.ArgumentParser()\np.add_argument('--local_rank', type=int)\nx = p.parse_args().local_rank",
    "p = argparse.ArgumentParser()\np.add_argument('--local-rank', dest='here')\na = p.parse_args()\nx = a.here",
    "args.gpu = dist.get_rank()\nx = args.gpu",
    "class T:\n    def __init__(self):\n        self.n = dist.get_rank()\nt = T()\nx = t.n",
    "def setup():\n    global x\n    x = dist.get_rank()",
]
NO_RANKS = [
    "x = dist.get_world_size()",
    "rank = 3\nx = rank",
    "x = int(os.environ['WORLD_SIZE'])",
    "x = os.environ.get('HOME')",
    "x = hvd.size()",
    "n, x = dist.get_rank(), dist.get_world_size()",
    "def place():\n    return dist.get_rank(), dist.get_world_size()\nn, x = place()",
    "p = argparse.ArgumentParser()\np.add_argument('--rank', type=int)\nx = p.parse_args().rank",
    "p = argparse.ArgumentParser()\np.add_argument('--gpu', type=int)\nlocal_rank = p.parse_args().gpu\nx = local_rank",
    "x = torch.linalg.matrix_rank(torch.rand(2, 2))",
    "def get_rank():\n    return 0\nx = get_rank()",
    "x = torch.rand(3, device=dist.get_rank()).sum()",
]


def last_value(source: str, name: str = "x") -> tuple[object, ast.expr]:
    script = script_of(HEAD + source + f"\nprint({name})")
    call = script.tree.body[-1].value  # type: ignore[attr-defined]
    return script, call.args[0]


@pytest.mark.parametrize("source", RANKS)
def test_a_number_of_the_process_is_one_by_its_origin(source: str) -> None:
    script, node = last_value(source)
    assert is_rank(script, node) and depends_on_rank(script, node)  # type: ignore[arg-type]


@pytest.mark.parametrize("source", NO_RANKS)
def test_what_is_called_so_or_looks_so_is_none(source: str) -> None:
    script, node = last_value(source)
    assert not is_rank(script, node) and not may_depend_on_rank(script, node)  # type: ignore[arg-type]


STARTED = "def work({parameters}):\n    print(x)\n{start}"


@pytest.mark.parametrize(
    ("parameters", "start", "expected"),
    [
        ("x, n", "mp.spawn(work, args=(8,), nprocs=8)", True),
        ("n, x", "mp.spawn(work, args=(8,), nprocs=8)", False),
        ("x", "mp.spawn(fn=work, nprocs=8)", True),
        ("x", "torch_xla.launch(work)", True),
        ("x, n", "with idist.Parallel(backend='gloo') as parallel:\n    parallel.run(work, 3)", True),
        ("n, x", "with idist.Parallel(backend='gloo') as parallel:\n    parallel.run(work, 3)", False),
        ("x, n", "for i in range(8):\n    mp.Process(target=work, args=(i, 8)).start()", True),
        ("n, x", "for i in range(8):\n    mp.Process(target=work, args=(i, 8)).start()", False),
        ("x", "work(dist.get_rank())", True),
        ("x", "work(dist.get_world_size())", False),
        ("n=1, *, x=None", "work(x=int(os.environ['LOCAL_RANK']))", True),
        ("rank, x", "work(dist.get_rank(), 5)", False),
    ],
)
def test_a_parameter_is_what_its_callers_and_starters_give(parameters: str, start: str, expected: bool) -> None:
    script = script_of(HEAD + STARTED.format(parameters=parameters, start=start))
    [printed] = [call for call in script.find(ast.Call) if ast.unparse(call.func) == "print"]
    assert is_rank(script, printed.args[0]) is expected
    assert may_depend_on_rank(script, printed.args[0]) is expected


@pytest.mark.parametrize(
    "source",
    [
        "x = dist.get_rank() == 0",
        "x = 0 == dist.get_rank()",
        "x = not dist.get_rank()",
        "x = dist.get_rank() in (-1, 0)",
        "x = dist.get_rank() < 1",
        "x = dist.get_rank() <= 0",
        "x = dist.get_rank() == dist.get_world_size() - 1",
        "x = epoch > 3 and dist.get_rank() == 0",
        "x = not (dist.get_rank() != 0)",
        "x = xm.is_master_ordinal()",
        "x = not dist.is_initialized() or dist.get_rank() == 0",
        "def chief():\n    return dist.get_rank() == 0\nx = chief()",
        "def chief():\n    if dist.get_rank() == 0:\n        return True\n    return False\nx = chief()",
        "class T:\n    @property\n    def chief(self):\n        return hvd.rank() == 0\nt = T()\nx = t.chief",
        "class T:\n    def __init__(self):\n        self.chief = hvd.rank() == 0\nt = T()\nx = t.chief",
        "x = dist.get_rank() == 0 if dist.is_initialized() else True",
    ],
)
def test_a_condition_that_holds_on_one_rank(source: str) -> None:
    script, node = last_value(source)
    assert is_one_rank(script, node) and may_depend_on_rank(script, node)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("source", "depends"),
    [
        ("x = maintain", False),
        ("maintain = True\nx = maintain", False),
        ("is_main = dist.is_initialized()\nx = is_main", False),
        ("x = dist.get_rank() != 0", True),
        ("x = dist.get_rank()", True),
        ("x = dist.get_rank() > 0", True),
        ("x = dist.get_rank() < 4", True),
        ("x = dist.get_rank() >= 0", True),
        ("x = not (dist.get_rank() >= 0)", True),
        ("x = dist.get_rank() == -1", True),
        ("x = dist.get_world_size() == 1", False),
        ("x = single or dist.get_rank() == 0", True),
        ("x = rank == 0", False),
        ("x = is_main_process", False),
        ("def is_main_process():\n    return True\nx = is_main_process()", False),
    ],
)
def test_other_conditions(source: str, depends: bool) -> None:
    script, node = last_value(source)
    assert not is_one_rank(script, node)  # type: ignore[arg-type]
    assert depends_on_rank(script, node) is depends  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("source", "may"),
    [
        ("from .utils import chief\nx = chief()", True),
        ("from .utils import place\nx = place == 0", True),
        ("def work(a):\n    global x\n    x = a.gpu == 0", True),
        ("from .utils import score\nx = score() * 2 > 0.5", False),
        ("from .utils import Net\nnet = Net()\nx = net(3).sum() > 0.5", False),
        ("from math import pi\nx = pi == 3", False),
    ],
)
def test_what_the_file_does_not_show_may_be_one(source: str, may: bool) -> None:
    script, node = last_value(source)
    assert not depends_on_rank(script, node)  # type: ignore[arg-type]
    assert may_depend_on_rank(script, node) is may  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("source", "guarded"),
    [
        ("if dist.get_rank() == 0:\n    save()", True),
        ("if dist.get_rank() != 0:\n    exit()\nsave()", False),
        ("def f():\n    if dist.get_rank():\n        return\n    save()\nf()", True),
        ("def f():\n    save()\nif hvd.rank() == 0:\n    f()", True),
        ("def f():\n    save()\nf()", False),
        ("maintain = True\nif maintain:\n    save()", False),
        ("here = dist.get_rank() == 0\nif here:\n    save()", True),
    ],
)
def test_where_only_some_ranks_come(source: str, guarded: bool) -> None:
    script = script_of(HEAD + source)
    [call] = [call for call in script.find(ast.Call) if ast.unparse(call.func) == "save"]
    assert is_guarded(script, call) is guarded
