"""Functions that number the folder of a run: rank 0 alone calls them where all ranks come, and sends what it got."""

from __future__ import annotations

from pathlib import Path

import pytest
from ddpify_codemods import convert

from tests.codemods.plain.test_files import TRAINED

NUMBERED = """\
def numbered(root):
    numbers = [int(each.split("_")[1]) for each in os.listdir(root)]
    return os.path.join(root, f"run_{max(numbers, default=0) + 1}")
"""
MADE = NUMBERED + "LINE\nos.makedirs(run)"
SENT = 'from_rank_0(numbered("runs") if dist.get_rank() == 0 else None)'
ALONE = "if dist.get_rank() == 0 else None)"
PARSED = """\
import argparse
parser = argparse.ArgumentParser()
parser.add_argument("--old", {})
args = parser.parse_args()
"""


def _code(before: str, head: str = "") -> str:
    path = Path("train.py")
    code = head + "import glob, random, sys, time\n" + TRAINED.format(before=before, each="", after="")
    result = convert({path: code}, "cpu", style="plain")[path]
    assert not [finding for finding in result.findings if finding.severity == "refused"]
    return result.code


@pytest.mark.parametrize(
    "line",
    [
        'run = numbered("runs")',
        'run = sys.argv[1] if len(sys.argv) > 1 else numbered("runs")',
        'run = os.path.join(numbered("runs"), "a")',
        'for fold in range(3):\n    run = numbered("runs")',
        'def start():\n    return numbered("runs")\nrun = start()',
        PARSED.format('action="store_true"') + 'run = "a"\nif not args.old:\n    run = numbered("runs")',
        PARSED.format("type=str, default=None") + 'run = args.old or numbered("runs")',
        'def train():\n    return numbered("runs")\nrun = train()',  # there is `model.train()`, too
    ],
)
def test_rank_0_alone_numbers_a_folder_and_sends_its_name(line: str) -> None:
    code = _code(MADE.replace("LINE", line))
    assert SENT in code and "in os.listdir(root)]" in code


def test_a_function_of_another_file() -> None:
    helper = """\
import os
def numbered(root):
    n = 0
    for each in os.listdir("."):
        if each.startswith(root):
            n += 1
    return f"{root}{n}"
"""
    code = "from helper import numbered\n" + TRAINED.format(
        before='run = numbered("runs")\nos.mkdir(run)', each="", after=""
    )
    files = {Path("train.py"): code, Path("helper.py"): helper}
    assert SENT in convert(files, "cpu", style="plain")[Path("train.py")].code


def test_a_function_makes_the_folder_that_it_numbers() -> None:
    body = 'n = 0\n    while True:\n        n += 1\n        run = f"{root}{n}"\n        if not Path(run).exists():\n'
    body += "            os.makedirs(run)\n            return run"
    code = MADE.replace(NUMBERED, f"def numbered(root):\n    {body}\n").replace("LINE", 'run = numbered("runs")')
    assert SENT in _code(code, "from pathlib import Path\n")


@pytest.mark.parametrize(
    "line",
    [
        'run = "a"\nif os.path.exists("runs"):\n    run = numbered("runs")',
        'there = os.path.exists("runs")\nrun = numbered("runs") if there else "a"',
        'first = True\nif os.path.exists("runs"):\n    first = False\nrun = numbered("runs") if first else "a"',
        'run = (os.path.exists("a") and "a") or numbered("runs")',
        'run = "a"\nif random.random() < 0.5:\n    run = numbered("runs")',
        'try:\n    run = numbered("runs")\nexcept ValueError:\n    run = "a"',
        'make = lambda: numbered("runs")\nrun = make()',
        'def start():\n    if os.path.exists("a"):\n        return "a"\n    return numbered("runs")\nrun = start()',
        'run = "a"\nwhile len(run) < 9:\n    run = numbered(run)',
        'run = "a"\nfor each in os.listdir("."):\n    run = numbered("runs")',
        'def start(old):\n    return "a" if old else numbered("runs")\nrun = start(os.path.exists("a"))',
        'run = numbered("runs")\nprint([*map(numbered, ["a"])])',
        'run = numbered("runs")\nprint(numbered("a"))',
        "count = iter(range(9))\nrun = numbered(str(next(count)))",
        PARSED.format("default=len(glob.glob('r*'))") + 'run = "a"\nif not args.old:\n    run = numbered("runs")',
        PARSED.format("type=os.path.isdir") + 'run = "a"\nif not args.old:\n    run = numbered("runs")',
        "def there(text):\n    return os.path.isdir(text)\n"
        + PARSED.format('type=there, default="runs"')
        + 'run = "a"\nif not args.old:\n    run = numbered("runs")',
        'def start():\n    old = False\n    def look():\n        nonlocal old\n        old = os.path.exists("a")\n'
        + '    look()\n    return "a" if old else numbered("runs")\nrun = start()',
        PARSED.format("type=int")
        + 'run = "a"\nargs.old = glob.glob("r*")\nif not args.old:\n    run = numbered("runs")',
    ],
)
def test_a_rank_may_not_come_to_such_a_call(line: str) -> None:
    assert ALONE not in _code(MADE.replace("LINE", line))


@pytest.mark.parametrize(
    "body",
    [
        'return Path(root).glob("*")',
        "return (each for each in os.listdir(root))",
        "yield os.listdir(root)[0]",
        "return max(os.scandir(root), key=str)",
        'options.number = len(os.listdir(root))\n    return f"{root}{options.number}"',
        'global number\n    number = len(os.listdir(root))\n    return f"{root}{number}"',
        'return f"{root}{len(os.listdir(root))}{torch.rand(1).item()}"',
        'return f"{root}{len(os.listdir(root))}{sum(map(random.randint, [0], [9]))}"',
        'names.append(root)\n    return f"{root}{len(os.listdir(root))}"',
        'list(map(names.append, os.listdir(root)))\n    return f"{root}{len(names)}"',
        'sorted(os.listdir(root), key=lambda each: names.append(each))\n    return f"{root}{len(names)}"',
        'return f"{root}{len(os.listdir(root))}{next(numbers)}"',
        'print(root, file=open("log", "w"))\n    return f"{root}{len(os.listdir(root))}"',
        'os.chdir(root)\n    return f"run{len(os.listdir())}"',
        'root += ["a"]\n    return os.path.join(*root, str(len(os.listdir("."))))',
        'a, b = root, 0\n    a += ["a"]\n    return f"{b}{len(os.listdir(a[0]))}"',
        'if len(os.listdir(".")) > 9:\n        return root\n    return "a"',
    ],
)
def test_other_ranks_would_miss_what_a_function_does(body: str) -> None:
    code = MADE.replace(NUMBERED, f"def numbered(root):\n    {body}\n").replace("LINE", 'run = str(numbered("runs"))')
    assert ALONE not in _code("names = []\nnumbers = iter(range(9))\n" + code, "from pathlib import Path\n")
