"""Where the exact style joins the process group if an imported file already needs it."""

from pathlib import Path

import pytest
from ddpify_codemods import convert
from ddpify_codemods.options import ONE_DEVICE

from tests.codemods.plain.test_followed import training

JOIN = 'init_process_group("gloo")'
MADE = "import torch\nfrom torch.utils.data import DataLoader, TensorDataset\n"
NEEDS = [
    "import torch\nTABLE = torch.rand(4)\n",
    "import torch\n\n\ndef make():\n    return torch.nn.Linear(4, 1)\n\n\nMODEL = make()\n",
    "import numpy as np\nTABLE = np.random.randn(4)\n",
    "import random\nrandom.seed()\nNUMBER = random.random()\n",
    "import torch\nimport numpy as np\nnp.random.seed(1)\nTABLE = torch.rand(4)\n",
    "print('read')\n",
    "with open('log.txt', 'w') as file:\n    file.write('1')\n",
    f"{MADE}loader = DataLoader(TensorDataset(torch.zeros(9, 2)), batch_size=4)\n",
    "from datetime import datetime\nNOW = datetime.now()\nopen(f'{NOW}', 'w').close()\n",
    "import torch\nMEAN = torch.zeros(3).cuda()\n",
]
NOTHING = [
    "",
    "import torch\nDEVICE = torch.device('cuda' if torch.cuda.is_available() else 'cpu')\n",
    "import torch\n\n\nclass Net:\n  def __init__(self):\n    self.net = torch.nn.Linear(4, 1)\n\nALL = {'net': Net}\n",
    "import torch\ntorch.manual_seed(1)\nTABLE = torch.rand(4)\n",
    "import argparse\nparser = argparse.ArgumentParser()\nparser.add_argument('--lr')\n",
    "def log(text):\n    print(text)\n    open('log', 'w').write(text)\n",
    "if __name__ == '__main__':\n    print('alone')\n",
]


def converted(head: str, own: str, **options: str) -> str:
    """What becomes of the first file of a program that imports another one."""
    files = {Path("train.py"): head + training(), Path("beside.py"): own}
    return convert(files, "cpu", **options)[Path("train.py")].code  # type: ignore[arg-type]


@pytest.mark.parametrize("head", ["import beside\n", "import torch\n\nfrom beside import *\n"])
@pytest.mark.parametrize("own", NEEDS)
def test_the_group_is_joined_above_the_import(head: str, own: str) -> None:
    code = converted(head, own)
    imported = head.splitlines()[-1]
    assert code.count(JOIN) == code.count(imported) == 1
    assert code.index("from ddpify_runtime import") < code.index(JOIN) < code.index(imported)


@pytest.mark.parametrize("own", NOTHING)
def test_the_group_is_joined_below_the_imports_that_need_nothing(own: str) -> None:
    code = converted("import beside\n", own)
    assert code.index("import beside") < code.index(JOIN) and "before the imports" not in code


def test_a_main_guard_is_no_obstacle() -> None:
    main = "".join(f"    {line}\n" for line in training().splitlines())
    files = {Path("train.py"): f"import beside\n\nif __name__ == '__main__':\n{main}", Path("beside.py"): NEEDS[0]}
    code = convert(files, "cpu")[Path("train.py")].code
    assert code.index(JOIN) < code.index("import beside") and code.count(JOIN) == 1
    assert code.endswith("\n    destroy_process_group()\n")


def test_checkpoints_are_kept_from_there_on() -> None:
    code = converted("import torch\nimport beside\n", NEEDS[0], resume="checkpoints")
    assert code.index(JOIN) < code.index('resume_from("checkpoints"') < code.index("import beside")


@pytest.mark.parametrize("own", NEEDS)
def test_there_and_back(own: str) -> None:
    files = {Path("train.py"): "import torch\n\nimport beside\n\n" + training(), Path("beside.py"): own}
    texts = {path: result.code for path, result in convert(files, "cpu").items()}
    assert {path: result.code for path, result in convert(texts, "cpu").items()} == texts
    back = {path: result.code for path, result in convert(texts, ONE_DEVICE).items()}
    assert not any("ddpify" in text or "process_group" in text for text in back.values())
    assert "import beside" in back[Path("train.py")]
