"""What is changed or called by other ways than a call of its name, in the plain style: hooks that a decorator
registers, steps that are replaced, functions of schedulers that are set, losses in a map()."""

from __future__ import annotations

import pytest

from tests.codemods.plain.test_followed import HEAD, LOOP, notes, plain, refusals, undivided

TRAINING = LOOP.format(loss="F.cross_entropy(model(x), y)", step="optimizer.step()")
SCHEDULED = HEAD + "sched = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda epoch: 1.0)\n" + TRAINING


@pytest.mark.parametrize(
    "hooked",
    [
        "@optimizer.register_step_pre_hook\ndef hook(opt, args, kwargs):\n"
        '    opt.param_groups[0]["lr"] = loss.item()\n',
        "register = optimizer.register_step_pre_hook\nregister(lambda *given: None)\n",
        "@model.register_forward_hook\ndef hook(module, args, out):\n    return out - out.mean(0)\n",
        "@next(model.parameters()).register_hook\ndef hook(grad):\n    return grad / grad.norm()\n",
        "made = optimizer.step\noptimizer.step = lambda: made()\n",
    ],
)
def test_what_is_not_followed_is_refused(hooked: str) -> None:
    assert refusals(plain(HEAD + hooked + TRAINING))


@pytest.mark.parametrize("target", ["lr_lambdas", "lr_lambdas[0]"])
def test_functions_of_a_scheduler(target: str) -> None:
    value = "lambda epoch: {}" if "[0]" in target else "[lambda epoch: {}]"
    step = f"    sched.{target} = {value}\n    sched.step()\n"
    assert refusals(plain(SCHEDULED + step.format("loss.item()")))
    assert not refusals(plain(SCHEDULED + step.format("0.9 ** epoch")))


def test_a_learning_rate_that_map_sets_is_that_of_all_ranks() -> None:
    step = 'list(map(lambda g: g.__setitem__("lr", loss.item()), optimizer.param_groups))\n        optimizer.step()'
    result = plain(HEAD + LOOP.format(loss="F.cross_entropy(model(x), y)", step=step))
    assert refusals(result) or "mean_over_ranks(loss.item())" in result.code


def test_a_reduction_that_map_sets() -> None:
    sets = 'list(map(lambda part: setattr(part, "reduction", "sum"), criterion.modules()))\n'
    loop = LOOP.format(loss="criterion(model(x), y)", step="optimizer.step()")
    assert undivided(plain(HEAD + "criterion = nn.CrossEntropyLoss()\n" + sets + loop))
    assert not undivided(plain(HEAD + "criterion = nn.CrossEntropyLoss()\n" + loop))


def test_counters_in_a_dict_keep_an_evaluation_whole() -> None:
    for made in ("defaultdict(Counter)", "{0: Counter(), 1: Counter(), 2: Counter()}"):
        loop = f"table = {made}\nfor x, y in test_loader:\n    for t, p in zip(y.tolist(), model(x).tolist()):\n"
        source = HEAD + "from collections import Counter, defaultdict\n" + TRAINING + loop
        for key in ("max(p)", "'n'"):
            result = plain(source + f"        table[t][{key}] += 1\nprint(table)\n")
            assert any("every rank evaluates all of it" in each for each in notes(result)) and not refusals(result)


def test_a_bar_that_counts_the_batches_of_an_evaluation() -> None:
    head = HEAD + "from tqdm import tqdm\n" + TRAINING
    loop = "bar, n = tqdm(total=8), 0\nfor x, y in test_loader:\n    n += (model(x).argmax(1) == y).sum().item()\n"
    loop = loop.replace("bar, n = tqdm(total=8), 0", "bar = tqdm(total=8)\nn = 0")
    read = plain(head + loop + "    bar.update()\nprint(n, bar.n)\n")
    assert any("every rank evaluates all of it" in each for each in notes(read)) and not refusals(read)
    unread = plain(head + loop + "    bar.update()\nprint(n)\n")
    assert not notes(unread) and not refusals(unread)


def test_a_bar_whose_last_number_is_read_counts_on_each_rank() -> None:
    source = HEAD + "from tqdm import tqdm\nbar = tqdm(total=8)\n" + TRAINING + "print(bar.last_print_n)\n"
    assert "tqdm(total=8, file=" in plain(source).code


GIVEN = """\
def run(loader, train=True):
    for epoch in range(2):
        for x, y in loader{guard}:
            loss = F.cross_entropy(model(x), y)
            if train:
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()


run(DataLoader(train_set, batch_size=12, shuffle=True))
{other}
"""


def given(other: str, guard: str = "") -> str:
    """What becomes of a function that trains, which something else is given, too."""
    result = plain(HEAD + GIVEN.format(other=other, guard=guard))
    assert not refusals(result)
    return result.code


@pytest.mark.parametrize("other", ["run(DataLoader(train_set, batch_size=12), train=False)", "run(other, False)"])
def test_a_function_that_trains_is_given_a_loader_of_an_evaluation_as_well(other: str) -> None:
    asked = '        if isinstance(getattr(loader, "sampler", None), DistributedSampler):\n'
    made = "other = DataLoader(TensorDataset(torch.rand(9, 4), torch.zeros(9).long()), batch_size=3)\n"
    assert asked + "            loader.sampler.set_epoch(epoch)\n" in given(made + other)


@pytest.mark.parametrize("other", ["", "run(DataLoader(train_set, batch_size=6, shuffle=True))"])
def test_a_function_that_trains_is_given_loaders_of_training_alone(other: str) -> None:
    assert "    for epoch in range(2):\n        loader.sampler.set_epoch(epoch)\n" in given(other)
