"""What steps of optimizers and schedulers call, and the groups of parameters that a script keeps: numbers of a rank
that reach them are those of all ranks, or the script is refused."""

from __future__ import annotations

import pytest

from .test_followed import CE, HEAD, LOOP, plain, refusals

KEPT = 'state = {"loss": 1.0}\n'
READ = 'state["loss"]'
MADE = "torch.optim.SGD(model.parameters(), lr=0.1)"
STEP = 'state["loss"] = loss.item()\n        optimizer.step()'
HOOK = f'def scale(o, *_):\n    for group in o.param_groups:\n        group["lr"] = {READ}\n\n\n'
SCHEDULED = "optimizer.step()\n        scheduler.step()\n        state['loss'] = loss.item()"
RATE = f"def rate(epoch):\n    return {READ}\n\n\n"
OWN = """\
class Rate:
    def __init__(self):
        self.loss = 1.0

    def at(self, epoch):
        return {at}

    def __call__(self, epoch):
        return self.at(epoch)


class Own(torch.optim.lr_scheduler.LRScheduler):
    def __init__(self, optimizer):
        self.loss = 1.0
        super().__init__(optimizer)

    def get_lr(self):
        return [{at} for _ in self.base_lrs]


"""
GROUPS = 'groups = [{"params": model.parameters(), "lr": 0.1}]\n'
LR = "0.1 * loss.item()"


def started(before: str, step: str, made: str = MADE) -> str:
    """A script that does something when its optimizer is made, and in each step."""
    return HEAD.replace(f"optimizer = {MADE}\n", f"{before.partition('#')[0]}optimizer = {made}\n") + (
        before.partition("#")[2] + LOOP.format(loss=CE, step=step)
    )


@pytest.mark.parametrize(
    "hook",
    [
        f"optimizer.register_step_pre_hook(lambda o, *_: o.param_groups[0].update(lr={READ}))\n",
        f"{HOOK}optimizer.register_step_post_hook(scale)\n",
        f"{HOOK}torch.optim.optimizer.register_optimizer_step_pre_hook(scale)\n",
        f"scheduler = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda epoch: min({READ}, 5.0))\n",
    ],
)
def test_what_a_step_calls_reads_numbers_of_all_ranks(hook: str) -> None:
    step = SCHEDULED if "scheduler" in hook else STEP
    result = plain(started(f"#{KEPT}{hook}", step))
    assert f"mean_over_ranks({READ})" in result.code


@pytest.mark.parametrize(
    "hook",
    [
        f"{HOOK}optimizer.register_step_pre_hook(scale)\n",
        "scheduler = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda epoch: min(1.0, (epoch + 1) / 5))\n",
        "scheduler = torch.optim.lr_scheduler.MultiplicativeLR(optimizer, lr_lambda=lambda epoch: 0.9)\n",
        f"{OWN.format(at='1.0')}scheduler = Own(optimizer)\n",
        f"{OWN.format(at='1.0')}scheduler = torch.optim.lr_scheduler.LambdaLR(optimizer, Rate())\n",
    ],
)
def test_what_a_step_calls_may_read_what_is_alike(hook: str) -> None:
    step = "optimizer.step()\n        scheduler.step()" if "scheduler" in hook else "optimizer.step()"
    result = plain(started(f"#{KEPT}{hook}", step))
    assert not refusals(result)
    assert "_over_ranks(" not in result.code


@pytest.mark.parametrize(
    ("made", "written"),
    [
        (f"{RATE}scheduler = torch.optim.lr_scheduler.LambdaLR(optimizer, rate)\n", READ),
        (f"{RATE}scheduler = torch.optim.lr_scheduler.MultiplicativeLR(optimizer, lr_lambda=rate)\n", READ),
        (f"{OWN}scheduler = torch.optim.lr_scheduler.LambdaLR(optimizer, [(own := Rate()).at])\n", "own.loss"),
        (f"{OWN}own = Rate()\nscheduler = torch.optim.lr_scheduler.LambdaLR(optimizer, own)\n", "own.loss"),
        (f"{OWN}own = scheduler = Own(optimizer)\n", "own.loss"),
        (f"{OWN}own = Own(optimizer)\nscheduler = torch.optim.lr_scheduler.ChainedScheduler([own])\n", "own.loss"),
    ],
)
def test_what_gives_a_step_a_number_of_a_rank_is_refused(made: str, written: str) -> None:
    step = f"optimizer.step()\n        scheduler.step()\n        {written} = loss.item()"
    found = refusals(plain(started(f"#{KEPT}{made.format(at='self.loss')}", step)))
    assert any("gives back for each step" in each for each in found)


@pytest.mark.parametrize(
    ("groups", "change"),
    [
        (GROUPS, f'groups[0]["lr"] = {LR}'),
        (GROUPS, f"groups[0].update(lr={LR})"),
        (GROUPS, f'groups[0].update({{"lr": {LR}}})'),
        (GROUPS, f'groups[0].__setitem__("lr", {LR})'),
        ('groups = [{"params": [each], "lr": 0.1} for each in model.parameters()]\n', f'groups[1]["lr"] = {LR}'),
        (GROUPS, f'for group in groups:\n            group["lr"] = {LR}'),
        ("groups = []\ngroups.append(dict(params=model.parameters(), lr=0.1))\n", f'groups[0]["lr"] = {LR}'),
    ],
)
def test_groups_that_an_optimizer_was_given_get_numbers_of_all_ranks(groups: str, change: str) -> None:
    result = plain(started(groups, f"optimizer.step()\n        {change}", "torch.optim.SGD(groups)"))
    assert f"mean_over_ranks({LR})" in result.code


def test_groups_that_are_lengthened_by_numbers_of_a_rank_are_refused() -> None:
    step = f'optimizer.step()\n        groups[0] |= {{"lr": {LR}}}'
    assert refusals(plain(started(GROUPS, step, "torch.optim.SGD(groups)")))


def test_dictionaries_that_no_optimizer_has_are_the_scripts_own() -> None:
    step = 'optimizer.step()\n        options["last"] = loss.item()'
    made = "torch.optim.SGD(model.parameters(), **options)"
    result = plain(started('options = {"lr": 0.1}\n', step, made))
    assert not refusals(result)
    assert "_over_ranks(" not in result.code


def test_groups_get_what_is_alike() -> None:
    step = 'optimizer.step()\n        groups[0]["lr"] = 0.1 * 0.5**epoch'
    result = plain(started(GROUPS, step, "torch.optim.SGD(groups)"))
    assert not refusals(result)
    assert "_over_ranks(" not in result.code


@pytest.mark.parametrize(("rate", "fine"), [(f"min({READ}, 5.0)", False), ("0.9**epoch", True)])
def test_the_rate_is_asked_outside_of_steps(rate: str, fine: bool) -> None:
    scheduler = f"{KEPT}#scheduler = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda epoch: {rate})\n"
    saved = '    torch.save({"lr": scheduler.get_lr()}, "rate.pt")\n'
    assert (not refusals(plain(started(scheduler, SCHEDULED) + saved))) is fine
