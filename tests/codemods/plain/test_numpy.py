"""What numpy computes of a batch: numbers of Python, which are no tensors."""

from __future__ import annotations

import pytest

from tests.codemods.plain.test_followed import CE, EVALUATION, HEAD, LOOP, notes, plain, refusals

ACCURACY = """\
import numpy as np


def accuracy(predictions, labels):
    predictions = np.argmax(predictions, axis=1).flatten()
    labels = labels.flatten()
    return np.sum(predictions == labels) / len(labels)


"""
TRAINING = ACCURACY + HEAD + LOOP.format(loss=CE, step="optimizer.step()")
MEAN = "total / len(test_loader)"


@pytest.mark.parametrize(
    "adds",
    [
        "total += accuracy(model(x).detach().cpu().numpy(), y.to('cpu').numpy())",
        "total += np.mean(model(x).argmax(1).numpy() == y.numpy())",
        "total += (model(x).argmax(1).numpy() == y.numpy()).mean()",
    ],
)
def test_an_evaluation_that_adds_up_numbers_of_numpy_is_divided(adds: str) -> None:
    result = plain(TRAINING + EVALUATION.format(adds=adds, shown=MEAN))
    assert not notes(result) and not refusals(result)
    assert "total = sum_over_ranks(total)" in result.code


@pytest.mark.parametrize(
    "adds",
    [
        "total += (model(x).argmax(1) == y).float().mean()",
        "total += np.mean(model(x).argmax(1) == y)",
        "total += torch.from_numpy(model(x).argmax(1).numpy() == y.numpy()).float().mean()",
    ],
)
def test_a_tensor_is_no_such_number(adds: str) -> None:
    assert notes(plain(TRAINING + EVALUATION.format(adds=adds, shown=MEAN)))


@pytest.mark.parametrize("shown", ["np.mean(accuracies)", "sum(accuracies) / len(accuracies)"])
def test_a_list_of_them_is_no_list_of_tensors(shown: str) -> None:
    script = TRAINING.replace("    for x", "    accuracies = []\n    for x")
    script += f"        accuracies.append(accuracy(model(x).detach().numpy(), y.numpy()))\n    print({shown})\n"
    code = plain(script).code
    assert "accuracies = mean_over_ranks(accuracies)" in code and "torch.stack" not in code


def test_a_list_of_arrays_has_an_entry_for_each_batch() -> None:
    script = TRAINING.replace("    for x", "    outputs = []\n    for x")
    script += "        outputs.append(model(x).detach().numpy())\n    print(len(outputs))\n"
    assert not refusals(plain(script))


SHOWN = """\
import numpy as np


"""


@pytest.mark.parametrize(
    ("shown", "brought"),
    [
        ("np.sum(x.numpy(), 0)", "sum_over_ranks(np.sum(x.numpy(), 0))"),
        ("np.sum(x.numpy(), axis=0).max()", "sum_over_ranks(np.sum(x.numpy(), axis=0)).max()"),
        ("x.numpy().mean(0) / 2", "mean_over_ranks(x.numpy().mean(0) / 2)"),
        ("np.eye(3)[y.numpy()].sum(0)", "sum_over_ranks(np.eye(3)[y.numpy()].sum(0))"),
        ("np.bincount(y.numpy(), minlength=3)", "sum_over_ranks(np.bincount(y.numpy(), minlength=3))"),
    ],
)
def test_a_sum_that_is_an_array_stays_one_where_it_is_read(shown: str, brought: str) -> None:
    result = plain(SHOWN + HEAD + LOOP.format(loss=CE, step="optimizer.step()") + f"        print({shown})\n")
    assert not refusals(result)
    assert f"print({brought})" in result.code and "isinstance(value, np.ndarray)" in result.code


@pytest.mark.parametrize("shown", ["np.sum(x.numpy())", "x.numpy().mean()", "float(np.sum(x.numpy(), 0)[0])"])
def test_a_number_needs_no_array(shown: str) -> None:
    result = plain(SHOWN + HEAD + LOOP.format(loss=CE, step="optimizer.step()") + f"        print({shown})\n")
    assert not refusals(result) and "ndarray" not in result.code


def test_numpy_is_imported_where_only_its_arrays_are_used() -> None:
    result = plain(HEAD + LOOP.format(loss=CE, step="optimizer.step()") + "        print(x.numpy().sum(0))\n")
    assert "import numpy\n" in result.code and "isinstance(value, numpy.ndarray)" in result.code


def test_a_list_of_arrays_stays_one() -> None:
    source = (
        SHOWN + HEAD + LOOP.format(loss=CE, step="optimizer.step()").replace("    for x", "    sums = []\n    for x")
    )
    result = plain(source + "        sums.append(x.numpy().sum(0))\n    print(sum(sums))\n")
    assert not refusals(result) and "sums = list(sum_over_ranks(np.stack(sums)))" in result.code
    assert refusals(plain(source + "        sums = [x.numpy().sum(0), y.numpy().sum()]\n        print(sums)\n"))


def test_an_array_to_which_a_list_is_added_is_brought_together() -> None:
    source = TRAINING.replace("    for x", "    losses = np.zeros(2)\n    for x")
    result = plain(source + "        losses += [loss.item(), 2 * loss.item()]\n    print(losses)\n")
    assert not refusals(result) and "losses = mean_over_ranks(losses)" in result.code
    mixed = plain(source + "        losses += [loss.item(), (y == 0).sum().item()]\n    print(losses)\n")
    assert refusals(mixed)


SHARED = """\
import numpy as np


def show(true, made):
    a, b = np.concatenate(true), np.concatenate(made)
    power, rest = np.sum(a ** 2), np.sum((a - b) ** 2)
    if rest == 0:
        return
    print(np.sqrt(np.mean((a - b) ** 2)), np.log10(power / rest))


"""


def test_arrays_of_all_batches_are_measured_by_what_training_and_an_evaluation_share() -> None:
    """A sum that was compared with 0 in both was refused, and the root of a mean of such arrays in training."""
    keeps = "optimizer.step(); true.append(x.numpy()); made.append(model(x).sum(1, keepdim=True).detach().numpy())"
    training = "true, made = [], []\n" + LOOP.format(loss=CE, step=keeps) + "show(true, made)\n"
    kept = "true.append(x.numpy()); made.append(model(x).sum(1, keepdim=True).detach().numpy())"
    evaluation = "true, made = [], []\n" + EVALUATION.format(adds=kept, shown="show(true, made)")
    result = plain(SHARED + HEAD + training + evaluation)
    assert not refusals(result)
    assert "if sum_over_ranks(rest) == 0:" in result.code
    assert "np.sqrt(mean_over_ranks(np.mean((a - b) ** 2)))" in result.code
    assert "np.log10(sum_over_ranks(power) / sum_over_ranks(rest))" in result.code
    assert refusals(plain(SHARED.replace("rest == 0", "rest == 1") + HEAD + training + evaluation))
