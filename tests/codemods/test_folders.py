"""What lies in folders: listed once."""

from __future__ import annotations

from pathlib import Path

from ddpify_codemods.folders import folder_of, forget, is_module, is_package, listing, module_files, remembered


def test_a_listing_is_kept_until_it_is_forgotten(tmp_path: Path) -> None:
    (tmp_path / "net.py").touch()
    (tmp_path / "package").mkdir()
    found = listing(str(tmp_path))
    assert [set(found.files), set(found.folders), set(found.stems)] == [{"net.py"}, {"package"}, {"net"}]
    (tmp_path / "late.py").touch()
    assert listing(str(tmp_path)) is found
    forget()
    assert "late.py" in listing(str(tmp_path)).files
    assert not listing(str(tmp_path / "nowhere")).files


def test_the_files_that_an_import_runs(tmp_path: Path) -> None:
    (tmp_path / "a" / "b").mkdir(parents=True)
    for name in ("a/__init__.py", "a/b/__init__.py", "a/b/c.py"):
        (tmp_path / name).touch()
    files = [Path(path).relative_to(tmp_path).as_posix() for path in module_files(str(tmp_path), "a.b.c")]
    assert files == ["a/__init__.py", "a/b/__init__.py", "a/b/c.py"]
    assert folder_of(str(tmp_path), "a.b") == str(tmp_path / "a" / "b") and folder_of(str(tmp_path), "a.z") == ""
    assert is_package(str(tmp_path), "a") and not is_package(str(tmp_path), "c")
    assert is_module(str(tmp_path / "a" / "b"), "c") and not is_module(str(tmp_path), "c")


def test_a_function_of_folders_is_asked_once() -> None:
    asked: list[int] = []

    @remembered
    def double(number: int) -> int:
        asked.append(number)
        return 2 * number

    assert (double(2), double(2), asked) == (4, 4, [2])
    forget()
    assert (double(2), asked) == (4, [2, 2])
