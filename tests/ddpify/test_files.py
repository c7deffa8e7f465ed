"""Files are read and written back as people keep them, all or none."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from ddpify.files import BadInput, discover, read, write_all
from tests.ddpify.command import ENGINE, MAIN, TRAIN, ddpify, lines, put


def kept(tmp_path: Path, source: bytes) -> bytes:
    """The bytes of a script after it was converted; every line of the original that stays is still there."""
    (tmp_path / "train.py").write_bytes(source)
    ddpify("train.py", "--target", "cuda", cwd=tmp_path)
    converted = (tmp_path / "train.py").read_bytes()
    assert b"ddpify_runtime" in converted
    return converted


def test_crlf(tmp_path: Path) -> None:
    converted = kept(tmp_path, TRAIN.encode().replace(b"\n", b"\r\n"))
    assert converted.count(b"\n") == converted.count(b"\r\n") == converted.count(b"\r")


def test_cr(tmp_path: Path) -> None:
    converted = kept(tmp_path, TRAIN.encode().replace(b"\n", b"\r"))
    assert b"\n" not in converted


def test_byte_order_mark(tmp_path: Path) -> None:
    converted = kept(tmp_path, b"\xef\xbb\xbf" + TRAIN.encode())
    assert converted.startswith(b"\xef\xbb\xbf")
    assert converted.count(b"\xef\xbb\xbf") == 1


def test_encoding_cookie(tmp_path: Path) -> None:
    source = TRAIN.replace("main():", "main():  # caf\xe9", 1)
    assert b"# caf\xe9" in kept(tmp_path, b"# -*- coding: latin-1 -*-\n" + source.encode("latin-1"))


def test_tabs_and_trailing_blanks(tmp_path: Path) -> None:
    converted = kept(
        tmp_path, TRAIN.replace("    ", "\t").replace("epoch in range(2):", "epoch in range(2):  ").encode()
    )
    assert b"\n    " not in converted.partition(b"def main")[2]
    assert b"\tfor epoch in range(2):  \n" in converted


def test_missing_final_newline(tmp_path: Path) -> None:
    source = TRAIN + "    print('done')"
    converted = kept(tmp_path, source.encode())
    assert not converted.endswith(b"\n")


def test_mode(tmp_path: Path) -> None:
    put(tmp_path, train=TRAIN)
    (tmp_path / "train.py").chmod(0o751)
    ddpify("train.py", "--target", "cuda", cwd=tmp_path)
    assert stat.S_IMODE((tmp_path / "train.py").stat().st_mode) == 0o751


@pytest.mark.skipif(os.geteuid() != 0, reason="only root may give files away")
def test_owner(tmp_path: Path) -> None:
    path = tmp_path / "train.py"
    path.write_bytes(b"one")
    os.chown(path, 1234, 1235)
    write_all({path: b"two"})
    assert (path.stat().st_uid, path.stat().st_gid) == (1234, 1235)


def test_symbolic_link(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    put(tmp_path / "real", main=MAIN, engine=ENGINE)
    (tmp_path / "link.py").symlink_to("real/main.py")
    done = ddpify("link.py", "--target", "cuda", cwd=tmp_path)
    assert "converted real/engine.py for cuda" in lines(done.stdout)
    assert (tmp_path / "link.py").is_symlink()
    assert "ddpify_runtime" in (tmp_path / "real/main.py").read_text(encoding="utf-8")


def test_output_through_a_symbolic_link(tmp_path: Path) -> None:
    put(tmp_path, train=TRAIN, real="")
    (tmp_path / "link.py").symlink_to("real.py")
    ddpify("train.py", "--target", "cuda", "-o", "link.py", cwd=tmp_path)
    assert (tmp_path / "link.py").is_symlink()
    assert "ddpify_runtime" in (tmp_path / "real.py").read_text(encoding="utf-8")


def test_output_to_a_device(tmp_path: Path) -> None:
    put(tmp_path, train=TRAIN)
    ddpify("train.py", "--target", "cuda", "-o", "/dev/null", cwd=tmp_path)
    assert stat.S_ISCHR(os.stat("/dev/null").st_mode)


def test_a_read_only_file_is_left_alone(tmp_path: Path) -> None:
    put(tmp_path, main=MAIN, engine=ENGINE)
    (tmp_path / "engine.py").chmod(0o444)
    done = ddpify("main.py", "--target", "cuda", cwd=tmp_path, code=2)
    assert lines(done.stderr) == ["engine.py: is read-only, nothing was written; chmod u+w engine.py"]
    assert done.stdout == b""
    assert (tmp_path / "main.py").read_text(encoding="utf-8") == MAIN
    assert sorted(path.name for path in tmp_path.iterdir()) == ["engine.py", "main.py"]


def test_a_read_only_folder_is_left_alone(tmp_path: Path) -> None:
    folder = tmp_path / "locked"
    folder.mkdir()
    put(folder, train=TRAIN)
    folder.chmod(0o555)
    done = ddpify("locked/train.py", "--target", "cuda", cwd=tmp_path, code=2)
    folder.chmod(0o755)
    assert done.stderr.startswith(b"locked/train.py: is in a read-only folder, nothing was written; ")
    assert (folder / "train.py").read_text(encoding="utf-8") == TRAIN


def test_a_read_only_file_can_still_be_looked_at(tmp_path: Path) -> None:
    put(tmp_path, train=TRAIN)
    (tmp_path / "train.py").chmod(0o444)
    assert ddpify("train.py", "--target", "cuda", "--diff", cwd=tmp_path).stdout
    ddpify("train.py", "--target", "cuda", "-o", "out.py", cwd=tmp_path)


def test_all_or_none(tmp_path: Path) -> None:
    first, last = tmp_path / "first", tmp_path / "last"
    first.write_bytes(b"one")
    last.mkdir()  # cannot be replaced by a file, and only os.replace finds out
    with pytest.raises(BadInput, match="cannot be written"):
        write_all({first: b"two", last: b"two"})
    assert first.read_bytes() == b"one"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["first", "last"]


def test_a_new_file_gets_the_usual_mode(tmp_path: Path) -> None:
    umask = os.umask(0o027)
    try:
        write_all({tmp_path / "new": b""})
    finally:
        os.umask(umask)
    assert stat.S_IMODE((tmp_path / "new").stat().st_mode) == 0o640


def test_discover_leaves_out_what_is_not_the_project(tmp_path: Path) -> None:
    kept = ["a.py", "pkg/b.py", "pkg/venv.py"]
    left = [".git/c.py", ".hidden/d.py", "env/bin/e.py", "pkg/__pycache__/f.py", "node_modules/g.py", "pkg/h.txt"]
    for name in [*kept, *left, "env/pyvenv.cfg"]:
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
    (tmp_path / "broken.py").symlink_to("nowhere")
    (tmp_path / "folder.py").mkdir()
    assert discover(tmp_path) == [tmp_path / name for name in kept]


def test_reading_keeps_newlines(tmp_path: Path) -> None:
    raw = b"\xef\xbb\xbfa\r\nb\rc\nd"
    (tmp_path / "x.py").write_bytes(raw)
    source = read(tmp_path / "x.py", "x.py")
    assert source.text == "a\r\nb\rc\nd"
    assert source.encode(source.text) == raw


def test_reading_what_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="no such file"):
        read(tmp_path / "x.py", "x.py")
