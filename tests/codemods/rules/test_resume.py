"""What --resume writes: which loops, what they carry, what is restored; and what it refuses."""

from __future__ import annotations

from pathlib import Path

import pytest
from ddpify_codemods import Result, convert

PATH = Path("train.py")
HEAD = """\
import time
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

loader = DataLoader(TensorDataset(torch.rand(8, 2), torch.rand(8, 1)), batch_size=2)
model = nn.Linear(2, 1).to("cpu")
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
"""
STEP = """
        optimizer.zero_grad()
        loss = nn.functional.mse_loss(model(x), y)
        loss.backward()
        optimizer.step()
"""


def resumed(body: str, head: str = HEAD) -> Result:
    return convert({PATH: head + body}, "cpu", resume="checkpoints")[PATH]


def written(body: str, head: str = HEAD) -> list[str]:
    """The lines with names of --resume, stripped, without the import."""
    result = resumed(body, head)
    assert not [each for each in result.findings if each.severity == "refused"], result.findings
    again = convert({PATH: result.code}, "", resume="checkpoints")[PATH]
    assert again.code == result.code
    words = ("restore(", "resumable(", "carried(")
    return [line.strip() for line in result.code.splitlines() if any(word in line for word in words)]


def test_loops_and_what_they_carry() -> None:
    lines = written(f"""
best, history = 1.0, []
for epoch in range(3):
    start, total = time.time(), 0.0
    for x, y in loader:{STEP}        total += loss.item()
    history.append(total)
    best = min(best, total)
    print(best, loss.item(), time.time() - start)
""")
    assert lines == [
        "restore(model=model, optimizer=optimizer, history=history)",
        "for epoch in resumable(range(3)):",
        "best = carried(best)",
        "for x, y in resumable(loader):",
        "total = carried(total)",
    ]


def test_a_function_and_an_object_of_its_own() -> None:
    lines = written(f"""
class Average:
    def update(self, value):
        self.total = value


def train(model, step):
    average = Average()
    for x, y in loader:{STEP}        average.update(loss.item())
        step += 1
    return step


def main():
    step = 0
    for epoch in range(3):
        step = train(model, step)


main()
""")
    assert lines == [
        "for x, y in resumable(loader):",
        "step, average = carried(step, average)",
        "restore(model=model, optimizer=optimizer)",
        "for epoch in resumable(range(3)):",
        "step = carried(step)",
    ]


def test_what_the_epoch_makes_of_the_model_before_its_steps_is_carried() -> None:
    lines = written(f"""
for epoch in range(3):
    before = float(model.weight.sum())
    order = torch.randperm(4)
    for x, y in loader:{STEP}
    print(before, order)
""")
    assert "before = carried(before)" in lines


def test_a_loop_without_epochs() -> None:
    lines = written("""
seen = 0
for x, y in loader:
    optimizer.zero_grad()
    model(x).sum().backward()
    optimizer.step()
    seen += len(x)
print(seen)
""")
    assert lines[1:] == ["for x, y in resumable(loader):", "seen = carried(seen)"]


def test_one_training_after_another() -> None:
    lines = written(f"""
def fit(epochs):
    best = 1.0
    for epoch in range(epochs):
        for x, y in loader:{STEP.replace("        ", "            ")}
        best = min(best, loss.item())
    return best


fit(2)
fit(3)
""")
    assert lines[-1] == "best = carried(best)" and lines.count("best = carried(best)") == 2


def test_two_loops_in_an_epoch_are_told() -> None:
    loop = f"    for x, y in loader:{STEP}"
    result = resumed(f"\nfor epoch in range(3):\n{loop}{loop}")
    assert [(each.rule, each.severity) for each in result.findings] == [("DDP126", "note")]
    assert result.code.count("resumable(") == 1


REFUSED = {
    "`while` loop": f"while True:\n    for x, y in loader:{STEP}",
    "next()": f"items = iter(loader)\nfor step in range(3):\n        x, y = next(items){STEP}",
    "built anew": "for epoch in range(2):\n    optimizer = torch.optim.SGD(model.parameters(), lr=1)\n"
    f"    for x, y in loader:{STEP}",
    "step is assigned in a function": "step = 0\n\n\ndef note():\n    global step\n    step += 1\n\n\n"
    f"for x, y in loader:{STEP}        note()\n",
    "kept may be read before": "for i, (x, y) in enumerate(loader):\n        if i % 2 == 0:\n            kept = x\n"
    f"        x = kept{STEP}",
    "total is added up": "total = 0\nfor i, (x, y) in enumerate(loader):\n    total = total + model(x).sum()\n"
    "    if i % 2:\n        total.backward()\n        optimizer.step()\n        total = 0\n",
    "a checkpoint of its own": "import os\nif os.path.exists('a.pt'):\n"
    "    optimizer.load_state_dict(torch.load('a.pt'))\n"
    f"for x, y in loader:{STEP}",
    "within another loop": f"def fit():\n    for x, y in loader:{STEP}\n\nfit()\nfor epoch in range(2):\n    fit()\n",
}


@pytest.mark.parametrize("message", REFUSED)
def test_refused(message: str) -> None:
    body = f"\n{REFUSED[message]}"
    result = resumed(body)
    found = [each for each in result.findings if each.rule == "DDP126" and each.severity == "refused"]
    assert len(found) == 1 and message in found[0].message and found[0].remedy, result.findings
    assert result.code == HEAD + body


def test_what_is_distributed_already() -> None:
    code = "import torch.distributed as dist\ndist.init_process_group('gloo')\n" + HEAD + f"for x, y in loader:{STEP}"
    found = convert({PATH: code}, "cpu", resume="checkpoints")[PATH].findings
    assert any(each.severity == "refused" for each in found)


def test_off_by_default_and_taken_out_again() -> None:
    body = f"\nfor epoch in range(3):\n    for x, y in loader:{STEP}"
    plain = convert({PATH: HEAD + body}, "cpu")[PATH].code
    assert "resum" not in plain
    assert convert({PATH: plain}, "", resume="checkpoints")[PATH].code == resumed(body).code
    assert convert({PATH: resumed(body).code}, "")[PATH].code == resumed(body).code
    assert "resum" not in convert({PATH: resumed(body).code}, "none")[PATH].code
