"""Ways to write a training script, each converted and run by two real processes that must train what one trained."""

from __future__ import annotations

import itertools
import os
import sys
import time
import warnings
from pathlib import Path
from types import ModuleType
from typing import Any, ClassVar

import pytest
import torch
from ddpify_codemods import convert
from ddpify_runtime.forward import routes

from tests.runtime import processes

STEPS = """\
for step in range(4):
    x = torch.rand(8, 3)
    loss = models["b"](models["a"](x).tanh()).square().mean()
    for optimizer in optimizers.values():
        optimizer.zero_grad()
    loss.backward()
    for optimizer in optimizers.values():
        optimizer.step()
trained = [p.detach() for key in ("a", "b") for p in models[key].parameters()]
"""
TWO_MODELS = 'models = {"a": nn.Linear(3, 3), "b": nn.Linear(3, 1)}\n'

MANY_MODELS = {
    "items": "optimizers = {k: SGD(m.parameters(), lr=0.1) for k, m in models.items()}\n",
    "keys": "optimizers = {k: SGD(models[k].parameters(), lr=0.1) for k in models}\n",
    "an iterator": (
        "pairs = zip(models.keys(), models.values())\noptimizers = {k: SGD(m.parameters(), lr=0.1) for k, m in pairs}\n"
    ),
    "map": ("optimizers = {'all': SGD(itertools.chain(*map(lambda m: m.parameters(), models.values())), lr=0.1)}\n"),
    "a loop before": (
        "params = []\nfor k in models:\n    params += list(models[k].parameters())\n"
        "optimizers = {'all': SGD(params, lr=0.1)}\n"
    ),
    "a loop around": (
        "optimizers = {}\nfor k in models.keys():\n    optimizers[k] = SGD(models[k].parameters(), lr=0.1)\n"
    ),
    "a ModuleDict": "models = nn.ModuleDict(models)\noptimizers = {'all': SGD(models.parameters(), lr=0.1)}\n",
}


def trained(code: str) -> tuple[list[torch.Tensor], list[bool]]:
    """The parameters after a script, and of each of its distributed modules whether its forward was divided."""
    variables: dict[str, Any] = {"__name__": "__main__"}
    warnings.filterwarnings(
        "ignore", "Grad strides do not match"
    )  # of torch's reducer, about the speed of a 1x4 weight
    exec(compile(code, "train.py", "exec"), variables)
    divided = [call.divided for call in routes.calls]
    return [tensor.clone() for tensor in variables["trained"]], divided


def assert_trains_the_same(source: str, modules: int) -> None:
    """Two processes train what one trained, and divide every forward of that many modules."""
    [result] = convert({Path("train.py"): source}, "cpu").values()
    assert not [finding for finding in result.findings if finding.severity != "note"], result.findings
    [(alone, _)] = processes.run(1, trained, source)
    for parameters, divided in processes.run(2, trained, result.code):
        assert divided == [True] * modules
        for parameter, expected in zip(parameters, alone, strict=True):
            torch.testing.assert_close(parameter, expected, rtol=1e-6, atol=1e-7)


@pytest.mark.parametrize("optimizers", MANY_MODELS.values(), ids=MANY_MODELS)
def test_several_models(optimizers: str) -> None:
    header = "import itertools\nimport torch\nfrom torch import nn\nfrom torch.optim import SGD\ntorch.manual_seed(0)\n"
    assert_trains_the_same(f"{header}{TWO_MODELS}{optimizers}{STEPS}", modules=2)


UNDER_A_CONDITION = {
    "a list": """\
params = list(nets["net"].parameters())
if gated:
    nets["gate"] = nn.Linear(3, 1)
    params += list(nets["gate"].parameters())
optimizers = [SGD(params, lr=0.1)]
""",
    "an optimizer of its own": """\
gate = None
if gated:
    gate = nets["gate"] = nn.Linear(3, 1)
optimizers = [SGD(nets["net"].parameters(), lr=0.1)]
if gated:
    optimizers.append(SGD(gate.parameters(), lr=0.1))
""",
    "without a value before": """\
if not gated:
    pass
else:
    gate = nn.Linear(3, 1)
    nets["gate"] = gate
optimizers = [SGD(nets["net"].parameters(), lr=0.1)]
if gated and optimizers:
    optimizers.append(SGD(gate.parameters(), lr=0.1))
""",
    "an elif": """\
if kind == "none":
    extra = []
elif kind == "linear":
    nets["gate"] = nn.Linear(3, 1)
    extra = list(nets["gate"].parameters())
optimizers = [SGD(list(nets["net"].parameters()) + extra, lr=0.1)]
""",
    "None in another case": """gate = nn.Linear(3, 1) if gated else None
params = list(nets["net"].parameters())
if gate is not None:
    nets["gate"] = gate
    params += list(gate.parameters())
optimizers = [SGD(params, lr=0.1)]
""",
    "a class with a base": """class Base:
    def __init__(self, gated):
        self.is_gated = gated
class Model(Base):
    def __init__(self, gated):
        super().__init__(gated)
        if self.is_gated:
            self.gate = nn.Linear(3, 1)
        self.optimizers = [SGD(nets["net"].parameters(), lr=0.1)]
        if self.is_gated:
            self.optimizers.append(SGD(self.gate.parameters(), lr=0.1))
            nets["gate"] = self.gate
optimizers = Model(gated).optimizers
""",
    "a test that is not asked again": """class Model(nn.Module):
    def __init__(self):
        super().__init__()
        if kind.startswith("l"):
            self.gate = nn.Linear(3, 1)
        params = list(nets["net"].parameters())
        if hasattr(self, "gate"):
            params += list(self.gate.parameters())
            nets["gate"] = self.gate
        self.optimizers = [SGD(params, lr=0.1)]
optimizers = Model().optimizers
""",
}


@pytest.mark.parametrize("gated", [True, False])
@pytest.mark.parametrize("making", UNDER_A_CONDITION.values(), ids=UNDER_A_CONDITION)
def test_a_module_that_a_condition_makes(making: str, gated: bool) -> None:
    source = f"""\
import torch
from torch import nn
from torch.optim import SGD
torch.manual_seed(0)
gated, kind = {gated}, "{"linear" if gated else "none"}"
nets = {{"net": nn.Linear(3, 1)}}
{making}
for step in range(4):
    x = torch.rand(8, 3)
    out = nets["net"](x)
    if gated:
        out = out * nets["gate"](x).sigmoid()
    loss = out.square().mean()
    for optimizer in optimizers:
        optimizer.zero_grad()
    loss.backward()
    for optimizer in optimizers:
        optimizer.step()
trained = [p.detach() for net in nets.values() for p in net.parameters()]
"""
    assert_trains_the_same(source, modules=1 + gated)


BY_HAND = {
    "in a loop": "    with torch.no_grad():\n        for p in model.parameters():\n            p -= 0.1 * p.grad\n",
    "in a function": "    sgd(model.parameters(), 0.1)\n",
    "a list": "    params = list(model.parameters())\n    for p in params:\n        p.data.add_(p.grad, alpha=-0.1)\n",
}
SGD = "def sgd(params, lr):\n    for p in params:\n        p.data = p.data - lr * p.grad\n"


@pytest.mark.parametrize("update", BY_HAND.values(), ids=BY_HAND)
def test_updates_by_hand(update: str) -> None:
    source = f"""\
import torch
torch.manual_seed(0)
{SGD if "sgd(" in update else ""}
model = torch.nn.Linear(3, 1)
for step in range(4):
    model.zero_grad()
    model(torch.rand(8, 3)).square().mean().backward()
{update}
trained = [p.detach() for p in model.parameters()]
"""
    assert_trains_the_same(source, modules=1)


PENALTY = """\
import torch
torch.set_default_dtype(torch.float64)  # a penalty amplifies rounding, otherwise on each CPU
torch.manual_seed(0)


class Solver:
    def __init__(self):
        self.D = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.Tanh(), torch.nn.Linear(4, 1))
        self.optimizer = torch.optim.SGD(self.D.parameters(), lr=0.1)

    def gradient_penalty(self, y, x):
        dydx = torch.autograd.grad(outputs=y, inputs=x, grad_outputs=torch.ones(y.size()), create_graph=True)[0]
        return torch.mean((dydx.norm(dim=1) - 1) ** 2)

    def train(self):
        for step in range(4):
            x_hat = torch.rand(8, 3).requires_grad_(True)
            out = self.D(x_hat)
            loss = out.mean() + 10 * self.gradient_penalty(out, x_hat)
            self.optimizer.zero_grad()
            loss.backward()
            self.optimizer.step()


solver = Solver()
solver.train()
trained = [p.detach() for p in solver.D.parameters()]
"""


def test_a_gradient_penalty_in_a_method() -> None:
    assert_trains_the_same(PENALTY, modules=1)


BUDGET = """\
import time
import torch
torch.manual_seed(0)
model = torch.nn.Linear(3, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
start = last = time.time()
stop, trained = False, []
while not stop and time.time() - start < 100:
    optimizer.zero_grad()
    model(torch.rand(8, 3)).mean().backward()
    optimizer.step()
    trained.append(model.weight.detach().clone())
    now = time.time()
    if now - last > 5:
        trained.append(model.bias.detach().clone())
        last = now
    if time.time() - start > 20:
        stop = True
"""


def trained_by_a_clock(code: str, speeds: tuple[int, ...]) -> list[torch.Tensor]:
    """What a script leaves in `trained`, where the clock of this rank moves so many seconds at each look."""
    looks = itertools.count()
    speed = speeds[int(os.environ["RANK"])]
    time.time = lambda: float(next(looks) * speed)
    return trained(code)[0]


def test_the_clock_of_rank_0_decides() -> None:
    [result] = convert({Path("train.py"): BUDGET}, "cpu").values()
    first, second = processes.run(2, trained_by_a_clock, result.code, (1, 3))
    assert len(first) > 5
    assert [tensor.tolist() for tensor in first] == [tensor.tolist() for tensor in second]


# Each reads the number of the run from {path} and writes the next one there, an epoch each.
READS = "number = json.load(open(path))"
COUNTERS = {
    "with": f"{READS}\n    with open(path, 'w') as file:\n        json.dump(number + 1, file)",
    "one statement": f"{READS}\n    json.dump(number + 1, open(path, 'w'))",
    "closed": f"{READS}\n    file = open(path, 'w')\n    json.dump(number + 1, file)\n    file.close()",
    "appended": "number = len(open(path).read())\n    open(path, 'a').write('1')",
    "read at once": "number = 1\n    json.dump(json.load(open(path)) + 1, open(path, 'w'))",
}


def trained_slowly(code: str, path: str) -> list[list[float]]:
    """What a script leaves in `trained`, where a rank is slow to read."""
    read = open

    def slow(file: Any, mode: str = "r") -> Any:
        time.sleep(0.2 * int(os.environ["RANK"]) * (mode == "r"))
        return read(file, mode)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("builtins.open", slow)
        return [tensor.tolist() for tensor in trained(code.replace("PATH", path))[0]]


@pytest.mark.parametrize("counter", COUNTERS.values(), ids=COUNTERS)
def test_all_have_read_a_file_before_it_is_written_anew(counter: str, tmp_path: Path) -> None:
    source = f"""\
import json
import torch
torch.manual_seed(0)
path = "PATH"
model = torch.nn.Linear(3, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
trained = []
for epoch in range(3):
    {counter}
    trained.append(torch.tensor(float(number)))
    optimizer.zero_grad()
    model(torch.rand(8, 3)).square().mean().backward()
    optimizer.step()
trained.append(torch.tensor(float(json.load(open(path)))))
"""
    [result] = convert({Path("train.py"): source}, "cpu").values()
    found = []
    for name, code, ranks in [("one", source, 1), ("three", result.code, 3)]:
        path = tmp_path / name
        path.write_text("1")
        found += processes.run(ranks, trained_slowly, code, str(path))
    assert found[1:] == found[:1] * 3


# Training steps that hold more than one model's optimizer: an attack on the inputs, a climb before the step.
ATTACK = """\
    delta = torch.zeros_like(x).requires_grad_()
    attack = torch.optim.SGD([delta], lr=0.5)
    for _ in range(2):
        attack.zero_grad()
        (-model(x + delta).square().mean()).backward()
        attack.step()
    optimizer.zero_grad()
    model(x + delta.detach()).square().mean().backward()
    optimizer.step()
"""
CLIMB = """\
    model(x).square().mean().backward()
    optimizer.climb()
    model(x).square().mean().backward()
    optimizer.step()
"""
SHARP = """\
class Sharp(torch.optim.Optimizer):
    def __init__(self, params, base, **options):
        super().__init__(params, options)
        self.base = base(self.param_groups, **options)
        self.param_groups = self.base.param_groups

    @torch.no_grad()
    def climb(self):
        for group in self.param_groups:
            for p in group["params"]:
                self.state[p]["step"] = step = 0.05 * p.grad
                p.add_(step)
        self.zero_grad()

    @torch.no_grad()
    def step(self):
        for group in self.param_groups:
            for p in group["params"]:
                p.sub_(self.state[p]["step"])
        self.base.step()
        self.zero_grad()


"""


@pytest.mark.parametrize(
    ("head", "optimizer", "step"),
    [
        ("", "torch.optim.SGD(model.parameters(), lr=0.1)", ATTACK),
        (SHARP, "Sharp(model.parameters(), torch.optim.SGD, lr=0.1)", CLIMB),
    ],
    ids=["an attack", "sharpness"],
)
def test_more_than_one_step_for_each_batch(head: str, optimizer: str, step: str) -> None:
    source = f"""\
import torch
torch.manual_seed(0)
{head}
model = torch.nn.Linear(3, 1)
optimizer = {optimizer}
for number in range(4):
    x = torch.rand(8, 3)
{step}
trained = [p.detach() for p in model.parameters()]
"""
    assert_trains_the_same(source, modules=1)


PICTURES = """\
import torch
from torch.utils.data import DataLoader, Dataset
from torch.utils.tensorboard import SummaryWriter

class Pictures(Dataset):
    def __init__(self):
        self.pictures, self.loaded = torch.rand(35, 3, 4, 4), 0

    def __len__(self):
        return 35

    def __getitem__(self, index):
        self.loaded += 1
        return self.pictures[index]

torch.manual_seed(0)
data = Pictures()
loader = DataLoader(data, batch_size=8, shuffle=True)
model = torch.nn.Conv2d(3, 3, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
writer = SummaryWriter("logs")
for number, x in enumerate(loader):
    y = model(x)
    loss = (y - x).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if number == 1:
        writer.add_graph(model, x)
    writer.add_image("first", y[0].detach(), number)
    writer.add_images("all", x, global_step=number)
trained = [p.detach() for p in model.parameters()]
"""


class Writer:
    """What is shown to it, as a writer of TensorBoard gets it."""

    shown: ClassVar[list[torch.Tensor]] = []

    def __init__(self, folder: str) -> None:
        Writer.shown.clear()

    def add_image(self, tag: str, image: torch.Tensor, global_step: int) -> None:
        Writer.shown.append(image.clone())

    add_images = add_image

    def add_graph(self, model: torch.nn.Module, given: torch.Tensor) -> None:
        Writer.shown.append(model(given).detach())


def pictures(code: str) -> tuple[list[torch.Tensor], list[torch.Tensor], int]:
    """The parameters after a script, what its writer was shown on this rank, and how many samples it loaded."""
    module = ModuleType("torch.utils.tensorboard")
    module.SummaryWriter = Writer  # type: ignore[attr-defined]
    sys.modules[module.__name__] = module
    variables: dict[str, Any] = {"__name__": "__main__"}
    exec(compile(code, "train.py", "exec"), variables)
    parameters = [tensor.clone() for tensor in variables["trained"]]
    return parameters, [tensor.clone() for tensor in Writer.shown], variables["data"].loaded


def test_pictures_are_shown_whole_of_batches_that_are_loaded_in_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DDPIFY_RANDOM", "")
    [result] = convert({Path("train.py"): PICTURES}, "cpu").values()
    assert not result.findings
    [(alone, shown, _)] = processes.run(1, pictures, PICTURES)
    ranks = processes.run(2, pictures, result.code)
    for parameters, of_rank, _ in ranks:
        assert len(of_rank) in (0, len(shown))
        for one, other in zip([*parameters, *of_rank], [*alone, *shown][: 2 + len(of_rank)], strict=True):
            torch.testing.assert_close(one, other, rtol=1e-6, atol=1e-7)
    assert [len(of_rank) for _, of_rank, _ in ranks] == [len(shown), 0]
    assert sum(loaded for *_, loaded in ranks) == 2 * 8 + 27  # the first batch is looked at whole, by both


OF_A_TEMPLATE = """\
import numpy as np
import torch
from torch.utils.data import DataLoader, Dataset
from torch.utils.data.dataloader import default_collate
from torch.utils.data.sampler import SubsetRandomSampler


class Numbers(Dataset):
    def __init__(self):
        self.loaded = 0

    def __len__(self):
        return 60

    def __getitem__(self, index):
        self.loaded += 1
        return torch.full((4,), index / 60), torch.tensor([index / 30])


class BaseDataLoader(DataLoader):
    def __init__(self, dataset, batch_size, split, collate_fn=default_collate):
        self._labels = self._size = len(dataset)
        order = np.random.permutation(len(dataset))
        self.sampler, self.valid_sampler = map(SubsetRandomSampler, (order[split:], order[:split]))
        self.init_kwargs = {"dataset": dataset, "batch_size": batch_size, "collate_fn": collate_fn}
        super().__init__(sampler=self.sampler, **self.init_kwargs)

    def split_validation(self):
        return DataLoader(sampler=self.valid_sampler, **self.init_kwargs)


class NumbersLoader(BaseDataLoader):
    def __iter__(self):
        for x, y in super().__iter__():
            yield x * 2, y


np.random.seed(0)
torch.manual_seed(0)
data = Numbers()
loader = NumbersLoader(data, 8, 12)
valid = loader.split_validation()
model = torch.nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
trained = []
for epoch in range(4):
    for x, y in loader:
        loss = torch.nn.functional.mse_loss(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    with torch.no_grad():
        total = sum(torch.nn.functional.mse_loss(model(x), y).item() for x, y in valid)
    trained.append(torch.tensor(total))
trained += [p.detach() for p in model.parameters()]
"""


def trained_with_what_was_loaded(code: str) -> tuple[list[torch.Tensor], int]:
    variables: dict[str, Any] = {"__name__": "__main__"}
    exec(compile(code, "train.py", "exec"), variables)
    return [torch.as_tensor(each).clone() for each in variables["trained"]], variables["data"].loaded


def test_a_loader_of_a_class_of_the_script_s_own_loads_its_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DDPIFY_RANDOM", "")
    [result] = convert({Path("train.py"): OF_A_TEMPLATE}, "cpu").values()
    assert not result.findings
    [(alone, everything)] = processes.run(1, trained_with_what_was_loaded, OF_A_TEMPLATE)
    for found, loaded in processes.run(2, trained_with_what_was_loaded, result.code):
        torch.testing.assert_close(found, alone)
        assert loaded < 0.7 * everything  # the first batches are loaded whole
