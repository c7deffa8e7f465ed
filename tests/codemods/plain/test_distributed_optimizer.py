"""What the plain style writes for Horovod, whose optimizer averages, and what that refuses (DDP624)."""

from __future__ import annotations

from pathlib import Path

import pytest
from ddpify_codemods import Result, convert

PATH = Path("train.py").absolute()
BEGIN = """\
import torch
from torch.utils.data import DataLoader, TensorDataset

loader = DataLoader(TensorDataset(torch.rand(64, 4), torch.rand(64, 1)), batch_size=8, shuffle=True)
model = torch.nn.Linear(4, 1)
"""
OPTIMIZER = "optimizer = torch.optim.SGD(model.parameters(), lr=0.1)\n"
LOSS = "    loss = torch.nn.functional.mse_loss(model(x), y)\n    optimizer.zero_grad()\n"


def converted(body: str, begin: str = BEGIN + OPTIMIZER) -> Result:
    return convert({PATH: begin + body}, "horovod", style="plain")[PATH]


def refusals(result: Result) -> list[str]:
    return [f"{each.rule}:{each.line}" for each in result.findings if each.severity == "refused"]


def test_what_looks_at_gradients_waits_for_the_averages() -> None:
    body = (
        f"for x, y in loader:\n{LOSS}    loss.backward()\n    print(model.weight.grad.norm())\n    optimizer.step()\n"
    )
    found = converted(body).code
    assert "    loss.backward()\n    optimizer.synchronize()\n    print(" in found
    assert "    with optimizer.skip_synchronize():\n        optimizer.step()\n" in found


def test_what_does_not_look_at_them_waits_for_nothing() -> None:
    body = (
        f"total = 0.0\nfor x, y in loader:\n{LOSS}    loss.backward()\n    total += loss.item()\n    optimizer.step()\n"
    )
    found = converted(body).code
    assert "hvd.DistributedOptimizer(optimizer" in found
    assert "synchronize" not in found


def test_a_step_of_a_scaler_waits() -> None:
    step = "    scaler.scale(loss).backward()\n    scaler.step(optimizer)\n    scaler.update()\n"
    found = converted(f"scaler = torch.amp.GradScaler()\nfor x, y in loader:\n{LOSS}{step}").code
    assert "    scaler.scale(loss).backward()\n    optimizer.synchronize()\n" in found
    assert "    with optimizer.skip_synchronize():\n        scaler.step(optimizer)\n" in found


def test_zero_grad_takes_no_argument() -> None:
    body = f"for x, y in loader:\n{LOSS}    loss.backward()\n    optimizer.step()\n"
    found = converted(body.replace("zero_grad()", "zero_grad(set_to_none=True)"))
    assert "    optimizer.zero_grad()\n" in found.code
    assert refusals(converted(body.replace("zero_grad()", "zero_grad(set_to_none=False)"))) == ["DDP624:9"]


def test_an_optimizer_without_a_name_is_wrapped_where_it_is_made() -> None:
    begin = f"{BEGIN}def make():\n    return torch.optim.SGD(model.parameters(), lr=0.1)\n\noptimizer = make()\n"
    found = converted(f"for x, y in loader:\n{LOSS}    loss.backward()\n    optimizer.step()\n", begin)
    wrapped = "hvd.DistributedOptimizer(torch.optim.SGD(model.parameters(), lr=0.1), named_parameters="
    assert wrapped in found.code or refusals(found)


def test_an_optimizer_of_another_file_is_known_by_its_step() -> None:
    main = f"from loop import train\n{BEGIN}{OPTIMIZER}for epoch in range(2):\n    train(model, loader, optimizer)\n"
    body = LOSS.replace("    ", "        ").replace("zero_grad()", "zero_grad(set_to_none=True)")
    loop = f"import torch\n\n\ndef train(model, loader, optimizer):\n    for x, y in loader:\n{body}"
    loop += "        loss.backward()\n        optimizer.step()\n"
    results = convert({PATH: main, PATH.with_name("loop.py"): loop}, "horovod", style="plain")
    assert not [each for result in results.values() for each in refusals(result)]
    assert "        optimizer.zero_grad()\n" in results[PATH.with_name("loop.py")].code
    assert "hvd.DistributedOptimizer(optimizer" in results[PATH].code


REFUSED = {
    "steps of several passes": "for i, (x, y) in enumerate(loader):\n{LOSS}    loss.backward()\n"
    "    if i % 2:\n        optimizer.step()\n",
    "two passes for a step": "for x, y in loader:\n{LOSS}    loss.backward(retain_graph=True)\n    print(1)\n"
    "    loss.backward()\n    optimizer.step()\n",
    "parameters that come later": "optimizer.add_param_group(dict(params=[torch.nn.Parameter(torch.ones(1))]))\n"
    "for x, y in loader:\n{LOSS}    loss.backward()\n    optimizer.step()\n",
    "another optimizer": "other = torch.optim.SGD(model.parameters(), lr=0.1)\nfor x, y in loader:\n{LOSS}"
    "    loss.backward()\n    optimizer.step()\n    other.step()\n",
}


@pytest.mark.parametrize("name", REFUSED)
def test_refused(name: str) -> None:
    found = converted(REFUSED[name].replace("{LOSS}", LOSS))
    assert any(each.startswith("DDP624") for each in refusals(found)), found.findings


def test_lost_options_are_refused() -> None:
    begin = f"{BEGIN}optimizer = torch.optim.Adagrad(model.parameters(), initial_accumulator_value=0.1)\n"
    found = converted(f"for x, y in loader:\n{LOSS}    loss.backward()\n    optimizer.step()\n", begin)
    assert refusals(found) == ["DDP624:6"]


def test_the_names_of_parameters_are_those_where_the_optimizer_is_made() -> None:
    trainer = """
class Trainer:
    def __init__(self, model, optimizer):
        self.model = model.to("cpu")
        self.optimizer = optimizer

    def fit(self):
        for x, y in loader:
            loss = torch.nn.functional.mse_loss(self.model(x), y)
            self.optimizer.zero_grad()
            loss.backward()
            self.optimizer.step()


"""
    found = converted(trainer + "Trainer(model, optimizer).fit()\n")
    assert "named_parameters=model.named_parameters())" in found.code and "self.model.named" not in found.code
    made = "def made(parameters):\n    return torch.optim.SGD(parameters, lr=0.1)\n\n\n"
    rest = f"for x, y in loader:\n{LOSS}    loss.backward()\n    optimizer.step()\n"
    found = converted(f"{made}optimizer = made(model.parameters())\n{rest}", BEGIN)
    assert not refusals(found) and "named_parameters=model.named_parameters())" in found.code
    inside = "".join(
        f"    {line}\n"
        for line in f"model = torch.nn.Linear(4, 1)\noptimizer = made(model.parameters())\n{rest}".splitlines()
    )
    assert refusals(converted(f"{made}def main():\n{inside}\n\nmain()\n", BEGIN.replace("model =", "other ="))) == [
        "DDP624:7"
    ]


def test_an_optimizer_that_a_setting_leaves_out_is_wrapped_as_the_other_one() -> None:
    adam = OPTIMIZER.replace("SGD", "Adam")
    chosen = f'KIND = "adam"\nif KIND == "sgd":\n    {OPTIMIZER}else:\n    {adam}'
    found = converted(f"{chosen}for x, y in loader:\n{LOSS}    loss.backward()\n    optimizer.step()\n", BEGIN)
    assert not refusals(found) and found.code.count("    optimizer = hvd.DistributedOptimizer(optimizer") == 2
