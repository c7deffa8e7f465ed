"""Programs of several files: what belongs to one is converted where it stands, together or not at all (P13)."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

from tests.ddpify.command import ROOT, ddpify, lines

PROJECT = ROOT / "fixtures" / "package_project" / "before"
CHANGED = {"train.py", "data.py", "engine.py"}

EVALUATE = """\
import sys
import torch
import data
import engine
from models import build

if __name__ == "__main__":
    config = {"lr": 0.1, "epochs": 1}
    trainer = engine.Trainer(build("convnet", width=4), data.get_loaders(8), config, "cpu", ".")
    trainer.model.load_state_dict(torch.load(sys.argv[1])["model"])
    trainer.model.eval()
    torch.save(trainer.model, "whole.pt")
"""
ENGINE = """\
import torch


def fit(model):
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    model(torch.ones(4, 2)).mean().backward()
    optimizer.step()


def predict(model):
    return model(torch.ones(4, 2))
"""
MODEL = "import torch\n\n\ndef build():\n    return torch.nn.Linear(2, 1)\n"


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A copy of a project with a training script, its modules, and scripts that predict and plot."""
    return Path(shutil.copytree(PROJECT, tmp_path / "project"))


def texts(folder: Path) -> dict[str, bytes]:
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*.py")}


def changed(folder: Path, before: Mapping[str, bytes]) -> set[str]:
    return {name for name, content in texts(folder).items() if content != before[name]}


def make(folder: Path, **files: str) -> None:
    """Write files; "__" in a name stands for a slash, and every folder becomes a package if it has an "init"."""
    for name, text in files.items():
        path = folder / (name.replace("__", "/").replace("init", "__init__") + ".py")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")


@pytest.mark.parametrize("given", [".", "train.py"])
def test_the_files_that_train_are_converted_where_they_stand(project: Path, given: str) -> None:
    before = texts(project)
    ddpify(given, "--target", "cuda", cwd=project)
    assert changed(project, before) == CHANGED
    assert b"init_process_group" in texts(project)["train.py"]
    assert b"self.model = DistributedDataParallel(self.model" in texts(project)["engine.py"]
    assert b"from ddpify_runtime import DataLoader" in texts(project)["data.py"]


@pytest.mark.parametrize("given", [".", "train.py"])
@pytest.mark.parametrize("file", ["models/convnet.py", "utils/meters.py", "engine.py"])
def test_a_refusal_in_one_file_leaves_all_of_them(project: Path, given: str, file: str) -> None:
    with (project / file).open("a") as stream:
        stream.write("\n\ndef ask():\n    return input()\n")
    before = texts(project)
    done = ddpify(given, "--target", "cuda", cwd=project, code=2)
    assert changed(project, before) == set()
    assert f"{file}:".encode() in done.stderr and b"[DDP307]" in done.stderr


@pytest.mark.parametrize("given", [".", "evaluate.py"])
def test_a_script_that_uses_the_engine_without_training_stays(project: Path, given: str) -> None:
    (project / "evaluate.py").write_text(EVALUATE)
    before = texts(project)
    done = ddpify(given, "--target", "cuda", cwd=project)
    assert changed(project, before) == (CHANGED if given == "." else set())
    if given != ".":
        assert lines(done.stdout) == ["nothing to do in evaluate.py: no training loop"]


@pytest.mark.nightly
def test_what_predicts_still_predicts(project: Path) -> None:
    ddpify(".", "--target", "cpu", cwd=project)
    environment = os.environ | {"PYTHONPATH": str(ROOT / "runtime"), "OMP_NUM_THREADS": "1"}
    for environ, command in (({"DDPIFY_NPROC": "2"}, ["train.py"]), ({}, ["predict.py", "runs/small/best.pt"])):
        done = subprocess.run(
            [sys.executable, *command],
            cwd=project,
            env=environment | environ,
            capture_output=True,
            text=True,
            timeout=120,
        )
        assert done.returncode == 0, done.stderr
    assert len(done.stdout.splitlines()) == 5  # a class and its label for each of five pictures


def test_two_scripts_share_what_they_share(tmp_path: Path) -> None:
    script = "from engine import fit\nfrom models import build\n\nif __name__ == '__main__':\n    fit(build())\n"
    make(
        tmp_path, small=script, large=script, engine=ENGINE, models__init="from .net import build\n", models__net=MODEL
    )
    before = texts(tmp_path)
    ddpify(".", "--target", "cuda", cwd=tmp_path)
    assert changed(tmp_path, before) == {"small.py", "large.py", "engine.py"}
    again = texts(tmp_path)
    ddpify(".", "--target", "cuda", cwd=tmp_path)
    assert changed(tmp_path, again) == set()


def test_the_second_script_may_come_later(tmp_path: Path) -> None:
    script = "from engine import fit\nfrom models import build\n\nif __name__ == '__main__':\n    fit(build())\n"
    make(tmp_path, small=script, engine=ENGINE, models=MODEL)
    ddpify("small.py", "--target", "cuda", cwd=tmp_path)
    make(tmp_path, large=script)
    before = texts(tmp_path)
    ddpify("large.py", "--target", "cuda", cwd=tmp_path)
    assert changed(tmp_path, before) == {"large.py"}
    assert texts(tmp_path)["large.py"] == texts(tmp_path)["small.py"]


IMPORTS = [
    "import engine\n\nengine.fit(model)\n",
    "import engine as e\n\ne.fit(model)\n",
    "from engine import *\n\nfit(model)\n",
    "def main():\n    from engine import fit\n    fit(model)\n\n\nmain()\n",
    "try:\n    import engine\nexcept ImportError:\n    engine = None\nengine.fit(model)\n",
    "import sys\nimport engine\n\ngetattr(engine, sys.argv[1])(model)\n",
    "import engine\n\n{'train': engine.fit}[mode](model)\n",
]


@pytest.mark.parametrize("script", IMPORTS)
def test_ways_to_import_what_trains(tmp_path: Path, script: str) -> None:
    make(tmp_path, train=f"from models import build\n{script}", engine=ENGINE, models=MODEL)
    before = texts(tmp_path)
    ddpify("train.py", "--target", "cuda", cwd=tmp_path)
    assert changed(tmp_path, before) == {"train.py", "engine.py"}


@pytest.mark.parametrize(
    "script", ["import engine\n\nengine.predict(model)\n", "from engine import predict as use\n\nprint(use(model))\n"]
)
def test_what_only_predicts(tmp_path: Path, script: str) -> None:
    make(tmp_path, use=script, engine=ENGINE)
    before = texts(tmp_path)
    assert b"no training loop" in ddpify("use.py", "--target", "cuda", cwd=tmp_path).stdout
    assert changed(tmp_path, before) == set()


PACKAGED = [
    "from .engine import fit\nfrom .models import build\n",
    "from . import engine\nfrom ..pkg.models import build\nfit = engine.fit\n",
    "from pkg.engine import fit\nimport pkg.models as models\nbuild = models.build\n",
]


@pytest.mark.parametrize("imports", PACKAGED)
def test_a_package_that_is_started_as_a_module(tmp_path: Path, imports: str) -> None:
    main = f"{imports}\nif __name__ == '__main__':\n    fit(build())\n"
    make(tmp_path, pkg__init="", pkg__train=main, pkg__engine=ENGINE, pkg__models=MODEL)
    before = texts(tmp_path)
    ddpify("pkg/train.py", "--target", "cuda", cwd=tmp_path)
    assert changed(tmp_path, before) == {"pkg/train.py", "pkg/engine.py"}


@pytest.mark.parametrize("given", [".", "tools/train.py"])
def test_a_script_whose_modules_are_in_a_folder_above(tmp_path: Path, given: str) -> None:
    """`PYTHONPATH=. python tools/train.py`, or sys.path in the script."""
    main = "from lib.engine import fit\nfrom lib.models import build\n\nif __name__ == '__main__':\n    fit(build())\n"
    make(tmp_path, tools__train=main, lib__engine=ENGINE, lib__models=MODEL)
    before = texts(tmp_path)
    ddpify(given, "--target", "cuda", cwd=tmp_path)
    assert changed(tmp_path, before) == {"tools/train.py", "lib/engine.py"}


@pytest.mark.parametrize("given", [".", "scripts/run.py"])
def test_a_script_whose_package_is_in_src(tmp_path: Path, given: str) -> None:
    main = "from pkg.engine import fit\nfrom pkg.models import build\n\nif __name__ == '__main__':\n    fit(build())\n"
    package = {"src__pkg__init": "", "src__pkg__engine": ENGINE, "src__pkg__models": MODEL}
    make(tmp_path, scripts__run=main, **package)
    before = texts(tmp_path)
    ddpify(given, "--target", "cuda", cwd=tmp_path)
    assert changed(tmp_path, before) == {"scripts/run.py", "src/pkg/engine.py"}


def test_the_nearest_module_of_a_name_is_meant(tmp_path: Path) -> None:
    main = "from engine import fit\n\nif __name__ == '__main__':\n    fit(model)\n"
    make(tmp_path, tools__train=main, tools__engine=ENGINE, engine=ENGINE)
    before = texts(tmp_path)
    ddpify("tools/train.py", "--target", "cuda", cwd=tmp_path)
    assert changed(tmp_path, before) == {"tools/train.py", "tools/engine.py"}


def test_a_file_that_starts_nothing_is_warned_of(tmp_path: Path) -> None:
    make(tmp_path, library=ENGINE)
    told = lines(ddpify("library.py", "--target", "cuda", cwd=tmp_path).stdout)
    assert [line for line in told if line.startswith("library.py:1: nothing in this file runs") and "[DDP101]" in line]
    assert not [line for line in told if "start it with" in line]


LOOKED_UP = """\
import sys, os
{path}
import torch
{imports}

if __name__ == "__main__":
    model = build()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for step in range(3):
        optimizer.zero_grad()
        loss = model(batch()).pow(2).mean()
        loss.backward()
        optimizer.step()
        print(f"{{loss.item():.6f}}")
"""
BATCH = "import torch\n\n\ndef build():\n    torch.manual_seed(0)\n    return torch.nn.Linear(4, 1){move}\n\n\n"
BATCH += "def batch():\n    return torch.randn(6, 4){move}\n"


def looked_up(folder: Path, path: str, imports: str, module: str, python_path: str = "") -> None:
    """A script in examples/toy whose module is found by its own way is converted with it, and runs on the target."""
    script, other = folder / "examples" / "toy" / "train.py", folder / module
    for place, text in ((script, LOOKED_UP.format(path=path, imports=imports)), (other, BATCH.format(move=".cuda()"))):
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(text)
    variables = os.pathsep.join(filter(None, [python_path, str(ROOT), str(ROOT / "codemods")]))
    ddpify("train.py", "--target", "cpu", cwd=script.parent, PYTHONPATH=variables)
    assert "return torch.nn.Linear(4, 1).cpu()" in other.read_text(), other.read_text()


@pytest.mark.parametrize(
    ("path", "imports", "module"),
    [
        ("sys.path.append('../..')", "from tools.net import build, batch", "tools/net.py"),
        ("sys.path.insert(0, os.path.join(os.path.dirname(__file__), '..'))", "from net import *", "examples/net.py"),
        ("sys.path += ['../lib']", "import net\nfrom net import build, batch", "examples/lib/net.py"),
        ("os.chdir('..'); sys.path.append('lib')", "from net import *", "examples/lib/net.py"),
    ],
)
def test_modules_that_the_script_puts_on_its_path(tmp_path: Path, path: str, imports: str, module: str) -> None:
    looked_up(tmp_path, path, imports, module)


def test_what_is_on_its_path_trains_the_same(tmp_path: Path) -> None:
    looked_up(tmp_path, "sys.path.append('../..')", "from tools.net import build, batch", "tools/net.py")
    folder, printed = tmp_path / "examples" / "toy", []
    for processes in ("1", "2"):
        environment = os.environ | {"PYTHONPATH": str(ROOT / "runtime"), "DDPIFY_NPROC": processes}
        command = [sys.executable, "train.py"]
        done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=True)
        printed.append([float(word) for word in done.stdout.split()])
    assert len(printed[0]) == 3 and printed[1] == pytest.approx(printed[0], rel=1e-5)


def test_a_path_module_of_the_project(tmp_path: Path) -> None:
    """`import _init_paths`, as in detection code: another file does it, by a function."""
    text = "import os.path as osp\nimport sys\n\n\ndef add(path):\n    if path not in sys.path:\n"
    text += "        sys.path.insert(0, path)\n\n\nadd(osp.join(osp.dirname(__file__), '..', '..', 'lib'))\n"
    make(tmp_path, examples__toy___paths=text)
    looked_up(tmp_path, "import _paths", "from net import build, batch", "lib/net.py")


def test_modules_on_pythonpath(tmp_path: Path) -> None:
    looked_up(tmp_path, "", "from net import build, batch", "lib/net.py", str(tmp_path / "lib"))


@pytest.mark.parametrize("mark", [".git", "net-1.0.dist-info"])
def test_modules_of_another_project_on_pythonpath_stay(tmp_path: Path, mark: str) -> None:
    (tmp_path / "library" / mark).mkdir(parents=True)
    with pytest.raises(AssertionError):
        looked_up(tmp_path, "", "from net import build, batch", "library/net.py", str(tmp_path / "library"))
    assert ".cuda()" in (tmp_path / "library" / "net.py").read_text()


@pytest.mark.parametrize("module", ["toy_net/net.py", "src/toy_net/net.py"])
def test_a_project_that_is_installed_for_editing(tmp_path: Path, module: str) -> None:
    (tmp_path / "setup.py").write_text("from setuptools import setup\n\nsetup(packages=['toy_net'])\n")
    make(tmp_path, **{f"{module.removesuffix('/net.py').replace('/', '__')}__init": ""})
    looked_up(tmp_path, "", "from toy_net.net import build, batch", module)


def test_modules_that_the_run_chooses_by_name(tmp_path: Path) -> None:
    imports = "import importlib\nnet = importlib.import_module('nets.' + (sys.argv[1:] or ['net'])[0])\n"
    looked_up(
        tmp_path, "sys.path.append('..')", imports + "build, batch = net.build, net.batch", "examples/nets/net.py"
    )


def test_a_module_that_is_not_there_is_told(tmp_path: Path) -> None:
    make(tmp_path, pkg__init="", pkg__net=MODEL)
    (tmp_path / "train.py").write_text(LOOKED_UP.format(path="", imports="from pkg.nets import build, batch"))
    done = ddpify("train.py", "--target", "cpu", cwd=tmp_path)
    assert any(line.startswith("train.py:4: pkg.nets is not found") for line in lines(done.stdout)), done.stdout
