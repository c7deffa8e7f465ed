"""The target comes from [tool.ddpify] of the nearest pyproject.toml that has one."""

from __future__ import annotations

from pathlib import Path

import pytest

from ddpify.config import Settings, choose_target, did_you_mean, matches, read_settings
from ddpify.files import BadInput
from tests.ddpify.command import ENGINE, MAIN, TRAIN, ddpify, lines, put


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
    assert choose_target("xla", read_settings(tmp_path), ["cpu", "xla"]) == "xla"


def test_the_nearest_with_a_table_counts(tmp_path: Path) -> None:
    settings(tmp_path, '[tool.ddpify]\ntarget = "cpu"\n')
    settings(tmp_path / "sub", '[project]\nname = "sub"\n')
    found = read_settings(tmp_path / "sub")
    assert (found.target, found.file) == ("cpu", str(tmp_path / "pyproject.toml"))
    settings(tmp_path / "sub", '[tool.ddpify]\ntarget = "xla"\n')
    assert read_settings(tmp_path / "sub").target == "xla"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('[tool.ddpify]\ntaget = "cpu"\n', "has no setting 'taget'"),
        ("[tool.ddpify]\ntarget = 1\n", "target is not a string"),
        ('[tool]\nddpify = "cpu"\n', "tool.ddpify is not a table"),
        ('[tool.ddpify]\nexclud = ["a"]\n', "has no setting 'exclud', did you mean 'exclude'"),
        ('[tool.ddpify]\nexclude = "a"\n', "exclude is not a list of strings"),
        ("[tool.ddpify]\nselect = [1]\n", "select is not a list of strings"),
        ('[tool.ddpify]\nignore = [""]\n', "ignore is not a list of strings"),
        ('[tool.ddpify]\nignore = ["DDP5010"]\n', "ignore: no rule 'DDP5010', did you mean 'DDP510'"),
        ('[tool.ddpify]\nselect = ["DDP"]\n', "select: 'DDP' converts or refuses, which no setting switches off"),
        ('[tool.ddpify]\nignore = ["DDP302"]\n', "ignore: 'DDP302' converts or refuses"),
        ('[tool.ddpify]\nper-file-ignores = ["a"]\n', "per-file-ignores is not a table"),
        ('[tool.ddpify.per-file-ignores]\n"a.py" = ["DDP3"]\n', "per-file-ignores of 'a.py': 'DDP3' converts or"),
        ("[tool.ddpify\n", "cannot be read"),
        ('tool = "x"\n', "tool is not a table"),
    ],
)
def test_bad_settings(tmp_path: Path, text: str, message: str) -> None:
    settings(tmp_path, text)
    with pytest.raises(BadInput, match=message) as caught:
        read_settings(tmp_path)
    assert caught.value.problem.path == str(tmp_path / "pyproject.toml")


def test_an_unknown_target_in_the_file(tmp_path: Path) -> None:
    settings(tmp_path, '[tool.ddpify]\ntarget = "tpu"\n')
    with pytest.raises(BadInput) as caught:
        choose_target("", read_settings(tmp_path), ["cpu", "xla"])
    assert caught.value.problem.path == str(tmp_path / "pyproject.toml")
    assert caught.value.problem.remedy == "the targets are cpu, xla"


@pytest.mark.parametrize(("word", "meant"), [("gpu", "cuda"), ("GPU", "cuda"), ("tpu", "xla"), ("nccl", "cuda")])
def test_other_names_of_targets(word: str, meant: str) -> None:
    with pytest.raises(BadInput, match=f"no target {word!r}, did you mean {meant!r}"):
        choose_target(word, Settings(), ["cpu", "cuda", "xla"])


@pytest.mark.parametrize(
    ("pattern", "path", "expected"),
    [
        ("old", "old/a.py", True),
        ("old/", "sub/old/a.py", True),
        ("old/*.py", "old/a.py", True),
        ("old/**", "old/deep/a.py", True),
        ("./a.py", "a.py", True),
        ("**/a.py", "sub/a.py", True),
        ("**/b/a.py", "sub/b/a.py", True),
        ("*_ddp.py", "sub/train_ddp.py", True),
        ("old", "older/a.py", False),
        ("old/a.py", "sub/old/a.py", False),
        ("a.py", "b.py", False),
    ],
)
def test_patterns(tmp_path: Path, pattern: str, path: str, expected: bool) -> None:
    assert matches(tmp_path / path, pattern, tmp_path) is expected
    assert not matches(Path("/elsewhere") / path, pattern, tmp_path)


def test_what_is_excluded_is_passed_over(tmp_path: Path) -> None:
    settings(tmp_path, '[tool.ddpify]\ntarget = "cpu"\nexclude = ["old", "bad.py"]\n')
    (tmp_path / "old").mkdir()
    put(tmp_path / "old", train=TRAIN)
    put(tmp_path, bad="import torch\nx.backward(:")
    assert lines(ddpify(".", "--check", cwd=tmp_path).stdout) == [
        "nothing to do: no training script found that is not converted already"
    ]
    done = ddpify("old/train.py", "bad.py", cwd=tmp_path)  # as pre-commit names them
    assert lines(done.stdout) == ["nothing to do in 2 files"]
    assert lines(ddpify("bad.py", cwd=tmp_path).stdout) == ["nothing to do in bad.py: excluded in pyproject.toml"]
    assert (tmp_path / "old" / "train.py").read_text(encoding="utf-8") == TRAIN


def test_a_file_with_the_comment_is_passed_over(tmp_path: Path) -> None:
    put(tmp_path, train=f"# ddpify: skip-file\n{TRAIN}")
    done = ddpify("train.py", "--target", "cpu", cwd=tmp_path)
    assert lines(done.stdout) == ["nothing to do in train.py: # ddpify: skip-file"]
    ddpify(".", "--target", "cpu", "--check", cwd=tmp_path)


@pytest.mark.parametrize("how", ["exclude", "comment"])
def test_a_module_that_is_to_be_left_alone_is_not_changed(tmp_path: Path, how: str) -> None:
    put(tmp_path, main=MAIN, engine=ENGINE if how == "exclude" else f"# ddpify: skip-file\n{ENGINE}")
    if how == "exclude":
        settings(tmp_path, '[tool.ddpify]\nexclude = ["engine.py"]\n')
    before = (tmp_path / "engine.py").read_bytes()
    (line,) = lines(ddpify("main.py", "--target", "cpu", cwd=tmp_path, code=2).stderr)
    assert line.startswith("main.py: needs changes in engine.py, which is to be left alone (")
    assert (tmp_path / "engine.py").read_bytes() == before
    assert (tmp_path / "main.py").read_text(encoding="utf-8") == MAIN


def test_reports_that_are_not_wanted(tmp_path: Path) -> None:
    from ddpify_codemods import RULES

    advice = next(rule for rule in RULES if rule.id == "DDP501")
    put(tmp_path, train=advice.before)

    def told(chosen: str) -> bool:
        settings(tmp_path, f'[tool.ddpify]\ntarget = "{advice.target}"\n{chosen}\n')
        return b"[DDP501]" in ddpify(".", "--check", cwd=tmp_path).stdout

    assert told("") and told('select = ["DDP50"]') and told('per-file-ignores = {"other.py" = ["DDP5"]}')
    assert not told('select = ["DDP502"]')
    assert not told('ignore = ["DDP501"]')
    assert not told('per-file-ignores = {"train.py" = ["DDP5"]}')


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


def test_a_comment_that_switches_nothing_off_is_told_in_a_folder_too(tmp_path: Path) -> None:
    text = 'import torch.distributed\n\ntorch.distributed.init_process_group("gloo")  # ddpify: ignore[DDP999]\n'
    put(tmp_path, train=f"{text}loss.backward()\n")
    told = ddpify(".", "--check", "--target", "cuda", cwd=tmp_path).stdout.decode()
    assert "train.py:3: there is no rule 'DDP999'" in told
