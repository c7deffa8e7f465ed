"""Evaluations of the samples of training take each of them once, by a loader of their own (DDP620)."""

from __future__ import annotations

from tests.codemods.plain.test_followed import CE, EVALUATION, HEAD, LOOP, notes, plain, refusals, training

ACCURACY = """\
def accuracy(loader):
    correct = 0
    for x, y in loader:
        correct += (model(x).argmax(1) == y).sum().item()
    return correct / len(loader.dataset)
print(accuracy(train_loader), accuracy(test_loader))
"""


def test_an_evaluation_of_training_takes_each_sample_once() -> None:
    """DistributedSampler's padding counted twice, without a word of the line."""
    result = plain(training(after=ACCURACY))
    assert not refusals(result) and not notes(result)
    assert "print(accuracy(each_sample_once(train_loader)), accuracy(test_loader))" in result.code
    assert "sampler=range(dist.get_rank(), len(loader.dataset), dist.get_world_size())" in result.code


def test_an_evaluation_of_training_that_is_not_a_sum_is_whole() -> None:
    adds = "total += F.cross_entropy(model(x), y).item()"
    after = EVALUATION.format(adds=adds, shown="total / len(train_loader)").replace("in test_loader", "in train_loader")
    result = plain(training(after=after))
    assert not refusals(result)
    assert "for x, y in every_sample(train_loader):" in result.code
    assert "batch_size=loader.batch_size * dist.get_world_size()," in result.code


def test_a_loop_that_trains_in_one_call_and_evaluates_in_another() -> None:
    function = """\
def epoch(loader, train):
    total = 0.0
    for x, y in loader:
        loss = F.cross_entropy(model(x), y, reduction="sum")
        if train:
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        total += loss.item()
    return total
print(epoch(train_loader, True), epoch(train_loader, False))
"""
    result = plain(HEAD + function)
    assert not refusals(result)
    assert "print(epoch(train_loader, True), epoch(each_sample_once(train_loader), False))" in result.code


def test_an_evaluation_of_training_whose_loader_has_no_name_there_is_refused() -> None:
    after = "index = 0\n" + ACCURACY.replace("accuracy(train_loader)", "accuracy([train_loader][index])")
    assert any("draws twice" in each for each in refusals(plain(training(after=after))))


def test_an_evaluation_of_training_whose_loader_is_an_entry() -> None:
    after = "loaders = {'train': train_loader}\n" + ACCURACY.replace("(train_loader)", "(loaders['train'])")
    result = plain(training(after=after))
    assert not refusals(result) and "each_sample_once(loaders['train'])" in result.code


CHOSEN = """\
import sys
chosen = train_loader
if "o" in sys.argv:
    chosen = DataLoader(test_set, batch_size=8)
"""


def test_an_evaluation_of_training_by_one_of_two_loaders() -> None:
    """As StarGAN does: a setting says which data set is trained, and tested."""
    source = (
        training()
        .replace("for x, y in train_loader:", "for x, y in chosen:")
        .replace("for epoch", CHOSEN + "for epoch", 1)
    )
    result = plain(source + ACCURACY.replace("accuracy(train_loader), accuracy(test_loader)", "accuracy(chosen)"))
    assert not refusals(result) and "for x, y in each_sample_once(loader):" in result.code


def test_the_first_batch_of_training_is_that_of_all_ranks() -> None:
    result = plain(training(after="x, y = next(iter(train_loader))\nprint(x.shape)\n"))
    assert not refusals(result)
    assert "next(iter(every_sample(train_loader)))" in result.code


def test_loaders_of_one_call_are_told_apart_by_nothing() -> None:
    """What is not seen to be trained on takes each sample once; what an unknown function does with it stays exact."""
    made = "train_loader = DataLoader(train_set, batch_size=8, shuffle=True)\n"
    made += "test_loader = DataLoader(test_set, batch_size=8)\n"
    function = "import measures\ndef made(data):\n    return DataLoader(data, batch_size=8, shuffle=True)\n"
    function += "train_loader = made(train_set)\n"
    head = HEAD.replace(made, function) + LOOP.format(loss=CE, step="optimizer.step()")
    given = plain(head + "test_loader = made(test_set)\nprint(measures.accuracy(model, test_loader))\n")
    assert not refusals(given) and "accuracy(model, every_sample(test_loader))" in given.code
    inline = plain(head + "print(measures.accuracy(model, made(test_set)))\n")
    assert not refusals(inline) and "accuracy(model, every_sample(made(test_set)))" in inline.code
    kept = plain(head + "pairs = [made(test_set), made(test_set)]\nprint(measures.accuracy(model, pairs))\n")
    assert refusals(kept)


def test_a_loader_for_a_function_that_does_not_exist() -> None:
    made = "train_loader = DataLoader(train_set, batch_size=8, shuffle=True)\n"
    function = (
        "def made(data):\n    return DataLoader(data, batch_size=8, shuffle=True)\ntrain_loader = made(train_set)\n"
    )
    loop = LOOP.format(loss=CE, step="optimizer.step()")
    result = plain(HEAD.replace(made, function) + loop + "if total < 0:\n    Tester(made(test_set)).test()\n")
    assert not refusals(result) and "Tester(made(test_set))" in result.code
