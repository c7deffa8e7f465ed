"""Which way conditions take that are values: whether a loop trains that gets an optimizer, or none."""

from __future__ import annotations

import ast
import textwrap

import pytest
from ddpify_codemods.facts.flow.truth import MAY_TRAIN, is_same_in, truth
from ddpify_codemods.facts.flow.values import NOTHING, SAME, Items, OptimizerValue, Value, of

from tests.codemods.facts.flow.followed import TRAINING, followed

OPTIMIZER = of(OptimizerValue(ast.Call(ast.Name("SGD"), [], []), ()))
ONE_LOOP = """\
def run_epoch(loader, optimizer=None):
    {setup}
    total = 0.0
    with {gradients}:
        for x, y in loader:
            loss = F.cross_entropy(model(x), y)
            if {test}:
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
            total += loss.item() * len(x)
    return total
for epoch in range(2):
    print(run_epoch(train_loader, optimizer), run_epoch(test_loader))
"""


def parsed(text: str) -> ast.expr:
    return ast.parse(text, mode="eval").body


@pytest.mark.parametrize(
    ("test", "value", "holds"),
    [
        ("optimizer", OPTIMIZER, True),
        ("self.optimizer", OPTIMIZER, True),
        ("optimizer", NOTHING, False),
        ("flag", Value(constant=False), False),
        ("optimizer", SAME, None),
        ("found", of(Items("list")), None),  # it may be empty
        ("optimizer", Value(things=OPTIMIZER.things, is_none=None), None),
        ("optimizer", Value(things=OPTIMIZER.things | of(Items("list")).things), None),
        ("make()", OPTIMIZER, None),
    ],
)
def test_an_optimizer_is_true_and_none_is_not(test: str, value: Value, holds: bool | None) -> None:
    assert truth(parsed(test), value) is holds


@pytest.mark.parametrize(
    ("setup", "gradients", "test"),
    [
        ("pass", "torch.enable_grad()", "optimizer"),
        ("pass", "torch.set_grad_enabled(optimizer is not None)", "optimizer"),
        ("trains = optimizer is not None", "torch.enable_grad() if trains else torch.no_grad()", "trains"),
        ("trains = bool(optimizer)", "torch.set_grad_enabled(trains)", "trains"),
        ("evaluates = not optimizer", "torch.enable_grad()", "not evaluates"),
        ("trains = True if optimizer else False", "torch.enable_grad()", "trains"),
    ],
)
def test_a_loop_without_an_optimizer_evaluates(setup: str, gradients: str, test: str) -> None:
    found = followed(ONE_LOOP.format(setup=setup, gradients=gradients, test=test))
    assert not found.problems
    assert sorted(found.status.values()) == ["sharded", "training"]


@pytest.mark.parametrize("test", ["model.training", "flags['train']", "run_epoch.trains"])
def test_whether_a_loop_trains_has_to_be_known(test: str) -> None:
    found = followed(ONE_LOOP.format(setup="pass", gradients="torch.enable_grad()", test=test))
    assert [each.reason for each in found.problems] == [MAY_TRAIN]


def test_a_loop_of_one_loader_may_leave_steps_out() -> None:
    found = followed(
        ONE_LOOP.format(setup="pass", gradients="torch.enable_grad()", test="model.training").replace(
            ", run_epoch(test_loader)", ""
        )
    )
    assert not found.problems


@pytest.mark.parametrize(
    ("test", "same"),
    [("trains", True), ("self.trains", True), ("loss > 3", False), ("step % 4", False), ("f()", False)],
)
def test_what_a_loop_does_not_store_is_the_same_in_it(test: str, same: bool) -> None:
    (loop,) = ast.parse("for step, x in loader:\n    loss = model(x)\n    step += 1\n").body
    assert is_same_in(loop, parsed(test)) is same


@pytest.mark.parametrize(
    ("decorator", "default", "test"),
    [
        ("@click.command()\n@click.option('--each', default=None)", "None", "each"),
        ("@click.command()\n@click.option('--each', default=None)", "None", "each is not None"),
        ("@app.command()", "False", "each"),
    ],
)
def test_a_default_is_not_all_that_a_command_line_may_say(decorator: str, default: str, test: str) -> None:
    """`print(loss.item())` below it is shown as the mean over all ranks, and not left as a rank's own."""
    source = f"import click, typer\napp = typer.Typer()\n{decorator}\ndef main(each={default}):\n"
    source += (
        textwrap.indent(TRAINING, "    ") + f"            if {test}:\n                print(loss.item())\nmain()\n"
    )
    read = [ast.unparse(each) for each in followed(source).found.reductions]
    assert read == ["loss.item()"]


@pytest.mark.parametrize("decorator", ["", "@torch.no_grad()", "@functools.lru_cache", "@own"])
def test_the_default_is_known_where_only_the_program_calls(decorator: str) -> None:
    source = "import functools\ndef own(function):\n    return function\n"
    source += f"{decorator}\ndef scaled(x, twice=False):\n    return 2 * x if twice else x\n"
    found = followed(source + TRAINING.replace("model(x)", "model(scaled(x))"))
    assert not found.problems
