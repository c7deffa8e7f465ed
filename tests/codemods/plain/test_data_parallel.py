"""Scripts for nn.DataParallel, in plain torch: what it did is done without it (DDP613)."""

from __future__ import annotations

import pytest

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


def test_of_two_ways_that_for_one_gpu_stays() -> None:
    several = "if torch.cuda.device_count() > 1:\n    print('several')\n    model = nn.DataParallel(model)\n"
    code = parallel(MODEL + several + "else:\n    print('one')\nmodel.cuda()\n")
    assert "\nprint('one')\n" in code and "several" not in code and "device_count() > 1" not in code
    code = parallel(MODEL + several + "model.cuda()\n")
    assert "several" not in code and "device_count() > 1" not in code


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
