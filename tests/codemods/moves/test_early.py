"""What a file does while it is imported, and where the process group is joined for that."""

from pathlib import Path

import pytest
from ddpify_codemods import convert
from ddpify_codemods.options import ONE_DEVICE

from tests.codemods.plain.test_followed import refusals, training

JOIN = 'dist.init_process_group("gloo")'
MADE = "import torch\nfrom torch.utils.data import DataLoader, TensorDataset\n"
MADE += "data = TensorDataset(torch.rand(9, 2))\nloader = DataLoader(data, batch_size=4)\n"
OPENED = "def opened():\n    return open('log.txt', 'w')\n\n\n"
NEEDS = [
    ("import logging\nlogging.basicConfig(filename='training.log')\n", "if dist.get_rank() == 0 else os.devnull"),
    ("import logging\nHANDLER = logging.FileHandler('a.log')\n", '"a.log" if dist.get_rank() == 0'),
    ("with open('settings.txt', 'w') as file:\n    file.write('1')\n", "if dist.get_rank() == 0 else os.devnull"),
    ("import os\nos.remove('old')\n", "if dist.get_rank() == 0:\n    os.remove('old')"),
    (f"{OPENED}LOG = opened()\n", "if dist.get_rank() == 0 else os.devnull"),
    ("class Settings:\n    log = open('log.txt', 'w')\n", "if dist.get_rank() == 0 else os.devnull"),
    ("from torch.utils.tensorboard import SummaryWriter\nwriter = SummaryWriter()\n", "if dist.get_rank() == 0 else"),
    (
        f"{MADE}count = 0\nfor (x,) in loader:\n    count += len(x)\nprint(count)\n",
        "range(dist.get_rank(), len(data), dist.get_world_size())",
    ),
]
DRAWS = [
    ("import torch\nTABLE = torch.rand(4)\n", "torch.manual_seed(0)"),
    ("import torch\nTABLE = torch.zeros(4)\nTABLE.normal_()\n", "torch.manual_seed(0)"),
    ("import torch\n\n\ndef made():\n    return torch.nn.Linear(2, 2)\n\n\nNET = made()\n", "torch.manual_seed(0)"),
    ("import numpy\nTABLE = numpy.random.rand(4)\n", "numpy.random.seed(0)"),
    ("import random\n\n\ndef drawn():\n    return random.random()\n\n\nNUMBER = drawn()\n", "random.seed(0)"),
    (
        "from sklearn.model_selection import train_test_split\nPARTS = train_test_split([1, 2, 3])\n",
        "numpy.random.seed(0)",
    ),
]
PRINTS = ["print('read')\n", "def log(*values):\n    print(*values)\n\n\nlog('read')\n"]
NOTHING = [
    "def log(*values):\n    print(*values)\n",
    f"import torch\n\n\n@torch.no_grad()\n{OPENED}",
    "",
    "import logging\nlogging.basicConfig(level=logging.INFO)\n",
    OPENED,
    "import os\nos.makedirs('runs', exist_ok=True)\n",
    "import numpy\nnumpy.random.seed(1)\nTABLE = numpy.random.rand(4)\n",
    "import torch\ntorch.manual_seed(1)\nTABLE = torch.rand(4)\n",
    "import torch\nCRITERION = torch.nn.CrossEntropyLoss()\nTABLE = torch.zeros(4)\n",
    "if __name__ == '__main__':\n    open('log.txt', 'w')\n",
    "import torch\n\nif __name__ == '__main__':\n    print(torch.nn.Linear(2, 2)(torch.rand(2)))\n",
    "from tqdm import tqdm\nTABLE = [each for each in tqdm(range(4))]\n",
]


def converted(head: str, own: str, more: str = "", **others: str) -> tuple[str, str]:
    """What becomes of a program whose first lines import a file, and of that file."""
    path, other = Path("train.py"), Path("beside.py")
    files = {path: head + training() + more, other: own}
    files |= {Path(f"{name.replace('__', '/', 1)}.py"): text for name, text in others.items()}
    found = convert(files, "cpu", style="plain")
    assert not any(map(refusals, found.values()))
    return found[path].code, found[other].code


@pytest.mark.parametrize("head", ["import beside\n", "from beside import *\n", "import torch\n\nimport beside\n"])
@pytest.mark.parametrize(("own", "expected"), NEEDS)
def test_the_group_is_joined_above_the_import_of_what_asks_for_the_rank(head: str, own: str, expected: str) -> None:
    code, beside = converted(head, own)
    assert expected.replace("'", '"') in beside.replace("'", '"')
    imported = head.splitlines()[-1]
    assert code.index("import torch.distributed as dist") < code.index(JOIN) < code.index(f"\n{imported}\n")
    assert code.count(JOIN) == 1 and code.count(imported) == 1


@pytest.mark.parametrize(("own", "seeds"), DRAWS)
def test_the_generators_are_seeded_above_the_import_of_what_draws(own: str, seeds: str) -> None:
    head, rest = f"import torch\n\nimport beside\n{training()}".split("torch.manual_seed(0)\n")
    found = convert({Path("train.py"): head + rest, Path("beside.py"): own}, "cpu", style="plain")
    code = found[Path("train.py")].code
    assert not any(map(refusals, found.values()))
    assert code.index(JOIN) < code.index(f"\n{seeds}\n") < code.index("\nimport beside\n")


@pytest.mark.parametrize("own", PRINTS)
def test_rank_0_alone_prints_what_an_import_prints(own: str) -> None:
    code, _ = converted("import beside\n", own)
    assert code.index(JOIN) < code.index("sys.stdout = open(os.devnull") < code.index("import beside")


@pytest.mark.parametrize("own", NOTHING)
def test_it_is_joined_below_the_imports_of_what_asks_for_nothing(own: str) -> None:
    code, _ = converted("import beside\n", own)
    assert code.index("import beside") < code.index(JOIN) and "before the imports" not in code


@pytest.mark.parametrize(
    "head",
    [
        "try:\n    import beside\nexcept ImportError:\n    beside = None\n",
        "import json; import beside\n",
        "from beside import (\n    LOG,\n)\n",
        '"""Trains."""\nimport beside\n',
    ],
)
def test_it_is_joined_above_whatever_imports_a_file_that_asks(head: str) -> None:
    code, _ = converted(head, f"{OPENED}LOG = opened()\n")
    assert code.index("import torch.distributed as dist") < code.index(JOIN) < code.index("beside")


def test_it_is_joined_above_what_imports_a_file_that_asks() -> None:
    asks, _ = NEEDS[0]
    code, _ = converted("import first\nimport beside\n", "import third\n", first="A = 1\n", third=asks)
    assert code.index("import first") < code.index(JOIN) < code.index("import beside")


def test_a_package_on_the_way_may_ask() -> None:
    asks, _ = NEEDS[0]
    files = {"pack____init__": "from .inner import A\n", "pack__inner": f"{asks}A = 1\n", "pack__other": "B = 2\n"}
    code, _ = converted("import beside\n", "from pack.other import B\n", **files)
    assert code.index(JOIN) < code.index("import beside")


def test_a_file_that_a_function_imports_later_may_ask() -> None:
    asks, _ = NEEDS[0]
    code, _ = converted("import beside\n", "def use():\n    import third\n", third=asks, more="beside.use()\n")
    assert code.index("import beside") < code.index(JOIN)


def test_a_main_guard_is_no_obstacle() -> None:
    asks, _ = NEEDS[0]
    main = "".join(f"    {line}\n" for line in training().splitlines())
    files = {Path("train.py"): f"import beside\n\nif __name__ == '__main__':\n{main}", Path("beside.py"): asks}
    code = convert(files, "cpu", style="plain")[Path("train.py")].code
    assert code.index(JOIN) < code.index("import beside") and code.count(JOIN) == 1
    assert code.endswith("\n    dist.destroy_process_group()\n")


@pytest.mark.parametrize(("own", "expected"), NEEDS[:6])
def test_there_and_back(own: str, expected: str) -> None:
    path, other = Path("train.py"), Path("beside.py")
    files = {path: "import beside\n" + training(), other: own}
    texts = {each: result.code for each, result in convert(files, "cpu", style="plain").items()}
    assert {each: result.code for each, result in convert(texts, "cpu", style="plain").items()} == texts
    back = {each: result.code for each, result in convert(texts, ONE_DEVICE).items()}
    assert not any("dist" in text for text in back.values())
    assert "import beside" in back[path]


@pytest.mark.parametrize(
    ("own", "above"),
    [
        ("import torch\nMEAN = torch.zeros(4).to('cuda')\n", True),
        ("import torch\nMEAN = torch.zeros(4, device='cuda')\n", True),
        ("import lpips\nDISTANCE = lpips.LPIPS(net='alex').cuda()\n", True),
        ("import torch\nMEAN = torch.zeros(4).to(torch.float64)\n", False),
        ("import torch\n\n\ndef mean():\n    return torch.zeros(4).cuda()\n", False),
    ],
)
def test_a_rank_chooses_its_device_above_the_import_of_what_uses_it(own: str, above: bool) -> None:
    source = f"import beside\n{training()}".replace("model = ", "device = 'cuda'\nmodel = ", 1)
    found = convert({Path("train.py"): source, Path("beside.py"): own}, "cuda", style="plain")
    code = found[Path("train.py")].code
    assert (code.index("torch.cuda.set_device(") < code.index("import beside\n")) is above
    by_cpu = convert({Path("train.py"): source, Path("beside.py"): own}, "cpu", style="plain")[Path("train.py")].code
    assert by_cpu.index("import beside\n") < by_cpu.index(JOIN)
