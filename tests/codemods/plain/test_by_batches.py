"""Evaluations of which each rank takes every W-th batch: what is added up for each batch, and what stays whole."""

from __future__ import annotations

import pytest

from tests.codemods.plain.test_followed import EVALUATION, notes, plain, refusals, training

MEAN = "total += F.cross_entropy(model(x), y).item()"
SAMPLER = "sampler=[i for i in range(len(test_set)) if i // 8 % dist.get_world_size() == dist.get_rank()]"


@pytest.mark.parametrize(
    ("adds", "shown"),
    [
        (MEAN, "total / len(test_loader)"),
        ("total += 1", "total"),
        ("total -= F.cross_entropy(model(x), y).item() + 0.5", "total"),
        (f"{MEAN}; n = len(x)", "total"),
        ("out = model(x); out = out.float(); total += F.cross_entropy(out, y).item()", "total"),
        ("n = 0\n    n = n + 1\n    total += F.cross_entropy(model(x), y).item() / n", "total"),
        (f"acc = (model(x).argmax(1) == y).float().mean().item(); {MEAN} + acc", "total"),
    ],
)
def test_a_number_of_each_batch_is_added_up_over_ranks(adds: str, shown: str) -> None:
    result = plain(training(after=EVALUATION.format(adds=adds, shown=shown)))
    assert not refusals(result) and not notes(result)
    assert SAMPLER in result.code
    assert "total = sum_over_ranks(total)" in result.code and "total.double()" in result.code
    assert ("sum_over_ranks(len(test_loader))" in result.code) == ("len(test_loader)" in shown)


@pytest.mark.parametrize(
    ("adds", "shown"),
    [
        ("total = total + F.cross_entropy(model(x), y).item()", "total"),
        ("total += F.cross_entropy(model(x), y)", "total"),  # 0.0, and no tensor, on a rank without a batch
        ("total += F.cross_entropy(model(x), y).item() / len(test_loader)", "total"),
        (f"{MEAN}; last = x.shape[1]", "total, last"),  # nothing, on a rank without a batch
        (f"{MEAN}; mean = mean + np.bincount(y.numpy(), minlength=3)", "total, mean.sum()"),  # 0, and no array
        ("total *= 2", "total"),
        (f"{MEAN}; print(total)", "total"),
        ("hits = (model(x).argmax(1) == y).sum().item(); total = total + hits; mean += total / len(x)", "mean"),
        ("seen += len(x); total += seen / len(x)", "total"),
        ("seen = seen + 1; total += F.cross_entropy(model(x), y).item() / seen", "total"),
        ("seen = 1 + seen; total += (model(x).argmax(1) == y).sum().item()", "total / seen"),
        ("loss = F.cross_entropy(model(x), y).item(); total += loss - kept[0]; kept[0] = loss", "total"),
        ("up = not up; total += F.cross_entropy(model(x), y).item() if up else 0", "total"),
        ("total += F.cross_entropy(model(x), y).item() * next(counter)", "total"),
    ],
)
def test_what_is_not_of_one_batch_is_evaluated_whole(adds: str, shown: str) -> None:
    after = "mean = seen = 0\nkept, up, counter = [0.0], False, iter(range(99))\n" + EVALUATION.format(
        adds=adds, shown=shown
    )
    result = plain(training(after=after))
    assert not refusals(result) and notes(result)
    assert "sampler=[" not in result.code and "sampler=range" not in result.code


@pytest.mark.parametrize(
    "shown", ["len(test_loader)", "f'{len(test_loader):,} batches'", "'batches: %d' % len(test_loader)"]
)
def test_the_number_of_batches_that_is_printed_alone_is_that_of_all_ranks(shown: str) -> None:
    result = plain(training(after=f"{EVALUATION.format(adds='total += len(x)', shown='total')}print({shown})\n"))
    assert not refusals(result) and not notes(result)
    assert SAMPLER in result.code and "sum_over_ranks(len(test_loader))" in result.code


def test_a_number_of_batches_that_is_that_of_a_list_elsewhere_is_evaluated_whole() -> None:
    show = "def show(of):\n    print(len(of))\n"
    after = f"{EVALUATION.format(adds='total += len(x)', shown='total')}show(test_loader)\nshow([1, 2])\n"
    result = plain(show + training(after=after))
    assert "sum_over_ranks" not in result.code and "sampler=[" not in result.code
    assert "the same on all ranks in another" in " ".join(map(str, notes(result)))


@pytest.mark.parametrize("options", ["batch_size=8, drop_last=True", "len(x)", "**{'batch_size': 8}", "**options"])
def test_batches_have_to_be_those_of_one_process(options: str) -> None:
    after = EVALUATION.format(adds=MEAN, shown="total")
    source = training(after=after).replace("DataLoader(test_set, batch_size=8)", f"DataLoader(test_set, {options})")
    assert f"DataLoader(test_set, {options})" in source
    assert "sampler=[" not in plain(f"options = {{'batch_size': 8}}\n{source}").code


@pytest.mark.parametrize("options", ["8, True", "batch_size=8, shuffle=True"])
def test_an_evaluation_that_shuffles_goes_in_order(options: str) -> None:
    after = EVALUATION.format(adds=MEAN, shown="total / len(test_loader)")
    result = plain(training(after=after).replace("(test_set, batch_size=8)", f"(test_set, {options})"))
    assert SAMPLER in result.code and "True" not in result.code.split("test_loader = ")[1].split(")\n")[0]
    assert ["goes in the order of the data set" in each for each in notes(result)] == [True]


@pytest.mark.parametrize("options", ["{'num_workers': 2}", "{'num_workers': 2} if x.is_cuda else {}"])
def test_a_dictionary_may_say_how_samples_are_loaded(options: str) -> None:
    after = EVALUATION.format(adds=MEAN, shown="total")
    source = training(after=after).replace("(test_set, batch_size=8)", "(test_set, batch_size=8, **options)")
    result = plain(f"import torch\nx = torch.zeros(1)\noptions = {options}\n{source}")
    assert SAMPLER in result.code and "**options" in result.code and not notes(result)


@pytest.mark.parametrize("options", ["", ", batch_size=1"])
def test_batches_of_one_sample_are_every_wth_sample(options: str) -> None:
    after = EVALUATION.format(adds=MEAN, shown="total / len(test_loader)")
    result = plain(training(after=after).replace("(test_set, batch_size=8)", f"(test_set{options})"))
    assert "sampler=range(dist.get_rank(), len(test_set), dist.get_world_size())" in result.code
    assert not notes(result) and "total = sum_over_ranks(total)" in result.code


def test_a_function_for_training_and_evaluation_keeps_its_mean() -> None:
    source = training(after="print(run(test_loader))\n").replace(
        "total = 0.0\n",
        f"""\
def run(loader):
    total = 0.0
    for x, y in loader:
        {MEAN}
    return total / len(loader)


print(run(train_loader))
""",
    )
    result = plain(source)
    assert not refusals(result) and notes(result) and "sampler=[" not in result.code


HITS = "(model(x).argmax(1) == y).sum().item()"


@pytest.mark.parametrize(
    ("adds", "shown"),
    [
        (f"total = {HITS}", "total"),
        (f"best['hits'] = {HITS}", "best['hits']"),
        (f"total = 0; total += {HITS}", "total"),
    ],
)
def test_a_number_of_the_last_batch_is_no_sum(adds: str, shown: str) -> None:
    result = plain(training(after="best = {}\n" + EVALUATION.format(adds=adds, shown=shown)))
    assert not refusals(result) and notes(result)
    assert "sampler=range" not in result.code and "_over_ranks" not in result.code


@pytest.mark.parametrize(
    "data",
    [
        "TensorDataset(test_set.tensors[0], labels)",
        "torch.utils.data.Subset(test_set, labels.topk(9)[1].tolist())",
        "Labelled(labels)",
    ],
)
def test_what_a_loader_gets_of_an_evaluation_is_that_of_all_samples(data: str) -> None:
    """Each rank had the labels of its own samples."""
    kept = "class Labelled:\n    def __init__(self, labels):\n        self.labels = labels\n\n\n"
    adds = "found.append(model(x).argmax(1))"
    after = f"found = []\n{EVALUATION.format(adds=adds, shown='epoch')}labels = torch.cat(found)\n"
    again = f"for x, y in DataLoader({data}, batch_size=8, shuffle=True):\n    loss = F.cross_entropy(model(x), y)\n"
    again += "    optimizer.zero_grad()\n    loss.backward()\n    optimizer.step()\n"
    result = plain(kept + training(after=after + again))
    assert not refusals(result) and notes(result)


@pytest.mark.parametrize(
    "adds",
    ["total += F.cross_entropy(model(x), y)", f"{MEAN}; acc += (model(x).argmax(1) == y).float().mean()"],
)
def test_a_mean_that_is_kept_as_a_tensor_is_said_to_be_one(adds: str) -> None:
    name = "acc" if "acc" in adds else "total"
    after = "acc = 0\n" + EVALUATION.format(adds=adds, shown="total, acc")
    [note] = notes(plain(training(after=after)))
    assert f"{name} adds up tensors" in note and "`.item()`" in note and "mean over batches" not in note
