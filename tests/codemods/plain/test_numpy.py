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


@pytest.mark.parametrize(("made", "is_array"), [("np.zeros((3, 3))", True), ("[[0] * 3, [0] * 3, [0] * 3]", False)])
def test_an_array_that_a_loop_adds_up_is_one_after_it_too(made: str, is_array: bool) -> None:
    adds = "for t, p in zip(y.numpy(), model(x).argmax(1).numpy()):\n        table[t, p] += 1"
    source = TRAINING.replace("total = 0.0\n", f"total = 0.0\ntable = {made}\n")
    code = plain(source + EVALUATION.format(adds=adds, shown="table[0]")).code
    assert ("table = np.array(sum_over_ranks(table))" in code) is is_array


@pytest.mark.parametrize("added", ["loss.detach().numpy()", "loss.cpu().data.numpy()", "loss.item()"])
@pytest.mark.parametrize("place", ["    print(np.mean(losses))\n", "        print(losses)\n"])
def test_a_list_of_arrays_of_no_dimension_is_one_of_numbers(added: str, place: str) -> None:
    """torch.as_tensor takes no list of arrays of no dimension: `len() of unsized object`."""
    source = TRAINING.replace("    for x", "    losses = []\n    for x") + f"        losses.append({added})\n{place}"
    result = plain(source)
    assert not refusals(result)
    given = "losses" if "item" in added else "[each.tolist() for each in losses]"
    assert f"mean_over_ranks({given})" in result.code
