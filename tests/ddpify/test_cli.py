"""The command line itself: help, version, rules, and what it does not load."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

from ddpify import __version__
from tests.ddpify.command import COMMAND, ROOT, TRAIN, ddpify, environment, lines, put


def test_version(tmp_path: Path) -> None:
    assert ddpify("--version", cwd=tmp_path).stdout == f"ddpify {__version__}\n".encode()


def test_version_is_that_of_the_distribution() -> None:
    assert f'\nversion = "{__version__}"\n' in (ROOT / "pyproject.toml").read_text(encoding="utf-8")


def test_help_names_the_options_and_commands(tmp_path: Path) -> None:
    text = ddpify("--help", cwd=tmp_path).stdout.decode()
    for word in ("--target", "--diff", "--check", "--output", "--format", "ddpify rules", "ddpify explain"):
        assert word in text


def test_help_loads_neither_libcst_nor_torch_nor_rich(tmp_path: Path) -> None:
    words = [COMMAND[0], "-X", "importtime", *COMMAND[1:], "--help"]
    done = subprocess.run(words, capture_output=True, text=True, env=environment(), cwd=tmp_path, check=True)
    loaded = {line.rpartition("|")[2].strip().partition(".")[0] for line in done.stderr.splitlines()}
    assert "typer" in loaded
    assert loaded.isdisjoint({"libcst", "torch", "rich", "ddpify_codemods", "ddpify_runtime"})


def test_converting_loads_no_torch(tmp_path: Path) -> None:
    put(tmp_path, train=TRAIN)
    words = [COMMAND[0], "-X", "importtime", *COMMAND[1:], "train.py", "--target", "cuda", "--check"]
    done = subprocess.run(words, capture_output=True, text=True, env=environment(), cwd=tmp_path, check=False)
    loaded = {line.rpartition("|")[2].strip().partition(".")[0] for line in done.stderr.splitlines()}
    assert done.returncode == 1
    assert loaded.isdisjoint({"torch", "rich", "ddpify_runtime"})


def test_rules_lists_one_a_line(tmp_path: Path) -> None:
    listed = lines(ddpify("rules", cwd=tmp_path).stdout)
    assert any(line.startswith("DDP101  ") for line in listed)
    assert all(re.fullmatch(r"DDP\d+  \S.*", line) for line in listed)


def test_explain_shows_why_and_an_example(tmp_path: Path) -> None:
    shown = ddpify("explain", "DDP101", cwd=tmp_path).stdout.decode()
    assert shown.startswith("DDP101  ")
    assert "\nBefore:\n" in shown
    assert ddpify("explain", "ddp101", cwd=tmp_path).stdout.decode() == shown


def test_explain_an_unknown_rule(tmp_path: Path) -> None:
    done = ddpify("explain", "DDP101X", cwd=tmp_path, code=2)
    assert lines(done.stderr) == ["ddpify: no rule 'DDP101X', did you mean 'DDP101'?; ddpify rules lists them"]
    done = ddpify("explain", "DDP999", cwd=tmp_path, code=2)
    assert lines(done.stderr) == ["ddpify: no rule 'DDP999'; ddpify rules lists them"]


def test_a_misspelt_command(tmp_path: Path) -> None:
    done = ddpify("verfy", "train.py", cwd=tmp_path, code=2)
    assert lines(done.stderr) == ["verfy: no such file, folder or command, did you mean 'verify'?; check the spelling"]


def test_a_file_called_like_a_command(tmp_path: Path) -> None:
    (tmp_path / "rules").write_text(TRAIN, encoding="utf-8")
    done = ddpify("./rules", "--target", "cuda", cwd=tmp_path)
    assert lines(done.stdout)[0] == "converted rules for cuda"


def test_options_may_stand_before_the_paths(tmp_path: Path) -> None:
    put(tmp_path, train=TRAIN)
    assert ddpify("--check", "--target", "cuda", "train.py", cwd=tmp_path, code=1)


def test_usage_errors(tmp_path: Path) -> None:
    assert b"PATH" in ddpify(cwd=tmp_path, code=2).stderr
    assert b"--nonsense" in ddpify("train.py", "--nonsense", cwd=tmp_path, code=2).stderr
    assert b"text" in ddpify("train.py", "--format", "yaml", cwd=tmp_path, code=2).stderr


@pytest.mark.parametrize("command", ["verify", "run"])
def test_options_of_the_script_go_behind_dashes(tmp_path: Path, command: str) -> None:
    put(tmp_path, train=TRAIN)
    done = ddpify(command, "train.py", "--epochs", "3", cwd=tmp_path, code=2)
    hint = f"options of the script go behind --: ddpify {command} SCRIPT -- --epochs ..."
    assert lines(done.stderr) == [f"ddpify: no option --epochs; {hint}"]


def test_a_distributed_script_stays_as_it_is_and_its_hazards_are_told(tmp_path: Path) -> None:
    from ddpify_codemods import RULES

    advice = next(rule for rule in RULES if rule.id == "DDP501")
    (tmp_path / "train.py").write_text(advice.before, encoding="utf-8")
    for words in (["train.py"], ["train.py", "--check"], ["."], [".", "--check"]):
        done = ddpify(*words, "--target", "cpu", cwd=tmp_path)  # a check says what a conversion would
        assert (b"[DDP302]" in done.stdout) is (words == ["train.py"])  # who asks for one by name wants to know where
        assert [line for line in lines(done.stdout) if line.startswith("train.py:9: ") and line.endswith("[DDP501]")]
    assert (tmp_path / "train.py").read_text(encoding="utf-8") == advice.before
    assert ddpify("train.py", "--target", "cpu", "-o", "-", cwd=tmp_path).stdout.decode() == advice.before
    put(tmp_path, train=advice.after)
    done = ddpify("train.py", "--target", "cpu", "--check", cwd=tmp_path)
    assert lines(done.stdout) == ["nothing to do in train.py: distributed already"]


REMOTE = """\
import torch
from torch.distributed import rpc
from torch.distributed.optim import DistributedOptimizer

rpc.init_rpc("trainer", rank=0, world_size=2)
local = torch.optim.SGD([torch.rand(2, requires_grad=True)], lr=0.1)
optimizer = DistributedOptimizer(torch.optim.SGD, rpc.remote("server", torch.rand, (2,)), lr=0.1)
for _ in range(3):
    rpc.rpc_sync("server", torch.rand, (2,)).sum().backward()
    optimizer.step()
"""


@pytest.mark.parametrize("source", [REMOTE, "\n".join(REMOTE.splitlines()[:5] + REMOTE.splitlines()[6:]) + "\n"])
def test_what_torch_distributed_rpc_trains_is_distributed_already(tmp_path: Path, source: str) -> None:
    put(tmp_path, train=source)
    for words in ([], ["--check"]):
        done = ddpify("train.py", "--target", "cuda", *words, cwd=tmp_path)
        assert lines(done.stdout)[-1] == "nothing to do in train.py: distributed already"
        assert b"DDP311" not in done.stdout + done.stderr


def test_explain_shows_how_to_put_a_hazard_right(tmp_path: Path) -> None:
    shown = ddpify("explain", "DDP501", cwd=tmp_path).stdout.decode()
    assert "Put right by hand:" in shown and "set_epoch(epoch)" in shown


def test_a_helper_with_collectives_does_not_make_a_program_distributed(tmp_path: Path) -> None:
    helper = "import torch.distributed as dist\n\n\ndef reduce(x):\n    dist.all_reduce(x, group=dist.group.WORLD)\n"
    put(tmp_path, train=f"import helper\n{TRAIN}", helper=helper)
    for words in ([], ["--check"]):
        done = ddpify("train.py", "--target", "cuda", *words, cwd=tmp_path, code=2)
        assert b"helper.py:5: it uses torch.distributed.all_reduce" in done.stderr
