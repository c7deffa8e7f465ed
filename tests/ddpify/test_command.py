"""What happens to scripts: in place, elsewhere, checked, refused; and what is said about it."""

from __future__ import annotations

import json
import re
from pathlib import Path
from textwrap import indent

import pytest

from tests.codemods.moves.plain_programs import BEFORE
from tests.ddpify.command import ENGINE, LIBRARY, MAIN, REFUSED, TRAIN, ddpify, lines, put


@pytest.mark.parametrize("target", ["cpu", "cuda", "xla"])
def test_in_place(tmp_path: Path, target: str) -> None:
    put(tmp_path, train=TRAIN)
    done = ddpify("train.py", "--target", target, cwd=tmp_path)
    converted = (tmp_path / "train.py").read_text(encoding="utf-8")
    assert "init_process_group(" in converted
    said = lines(done.stdout)
    assert said[0] == f"converted train.py for {target}"
    assert re.fullmatch(r"  DDP\d+ .+ \(lines? [\d, ]+\).*", said[1])
    assert [line for line in said if line.startswith("start it with: ") and "train.py" in line]
    assert done.stderr == b""
    assert sorted(path.name for path in tmp_path.iterdir()) == ["train.py"]


def test_in_place_says_how_to_start_it(tmp_path: Path) -> None:
    (tmp_path / "my train.py").write_text(TRAIN, encoding="utf-8")
    said = lines(ddpify("my train.py", "--target", "cuda", cwd=tmp_path).stdout)
    assert "start it with: torchrun --standalone --nproc-per-node 2 -- 'my train.py'" in said


@pytest.mark.parametrize(
    ("target", "start"),
    [
        ("horovod", "horovodrun -np 2 python train.py"),
        ("ignite", "torchrun --standalone --nproc-per-node 2 -- train.py"),
    ],
)
def test_plain_code_in_other_words_says_how_to_start_it(tmp_path: Path, target: str, start: str) -> None:
    put(tmp_path, train=BEFORE)
    words = ("--target", target, "--style", "plain")
    assert f"start it with: {start}" in lines(ddpify("train.py", *words, cwd=tmp_path).stdout)
    assert "start it with" not in ddpify("train.py", *words, cwd=tmp_path).stdout.decode()


@pytest.mark.parametrize(
    ("line", "target", "start"),
    [
        ("p.add_argument('--device', default='cpu')\nd = p.parse_args().device", "cuda", "{} --device cuda"),
        ("p.add_argument('--device', default='cpu')\nd = p.parse_args().device", "cpu", "{}"),
        ("names = list(set(open('names').read().split()))", "cuda", "PYTHONHASHSEED=0 {}"),
    ],
)
def test_what_a_script_needs_besides(tmp_path: Path, line: str, target: str, start: str) -> None:
    put(tmp_path, train=f"import argparse\np = argparse.ArgumentParser()\n{line}\n{TRAIN}")
    said = lines(ddpify("train.py", "--target", target, cwd=tmp_path).stdout)
    assert f"start it with: {start.format('torchrun --standalone --nproc-per-node 2 -- train.py')}" in said


_LOADED = """\
import torch
from torch.utils.data import DataLoader, TensorDataset
loader = DataLoader(TensorDataset(torch.rand(64, 4), torch.rand(64, 1)), batch_size=8, shuffle=True)
model = torch.nn.Linear(4, 1).to(d)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for x, y in loader:
    loss = torch.nn.functional.mse_loss(model(x.to(d)), y.to(d))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
"""
_TAKES_DEVICE = "p.add_argument('--device', default='cpu')\nd = p.parse_args().device"


@pytest.mark.parametrize(
    ("words", "start"),
    [
        (["xla"], "ddpify run --target xla train.py -- --device xla"),
        (["xla", "--style", "plain"], "python train.py --device xla"),
        (["mpi"], "mpirun -np 2 python train.py"),
    ],
)
def test_what_a_script_needs_under_other_starters(tmp_path: Path, words: list[str], start: str) -> None:
    text = f"import argparse\np = argparse.ArgumentParser()\n{_TAKES_DEVICE}\n{_LOADED}"
    put(tmp_path, train=f"if __name__ == '__main__':\n{indent(text, '    ')}")
    said = lines(ddpify("train.py", "--target", *words, cwd=tmp_path).stdout)
    assert f"start it with: {start}" in said


def test_twice_is_once(tmp_path: Path) -> None:
    put(tmp_path, train=TRAIN)
    ddpify("train.py", "--target", "cuda", cwd=tmp_path)
    once = (tmp_path / "train.py").read_bytes()
    done = ddpify("train.py", "--target", "cuda", cwd=tmp_path)
    assert lines(done.stdout) == ["nothing to do in train.py: already converted"]
    assert (tmp_path / "train.py").read_bytes() == once
    ddpify("train.py", "--target", "cuda", "--check", cwd=tmp_path)


@pytest.mark.parametrize(
    ("text", "reason"),
    [("", "empty file"), ("print('hello')\n", "no torch in it"), ("import torch\nprint(1)\n", "no training loop")],
)
def test_nothing_to_do(tmp_path: Path, text: str, reason: str) -> None:
    put(tmp_path, train=text)
    done = ddpify("train.py", "--target", "cuda", cwd=tmp_path)
    assert lines(done.stdout) == [f"nothing to do in train.py: {reason}"]
    assert (tmp_path / "train.py").read_text(encoding="utf-8") == text


def test_check_lists_what_would_change_and_writes_nothing(tmp_path: Path) -> None:
    put(tmp_path, train=TRAIN, library=LIBRARY)
    done = ddpify("train.py", "library.py", "--target", "cuda", "--check", cwd=tmp_path, code=1)
    assert "would convert train.py for cuda" in lines(done.stdout)
    assert (tmp_path / "train.py").read_text(encoding="utf-8") == TRAIN


def test_output_goes_elsewhere(tmp_path: Path) -> None:
    put(tmp_path, train=TRAIN)
    (tmp_path / "train.py").chmod(0o755)
    done = ddpify("train.py", "--target", "cuda", "-o", "ddp.py", cwd=tmp_path)
    assert lines(done.stdout)[0] == "converted train.py for cuda into ddp.py"
    assert "start it with: torchrun --standalone --nproc-per-node 2 -- ddp.py" in lines(done.stdout)
    assert (tmp_path / "train.py").read_text(encoding="utf-8") == TRAIN
    assert (tmp_path / "ddp.py").stat().st_mode & 0o777 == 0o755


def test_output_of_an_unchanged_script_is_a_copy(tmp_path: Path) -> None:
    put(tmp_path, library=LIBRARY)
    ddpify("library.py", "--target", "cuda", "-o", "copy.py", cwd=tmp_path)
    assert (tmp_path / "copy.py").read_text(encoding="utf-8") == LIBRARY


def test_standard_output_and_standard_input(tmp_path: Path) -> None:
    put(tmp_path, train=TRAIN)
    piped = ddpify("-", "--target", "cuda", cwd=tmp_path, stdin=TRAIN.encode())
    printed = ddpify("train.py", "--target", "cuda", "-o", "-", cwd=tmp_path)
    saved = ddpify("-", "--target", "cuda", "-o", "saved.py", cwd=tmp_path, stdin=TRAIN.encode())
    ddpify("train.py", "--target", "cuda", cwd=tmp_path)
    converted = (tmp_path / "train.py").read_bytes()
    assert piped.stdout == printed.stdout == (tmp_path / "saved.py").read_bytes() == converted
    assert lines(piped.stderr)[0] == "converted <stdin> for cuda"
    assert lines(printed.stderr)[0] == "converted train.py for cuda"
    assert lines(saved.stdout)[0] == "converted <stdin> for cuda into saved.py"


def test_standard_input_without_work_passes_through(tmp_path: Path) -> None:
    source = b"\xef\xbb\xbfimport os\r\nprint(1)"
    done = ddpify("-", "--target", "cuda", cwd=tmp_path, stdin=source)
    assert done.stdout == source
    assert lines(done.stderr) == ["nothing to do in <stdin>: no torch in it"]


def test_standard_input_reaches_the_modules_of_the_current_folder(tmp_path: Path) -> None:
    put(tmp_path, engine=ENGINE)
    done = ddpify("-", "--target", "cuda", cwd=tmp_path, stdin=MAIN.encode(), code=2)
    assert done.stdout == b""
    assert b"<stdin>: engine.py must change too" in done.stderr
    assert (tmp_path / "engine.py").read_text(encoding="utf-8") == ENGINE


def test_modules_are_converted_with_their_script(tmp_path: Path) -> None:
    put(tmp_path, main=MAIN, engine=ENGINE, library=LIBRARY)
    done = ddpify("main.py", "--target", "cuda", cwd=tmp_path)
    assert {"converted main.py for cuda", "converted engine.py for cuda"} <= set(lines(done.stdout))
    assert "DistributedDataParallel(model" in (tmp_path / "engine.py").read_text(encoding="utf-8")
    assert (tmp_path / "library.py").read_text(encoding="utf-8") == LIBRARY


def test_two_files_do_not_fit_into_one_output(tmp_path: Path) -> None:
    put(tmp_path, main=MAIN, engine=ENGINE)
    done = ddpify("main.py", "--target", "cuda", "-o", "out.py", cwd=tmp_path, code=2)
    assert lines(done.stderr) == [
        "main.py: engine.py must change too: two outputs for one file; convert it in place, or see --diff"
    ]
    assert not (tmp_path / "out.py").exists()


@pytest.mark.parametrize("mode", [[], ["--check"], ["--diff"], ["-o", "out.py"], ["-o", "-"]])
def test_refused(tmp_path: Path, mode: list[str]) -> None:
    put(tmp_path, train=REFUSED)
    done = ddpify("train.py", "--target", "cuda", *mode, cwd=tmp_path, code=2)
    refusals = lines(done.stderr)
    assert refusals
    assert all(re.fullmatch(r"train\.py:\d+: .+; .+ \[DDP\d+\]", line) for line in refusals), refusals
    assert done.stdout == b""
    assert [path.name for path in tmp_path.iterdir()] == ["train.py"]
    assert (tmp_path / "train.py").read_text(encoding="utf-8") == REFUSED


def test_refused_standard_input_prints_no_code(tmp_path: Path) -> None:
    done = ddpify("-", "--target", "cuda", cwd=tmp_path, stdin=REFUSED.encode(), code=2)
    assert done.stdout == b""
    assert done.stderr.startswith(b"<stdin>:")


def test_json(tmp_path: Path) -> None:
    put(tmp_path, train=TRAIN, bad=REFUSED)
    done = ddpify(
        "train.py", "bad.py", "gone/../train.py", "--target", "cuda", "--format", "json", cwd=tmp_path, code=2
    )
    assert json.loads(done.stdout)["files"][0]["status"] == "error"
    done = ddpify("train.py", "bad.py", "--target", "cuda", "--format", "json", "--diff", cwd=tmp_path, code=2)
    document = json.loads(done.stdout)
    files = {file["path"]: file for file in document["files"]}
    assert (document["target"], document["exit_code"]) == ("cuda", 2)
    assert files["train.py"]["status"] == "would convert"
    assert files["train.py"]["changes"][0].keys() == {"rule", "line", "message"}
    assert files["train.py"]["diff"].startswith("--- a/train.py\n+++ b/train.py\n@@ ")
    assert files["bad.py"]["status"] == "refused"
    assert files["bad.py"]["findings"][0].keys() == {"rule", "severity", "line", "message", "remedy", "distributed"}
    assert files["bad.py"]["findings"][0]["severity"] == "refused"


def test_json_tells_bad_input(tmp_path: Path) -> None:
    put(tmp_path, broken="import torch\ndef f(:\n")
    done = ddpify("broken.py", "--target", "cuda", "--format", "json", cwd=tmp_path, code=2)
    (file,) = json.loads(done.stdout)["files"]
    (finding,) = file["findings"]
    assert (file["path"], file["status"]) == ("broken.py", "error")
    assert (finding["rule"], finding["severity"], finding["line"]) == (None, "error", 2)


def test_github(tmp_path: Path) -> None:
    put(tmp_path, train=TRAIN, bad=REFUSED)
    done = ddpify("train.py", "bad.py", "--target", "cuda", "--check", "--format", "github", cwd=tmp_path, code=2)
    said = lines(done.stdout)
    assert any(re.fullmatch(r"::error file=bad\.py,line=\d+,title=DDP\d+::.+", line) for line in said)
    assert any(re.fullmatch(r"::warning file=train\.py,line=\d+,title=DDP\d+::to do: .+", line) for line in said)
    assert all(line.startswith("::") for line in said)


def test_no_work_prints_no_workflow_lines(tmp_path: Path) -> None:
    put(tmp_path, library=LIBRARY)
    assert ddpify("library.py", "--target", "cuda", "--format", "github", cwd=tmp_path).stdout == b""
