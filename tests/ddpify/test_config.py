"""The target comes from [tool.ddpify] of the nearest pyproject.toml that has one."""

from __future__ import annotations

from pathlib import Path

import pytest

from ddpify.config import choose_target, configured_target, did_you_mean
from ddpify.files import BadInput
from tests.ddpify.command import TRAIN, ddpify, lines, put


def settings(folder: Path, text: str) -> None:
    folder.mkdir(exist_ok=True)
    (folder / "pyproject.toml").write_text(text, encoding="utf-8")


def test_the_command_uses_it(tmp_path: Path) -> None:
    settings(tmp_path, '[tool.ddpify]\ntarget = "cpu"\n')
    (tmp_path / "scripts").mkdir()
    put(tmp_path / "scripts", train=TRAIN)
    assert lines(ddpify("scripts/train.py", cwd=tmp_path).stdout)[0] == "converted scripts/train.py for cpu"


def test_the_command_line_wins(tmp_path: Path) -> None:
    settings(tmp_path, '[tool.ddpify]\ntarget = "cpu"\n')
    assert choose_target("xla", tmp_path, ["cpu", "xla"]) == "xla"


def test_the_nearest_with_a_table_counts(tmp_path: Path) -> None:
    settings(tmp_path, '[tool.ddpify]\ntarget = "cpu"\n')
    settings(tmp_path / "sub", '[project]\nname = "sub"\n')
    assert configured_target(tmp_path / "sub") == ("cpu", str(tmp_path / "pyproject.toml"))
    settings(tmp_path / "sub", '[tool.ddpify]\ntarget = "xla"\n')
    assert configured_target(tmp_path / "sub")[0] == "xla"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('[tool.ddpify]\ntaget = "cpu"\n', "has no setting 'taget'"),
        ("[tool.ddpify]\ntarget = 1\n", "target is not a string"),
        ('[tool]\nddpify = "cpu"\n', "tool.ddpify is not a table"),
        ("[tool.ddpify\n", "cannot be read"),
        ('tool = "x"\n', "cannot be read"),
    ],
)
def test_bad_settings(tmp_path: Path, text: str, message: str) -> None:
    settings(tmp_path, text)
    with pytest.raises(BadInput, match=message) as caught:
        configured_target(tmp_path)
    assert caught.value.problem.path == str(tmp_path / "pyproject.toml")


def test_an_unknown_target_in_the_file(tmp_path: Path) -> None:
    settings(tmp_path, '[tool.ddpify]\ntarget = "tpu"\n')
    with pytest.raises(BadInput) as caught:
        choose_target("", tmp_path, ["cpu", "xla"])
    assert caught.value.problem.path == str(tmp_path / "pyproject.toml")
    assert caught.value.problem.remedy == "the targets are cpu, xla"


def test_did_you_mean() -> None:
    assert did_you_mean("Cudaa", ["cuda", "xla"]) == ", did you mean 'cuda'?"
    assert did_you_mean("ddp102", ["DDP102", "XYZ"]) == ", did you mean 'DDP102'?"
    assert did_you_mean("qqqqq", ["cuda", "xla"]) == ""


def test_a_converted_file_is_for_its_own_target(tmp_path: Path) -> None:
    put(tmp_path, train=TRAIN)
    ddpify("train.py", "--target", "xla", cwd=tmp_path)
    ddpify("train.py", "--check", cwd=tmp_path)
    with (tmp_path / "train.py").open("a") as file:
        file.write('torch.save(model.state_dict(), "new.pt")\n')
    stale = ddpify("train.py", "--check", cwd=tmp_path, code=1)
    assert lines(stale.stdout)[0] == "would convert train.py for xla"


def test_there_and_back(tmp_path: Path) -> None:
    put(tmp_path, train=TRAIN)
    for target, said in (("cuda", "cuda"), ("xla", "xla"), ("none", "one device")):
        done = ddpify("train.py", "--target", target, cwd=tmp_path)
        assert lines(done.stdout)[0] == f"converted train.py for {said}"
    assert "ddpify" not in (tmp_path / "train.py").read_text() and "xla" not in (tmp_path / "train.py").read_text()
    assert b"not converted" in ddpify("train.py", "--target", "none", cwd=tmp_path).stdout


def test_files_for_several_targets_want_a_choice(tmp_path: Path) -> None:
    put(tmp_path, one=TRAIN, two=TRAIN)
    ddpify("one.py", "--target", "xla", cwd=tmp_path)
    ddpify("two.py", "--target", "cpu", cwd=tmp_path)
    assert b"different targets (cpu, xla)" in ddpify("one.py", "two.py", "--check", cwd=tmp_path, code=2).stderr
