"""What is written for `--resume`, or why nothing can be."""

from __future__ import annotations

from ddpify_codemods.facts.resume.plan import plan

from tests.codemods.checks import script_of
from tests.codemods.facts.flow.followed import HEAD, TRAINING


def test_loops_and_what_they_carry() -> None:
    source = TRAINING + "        total += loss.item()\nprint(total)\n"
    found = plan((script_of(HEAD + source),))
    (part,) = found.parts
    assert found.obstacle is None
    assert {"model", "optimizer"} <= set(part.objects)
    assert "total" in {name for _, names in part.loops for name in names}


def test_a_training_that_is_not_there() -> None:
    assert plan((script_of("print(3)"),)).parts == ()
