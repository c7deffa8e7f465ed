"""What is written for `--resume`, or why nothing can be."""

from __future__ import annotations

from textwrap import indent

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


def test_variables_of_a_function_around() -> None:
    counts = (
        "def made():\n    steps = 0\n    def tick():\n        nonlocal steps\n        steps += 1\n    return tick\n"
    )
    found = plan((script_of(f"{HEAD}{counts}tick = made()\n{TRAINING}        tick()\n"),))
    assert found.obstacle is not None and "steps is assigned in a function" in found.obstacle.message
    lines = f"steps = 0\ndef tick():\n    nonlocal steps\n    steps += 1\n{TRAINING}        tick()\nprint(steps)\n"
    (part,) = plan((script_of(f"{HEAD}def main():\n{indent(lines, '    ')}\nmain()\n"),)).parts
    assert all("steps" in names for _, names in part.loops)
