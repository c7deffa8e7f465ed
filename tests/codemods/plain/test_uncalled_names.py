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
    assert not refusals(result) and "mean_over_ranks(loss.item())" in result.code


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
