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
    words = ("restore(", "resumable(", "carried(", "goes_on(", "counted(")
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


def test_a_name_that_was_imported_before_it_is_assigned() -> None:
    head = HEAD.replace("optimizer", "optim").replace("import time", "import time\nimport torch.optim as optim")
    lines = written(f"for x, y in loader:{STEP.replace('optimizer', 'optim')}", head)
    assert lines[0] == "restore(model=model, optim=optim)"


def test_a_model_that_is_told_its_mode_is_not_carried() -> None:
    lines = written(f"for epoch in range(2):\n    model = model.train()\n    for x, y in loader:{STEP}")
    assert lines[1:] == ["for epoch in resumable(range(2)):", "for x, y in resumable(loader):"]


def test_folds() -> None:
    lines = written(f"""
scores = []
for fold in range(5):
    model = nn.Linear(2, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    best = 0.0
    for epoch in range(2):
        for x, y in loader:{STEP.replace("        ", "            ")}
        best = max(best, loss.item())
    scores.append(best)
""")
    assert lines == [
        "restore(model=model, optimizer=optimizer)",
        "for epoch in resumable(range(2)):",
        "best = carried(best)",
        "for x, y in resumable(loader):",
        "best = carried(best)",
    ]


def test_a_while_loop() -> None:
    lines = written(f"""
step = 0
while step < 10:
    for x, y in loader:{STEP}        step += 1
""")
    assert lines == [
        "restore(model=model, optimizer=optimizer)",
        "while goes_on(step < 10):",
        "step = carried(step)",
        "for x, y in resumable(loader):",
        "step = carried(step)",
    ]


def test_an_iterator_that_is_begun_anew() -> None:
    lines = written(f"""
items = iter(loader)
for step in range(10):
        try:
            x, y = next(items)
        except StopIteration:
            items = iter(loader)
            x, y = next(items){STEP}        shown = next(iter(loader))
""")
    assert lines == [
        "items = iter(counted(loader))",
        "restore(model=model, optimizer=optimizer)",
        "for step in resumable(range(10)):",
        "items = carried(items)",
        "items = iter(counted(loader))",
    ]


def test_an_iterator_that_never_ends() -> None:
    lines = written(f"""
def forever(loader):
    while True:
        yield from loader


items = forever(loader)
for step in range(10):
        x, y = next(items){STEP}""")
    assert lines == [
        "items = counted(forever(loader))",
        "restore(model=model, optimizer=optimizer, items=items)",
        "for step in resumable(range(10)):",
    ]


def test_a_variable_of_the_module_that_functions_assign() -> None:
    lines = written(f"""
best = 0


def test():
    global best
    best = max(best, 1)


for epoch in range(10):
    for x, y in loader:{STEP}
    test()
""")
    assert lines[2:] == ["best = carried(best)", "for x, y in resumable(loader):"]


def test_a_checkpoint_of_its_own() -> None:
    lines = written(f"""
import os
start, best = 0, 0.0
if os.path.exists("a.pt"):
    kept = torch.load("a.pt")
    model.load_state_dict(kept["model"])
    best, start = kept["best"], kept["epoch"] + 1
for epoch in range(start, 10):
    for x, y in loader:{STEP}
    best = max(best, loss.item())
""")
    assert lines[:3] == [
        "start = restore(start, model=model, optimizer=optimizer)",
        "for epoch in resumable(range(start, 10)):",
        "best = carried(best)",
    ]


def test_a_checkpoint_that_an_option_names() -> None:
    lines = written(f"""
import argparse


def main(args, model):
    args.start = 0
    if args.resume:
        load(args, model)
    train(args.start, 10)


def load(args, model):
    kept = torch.load(args.resume)
    model.load_state_dict(kept["model"])
    args.start = kept["epoch"]


def train(start, end):
    for epoch in range(start, end):
        for x, y in loader:{STEP.replace("        ", "            ")}

main(argparse.ArgumentParser().parse_args(), model)
""")
    assert lines[0] == "start = restore(start, model=model, optimizer=optimizer)"


def test_two_loops_in_an_epoch_are_told() -> None:
    loop = f"    for x, y in loader:{STEP}"
    result = resumed(f"\nfor epoch in range(3):\n{loop}{loop}")
    assert [(each.rule, each.severity) for each in result.findings] == [("DDP126", "note")]
    assert result.code.count("resumable(") == 1


REFUSED = {
    "`while` loop assigns": f"step = 0\nwhile (step := step + 1) < 3:\n    for x, y in loader:{STEP}",
    "the test of this `while` loop trains": "def update():\n    for x, y in loader:"
    f"{STEP}    return loss.item() > 1\n\n\nwhile update():\n    print('on')\n",
    "it is not seen what next(items)": f"items = made(loader)\nfor step in range(3):\n        x, y = next(items){STEP}",
    "is made in the loop": "def pairs():\n    yield from loader\n\n\nfor epoch in range(2):\n    items = pairs()\n"
    f"    for step in range(3):\n        x, y = next(items){STEP}",
    "another training follows this `while`": "def fit(n):\n    step = 0\n    while step < n:\n        step += 1\n"
    f"        for x, y in loader:{STEP.replace('        ', '            ')}\nfit(1)\nfit(2)\n",
    "depends on a file, which may": f"import os\nif os.path.exists('a.pt'):\n    raise SystemExit\n"
    f"done = os.path.exists('a.pt')\nif done:\n    exit()\nfor x, y in loader:{STEP}",
    "depends on a file": f"import os\nif not os.path.exists('a.pt'):\n    for x, y in loader:{STEP}",
    "built anew": "for epoch in range(2):\n    optimizer = torch.optim.SGD(model.parameters(), lr=1)\n"
    f"    for x, y in loader:{STEP}",
    "step is assigned in a function": "step = 0\n\n\ndef note():\n    global step\n    step += 1\n\n\ndef main():\n"
    f"    for x, y in loader:{STEP}        note()\n\n\nmain()\n",
    "kept may be read before": "for i, (x, y) in enumerate(loader):\n        if i % 2 == 0:\n            kept = x\n"
    f"        x = kept{STEP}",
    "total is added up": "total = 0\nfor i, (x, y) in enumerate(loader):\n    total = total + model(x).sum()\n"
    "    if i % 2:\n        total.backward()\n        optimizer.step()\n        total = 0\n",
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
