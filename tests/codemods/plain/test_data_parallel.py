"""Scripts for nn.DataParallel, in plain torch: what it did is done without it (DDP613)."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from ddpify_codemods import convert

from tests.codemods.plain.test_followed import plain, refusals, training

MODEL = "model = nn.Linear(4, 3)\n"
EVALUATION = """\
for x, y in test_loader:
    {move}
    print((model({given}).argmax(1).cpu() == y).sum().item())
"""


def parallel(made: str, after: str = "", target: str = "cuda") -> str:
    """What a training becomes whose model is made so."""
    result = plain(
        training().replace(MODEL, made, 1).replace("loss = F", "x, y = x.cuda(), y.cuda()\n        loss = F", 1)
        + after,
        target,
    )
    assert not refusals(result)
    return result.code


@pytest.mark.parametrize(
    "made",
    [
        "model = nn.DataParallel(nn.Linear(4, 3)).cuda()\n",
        "model = nn.Linear(4, 3)\nmodel = nn.DataParallel(model)\nmodel.cuda()\n",
        "def build(net):\n    net = nn.DataParallel(net)\n    return net\n\n\nmodel = build(nn.Linear(4, 3)).cuda()\n",
        "model = nn.DataParallel(module=nn.Linear(4, 3), device_ids=[0, 1]).cuda()\n",
        "model = nn.Linear(4, 3)\nmodel = nn.DataParallel(device_ids=[0, 1], module=model)\nmodel.cuda()\n",
    ],
)
def test_the_model_is_no_module_of_another_one(made: str) -> None:
    saves = "def save(net):\n    torch.save(net.module.state_dict(), 'net.pt')\n\n\n"
    code = parallel(saves + made, "save(model)\nprint(model.module.weight.sum().item())\n")
    assert ".module" not in code and "net.state_dict()" in code and "nn.DataParallel" not in code


@pytest.mark.parametrize(
    ("line", "left"),
    [
        ("from torch.nn import DataParallel", []),
        ("from torch.nn import DataParallel, Linear", ["from torch.nn import Linear"]),
        ("from torch.nn.parallel import DataParallel as Parallel", []),
    ],
)
def test_the_import_goes_that_nothing_uses(line: str, left: list[str]) -> None:
    name = line.rpartition(" ")[2] if " as " in line else "DataParallel"
    code = parallel(f"{line}\nmodel = nn.Linear(4, 3)\nmodel = {name}(model).cuda()\n")
    lines = [each for each in code.splitlines() if each.startswith("from torch.nn")]
    assert lines == ["from torch.nn.parallel import DistributedDataParallel", *left]


def test_the_import_stays_that_something_asks_for() -> None:
    line = "from torch.nn import DataParallel"
    code = parallel(
        f"{line}\nmodel = DataParallel(nn.Linear(4, 3)).cuda()\n", "print(isinstance(model, DataParallel))\n"
    )
    assert line in code


def test_the_module_of_something_else_stays() -> None:
    code = parallel(
        "model = nn.Linear(4, 3).cuda()\naverage = torch.optim.swa_utils.AveragedModel(model)\n",
        "print(average.module.weight.sum())\n",
    )
    assert "average.module.weight" in code


@pytest.mark.parametrize(
    ("move", "given", "after"),
    [
        ("pass", "x", 'model(x.to("cuda"))'),
        ("x = torch.autograd.Variable(x)", "x", 'model(x.to("cuda"))'),
        ("pass", "torch.autograd.Variable(x)", 'model(torch.autograd.Variable(x).to("cuda"))'),
        ("x = x.cuda()", "x", "model(x)"),
        ("x = torch.autograd.Variable(x.cuda())", "x", "model(x)"),
        ("pass", "x.cuda()", "model(x.cuda())"),
    ],
)
def test_an_evaluation_moves_what_nn_data_parallel_has_moved(move: str, given: str, after: str) -> None:
    evaluation = EVALUATION.format(move=move, given=given)
    assert after in parallel("model = nn.DataParallel(nn.Linear(4, 3)).cuda()\n", evaluation)
    assert f"model({given})" in parallel("model = nn.Linear(4, 3).cuda()\n", evaluation)


def test_the_wrapper_moves_its_inputs_where_nn_data_parallel_did_alone() -> None:
    assert "device_ids=[torch.cuda.current_device()]" in parallel("model = nn.DataParallel(nn.Linear(4, 3)).cuda()\n")
    assert "device_ids" not in parallel("model = nn.Linear(4, 3).cuda()\n")


@pytest.mark.parametrize("target", ["cuda", "xpu"])
def test_the_wrapper_moves_nothing_for_a_model_that_a_switch_leaves_on_the_cpu(target: str) -> None:
    options = "import argparse\nargs = argparse.ArgumentParser().parse_args()\n"
    device = 'device = torch.device("cuda" if torch.cuda.is_available() and not args.no_cuda else "cpu")\n'
    made = "model = nn.DataParallel(nn.Linear(4, 3)).to(device)\n"
    code = parallel(options + device + made, target=target)
    moves = f"device_ids=[torch.{target}.current_device()]"
    assert f'{moves} if next(model.parameters()).device.type != "cpu" else None' in code
    code = parallel(options + device.replace(" and not args.no_cuda", "") + made, target=target)
    assert f"{moves})" in code


def test_of_two_ways_that_for_one_gpu_stays() -> None:
    several = "if torch.cuda.device_count() > 1:\n    print('several')\n    model = nn.DataParallel(model)\n"
    code = parallel(MODEL + several + "else:\n    print('one')\nmodel.cuda()\n")
    assert "\nprint('one')\n" in code and "several" not in code and "device_count() > 1" not in code
    code = parallel(MODEL + several + "model.cuda()\n")
    assert "several" not in code and "device_count() > 1" not in code


ONLY_WRAPS = "    model = nn.DataParallel(model)\n"


@pytest.mark.parametrize(
    ("lines", "left"),
    [
        ("gpus = len(train_set)\nif gpus > 1 and not test_loader is None:\n" + ONLY_WRAPS, []),
        ("if train_set:\n" + ONLY_WRAPS + "    print(2)\n", ["if train_set:", "    print(2)"]),
        (
            "if train_set:\n" + ONLY_WRAPS + "else:\n    print(1)\n",
            ["if train_set:", "    pass", "else:", "    print(1)"],
        ),
        (
            "if train_set:\n    print(1)\nelif test_set:\n" + ONLY_WRAPS,
            ["if train_set:", "    print(1)", "elif test_set:", "    pass"],
        ),
        (
            "if train_set:\n    print(1)\nelif torch.cuda.device_count() > 1:\n" + ONLY_WRAPS,
            ["if train_set:", "    print(1)", "elif torch.cuda.device_count() > 1:", "    pass"],
        ),
        ("if train_set.tensors[0].any():\n" + ONLY_WRAPS, ["if train_set.tensors[0].any():", "    pass"]),
    ],
)
def test_a_condition_that_is_left_with_nothing_goes_too(lines: str, left: list[str]) -> None:
    code = parallel(MODEL + lines + "model.cuda()\n")
    between = code[code.index(MODEL) + len(MODEL) : code.index("model.cuda()")].splitlines()
    assert [line for line in between if not line.startswith("gpus")] == left


IN_FORWARD = """\
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.main = nn.Linear(4, 3)

    def forward(self, x):
        if x.is_cuda and torch.cuda.device_count() > 1:
            return nn.parallel.data_parallel(self.main, {inputs}, range(2))
        return self.main(x)


model = Net().cuda()
"""


@pytest.mark.parametrize("inputs", ["x", "(x,)"])
def test_a_forward_calls_its_parts_itself(inputs: str) -> None:
    code = parallel(IN_FORWARD.format(inputs=inputs))
    assert "data_parallel" not in code and code.count("return self.main(x)") == 2
    assert "differentiable" not in code and "(loss" not in code


CALLBACK = """\
import functools
from torch.nn.parallel.data_parallel import DataParallel


def patch(data_parallel):
    assert isinstance(data_parallel, DataParallel)
    old = data_parallel.replicate

    @functools.wraps(old)
    def new(module, device_ids):
        return old(module, device_ids)

    data_parallel.replicate = new
"""
PATCHED = """\
model = nn.Linear(4, 3).cuda()
if torch.cuda.device_count() > 1:
    model = nn.DataParallel(model)
    patch(model)
"""


def told(made: str, after: str = "") -> list[str]:
    """Why a training is refused whose model is made so."""
    code = training().replace(MODEL, made, 1).replace("loss = F", "x, y = x.cuda(), y.cuda()\n        loss = F", 1)
    return refusals(plain(code + after, "cuda"))


def test_a_call_that_serves_nn_data_parallel_alone_goes_with_it() -> None:
    """As patch_replication_callback(model), which begins with an assertion; its file may do more than define it."""
    entry, other = Path("train.py"), Path("callback.py")
    code = training().replace(MODEL, "from callback import patch\n" + PATCHED, 1)
    results = convert({entry: code.replace("model(x)", "model(x.cuda())"), other: CALLBACK}, "cuda", style="plain")
    assert not refusals(results[entry]) and results[other].code == CALLBACK
    assert re.findall(r".*patch.*", results[entry].code) == ["from callback import patch"]
    assert "device_count" not in results[entry].code


@pytest.mark.parametrize(
    "made",
    [
        "model = nn.DataParallel(nn.Linear(4, 3)).cuda()\nassert isinstance(model, nn.DataParallel)\n",
        "model = nn.DataParallel(nn.Linear(4, 3)).cuda()\nprint(len(model.device_ids))\n",
        "model = nn.DataParallel(nn.Linear(4, 3)).cuda()\n"
        "if not isinstance(model, (nn.DataParallel, nn.parallel.DistributedDataParallel)):\n    raise TypeError\n",
        "model = nn.DataParallel(nn.Linear(4, 3)).cuda()\nassert type(model) is nn.DataParallel\n",
        "import sys\nmodel = nn.DataParallel(nn.Linear(4, 3)).cuda()\n"
        "print(len(model.device_ids) if hasattr(sys, 'ps1') else 1)\n",
        "def plain(net):\n    if isinstance(net, nn.DataParallel):\n        return net.module\n    raise TypeError\n"
        "model = nn.DataParallel(nn.Linear(4, 3)).cuda()\nprint(plain(model))\n",
        CALLBACK.replace("    old =", "    print('patched')\n    old =") + PATCHED,
        CALLBACK + "model = nn.Linear(4, 3).cuda()\npatch(nn.DataParallel(model))\n",
        CALLBACK + "    return data_parallel\n" + PATCHED.replace("    patch", "    model = patch"),
    ],
)
def test_what_needs_nn_data_parallel_is_refused(made: str) -> None:
    assert any("needs an nn.DataParallel" in each for each in told(made))


@pytest.mark.parametrize(
    "made",
    [
        "model = nn.DataParallel(nn.Linear(4, 3)).cuda()\n"
        "net = model.module if isinstance(model, nn.DataParallel) else model\n",
        "model = nn.DataParallel(nn.Linear(4, 3)).cuda()\nassert isinstance(model, nn.Module)\n",
        "model = nn.DataParallel(nn.Linear(4, 3)).cuda()\nprint(type(model).__name__)\n",
        "model = nn.DataParallel(nn.Linear(4, 3)).cuda()\n"
        "print(len(model.device_ids) if hasattr(model, 'device_ids') else 1)\n",
        "def ids(net):\n    if not isinstance(net, nn.DataParallel):\n        return []\n"
        "    return net.device_ids\n\n\n"
        "model = nn.DataParallel(nn.Linear(4, 3)).cuda()\nprint(len(ids(model)))\n",
        "class Net(nn.Linear):\n    def __init__(self):\n        super().__init__(4, 3)\n        self.gather = 1\n\n\n"
        "model = nn.DataParallel(Net()).cuda()\nprint(model.gather)\n",
        "class Net(nn.Linear):\n    def gather(self, x):\n        return x\n\n\nclass Own(Net):\n    pass\n\n\n"
        "model = Own(4, 3).cuda()\nif torch.cuda.device_count() > 1:\n    model = nn.DataParallel(model)\n"
        "print(model.module.gather(1) if torch.cuda.device_count() > 1 else model.gather(1))\n",
    ],
)
def test_what_asks_before_is_not_refused(made: str) -> None:
    assert told(made) == []


OWN = "class Own(nn.DataParallel):\n    def replicate(self, module, device_ids):\n        return [module]\n\n\n"


def test_a_class_derived_from_nn_data_parallel_is_refused_where_it_is_used() -> None:
    for made in (
        "model = Own(nn.Linear(4, 3).cuda())\n",
        "class Other(Own):\n    pass\n\n\nmodel = Other(nn.Linear(4, 3).cuda())\n",
        "wrap = Own if torch.cuda.device_count() > 1 else nn.DataParallel\nmodel = wrap(nn.Linear(4, 3).cuda())\n",
        "class Other(Own):\n    @classmethod\n    def of(cls, net):\n        return cls(net)\n\n\n"
        "model = Other.of(nn.Linear(4, 3).cuda())\n",
    ):
        [reason] = told(OWN + made)
        assert "derived from nn.DataParallel" in reason
    assert told(OWN + "model = nn.DataParallel(nn.Linear(4, 3)).cuda()\n") == []
    code = convert({Path("train.py"): training().replace(MODEL, OWN + "model = Own(nn.Linear(4, 3))\n", 1)}, "cuda")
    assert "class Own(DataParallel):" in code[Path("train.py")].code  # the exact style keeps its face


IN_PARALLEL = "model = nn.DataParallel(nn.Sequential(nn.Linear(4, 8), nn.Linear(8, 3))).cuda()\n"
SEVERAL = "if torch.cuda.device_count() > 1:\n    "


@pytest.mark.parametrize(
    "line",
    [
        "groups = [p for n, p in model.named_parameters() if 'module.0' in n]",
        "for child in model.children():\n    print(child[0])",
        "print(list(model.modules())[2])",
        "state = {k[7:]: v for k, v in model.state_dict().items()}",
        "first = model._modules['module']",
        "def names(net):\n    return [n for n, _ in net.named_parameters() if n == 'module.0.bias']\n\n\nnames(model)",
    ],
)
def test_code_that_sees_the_wrapper_is_refused(line: str) -> None:
    [reason] = told(f"{IN_PARALLEL}{line}\n")
    assert "sees that the model is inside nn.DataParallel" in reason
    assert told(IN_PARALLEL.replace("model =", f"model = model.cuda()\n{SEVERAL}model =") + f"{line}\n") == []


@pytest.mark.parametrize(
    "line",
    [
        "groups = [p for n, p in model.module.named_parameters() if '0' in n]",
        "decayed = [p for n, p in model.named_parameters() if 'bias' not in n]",
        "for m in model.modules():\n    if isinstance(m, nn.Linear):\n        nn.init.zeros_(m.bias)",
        "state = {k.replace('module.', ''): v for k, v in model.state_dict().items()}",
    ],
)
def test_code_that_sees_the_same_without_the_wrapper_is_not_refused(line: str) -> None:
    assert told(f"{IN_PARALLEL}{line}\n") == []
