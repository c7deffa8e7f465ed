"""What takes a model before it is wrapped takes the model itself."""

from __future__ import annotations

import ast

import pytest

from tests.codemods.facts.flow.followed import HEAD, wrapped

MADE = "optimizer = torch.optim.SGD(model.parameters(), lr=0.1)\n"
START = HEAD.replace(MADE, "")
FUNCTIONS = """\
def loss_of(model, x, y):
    return F.cross_entropy(model(x), y)


def evaluate(model, loader):
    found = sum(loss_of(model, x, y).item() for x, y in loader)
    LOOK
    return found


def run(model, loader, optimizer=None):
    for x, y in loader:
        loss = loss_of(model, x, y)
        if optimizer is not None:
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()


"""


def _wrapped(before: str, after: str = "evaluate(model, test_loader)", look: str = "pass") -> tuple[list[str], str]:
    source = f"{FUNCTIONS.replace('LOOK', look)}{before}\n{MADE}run(model, train_loader, optimizer)\n{after}\n"
    found = wrapped(source, START)
    calls = [ast.unparse(found.models[0].script.parents[node]) for node in found.calls]
    return calls, " ".join(each.reason for each in found.problems)


@pytest.mark.parametrize("before", ["evaluate(model, test_loader)", "run(model, test_loader)"])
def test_an_evaluation_before_training_takes_the_model(before: str) -> None:
    calls, problems = _wrapped(before, before)
    assert not problems
    assert calls.count(before) == 1 and "run(model, train_loader, optimizer)" in calls


def test_what_is_evaluated_behind_the_optimizer_takes_the_wrapper() -> None:
    calls, problems = _wrapped("")
    assert not problems and "evaluate(model, test_loader)" in calls


@pytest.mark.parametrize(
    ("before", "look", "reason"),
    [
        ("evaluate(model, test_loader)", "model.state_dict()", "reads more of it"),
        ("def both():\n    return evaluate(model, test_loader)\nboth()", "pass", "behind that as well"),
    ],
)
def test_what_takes_both_is_refused(before: str, look: str, reason: str) -> None:
    _, problems = _wrapped(before, "both()" if "both" in before else "evaluate(model, test_loader)", look)
    assert reason in problems


def test_what_trains_before_the_wrapper_is_refused() -> None:
    _, problems = _wrapped("run(model, train_loader, torch.optim.SGD([torch.zeros(1)], lr=0.1))")
    assert problems
