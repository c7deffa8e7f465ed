"""What cannot be followed, or would be other numbers on each rank, is refused (DDP610)."""

from __future__ import annotations

from pathlib import Path

import pytest
from ddpify_codemods import convert

from tests.codemods.plain.test_followed import CE, HEAD, LOOP, plain, refusals, training


@pytest.mark.parametrize(
    "source",
    [
        training().replace("in train_loader", "in list(train_loader)"),
        training()
        .replace("optimizer =", "from functools import partial\nf = partial(model)\noptimizer =")
        .replace("model(x)", "f(x)"),
        training()
        .replace("nn.Linear(4, 3)", "nn.Sequential(nn.Linear(4, 8), nn.Linear(8, 3))")
        .replace("model(x)", "model[1](model[0](x))"),
        training(after="    for p in model.parameters(): p.requires_grad = False\n"),
        training(step="loss.backward()"),
    ],
)
def test_a_model_or_loader_that_cannot_be_followed_is_refused(source: str) -> None:
    assert refusals(plain(source))


def test_an_exception_that_one_rank_goes_on_after_is_refused() -> None:
    source = training().replace("        loss = ", "        try:\n            loss = ")
    source = source.replace("        optimizer.zero_grad()\n", "            optimizer.zero_grad()\n")
    source = source.replace("        loss.backward()\n", "            loss.backward()\n")
    assert refusals(plain(source.replace("        optimizer.step()", "        except RuntimeError:\n            pass")))


STEPS = """\
def train(model, loader, optimizer):
    for x, y in loader:
        loss = F.cross_entropy(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


"""


IMPORTS = "import importlib\nimport torch\nimport torch.nn.functional as F\n\n\n"


@pytest.mark.parametrize(
    ("first", "line", "may_run"),
    [
        ("import helpers", "model.train()", False),
        ("import helpers", "jobs[0] = helpers.train", True),
        ("from helpers import train as fit", "jobs[0] = fit", True),
        ("import helpers", 'jobs[0] = importlib.import_module("helpers").train', True),
        ("import helpers", 'tools = importlib.import_module("helpers")\njobs[0] = tools.train', True),
    ],
)
def test_a_training_function_that_another_file_may_use_is_not_passed_over(first: str, line: str, may_run: bool) -> None:
    """`model.train()` is no use of the function `train`."""
    script = f"import importlib\n{first}\n{training()}\njobs = {{}}\n{line}\n"
    found = convert({Path("train.py"): script, Path("helpers.py"): IMPORTS + STEPS}, "cpu", style="plain")
    assert any(map(refusals, found.values())) is may_run


def test_a_training_function_that_only_others_name_is_passed_over() -> None:
    """Those of a library of the script's own, which it takes something else from."""
    helpers = (
        IMPORTS + STEPS + "def fit(model):\n    train(model, [], None)\n\n\ndef seed():\n    torch.manual_seed(1)\n"
    )
    script = f"import helpers\n{training()}\n"
    for used, refused in (("seed()", False), ("fit(model)", True)):
        files = {Path("train.py"): f"{script}helpers.{used}\n", Path("helpers.py"): helpers}
        assert any(map(refusals, convert(files, "cpu", style="plain").values())) is refused


CLOSURE = """\
        def closure():
            optimizer.zero_grad()
            loss = F.cross_entropy(model(x), y)
            loss.backward()
            return loss
        optimizer.step({})
"""


def test_a_step_with_a_closure_is_refused_with_its_reason() -> None:
    loop = f"    for x, y in train_loader:\n{CLOSURE}"
    for given in ("closure", "closure=closure"):
        source = f"{HEAD}for epoch in range(2):\n{loop.format(given)}".replace("SGD", "LBFGS")
        (reason,) = refusals(plain(source))
        assert "the optimizer calls this as often as" in reason
    never = f"\n\ndef fit():\n{loop.format('closure')}"
    assert not refusals(plain(training(after=never)))


OTHERS = {
    "first.py": """\
import argparse
def shown(x):
    return x
def run(model, x, y):
    model(x).sub(y).mean().backward()
def main(args):
    print(vars(args))
    run(args.model, 1, 2)
if __name__ == "__main__":
    main(argparse.ArgumentParser().parse_args())
""",
    "second.py": """\
from first import run
def halved(x):
    return x / 2
def main(args):
    run(args.model, 1, 2)
if __name__ == "__main__":
    main(None)
""",
}


@pytest.mark.parametrize(("taken", "is_converted"), [("halved", True), ("run", False), ("main", False)])
def test_a_training_step_of_a_file_that_is_a_script_too_is_not_reached(taken: str, is_converted: bool) -> None:
    """An experiment that takes a function from the one before it, which has taken its training from another."""
    source = f"from first import shown\nfrom second import {taken} as taken\n" + HEAD
    source += LOOP.format(loss=CE, step="optimizer.step()") + "def main(args):\n    taken(shown(args))\nmain(7)\n"
    files = {Path("/tmp/project/train.py"): source}
    files |= {Path("/tmp/project") / name: text for name, text in OTHERS.items()}
    result = convert(files, "cpu", style="plain")
    refused = [each for file in result.values() for each in file.findings if each.severity == "refused"]
    assert (not refused) is is_converted
