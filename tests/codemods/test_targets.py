"""A target is one record: what only a record says converts every fixture, and no file knows a target by its name."""

from __future__ import annotations

import ast
import shutil
from collections.abc import Iterator
from pathlib import Path

import ddpify_codemods
import pytest
from ddpify_codemods import TARGETS, convert
from ddpify_codemods.targets import Target

from ddpify.command import Options, run
from tests.e2e import fixtures

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
        plain_wrapper_arguments="device_ids=[torch.npu.current_device()]",
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


@pytest.fixture(params=sorted(MADE_UP))
def target(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Target:
    made_up = MADE_UP[request.param]
    monkeypatch.setitem(TARGETS, made_up.name, made_up)
    return made_up


@pytest.mark.parametrize("name", fixtures.names())
def test_a_made_up_target_converts_every_fixture(name: str, target: Target, tmp_path: Path) -> None:
    fixture = fixtures.load(name)
    shutil.copytree(fixture.folder, tmp_path / "original", ignore=shutil.ignore_patterns("after*", "*.toml"))
    entry = tmp_path / "original" / fixture.entry
    report, _ = run(Options((str(entry),), target=target.name))
    if fixture.refused:
        assert report.exit_code == 2
        return
    texts = [path.read_text(encoding="utf-8-sig") for path in entry.parent.rglob("*.py")]
    assert f'init_process_group("{target.backend}")' in "".join(texts)
    assert not [found for text in texts for found in words_of_others(ast.parse(text), target)]
    for again in (target.name, ""):
        report, _ = run(Options((str(entry),), target=again, check=True))
        assert report.exit_code == 0, report


@pytest.mark.parametrize("name", fixtures.names())
def test_a_made_up_target_converts_to_the_plain_style(name: str, target: Target) -> None:
    results = convert(fixtures.program(fixtures.load(name)), target.name, style="plain").values()
    if any(finding.severity == "refused" for result in results for finding in result.findings):
        assert any(
            finding.severity == "refused"
            for result in convert(fixtures.program(fixtures.load(name)), "cuda", style="plain").values()
            for finding in result.findings
        )
        return
    assert f'dist.init_process_group("{target.backend}")' in "".join(result.code for result in results)
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
            allowed = isinstance(parent, (ast.FormattedValue, ast.Return, ast.IfExp, ast.keyword, ast.Call))
            looked_up = isinstance(parent, ast.Call) and isinstance(parent.func, ast.Attribute)
            own = isinstance(parent, ast.Compare) and all(
                isinstance(side, (ast.Name, ast.Attribute)) for side in (parent.left, *parent.comparators)
            )
            assert own or (allowed and not looked_up), f"{path}:{node.lineno}: {ast.unparse(parent)}"


def is_target(node: ast.expr) -> bool:
    return ast.unparse(node).rpartition(".")[2] in ("target", "source", "chosen", "first", "record")
