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
