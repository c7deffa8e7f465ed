"""What losses of torch make of a batch: a mean, a sum, or what is not known."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
import torch

from .test_followed import plain, refusals, training, undivided


@pytest.mark.parametrize(
    ("loss", "scaled"),
    [
        ("nn.MSELoss()(model(x)[:, 0], y.float())", False),
        ("nn.MSELoss(False)(model(x)[:, 0], y.float())", True),
        ("nn.MSELoss(size_average=False)(model(x)[:, 0], y.float())", True),
        ("nn.CrossEntropyLoss(None, False)(model(x), y)", True),
        ("F.mse_loss(model(x)[:, 0], y.float(), False)", True),
        ("F.mse_loss(model(x)[:, 0], y.float(), None, None, 'sum')", None),
        ("nn.MSELoss(size_average=random.random() > 0.5)(model(x)[:, 0], y.float())", None),
        ("nn.MSELoss(reduction=random.choice(['sum', 'mean']))(model(x)[:, 0], y.float())", None),
        ("F.nll_loss(F.log_softmax(model(x), 1), y, None, None, 2)", None),
    ],
)
def test_the_reduction_is_taken_from_every_spelling(loss: str, scaled: bool | None) -> None:
    result = plain(training(loss))
    assert bool(undivided(result)) is (scaled is None)
    if scaled is not None:
        assert ("(loss * dist.get_world_size()).backward()" in result.code) is scaled


def test_a_class_that_hands_on_its_reduction() -> None:
    loss = """\
class Own(nn.Module):
    def __init__(self, size_average=True):
        super().__init__()
        self.inner = nn.NLLLoss(None, size_average)

    def forward(self, inputs, targets):
        return self.inner(F.log_softmax(inputs, 1), targets)


criterion = Own({})
"""
    for given, scaled in (("False", True), ("True", False)):
        source = training("criterion(model(x), y)").replace("for epoch", loss.format(given) + "for epoch", 1)
        result = plain(source)
        assert not refusals(result)
        assert ("(loss * dist.get_world_size()).backward()" in result.code) is scaled
    both = loss.format("True") + "other = Own(False)\n"
    for used, scaled in (("other", True), ("criterion", False)):
        result = plain(training(f"{used}(model(x), y)").replace("for epoch", both + "for epoch", 1))
        assert not refusals(result)
        assert ("(loss * dist.get_world_size()).backward()" in result.code) is scaled


@pytest.mark.parametrize(
    ("losses", "right"),
    [
        ("{'a': F.cross_entropy(model(x), y), 'b': model(x).pow(2).mean()}", True),
        ("{'a': F.cross_entropy(model(x), y), 'b': sum(p.pow(2).sum() for p in model.parameters())}", True),
        ("{'a': F.cross_entropy(model(x), y), 'b': model(x).sum()}", False),
        ("{'a': F.cross_entropy(model(x), y), 'b': model(x).mean(0).norm()}", False),
    ],
)
def test_a_loss_is_the_sum_of_those_in_a_dictionary(losses: str, right: bool) -> None:
    source = training("sum(losses.values())").replace("        loss = ", f"        losses = {losses}\n        loss = ")
    assert bool(undivided(plain(source))) is not right


MATRIX = """
import numpy as np


def counted(a, b, n):
    known = (a >= 0) & (a < n)
    return np.bincount(n * a[known].astype(int) + b[known]{length}).reshape(n, n)


matrix = np.zeros((3, 3))
for x, y in test_loader:
    matrix += counted(y.numpy().flatten(), model(x).argmax(1).numpy().flatten(), 3)
print(np.diag(matrix).sum() / matrix.sum())
"""


def test_a_confusion_matrix_is_added_up() -> None:
    """It is as long on each rank if it says how long it is at least: longer it would not be reshaped."""
    divided = plain(training(after=MATRIX.format(length=", minlength=n**2")))
    assert "matrix = sum_over_ranks(matrix)" in divided.code
    whole = plain(training(after=MATRIX.format(length="")))
    assert not refusals(whole) and "sum_over_ranks" not in whole.code


@pytest.mark.parametrize("kind", ["sum", "mean"])
def test_what_the_ranks_add_up_is_contiguous(kind: str) -> None:
    shown = {"sum": "(model(x).argmax(1) == y).sum().item()", "mean": "loss.item()"}[kind]
    code = plain(training("F.cross_entropy(model(x), y)") + f"        print({shown})\n").code
    seen: list[torch.Tensor] = []
    names = {"torch": torch, "dist": SimpleNamespace(all_reduce=seen.append, get_world_size=lambda: 1)}
    start = code.index(f"def {kind}_over_ranks(value):")
    exec(code[start : code.index("\n\n\n", start)], names)
    columns = torch.arange(6.0).view(2, 3).t()
    assert torch.equal(names[f"{kind}_over_ranks"](columns), columns)  # type: ignore[operator]
    assert seen[0].is_contiguous()
