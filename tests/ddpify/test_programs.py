"""Which files are scripts, which are modules of them, and what several programs mean for each other."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

from ddpify.conversion import added_of, imports_of
from ddpify.files import Source, read
from ddpify.programs import find_programs
from tests.ddpify.command import ENGINE, LIBRARY, MAIN, REFUSED, TRAIN, ddpify, environment, lines, put

EVALUATE = "import torch\nfrom train import main\n\nif __name__ == '__main__':\n    print(torch, main)\n"


def found(folder: Path, texts: Mapping[str, str]) -> list[list[str]]:
    """The programs among some files, as names; the script first."""
    for name, text in texts.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text, encoding="utf-8")
    sources: dict[Path, Source] = {folder / name: read(folder / name, name) for name in texts}
    programs = find_programs(
        sources,
        lambda path, root, starts: imports_of(read(path, path.name), root, starts),
        lambda path: added_of(read(path, path.name)),
    )
    return [[str(path.relative_to(folder)) for path in program.files] for program in programs]


def test_a_script_alone(tmp_path: Path) -> None:
    assert found(tmp_path, {"train.py": TRAIN, "library.py": LIBRARY}) == [["train.py"]]


def test_a_script_with_modules(tmp_path: Path) -> None:
    texts = {"engine.py": ENGINE + "import library\n", "library.py": LIBRARY, "main.py": MAIN}
    assert found(tmp_path, texts) == [["main.py", "engine.py", "library.py"]]


def test_what_a_module_imports_below_its_main_guard_is_not_of_the_script(tmp_path: Path) -> None:
    shows = "import torch\n\n\ndef show():\n    print(torch)\n"
    texts = {"engine.py": ENGINE + "import look\n", "library.py": LIBRARY, "main.py": MAIN}
    texts["look.py"] = shows + "\n\nif __name__ == '__main__':\n    import library\n\n    library.go()\n"
    assert found(tmp_path, texts) == [["main.py", "engine.py", "look.py"]]
    texts["look.py"] = shows + "\n\nif torch:\n    import library\n"
    assert found(tmp_path, texts) == [["main.py", "engine.py", "look.py", "library.py"]]
    texts["main.py"] = "if __name__ == '__main__':\n    from engine import train\n\n    train(1)\n"
    assert found(tmp_path, texts) == [["main.py", "engine.py", "look.py", "library.py"]]


def test_a_script_that_does_not_mention_torch(tmp_path: Path) -> None:
    texts = {"engine.py": ENGINE, "main.py": "from engine import train\nfrom nets import Net\ntrain(Net())\n"}
    assert found(tmp_path, texts) == [["main.py", "engine.py"]]


def test_a_package(tmp_path: Path) -> None:
    texts = {"main.py": MAIN.replace("engine", "pkg"), "pkg/__init__.py": "from .engine import train\n"}
    texts["pkg/engine.py"] = ENGINE
    assert found(tmp_path, texts) == [["main.py", "pkg/__init__.py", "pkg/engine.py"]]


def test_a_script_in_a_package_that_is_started_as_a_module(tmp_path: Path) -> None:
    texts = {"pkg/__init__.py": "", "pkg/engine.py": ENGINE, "pkg/main.py": MAIN.replace("engine", "pkg.engine")}
    assert found(tmp_path, texts) == [["pkg/main.py", "pkg/__init__.py", "pkg/engine.py"]]


def test_a_model_with_a_smoke_test_is_a_module(tmp_path: Path) -> None:
    model = "import torch\nif __name__ == '__main__':\n    print(torch)\n"
    texts = {"main.py": TRAIN + "\nimport model\n", "model.py": model}
    assert found(tmp_path, texts) == [["main.py", "model.py"]]


def test_an_evaluation_that_imports_the_training_script_is_no_program(tmp_path: Path) -> None:
    assert found(tmp_path, {"evaluate.py": EVALUATE, "train.py": TRAIN}) == [["train.py"]]


def test_two_scripts_may_share_a_module(tmp_path: Path) -> None:
    texts = {"a.py": MAIN, "b.py": MAIN, "engine.py": ENGINE}
    assert found(tmp_path, texts) == [["a.py", "engine.py"], ["b.py", "engine.py"]]


def test_of_a_cycle_the_one_with_a_main_is_the_script(tmp_path: Path) -> None:
    texts = {"a.py": ENGINE + "import b\n", "b.py": "import torch, a\nif __name__ == '__main__':\n    a.train(1)\n"}
    assert found(tmp_path, texts) == [["b.py", "a.py"]]


def test_tests_are_no_programs(tmp_path: Path) -> None:
    texts = {"test_train.py": "from train import main\n" + TRAIN, "conftest.py": TRAIN, "setup.py": TRAIN}
    assert found(tmp_path, texts | {"train.py": TRAIN}) == [["train.py"]]


def test_a_folder(tmp_path: Path) -> None:
    (tmp_path / "src").mkdir()
    put(tmp_path / "src", main=MAIN, engine=ENGINE, library=LIBRARY, other=TRAIN, plain="print(1)\n")
    done = ddpify("src", "--target", "cuda", cwd=tmp_path)
    converted = [line for line in lines(done.stdout) if line.startswith("converted ")]
    assert sorted(converted) == [f"converted src/{name}.py for cuda" for name in ("engine", "main", "other")]
    assert lines(done.stdout)[-1] == "3 files converted"
    assert b"library" not in done.stdout
    again = ddpify("src", "--target", "cuda", cwd=tmp_path)
    assert lines(again.stdout) == ["nothing to do: no training script found that is not converted already"]


def test_a_folder_finds_a_script_that_does_not_mention_torch(tmp_path: Path) -> None:
    put(tmp_path, main="from engine import train\nfrom nets import Net\n\ntrain(Net())\n", engine=ENGINE)
    put(tmp_path, nets="from torch import nn\n\n\nclass Net(nn.Linear):\n    pass\n")
    done = ddpify(".", "--target", "cuda", "--check", cwd=tmp_path, code=1)
    assert "would convert main.py for cuda" in lines(done.stdout)


def test_many_files_use_all_cores_and_give_the_same(tmp_path: Path) -> None:
    for number in range(12):
        put(tmp_path, **{f"train{number}": TRAIN})
    done = ddpify(".", "--target", "cuda", cwd=tmp_path)
    assert lines(done.stdout)[-1] == "12 files converted"
    assert len({path.read_bytes() for path in tmp_path.glob("*.py")}) == 1


def test_a_refused_program_does_not_stop_the_others(tmp_path: Path) -> None:
    put(tmp_path, bad=REFUSED + "\nimport engine\n", engine="import torch\n", good=TRAIN)
    done = ddpify(".", "--target", "cuda", cwd=tmp_path, code=2)
    assert done.stderr.startswith(b"bad.py:")
    assert "converted good.py for cuda" in lines(done.stdout)
    assert lines(done.stdout)[-1] == "1 file converted, 1 left untouched (bad.py)"
    assert "ddpify_runtime" in (tmp_path / "good.py").read_text(encoding="utf-8")


def test_a_framework_is_named_once_for_a_program(tmp_path: Path) -> None:
    """Not once for each file of a project, which were 314 lines for Lightning's own repository."""
    modules = {f"module{number}": "import lightning\n" for number in range(3)}
    imports = "".join(f"import {name}\n" for name in modules)
    put(tmp_path, main=f"import lightning\n{imports}{TRAIN}", **modules)
    done = ddpify(".", "--target", "cuda", cwd=tmp_path, code=2)
    assert len(lines(done.stderr)) == 1
    assert lines(done.stderr)[0].startswith(
        "main.py:1: Lightning runs this training and distributes it by itself (so do 3 "
    )


def test_many_refused_files_are_counted(tmp_path: Path) -> None:
    put(tmp_path, **{f"bad{number}": REFUSED for number in range(7)})
    done = ddpify(".", "--target", "cuda", cwd=tmp_path, code=2)
    assert lines(done.stdout)[-1].endswith("7 left untouched (bad0.py, bad1.py, bad2.py, bad3.py, 3 more)")


def test_what_a_refused_program_shares_is_converted_for_the_others(tmp_path: Path) -> None:
    put(tmp_path, bad=MAIN + "    input()\n", good=MAIN, engine=ENGINE)
    done = ddpify(".", "--target", "cpu", cwd=tmp_path, code=2)
    assert lines(done.stderr)[0].startswith("bad.py:6: ") and len(lines(done.stderr)) == 1
    assert lines(done.stdout)[-1] == "2 files converted, 1 left untouched (bad.py)"
    assert (tmp_path / "bad.py").read_text(encoding="utf-8") == MAIN + "    input()\n"
    done_by_itself = subprocess.run(
        [sys.executable, "bad.py"], cwd=tmp_path, input=b"\n", env=environment(), capture_output=True, check=False
    )
    assert done_by_itself.returncode == 0, done_by_itself.stderr.decode()


def test_a_refused_program_keeps_the_device_of_what_it_shares(tmp_path: Path) -> None:
    engine = ENGINE.replace("(model):\n", "(model):\n    model.cuda()\n")
    put(tmp_path, bad=MAIN + "    input()\n", good=MAIN, engine=engine)
    done = ddpify(".", "--target", "cpu", cwd=tmp_path, code=2)
    assert any(line.startswith("good.py: shares engine.py, which would move") for line in lines(done.stderr))
    assert (tmp_path / "engine.py").read_text(encoding="utf-8") == engine
    ddpify(".", "--target", "cuda", cwd=tmp_path, code=2)
    assert (tmp_path / "engine.py").read_text(encoding="utf-8") != engine


def test_what_a_program_with_processes_of_its_own_shares_is_left_untouched(tmp_path: Path) -> None:
    bad = MAIN.replace("import torch\n", "import torch\nfrom accelerate import Accelerator\n\nAccelerator()\n")
    put(tmp_path, bad=bad, good=MAIN, engine=ENGINE)
    done = ddpify(".", "--target", "cuda", cwd=tmp_path, code=2)
    told = "good.py: shares engine.py with bad.py, which has processes of its own; give one of them a copy of it"
    assert told in lines(done.stderr)
    assert (tmp_path / "engine.py").read_text(encoding="utf-8") == ENGINE
    assert (tmp_path / "good.py").read_text(encoding="utf-8") == MAIN


def test_a_file_given_twice_is_done_once(tmp_path: Path) -> None:
    put(tmp_path, train=TRAIN)
    done = ddpify("train.py", "./train.py", tmp_path / "train.py", "--target", "cuda", cwd=tmp_path)
    assert len([line for line in lines(done.stdout) if line.startswith("converted ")]) == 1


def test_a_file_and_its_folder(tmp_path: Path) -> None:
    put(tmp_path, train=TRAIN)
    done = ddpify("train.py", ".", "--target", "cuda", cwd=tmp_path)
    assert len([line for line in lines(done.stdout) if line.startswith("converted ")]) == 1


def test_several_named_files_may_be_anything(tmp_path: Path) -> None:
    put(tmp_path, train=TRAIN, library=LIBRARY, empty="", plain="print(1)\n")
    done = ddpify("train.py", "library.py", "empty.py", "plain.py", "--target", "cuda", cwd=tmp_path)
    assert lines(done.stdout)[0] == "converted train.py for cuda"
    assert "nothing to do in 3 files" in lines(done.stdout)
    assert b"nothing to do in 2 files" in ddpify("library.py", "empty.py", "--target", "cuda", cwd=tmp_path).stdout


@pytest.mark.parametrize("given", [["engine.py"], ["engine.py", "library.py"]])
def test_a_named_module_of_another_script_is_left_to_it(tmp_path: Path, given: list[str]) -> None:
    put(tmp_path, main=MAIN, engine=ENGINE, library=LIBRARY)
    ddpify(*given, "--target", "cuda", cwd=tmp_path)
    assert (tmp_path / "engine.py").read_text(encoding="utf-8") == ENGINE
    one = ddpify("engine.py", "--target", "cuda", cwd=tmp_path)
    assert lines(one.stdout) == ["nothing to do in engine.py: a module of main.py, convert that"]
