"""Samplers give all that they draw (DDP709)."""

from __future__ import annotations

import pytest
from ddpify_codemods.rules.from_plain.sampler_wrapper import RULE

from tests.codemods.checks import findings_of, rewritten
from tests.codemods.plain.test_followed import plain
from tests.codemods.plain.test_sampler_wrapper import HEAD, TRAINING

CODE = plain(HEAD + TRAINING).code


def test_the_class_goes_and_the_sampler_stays() -> None:
    assert "class DistributedSamplerWrapper" in CODE and "sampler=DistributedSamplerWrapper(sampler)," in CODE
    code = rewritten(RULE, CODE)
    assert "DistributedSamplerWrapper" not in code and "    sampler=sampler,\n" in code


@pytest.mark.parametrize("line", ["kind = DistributedSamplerWrapper", "own = DistributedSamplerWrapper(sampler, 1)"])
def test_a_use_of_its_own_is_refused(line: str) -> None:
    [finding] = findings_of(RULE, CODE + line)
    assert (finding.severity, finding.line) == ("refused", len(CODE.splitlines()) + 1)
