from __future__ import annotations

from pathlib import Path

import pytest
from ddpify_codemods.reading import read

BASE = (
    "class Base(MNIST):\n    def __init__(self, root, download):\n        super().__init__(root, download=download)\n"
)
HANDS_ON = "class Pair(MNIST):\n    def __init__(self, **kwargs):\n        super().__init__(**kwargs)\n"


@pytest.mark.parametrize(
    ("classes", "known"),
    [
        ("class Pair(MNIST):\n    pass\n", True),
        ("class Middle(MNIST):\n    pass\nclass Pair(Middle):\n    pass\n", True),
        (f"{BASE}class Pair(Base):\n    pass\n", False),
        (f"{BASE}class Middle(Base):\n    pass\nclass Pair(Middle):\n    pass\n", False),
        (f"{BASE.replace('Base', 'MNIST')}class Pair(datasets.MNIST):\n    pass\n", True),
        (BASE.replace("Base", "Pair"), False),
        ("class Pair:\n    download: bool = False\n", False),
        (HANDS_ON, True),
        (HANDS_ON.replace("super()", "super(Pair, self)").replace("**kwargs", "root, **kwargs"), True),
        (f"{HANDS_ON.replace('Pair', 'Middle')}class Pair(Middle):\n    pass\n", True),
        (f"{BASE}{HANDS_ON.replace('MNIST', 'Base')}", False),
        (HANDS_ON.replace("(self", "(self, download"), False),
        (HANDS_ON.replace("__(**kwargs)", "__('a')"), False),
    ],
)
def test_whose_init_a_class_has(classes: str, known: bool) -> None:
    libraries = "from torchvision import datasets\nfrom torchvision.datasets import MNIST\n"
    program = {
        Path("train.py"): "from data import Pair\nPair('a', download=True)\n",
        Path("data.py"): libraries + classes,
    }
    assert all(("Pair" in script.inheriting) is known for script in read(program)[1])


def test_a_file_means_its_own_class() -> None:
    first, second = f"from torchvision.datasets import MNIST\n{BASE}", "class Base(MNIST):\n    pass\nBase('a')\n"
    program = {Path("train.py"): "import data\nimport more\nBase = 3\n", Path("data.py"): first}
    program[Path("more.py")] = f"from torchvision.datasets import MNIST\n{second}"
    assert ["Base" in script.inheriting for script in read(program)[1]] == [False, False, True]
