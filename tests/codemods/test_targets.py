"""A target is one record: what only a record says converts every fixture, and no file knows a target by its name."""

from __future__ import annotations

import ast
import shutil
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import SimpleNamespace

import ddpify_codemods
import pytest
from ddpify_codemods import ONE_DEVICE, TARGETS, convert
from ddpify_codemods.targets import Target

from ddpify.command import CommandLine, run
from tests.e2e import fixtures
from tests.turns import in_turn

# Two that there are not: one with a module in torch as GPUs have, one without, which ends its steps itself.
MADE_UP = {
    "npu": Target(
        "npu",
        "hccl",
        "npu",
        '"npu"',
        module="torch.npu",
        wrapper_arguments="device_ids=[get_local_rank()]",
        imports=("get_local_rank",),
        modules=("import torch_npu",),
        plain_moves_inputs="device_ids=[torch.npu.current_device()]",
    ),
    "ipu": Target(
        "ipu",
        "graph",
        "ipu",
        "poplar.device()",
        modules=("import ddpify_runtime.ipu", "import poplar"),
        step="poplar.run()",
        seed="poplar.seed",
        loads_on_host=True,
        scales_gradients=False,
    ),
}
WORDS_OF_OTHERS = {"cuda", "nccl", "gloo", "xla", "xccl", "mpi", "xpu"}


@pytest.fixture(params=["npu", pytest.param("ipu", marks=pytest.mark.nightly)])
def target(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Target:
    made_up = MADE_UP[request.param]
    monkeypatch.setitem(TARGETS, made_up.name, made_up)
    return made_up


@pytest.mark.parametrize("name", in_turn((name,) for name in fixtures.names()))
def test_a_made_up_target_converts_every_fixture(name: str, target: Target, tmp_path: Path) -> None:
    fixture = fixtures.load(name)
    shutil.copytree(fixture.folder, tmp_path / "original", ignore=shutil.ignore_patterns("after*", "*.toml"))
    entry = tmp_path / "original" / fixture.entry
    report, _ = run(CommandLine((str(entry),), target=target.name))
    if fixture.refused:
        assert report.exit_code == 2
        return
    texts = [path.read_text(encoding="utf-8-sig") for path in entry.parent.rglob("*.py")]
    assert f'init_process_group("{target.backend}")' in "".join(texts)
    assert not [found for text in texts for found in words_of_others(ast.parse(text), target)]
    report, _ = run(CommandLine((str(entry),), check=True))
    assert (report.target, report.exit_code) == (target.name, 0), report


@pytest.mark.parametrize("name", in_turn((name,) for name in fixtures.names()))
def test_a_made_up_target_converts_to_the_plain_style(name: str, target: Target) -> None:
    results = convert(fixtures.program(fixtures.load(name)), target.name, style="plain").values()
    if any(finding.severity == "refused" for result in results for finding in result.findings):
        assert any(
            finding.severity == "refused"
            for result in convert(fixtures.program(fixtures.load(name)), "cuda", style="plain").values()
            for finding in result.findings
        )
        return
    code = "".join(result.code for result in results)
    backends = (target.backend, f"cpu:gloo,{target.device_type}:{target.backend}")
    assert any(f'dist.init_process_group("{backend}")' in code for backend in backends)
    assert not [found for result in results for found in words_of_others(ast.parse(result.code), target)]


def words_of_others(tree: ast.Module, target: Target) -> Iterator[str]:
    """What a target decides and is said in the words of another: `.cuda()`, "cuda:0", "nccl", torch.cuda.Event."""
    parents = {child: node for node in ast.walk(tree) for child in ast.iter_child_nodes(node)}
    for node in ast.walk(tree):
        parent = parents.get(node)
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            stays_off = isinstance(parent, ast.Compare) and not target.module  # what the script does for GPUs alone
            if node.value.split(":")[0] in WORDS_OF_OTHERS and not stays_off:
                yield f"{ast.unparse(node)} in {ast.unparse(parents[node])}"
        elif isinstance(node, ast.Attribute) and ast.unparse(node) == "torch.cuda":
            if target.renames:
                yield ast.unparse(parents[node])
        elif isinstance(parent, ast.Call) and node is parent.func and getattr(node, "attr", "") == "cuda":
            yield ast.unparse(parent)


FILES = sorted(Path(ddpify_codemods.__file__).parent.rglob("*.py"))


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_nothing_compares_the_name_of_a_target(path: Path) -> None:
    """The name is for messages: it stands in f-strings, is handed on, or looks up the record itself."""
    if path.name == "targets.py":
        return
    tree = ast.parse(path.read_text())
    parents = {child: node for node in ast.walk(tree) for child in ast.iter_child_nodes(node)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Subscript) and ast.unparse(node.value).endswith("TARGETS"):
            assert not isinstance(node.slice, ast.Constant), f"{path}:{node.lineno}: a target by its name"
        if isinstance(node, ast.Attribute) and node.attr in ("name", "aliases") and is_target(node.value):
            parent = parents[node]
            allowed = isinstance(parent, (ast.FormattedValue, ast.Return, ast.IfExp, ast.BoolOp, ast.keyword, ast.Call))
            looked_up = isinstance(parent, ast.Call) and isinstance(parent.func, ast.Attribute)
            own = isinstance(parent, ast.Compare) and all(
                isinstance(side, (ast.Name, ast.Attribute)) for side in (parent.left, *parent.comparators)
            )
            record = isinstance(parent, ast.Subscript) and ast.unparse(parent.value) == "TARGETS"
            assert own or record or (allowed and not looked_up), f"{path}:{node.lineno}: {ast.unparse(parent)}"


def is_target(node: ast.expr) -> bool:
    return ast.unparse(node).rpartition(".")[2] in ("target", "source", "chosen", "first", "record")


KEPT = [name for name in fixtures.names() if fixtures.load(name).also]


def texts(program: Mapping[Path, str], target: str, backend: str = "") -> dict[Path, str]:
    return {path: result.code for path, result in convert(program, target, backend=backend).items()}


@pytest.mark.parametrize(("name", "target"), in_turn((name, target) for name in KEPT for target in ("mpi", "xpu")))
def test_from_cuda_it_becomes_what_the_original_would(name: str, target: str) -> None:
    program = fixtures.program(fixtures.load(name))
    assert texts(texts(program, "cuda"), target) == texts(program, target)


@pytest.mark.parametrize("name", in_turn((name,) for name in KEPT))
def test_from_xpu_it_moves_to_every_other_and_back(name: str) -> None:
    once = texts(fixtures.program(fixtures.load(name)), "xpu")
    for target in [name for name, each in TARGETS.items() if not each.only_plain]:
        moved = texts(once, target)
        assert not [word for text in moved.values() for word in ("xccl", '"xpu"', "torch.xpu") if word in text] or (
            target == "xpu"
        )
        assert texts(moved, target) == moved
    again = texts(texts(once, "cuda"), "xpu")  # in other quotes
    assert [ast.unparse(ast.parse(text)) for text in again.values()] == [
        ast.unparse(ast.parse(text)) for text in once.values()
    ]
    alone = texts(once, ONE_DEVICE)
    assert not any("ddpify_runtime" in text for text in alone.values())
    assert any("torch.xpu" in text or '"xpu"' in text or "'xpu'" in text for text in alone.values())


# What Intel's documentation of DistributedDataParallel with oneCCL writes (seeds/002), and the script that it is for.
DOCUMENTED = """\
mpi_world_size = int(os.environ.get('PMI_SIZE', -1))
mpi_rank = int(os.environ.get('PMI_RANK', -1))
if mpi_world_size > 0:
    os.environ['RANK'] = str(mpi_rank)
    os.environ['WORLD_SIZE'] = str(mpi_world_size)
else:
    os.environ['RANK'] = str(os.environ.get('RANK', 0))
    os.environ['WORLD_SIZE'] = str(os.environ.get('WORLD_SIZE', 1))
os.environ['MASTER_ADDR'] = '127.0.0.1'
os.environ['MASTER_PORT'] = '29500'
"""
ONE_PROCESS = """\
import torch
from torch.utils.data import DataLoader, TensorDataset

model = torch.nn.Linear(4, 5).cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=0.001)
data = TensorDataset(torch.arange(32.0).view(8, 4), torch.ones(8, 5))
for x, y in DataLoader(data, batch_size=4, shuffle=True):
    optimizer.zero_grad()
    loss = torch.nn.functional.mse_loss(model(x.cuda()), y.cuda())
    loss.backward()
    optimizer.step()
"""


@pytest.mark.parametrize("variables", [{"PMI_RANK": "1", "PMI_SIZE": "4"}, {"RANK": "2", "WORLD_SIZE": "3"}, {}])
def test_ccl_is_said_as_intel_documents_it(variables: dict[str, str]) -> None:
    [result] = convert({Path("train.py"): ONE_PROCESS}, "xpu", style="plain", backend="ccl").values()
    lines = result.code.splitlines()
    assert "import oneccl_bindings_for_pytorch" in lines
    assert 'dist.init_process_group("ccl")' in lines
    assert 'torch.xpu.set_device(int(os.environ["LOCAL_RANK"]))' in lines
    assert "ddp_model = DistributedDataParallel(model)" in lines
    ours = "\n".join(line for line in lines if line.startswith("os.environ.setdefault"))
    assert environment_after(ours, variables) == environment_after(DOCUMENTED, variables)
    assert result.launch == "" or result.launch.startswith("mpirun -n 2 -l python ")


def environment_after(code: str, variables: dict[str, str]) -> dict[str, str]:
    """The four variables that torch reads, after some lines."""
    environ = dict(variables)
    exec(code, {"os": SimpleNamespace(environ=environ)})
    return {name: environ[name] for name in ("RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT")}


def test_the_backend_of_a_converted_file_stays_until_another_is_asked_for() -> None:
    path = Path("train.py")
    [result] = convert({path: ONE_PROCESS}, "xpu", backend="ccl").values()
    assert 'init_process_group("ccl")' in result.code and "import oneccl_bindings_for_pytorch\n" in result.code
    assert result.launch.startswith("mpirun")
    for target in ("", "xpu"):
        assert convert({path: result.code}, target)[path].code == result.code
    moved = convert({path: result.code}, "xpu", backend="xccl")[path].code
    assert 'init_process_group("xccl")' in moved and "oneccl" not in moved
    assert moved == convert({path: ONE_PROCESS}, "xpu")[path].code
    assert "oneccl" not in convert({path: result.code}, "cuda")[path].code
    assert "oneccl" not in convert({path: result.code}, ONE_DEVICE)[path].code


@pytest.mark.parametrize(
    ("line", "severity"),
    [
        ("x = torch.cuda.FloatTensor(3)", "refused"),
        ("torch.set_default_tensor_type('torch.cuda.FloatTensor')", "refused"),
        ("torch.cuda.nvtx.range_push('step')", "warning"),
        ("print(f'{torch.cuda.memory_allocated()} bytes')", "warning"),
    ],
)
def test_what_xpu_has_not_is_said(line: str, severity: str) -> None:
    [result] = convert({Path("train.py"): f"{ONE_PROCESS}{line}\n"}, "xpu").values()
    [finding] = result.findings
    assert (finding.severity, finding.line) == (severity, len(ONE_PROCESS.splitlines()) + 1)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("x = torch.rand(3).cuda(0, non_blocking=True)", 'x = torch.rand(3).to("xpu", non_blocking=True)'),
        ("d = torch.device('cuda', 1)", "d = torch.device('xpu')"),
        ("d = torch.device(f'cuda:{rank}')", "d = torch.device('xpu')"),
        ("d = torch.device('xpu:0')", "d = torch.device('xpu')"),
        ("torch.xpu.set_device(0)", ""),
        ("torch.cuda.set_device(0)", ""),
        ("torch.cuda.synchronize()", "torch.xpu.synchronize()"),
        ("assert torch.cuda.is_available()", "assert torch.xpu.is_available()"),
        ("with torch.cuda.device(0):\n    pass", "with torch.xpu.device(-1):\n    pass"),
        ("if model.weight.is_cuda: pass", "if model.weight.is_xpu: pass"),
        ("if model.weight.device.type == 'cuda': pass", "if model.weight.device.type == 'xpu': pass"),
        ("if str(model.weight.device).startswith('cuda'): pass", "if str(model.weight.device).startswith('xpu'): pass"),
        ("scaler = torch.cuda.amp.GradScaler(enabled=True)", 'scaler = torch.amp.GradScaler("xpu", enabled=True)'),
        ("scaler = torch.amp.GradScaler('cuda')", "scaler = torch.amp.GradScaler('xpu')"),
        ("scaler = torch.amp.GradScaler()", 'scaler = torch.amp.GradScaler("xpu")'),
        ("with torch.autocast('cuda'): pass", "with torch.autocast('xpu'): pass"),
        ("s = torch.load('a', map_location='cuda:0')", "s = torch.load('a', map_location='xpu')"),
        ("words = {'cuda': 1}", "words = {'cuda': 1}"),
    ],
)
def test_the_words_of_gpus_are_said_for_xpu(before: str, after: str) -> None:
    [result] = convert({Path("train.py"): f"{ONE_PROCESS}{before}\n"}, "xpu").values()
    last = result.code.split("    optimizer.step()\n")[1].replace("destroy_process_group()\n", "").strip("\n")
    assert last == after, result.findings


def test_an_alias_of_the_module_is_followed() -> None:
    lines = "from torch.cuda import empty_cache, is_available as there\nimport torch.cuda as gpu\n"
    before = f"{lines}{ONE_PROCESS}if there(): empty_cache(); gpu.synchronize()\n"
    [result] = convert({Path("train.py"): before}, "xpu").values()
    assert "if torch.xpu.is_available(): torch.xpu.empty_cache(); torch.xpu.synchronize()" in result.code
