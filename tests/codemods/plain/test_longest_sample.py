"""Models that look at how long the longest sample of their batch is: that of all ranks, on each (DDP647)."""

from __future__ import annotations

import ast
import re

import pytest
from ddpify_codemods.result import Result

from .test_followed import plain, refusals, training, undivided

NET = """\
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.cell = nn.RNNCell(1, 3)

    def forward(self, x, y, mask=None):
        {body}


model = Net()
"""
STEPS = """\
state = torch.zeros(len(x), 3)
        for step in range({turns}):
            state = self.cell(x[:, step : step + 1], state)
        return state"""


def converted(body: str, loss: str = "F.cross_entropy(model(x, y), y)") -> Result:
    """A script with such a model."""
    return plain(training(loss).replace("model = nn.Linear(4, 3)\n", NET.format(body=body)))


def net(body: str, loss: str = "F.cross_entropy(model(x, y), y)") -> list[str]:
    """Why it is refused."""
    return refusals(converted(body, loss))


def asked(body: str) -> list[str]:
    """What ranks agree on in it."""
    result = converted(body)
    assert not refusals(result)
    calls = (each for each in ast.walk(ast.parse(result.code)) if isinstance(each, ast.Call))
    return [ast.unparse(each.args[0]) for each in calls if ast.unparse(each.func) == "max_over_ranks"]


@pytest.mark.parametrize("turns", ["max(y)", "y.max()", "max(y.tolist())"])
def test_as_many_steps_as_the_longest_sample_has_are_those_of_all_ranks(turns: str) -> None:
    assert asked(STEPS.format(turns=turns)) == [turns]


@pytest.mark.parametrize("turns", ["4", "x.size(1)", "x.shape[1]"])
def test_as_many_steps_as_every_sample_has_are_divided(turns: str) -> None:
    assert not asked(STEPS.format(turns=turns))


@pytest.mark.parametrize(
    ("end", "largest"), [("y.max()", ["y.max()"]), ("max(y)", ["max(y)"]), ("3", []), ("x.size(1) - 1", [])]
)
def test_samples_are_cut_behind_the_longest_of_all_ranks(end: str, largest: list[str]) -> None:
    assert asked(f"return torch.ones(1, 3) * x[:, :{end}].sum(1, keepdim=True) * self.cell.bias_ih") == largest


MASKED = "F.cross_entropy(model(x, y, x > 0.5), y)"
OWN = """\
if {test}:
            x = x * mask
        return x.sum(1, keepdim=True) * self.cell.bias_ih"""


@pytest.mark.parametrize("test", ["mask != None", "mask is not None", "not mask == None"])
def test_a_mask_that_may_be_none_says_the_same_on_all_ranks(test: str) -> None:
    assert bool(net(OWN.format(test=test), MASKED)) is test.startswith("not")  # seen where it is the whole test


@pytest.mark.parametrize("test", ["mask.any() != None and mask.any()", "mask.sum() != 0", "mask.all()"])
def test_what_a_mask_holds_does_not(test: str) -> None:
    assert net(OWN.format(test=test), MASKED)


@pytest.mark.parametrize("turns", ["int(max(y))", "y.max()"])
def test_a_comprehension_of_as_many_turns_takes_those_of_all_ranks(turns: str) -> None:
    assert asked(f"return torch.stack([self.cell(x[:, t : t + 1]) for t in range({turns})], 1).mean(1)") == [turns]


def test_a_comprehension_of_as_many_turns_as_every_sample_has_is_divided() -> None:
    assert not net("return torch.stack([self.cell(x[:, t : t + 1]) for t in range(x.size(1))], 1).mean(1)")


@pytest.mark.parametrize(("amount", "right"), [("9 - int(y.max())", False), ("9 - x.size(1)", True)])
def test_samples_that_are_padded_by_what_a_rank_lacks_are_refused(amount: str, right: bool) -> None:
    assert bool(net(f"return F.pad(x, (0, {amount}), value=1.0).mean(1, True) * self.cell.bias_ih")) is not right


@pytest.mark.parametrize(("places", "largest"), [("int(y.max())", ["int(y.max())"]), ("3", [])])
def test_samples_are_taken_up_to_the_longest_of_all_ranks(places: str, largest: list[str]) -> None:
    assert asked(f"return x[:, torch.arange({places})].mean(1, True) * self.cell.bias_ih") == largest


@pytest.mark.parametrize(
    ("before", "cut"),
    [
        ("", "x[:, : y.max()]"),
        ("longest = max(y.tolist()); ", "x[:, :longest]"),
        ("longest = int(y.max()); ", "x[:, 1:longest]"),
        ("", "x.t()[: y.max()].t()"),
    ],
)
def test_samples_that_are_cut_before_a_model_are_as_long_as_the_longest_of_all_ranks(before: str, cut: str) -> None:
    loss = f"F.cross_entropy(model({cut}.sum(1, keepdim=True) * torch.ones(1, 4)), y)"
    source = training(loss).replace(
        "        loss =", f"        {before}\n        loss =" if before else "        loss ="
    )
    result = plain(source)
    assert not refusals(result)
    assert re.search(r"whole_batch\(y.*\)\.max\(\)|max\(whole_batch\(y\.tolist\(\)\)\)", result.code)
    assert "differentiable" not in result.code


def test_an_evaluation_that_cuts_its_samples_takes_every_wth_batch() -> None:
    evaluation = """
correct = 0
for x, y in test_loader:
    correct += (model(x[:, : y.max()].sum(1, keepdim=True) * torch.ones(1, 4)).argmax(1) == y).sum().item()
print(correct)
"""
    result = plain(training("F.cross_entropy(model(x), y)") + evaluation)
    assert not refusals(result)
    assert "// 8 % dist.get_world_size() == dist.get_rank()" in result.code


def test_a_mean_of_what_a_model_makes_of_some_samples_is_computed_of_those_of_all_ranks() -> None:
    assert undivided(plain(training("model(x[y > 1]).pow(2).mean()")))
    assert not undivided(plain(training("model(x[y > 1]).pow(2).sum() / len(x)")))


def test_samples_of_this_rank_are_not_put_in_the_order_of_those_of_all_ranks() -> None:
    source = training("F.cross_entropy(model(x), y)")
    for order in ("_, order = x[:, 0].sort()", "order = x[:, 0].argsort()"):
        ordered = source.replace(
            "        loss =", f"        {order}\n        x, y = x[order], y[order]\n        loss ="
        )
        assert refusals(plain(ordered))
