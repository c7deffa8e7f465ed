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
