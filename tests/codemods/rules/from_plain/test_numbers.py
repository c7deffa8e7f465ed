"""Numbers of one process need not be brought together (DDP705)."""

from __future__ import annotations

import pytest
from ddpify_codemods.rules.from_plain.numbers import RULE

from tests.codemods.checks import findings_of, rewritten
from tests.codemods.plain.test_followed import plain, training

CODE = plain(training(step="optimizer.step()\n        print(loss.item())")).code


def test_a_number_is_read_as_it_is() -> None:
    assert "print(mean_over_ranks(loss.item()))" in CODE
    assert "        print(loss.item())\n" in rewritten(RULE, CODE)
    assert "def mean_over_ranks" in CODE and "def mean_over_ranks" not in rewritten(RULE, CODE)


@pytest.mark.parametrize("line", ["total = loss.item()", "print(whole(loss))"])
def test_what_is_not_brought_together_stays(line: str) -> None:
    assert rewritten(RULE, f"import torch\n{line}\n") == f"import torch\n{line}\n"


def test_a_use_of_its_own_is_refused() -> None:
    found = findings_of(RULE, CODE + "kind = mean_over_ranks\n")
    assert [(each.severity, each.line) for each in found] == [("refused", len(CODE.splitlines()) + 1)]
