"""verify can fail: conversions as people write them, each wrong in one way, are found out and named."""

from __future__ import annotations

import re

import pytest

from ddpify.verify.command import CouldNotRun
from tests.verify import naive
from tests.verify.mistakes import CASES
from tests.verify.naive import Case


@pytest.mark.parametrize("name", CASES)
def test_mistake_is_found_and_named(name: str) -> None:
    case = CASES[name]
    try:
        found = naive.verify(case)
    except CouldNotRun as error:
        assert case.code == 2, error.lines
        named = re.findall(r"^likely (.+?):", "\n".join(error.lines), re.MULTILINE)
    else:
        assert case.code == 1
        assert found.differences, "taken for equal"
        named = [str(difference.hazard).partition(":")[0] for difference in found.differences]
    assert named, "no hazard is named"
    assert case.hazards[0] in named[0].split(" or "), named
    assert set(case.hazards) <= {hazard for each in named for hazard in each.split(" or ")}, named


@pytest.mark.parametrize("share", ["", naive.BY_HAND["share"]], ids=["whole", "divided"])
def test_exact_conversion_is_equal(share: str) -> None:
    found = naive.verify(Case((), {"share": share}))
    assert not found.differences
    assert max(found.parameters) <= 1e-6
