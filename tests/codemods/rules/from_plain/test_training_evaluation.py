"""Evaluations take the training's own loader again (DDP707)."""

from __future__ import annotations

from ddpify_codemods.rules.from_plain.training_evaluation import RULE

from tests.codemods.checks import findings_of, rewritten
from tests.codemods.plain.test_followed import plain, training
from tests.codemods.plain.test_training_evaluation import ACCURACY

CODE = plain(training(after=ACCURACY)).code


def test_the_function_goes_and_the_loader_stays() -> None:
    assert "def each_sample_once" in CODE and "accuracy(each_sample_once(train_loader))" in CODE
    code = rewritten(RULE, CODE)
    assert "each_sample_once" not in code and "print(accuracy(train_loader)," in code


def test_a_use_of_its_own_is_refused() -> None:
    [finding] = findings_of(RULE, CODE + "kind = each_sample_once\n")
    assert (finding.severity, finding.line) == ("refused", len(CODE.splitlines()) + 1)
