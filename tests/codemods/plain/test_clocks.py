"""Rank 0's clock decides for all ranks, where all of them come equally often."""

from __future__ import annotations

from pathlib import Path

import pytest
from ddpify_codemods import convert

from .test_followed import EVALUATION, plain, refusals, training

SAVES = "if time.time() - started > 60: torch.save(model.state_dict(), 'a.pt')"
HEAD = "import time\nstarted = time.time()\n"


@pytest.mark.parametrize(
    ("step", "decides"),
    [
        (SAVES, "if from_rank_0(time.time() - started > 60):"),
        (
            "if epoch > 1 and time.time() > started + 9: break",
            "if epoch > 1 and from_rank_0(time.time() > started + 9):",
        ),
    ],
)
def test_ranks_save_and_leave_loops_by_rank_0s_clock(step: str, decides: str) -> None:
    source = HEAD + training(step=f"optimizer.step()\n        {step}")
    found = plain(source)
    assert not refusals(found) and decides in found.code
    back = convert({Path("train.py"): found.code}, "none")[Path("train.py")]
    assert "from_rank_0" not in back.code and decides.replace("from_rank_0(", "").replace("):", ":") in back.code


@pytest.mark.parametrize(
    ("step", "decides"),
    [
        ("if time.time() - started > 1: print(loss.item())", "if from_rank_0(time.time() - started > 1):"),
        ("late = time.time() - started\n        if late > 1: print(loss.item())", "if from_rank_0(late > 1):"),
        ("late = time.time() > started + 1\n        if late: print(loss.item())", "if from_rank_0(late):"),
        ("if is_late(): print(loss.item())", "if from_rank_0(is_late()):"),
        ("time.time() > started + 1 and print(loss.item())", "from_rank_0(time.time() > started + 1) and"),
        ("print(loss.item() if time.time() > started else '')", "if from_rank_0(time.time() > started) else"),
        ("if time.time() - started > 1: print(evaluate())", "if from_rank_0(time.time() - started > 1):"),
        ("if time.time() - started > 1: print(epoch, len(train_loader))", ""),
    ],
)
def test_what_all_ranks_show_together_is_shown_by_rank_0s_clock(step: str, decides: str) -> None:
    own = "def is_late():\n    return time.time() - started > 1\ndef evaluate():\n    return model(x).mean().item()\n"
    found = plain(HEAD + own + training(step=f"optimizer.step()\n        {step}"))
    assert not refusals(found) and (decides in found.code if decides else "from_rank_0" not in found.code)


@pytest.mark.parametrize(
    ("own", "decides"),
    [
        ("def over(self): return self.elapsed() > 9\ndef elapsed(self): return time.time() - started", True),
        (
            "def over(self): return self.late()\ndef late(self):\n e = time.monotonic_ns()\n return started and e > 9",
            True,
        ),
        ("def over(self): return self.count() > 9\ndef count(self): return 3", False),
        ("def over(self): return time.time() > 9\nclass Base:\n def over(self): return False", True),
        ("def over(self): return time.time() > 9\nclass Other:\n def over(self): return self.n > 9", False),
    ],
)
def test_functions_that_ask_others_for_the_time(own: str, decides: bool) -> None:
    lines = "".join(f"    {line}\n" for line in own.splitlines())
    found = plain(f"{HEAD}class Timer:\n{lines}timer = Timer()\n{training(after='    if timer.over(): break')}")
    assert not refusals(found) and ("if from_rank_0(timer.over()):" in found.code) is decides


def test_what_is_only_shown_is_each_ranks_own() -> None:
    found = plain(HEAD + training(after="    print(time.time() - started)\n"))
    assert not refusals(found) and "from_rank_0" not in found.code


@pytest.mark.parametrize("called", [SAVES, "save()"])
def test_a_clock_in_a_part_of_an_evaluation_is_refused(called: str) -> None:
    own = f"def save():\n    {SAVES}\n"
    adds = f"total += (model(x).argmax(1) == y).sum().item()\n    {called}"
    found = plain(HEAD + training(after=own + EVALUATION.format(adds=adds, shown="total")))
    assert any("unequally often" in message for message in refusals(found))
