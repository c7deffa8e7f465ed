"""Looks for files by which ranks decide what they do, or name folders: what is found is what rank 0 finds."""

from __future__ import annotations

from pathlib import Path

import pytest
from ddpify_codemods import convert

from tests.codemods.plain.test_files import TRAINED
from tests.codemods.plain.test_followed import plain, refusals, training


def _code(before: str, each: str = "") -> str:
    path = Path("train.py")
    result = convert({path: TRAINED.format(before=before, each=each, after="")}, "cpu", style="plain")[path]
    assert not [finding for finding in result.findings if finding.severity == "refused"]
    return result.code


NUMBERED = 'run = "run0"\nn = 0\n{}\nos.makedirs(run)'


@pytest.mark.parametrize(
    ("names", "asked"),
    [
        ('while os.path.exists(run):\n    n += 1\n    run = f"run{n}"', "while from_rank_0(os.path.exists(run)):"),
        ('if os.path.exists(run):\n    run = run + "-again"', "if from_rank_0(os.path.exists(run)):"),
        (
            'for n in range(9):\n    run = f"run{n}"\n    if not os.path.exists(run):\n        break',
            "if not from_rank_0(os.path.exists(run)):",
        ),
        ('n = len(os.listdir("."))\nrun = f"run{n}"', 'len(from_rank_0(os.listdir(".")))'),
        ('n = len(list(root.iterdir()))\nrun = f"run{n}"', "len(list(from_rank_0(list(root.iterdir()))))"),
        ('n = len(list(os.scandir(".")))\nrun = f"run{n}"', 'n = len(list(os.scandir(".")))'),
    ],
)
def test_which_folder_is_free_is_what_rank_0_finds(names: str, asked: str) -> None:
    assert asked in _code(NUMBERED.format(names))


ENDLESS = 'n = 0\nwhile True:\n    run = f"run{n}"\n'
FREE = "if not os.path.exists(run):\n        os.makedirs(run)\n        break\n    n += 1"


@pytest.mark.parametrize(
    "turn",
    [
        FREE,
        "if os.path.exists(run):\n        n += 1\n    else:\n        os.makedirs(run)\n        break",
        "if os.path.exists(run):\n        n += 1\n        continue\n    os.makedirs(run)\n    break",
        'if os.path.exists("stop"):\n        raise ValueError(run)\n    ' + FREE,
        'if os.path.isdir("runs"):\n        if not os.path.exists(run):\n            break\n    n += 1',
    ],
)
def test_an_endless_loop_ends_by_what_rank_0_finds(turn: str) -> None:
    code = _code(f"{ENDLESS}    {turn}\nos.makedirs(run, exist_ok=True)")
    assert code.count("from_rank_0(os.path.") == turn.count("os.path.")


@pytest.mark.parametrize(
    "turn",
    [
        "if n > random.random():\n        break\n    " + FREE,
        "if not os.path.exists(run) or n > random.random():\n        break\n    n += 1",
        "if n > 3:\n        if not os.path.exists(run):\n            break\n    n += 1",
        'for each in "ab":\n        if n > 2:\n            break\n    ' + FREE,
        "try:\n        os.mkdir(run + 'a')\n    except OSError:\n        pass\n    " + FREE,
        "if n > 9:\n        exit(1)\n    " + FREE,
        "assert n < random.random()\n    " + FREE,
        "if not os.path.exists(run) and os.path.exists(run + 'a'):\n        break\n    n += 1",
    ],
)
def test_an_endless_loop_that_ends_otherwise_is_each_ranks_own(turn: str) -> None:
    """Ranks would not look equally often, and wait for each other in vain."""
    assert "from_rank_0(os.path" not in _code(f"import random\n{ENDLESS}    {turn}\nos.makedirs(run, exist_ok=True)")


@pytest.mark.parametrize(
    "around",
    [
        'if os.path.exists("data"):',
        "for each in os.listdir('.'):",
        "def free():",
        "import contextlib\nwith contextlib.suppress(OSError):",
    ],
)
def test_not_all_ranks_come_to_an_endless_loop(around: str) -> None:
    before, _, last = around.rpartition("\n")
    loop = f"{ENDLESS}    {FREE}".replace("\n", "\n    ")
    code = _code(f"run = ''\n{before}\n{last}\n    {loop}\nos.makedirs('runs')")
    assert "from_rank_0(os.path.exists(run))" not in code


@pytest.mark.parametrize(
    "before",
    [
        'if not os.path.exists("runs"):\n    os.makedirs("runs")',
        'os.makedirs("runs", exist_ok=True)\nif os.path.exists("a.pt"):\n    start = 3',
        'os.makedirs("runs", exist_ok=True)\nnames = sorted(os.listdir("."))',
        'n = 0\nwhile n < 3:\n    n += 1\nos.makedirs("runs", exist_ok=True)',
    ],
)
def test_what_names_no_folder_is_looked_for_on_each_rank(before: str) -> None:
    assert "from_rank_0" not in _code(before)


@pytest.mark.parametrize("ends", ["raise ValueError(run)", "print(run)\n    exit(1)"])
def test_a_folder_of_an_earlier_run_stops_all_ranks_or_none(ends: str) -> None:
    code = _code(NUMBERED.format(f"if os.path.exists(run):\n    {ends}"))
    assert "if from_rank_0(os.path.exists(run)):" in code


KEEPS = [
    (
        'for old in sorted(glob.glob("*.pt"))[:-2]:\n        os.remove(old)',
        'sorted(from_rank_0(glob.glob("*.pt")))[:-2]',
    ),
    (
        'kept = sorted(os.listdir("m"))\n    if len(kept) > 2:\n        os.remove(kept[0])',
        'from_rank_0(os.listdir("m"))',
    ),
    (
        'kept = glob.glob("*.pt")\n    old = sorted(kept)[:-2]\n    for each in old:\n        os.remove(each)',
        'kept = from_rank_0(glob.glob("*.pt"))',
    ),
    (
        'for old in sorted(Path("m").glob("*.pt"))[:-2]:\n        old.unlink()',
        'sorted(from_rank_0(list(Path("m").glob("*.pt"))))[:-2]',
    ),
    ('for old in sorted(glob.glob("*.pt"))[:-2]:\n        print(old)', 'sorted(glob.glob("*.pt"))[:-2]'),
    (  # how many samples a data set has is the same on all ranks
        'files = glob.glob("*.jpg")\n    data = Images(files)\n    for i in range(len(data)):\n        os.remove("a")',
        'files = glob.glob("*.jpg")',
    ),
]


@pytest.mark.parametrize(("lines", "listed"), KEEPS)
def test_files_of_a_list_are_removed_together(lines: str, listed: str) -> None:
    """A slower rank would not find what rank 0 has removed, and not come to the barrier as often."""
    after = f'for epoch in range(5):\n    torch.save(model.state_dict(), f"{{epoch}}.pt")\n    {lines}\n'
    result = plain("import glob\nimport os\nfrom pathlib import Path\n" + training(after=after))
    assert listed in result.code


@pytest.mark.parametrize(
    ("over", "sent"),
    [
        ("names", True),
        ("tqdm(names)", True),
        ("os.walk('m')", False),
        ("train_loader", False),
        ("tqdm(test_loader)", False),
    ],
)
def test_a_cache_that_is_filled_in_a_loop_is_looked_for_by_rank_0(over: str, sent: bool) -> None:
    """A slower rank would find what rank 0 has written just now, and pass by the barrier behind it."""
    after = f'for name in {over}:\n    if not os.path.exists("a.pt"):\n        torch.save(model.state_dict(), "a.pt")\n'
    after += 'model.load_state_dict(torch.load("a.pt"))\n'
    head = 'import os\nfrom tqdm import tqdm\nnames = ["a", "b"]\n'
    code = plain(head + training(after=after)).code
    assert ('from_rank_0(os.path.exists("a.pt"))' in code) is sent


def test_a_folder_that_an_object_names_by_those_that_are_there_is_that_of_rank_0() -> None:
    saver = """\
import glob, os
class Saver:
    def __init__(self):
        self.runs = sorted(glob.glob(os.path.join("run", "experiment_*")))
        number = int(self.runs[-1].split("_")[-1]) + 1 if self.runs else 0
        self.folder = os.path.join("run", f"experiment_{number}")
        os.makedirs(self.folder)
Saver()
"""
    path = Path("train.py")
    code = convert({path: TRAINED.format(before=saver, each="", after="")}, "cpu", style="plain")[path].code
    assert 'self.runs = sorted(from_rank_0(glob.glob(os.path.join("run", "experiment_*"))))' in code


@pytest.mark.parametrize(
    ("after", "code"),
    [
        ("    if os.path.exists('stop'):\n        break\n", "if from_rank_0(os.path.exists('stop')):"),
        ("    if os.path.isfile('stop'):\n        raise SystemExit\n", "if from_rank_0(os.path.isfile('stop')):"),
        ("    if os.path.exists('note'):\n        total = 1.0\n", "    if os.path.exists('note'):"),
        ("for name in ('a', 'b'):\n    if os.path.exists(name):\n        break\n", "    if os.path.exists(name):"),
        (
            "def stopped(): return os.path.exists('stop')\nfor epoch in range(3):\n    for x, y in train_loader:\n"
            "        if stopped():\n            break\n        F.cross_entropy(model(x), y).backward()\n"
            "        optimizer.step()\n        optimizer.zero_grad()\n",
            "        if from_rank_0(stopped()):",
        ),
        (
            "while not os.path.exists('stop'):\n    for x, y in train_loader:\n"
            "        F.cross_entropy(model(x), y).backward()\n"
            "        optimizer.step()\n        optimizer.zero_grad()\n",
            "while not from_rank_0(os.path.exists('stop')):",
        ),
    ],
)
def test_a_file_that_ends_the_training_is_looked_for_by_rank_0(after: str, code: str) -> None:
    """Anybody may make it while the ranks train: one that looked before it was there would train on alone."""
    result = plain("import os\n" + training(after=after))
    assert not refusals(result) and code in result.code
