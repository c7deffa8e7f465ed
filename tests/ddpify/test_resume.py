"""--resume, on the command line."""

from __future__ import annotations

from pathlib import Path

from tests.ddpify.command import ENGINE, MAIN, TRAIN, ddpify, put


def test_it_reaches_the_script(tmp_path: Path) -> None:
    put(tmp_path, train=TRAIN)
    ddpify("train.py", "--target", "cpu", "--resume", "runs/a", cwd=tmp_path)
    once = (tmp_path / "train.py").read_text()
    assert '    resume_from("runs/a", every_seconds=600)\n    main()\n' in once
    assert "    for epoch in resumable(range(2)):\n" in once
    ddpify("train.py", "--resume", "runs/a", cwd=tmp_path)
    assert (tmp_path / "train.py").read_text() == once


def test_the_loop_may_be_in_another_file(tmp_path: Path) -> None:
    put(tmp_path, main=MAIN, engine=ENGINE)
    ddpify("main.py", "--target", "cpu", "--resume", "runs", cwd=tmp_path)
    assert 'resume_from("runs", every_seconds=600)' in (tmp_path / "main.py").read_text()
    assert "resumable(" in (tmp_path / "engine.py").read_text()


def test_it_is_for_the_exact_style(tmp_path: Path) -> None:
    put(tmp_path, train=TRAIN)
    ran = ddpify("train.py", "--target", "cpu", "--style", "plain", "--resume", "runs", cwd=tmp_path, code=2)
    assert b"--resume is for the exact style" in ran.stderr
    assert (tmp_path / "train.py").read_text() == TRAIN
