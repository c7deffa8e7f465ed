"""Meters: classes that make numbers of what they add up."""

from __future__ import annotations

from ddpify_codemods.facts.meters import meters
from ddpify_codemods.styles import in_program

from tests.codemods.checks import script_of
from tests.codemods.facts.flow.followed import HEAD, TRAINING

METER = """\
class AverageMeter:
    def __init__(self):
        self.val = self.sum = self.count = self.avg = 0
    def update(self, val, n=1):
        self.val = val
        self.sum += val * n
        self.count += n
        self.avg = self.sum / self.count
losses = AverageMeter()
"""


def test_a_meter_is_known_by_what_it_does() -> None:
    read = "        losses.update(loss.item(), len(x))\n    print(losses.avg)\n"
    (script,) = in_program([script_of(HEAD + METER + TRAINING + read)])
    assert script.program is not None
    (meter,) = meters(script.program.scripts, script.program.followed.found)
    assert meter.node.name == "AverageMeter" and list(meter.made) == ["avg"]
    assert set(meter.reductions.values()) == {"sum"}


def test_a_program_without_one() -> None:
    (script,) = in_program([script_of(HEAD + TRAINING)])
    assert script.program is not None and meters(script.program.scripts, script.program.followed.found) == ()


def test_what_a_function_reads_that_nothing_names_counts_for_nothing() -> None:
    """Of several training loops in a file, the program takes one: those of the others would be in the way."""
    read = "        losses.update(loss.item(), len(x))\n    print(losses.avg)\n"
    other = (
        "def distill(top1):\n    print('{top1.val:.3f} ({top1.avg:.3f})'.format(top1=top1))\n    return top1.avg\n\n\n"
        "def used():\n    return 1\n"
    )
    for name, count in (("used", 1), ("distill", 0)):
        code = HEAD + f"from loops import {name}\n" + METER + TRAINING + read + f"print({name})\n"
        script, _ = in_program([script_of(code), script_of(other, is_entry=False)])
        assert script.program is not None
        assert len(meters(script.program.scripts, script.program.followed.found)) == count
