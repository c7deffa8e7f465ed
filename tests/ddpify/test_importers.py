"""Scripts that stay as they are beside a conversion to plain PyTorch, and import a module that it changes."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.ddpify.command import ddpify, put

TOOLS = """\
import torch


def evaluate(model, loader):
    total = 0.0
    with torch.no_grad():
        for x, y in loader:
            total += torch.nn.functional.mse_loss(model(x), y, reduction="sum").item()
    return total / len(loader.dataset)
"""
TRAIN = """\
import torch
from torch.utils.data import DataLoader, TensorDataset
from tools import evaluate

data = TensorDataset(torch.rand(64, 4), torch.rand(64, 1))
loader, tests = DataLoader(data, batch_size=8, shuffle=True), DataLoader(data, batch_size=8)
model = torch.nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for x, y in loader:
    loss = torch.nn.functional.mse_loss(model(x), y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(evaluate(model, tests))
"""
VALIDATE = """\
import torch
from torch.utils.data import DataLoader, TensorDataset
from tools import evaluate

if __name__ == "__main__":
    torch.manual_seed(0)
    data = TensorDataset(torch.rand(64, 4), torch.rand(64, 1))
    print(evaluate(torch.nn.Linear(4, 1), DataLoader(data, batch_size=8)))
"""


@pytest.mark.parametrize("style", ["plain", "exact"])
def test_a_script_that_is_not_converted_is_named(tmp_path: Path, style: str) -> None:
    put(tmp_path, train=TRAIN, tools=TOOLS, validate=VALIDATE, other="if __name__ == '__main__':\n    print(1)\n")
    done = ddpify("train.py", "--target", "cpu", "--style", style, cwd=tmp_path)
    said = (done.stdout + done.stderr).decode()
    assert ("validate.py imports this file too" in said) is (style == "plain") and "other.py" not in said
    assert done.returncode == 0


def run(folder: Path) -> subprocess.CompletedProcess[str]:
    """Start validate.py by itself."""
    return subprocess.run([sys.executable, "validate.py"], cwd=folder, capture_output=True, text=True)


def test_what_is_advised_lets_it_run_as_before(tmp_path: Path) -> None:
    put(tmp_path, train=TRAIN, tools=TOOLS, validate=VALIDATE)

    before = run(tmp_path).stdout
    said = (ddpify("train.py", "--target", "cpu", "--style", "plain", cwd=tmp_path)).stdout.decode()
    advice = said[said.index("torch.distributed.init") : said.index(", or give it a copy")]
    assert run(tmp_path).returncode != 0
    put(tmp_path, validate=VALIDATE.replace("    torch.manual_seed", f"    {advice}\n    torch.manual_seed"))
    assert float(run(tmp_path).stdout) == pytest.approx(float(before))


def test_a_changed_module_that_is_a_script_itself_is_told(tmp_path: Path) -> None:
    """As main_linear.py imports set_loader of main_ce.py: both are started."""
    both = (
        "from torch.utils.data import DataLoader, TensorDataset\n" + TOOLS + "\n\n" + VALIDATE[VALIDATE.index("if ") :]
    )
    put(tmp_path, train=TRAIN.replace("from tools", "from validate"), validate=both)
    before = run(tmp_path).stdout
    said = ddpify("train.py", "--target", "cpu", "--style", "plain", cwd=tmp_path).stdout.decode()
    assert "validate.py:1: this file is a script, too" in said and "imports this file" not in said
    assert run(tmp_path).returncode != 0
    advice = said[said.index("torch.distributed.init") : said.index(", or give the other")]
    path = tmp_path / "validate.py"
    path.write_text(
        path.read_text(encoding="utf-8").replace("    torch.manual_seed", f"    {advice}\n    torch.manual_seed")
    )
    assert float(run(tmp_path).stdout) == pytest.approx(float(before))


@pytest.mark.parametrize(("calls", "is_told"), [("fetch('a.pt')", True), ("shown('a.pt')", False)])
def test_a_changed_module_that_neither_trains_nor_loads_is_told_where_it_asks(
    tmp_path: Path, calls: str, is_told: bool
) -> None:
    """As the networks of DeepLab, whose guards make one that is downloaded."""
    own = "def fetch(path):\n    with open(path, 'w') as file:\n        file.write('1')\n    return path\n"
    own += "\n\ndef shown(path):\n    return path\n"
    put(tmp_path, tools=TOOLS, fetched=f"{own}\n\nif __name__ == '__main__':\n    print({calls})\n")
    put(tmp_path, train=TRAIN.replace("import torch\n", "import torch\nfrom fetched import fetch\nfetch('a.pt')\n", 1))
    said = ddpify("train.py", "--target", "cpu", "--style", "plain", cwd=tmp_path).stdout.decode()
    assert ("fetched.py:1: this file is a script, too" in said) is is_told
    done = subprocess.run([sys.executable, "fetched.py"], cwd=tmp_path, capture_output=True, text=True)
    assert (done.returncode != 0) is is_told


def test_a_script_of_the_program_that_imports_a_changed_module_is_named(tmp_path: Path) -> None:
    named = VALIDATE.replace("\nif", "NAME = 'loss'\n\nif")
    put(
        tmp_path,
        train=TRAIN.replace("from tools", "from validate import NAME\nfrom tools"),
        tools=TOOLS,
        validate=named,
    )
    said = ddpify("train.py", "--target", "cpu", "--style", "plain", cwd=tmp_path).stdout.decode()
    assert "tools.py:1: validate.py imports this file too" in said


OTHER = "{}\n\nif __name__ == '__main__':\n    print({})\n"
OWN_EVAL = "from tools import half\n\n\ndef eval(x):\n    return half(x)\n"


@pytest.mark.parametrize(
    ("imports", "calls", "is_named"),
    [
        ("from tools import half", "half(4)", False),
        ("import tools", "tools.half(4)", False),
        (OWN_EVAL, "eval(4)", False),
        ("from tools import half, whole", "whole(None, None)", True),
        ("import tools", "eval('tools.half')(4)", True),
        ("from more import half\nimport tools", "half(4)", False),
        ("from less import low", "low(4)", True),
    ],
)
def test_a_script_that_comes_to_nothing_of_the_group_is_not_named(
    tmp_path: Path, imports: str, calls: str, is_named: bool
) -> None:
    half, whole = "def half(x):\n    return x / 2\n", "def whole(*given):\n    return evaluate(*given)\n"
    put(tmp_path, train=TRAIN, tools=f"{TOOLS}\n\n{half}\n\n{whole}", other=OTHER.format(imports, calls), more=half)
    put(tmp_path, less="from tools import evaluate\n\n\ndef low(x):\n    return evaluate(x, x)\n")
    said = ddpify("train.py", "--target", "cpu", "--style", "plain", cwd=tmp_path).stdout.decode()
    assert ("other.py imports this file too" in said) is is_named


@pytest.mark.parametrize("place", ["other.py", "later/other.py"])
def test_a_script_that_imports_the_converted_script_itself_is_named(tmp_path: Path, place: str) -> None:
    head, _, rest = TRAIN.partition("from tools import evaluate\n")
    guarded = "\n\nif __name__ == '__main__':\n" + "".join(f"    {line}\n" for line in rest.strip().splitlines())
    put(tmp_path, train=f"{head}{TOOLS.partition('import torch')[2]}{guarded}")
    (tmp_path / "later").mkdir()
    (tmp_path / place).write_text(OTHER.format("from train import evaluate", "evaluate(1, 2)"), encoding="utf-8")
    said = ddpify("train.py", "--target", "cpu", "--style", "plain", cwd=tmp_path).stdout.decode()
    assert f"train.py:1: {place} imports this file too" in said


def test_another_training_script_is_to_be_converted_with_it(tmp_path: Path) -> None:
    put(tmp_path, train=TRAIN, tools=TOOLS, more=f"{TRAIN}if __name__ == '__main__':\n    print()\n")
    said = ddpify("train.py", "--target", "cpu", "--style", "plain", "--diff", cwd=tmp_path)
    assert b"more.py imports this file too" in said.stderr and b"convert both at once" in said.stderr
    both = ddpify("train.py", "more.py", "--target", "cpu", "--style", "plain", cwd=tmp_path)
    assert both.returncode == 0 and b"imports this file too" not in both.stdout + both.stderr


@pytest.mark.parametrize("uses", ["if __name__ == '__main__':\n    print(PATH)\n", "def shown():\n    print(PATH)\n"])
def test_a_script_that_joins_while_it_is_imported_is_to_be_copied(tmp_path: Path, uses: str) -> None:
    """To begin with a group of one process was advised, and failed: both joined one."""
    head, _, rest = TRAIN.partition("data = ")
    body = "".join(f"    {line}\n" for line in f"data = {rest}".replace("tests)", "loader)").strip().splitlines())
    head = head.replace("from tools import evaluate\n", TOOLS.partition("import torch")[2])
    device = 'device = torch.device("cuda" if torch.cuda.is_available() else "cpu")\nprint(device)\nPATH = "model.pt"\n'
    put(tmp_path, train=f"{head}\n{device}\n\ndef train():\n{body}\n\nif __name__ == '__main__':\n    train()\n")
    put(tmp_path, gen=f"from train import PATH\n\n\n{uses}")
    said = ddpify("train.py", "--target", "cuda", "--style", "plain", cwd=tmp_path).stdout.decode()
    assert "gen.py imports this file too, and would join a process group there; give it a copy of this file" in said
    assert "HashStore" not in said


def test_scripts_that_train_and_others_are_told_apart(tmp_path: Path) -> None:
    """There is nothing to convert in one that trains nothing."""
    more = f"{TRAIN}if __name__ == '__main__':\n    print()\n"
    put(tmp_path, train=TRAIN, tools=TOOLS, more=more, validate=VALIDATE)
    said = ddpify("train.py", "--target", "cpu", "--style", "plain", "--diff", cwd=tmp_path).stderr.decode()
    lines = {line.partition(": ")[2][:8]: line for line in said.splitlines() if "this file too" in line}
    assert "convert both at once" in lines["more.py "] and "HashStore" in lines["validate"]


AT_ONCE = """\
import torch
from torch.utils.data import DataLoader, TensorDataset
from tools import evaluate

data = TensorDataset(torch.rand(64, 4), torch.rand(64, 1))
print(evaluate(torch.nn.Linear(4, 1), DataLoader(data, batch_size=8)))
"""
ABOVE = "import os, sys\nsys.path.append(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))\n"


@pytest.mark.parametrize(
    ("train", "tools", "other", "above", "script"),
    [
        ("train.py", "tools.py", "check.py", "", AT_ONCE),  # without a guard
        ("gan/train.py", "tools.py", "wgan/validate.py", ABOVE, VALIDATE),  # the module above both of them
        ("scripts/train.py", "tools.py", "scripts/validate.py", "", VALIDATE),  # found by the current folder
    ],
)
def test_where_scripts_and_what_they_share_lie(
    tmp_path: Path, train: str, tools: str, other: str, above: str, script: str
) -> None:
    for name, text in ((train, above + TRAIN), (tools, TOOLS), (other, above + script)):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    done = ddpify(train, "--target", "cpu", "--style", "plain", cwd=tmp_path)
    assert f"{other} imports this file too" in (done.stdout + done.stderr).decode()
    assert done.returncode == 0


ATTACK = """\
import torch
import torch.nn.functional as F


def robust_loss(model, x, y):
    adv = x.detach().requires_grad_()
    with torch.enable_grad():
        loss = F.mse_loss(model(adv), y, reduction="sum")
    adv = adv.detach() + 0.01 * torch.sign(torch.autograd.grad(loss, [adv])[0].detach())
    return F.mse_loss(model(adv), y)


def clean_loss(model, x, y):
    return F.mse_loss(model(x), y)
"""


def test_a_script_whose_model_has_no_wrapper_is_named(tmp_path: Path) -> None:
    head = TRAIN.replace("from tools import evaluate", "from attack import robust_loss").replace("print(evaluate(", "#")
    train = head.replace("torch.nn.functional.mse_loss(model(x), y)", "robust_loss(model, x, y)")
    clean = train.replace("robust_loss", "clean_loss")
    put(tmp_path, train=train, more=train, clean=clean, attack=ATTACK)
    done = ddpify("train.py", "--target", "cpu", "--style", "plain", "--diff", cwd=tmp_path)
    assert "model.module(adv)" in done.stdout.decode()
    told = [line for line in done.stderr.decode().splitlines() if "this file too" in line]
    assert len(told) == 1 and "more.py imports this file too, and may give it a model without a wrapper" in told[0]
    assert "convert both at once" in told[0]
    both = ddpify("train.py", "more.py", "--target", "cpu", "--style", "plain", "--diff", cwd=tmp_path)
    assert both.returncode == 0 and b"imports this file too" not in both.stderr


LOSSES = """\
import torch


def masked(ignored):
    return torch.nn.CrossEntropyLoss(ignore_index=ignored)


def smooth():
    return torch.nn.CrossEntropyLoss()
"""


@pytest.mark.parametrize(("made", "named"), [("masked(0)", True), ("smooth()", False)])
def test_a_script_that_would_get_a_sum_for_a_mean_is_named(tmp_path: Path, made: str, named: bool) -> None:
    train = TRAIN.replace("from tools import evaluate", "from losses import masked\n\nmeasure = masked(0)")
    train = train.replace("torch.rand(64, 1)", "torch.randint(3, (64,))").replace("Linear(4, 1)", "Linear(4, 3)")
    train = train.replace("torch.nn.functional.mse_loss(", "measure(").replace("print(evaluate(model, tests))\n", "")
    other = f"import torch\nfrom losses import masked, smooth\n\nif __name__ == '__main__':\n    print({made}(x, y))\n"
    put(tmp_path, train=train, losses=LOSSES, validate=other)
    done = ddpify("train.py", "--target", "cpu", "--style", "plain", "--diff", cwd=tmp_path)
    assert done.returncode == 0 and b'CrossEntropyLoss(ignore_index=ignored, reduction="sum")' in done.stdout
    told = "validate.py imports this file too, and would get a sum from there, where it gets a mean now"
    assert (told in done.stderr.decode()) is named
