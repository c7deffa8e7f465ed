"""Parameters that are unfrozen behind the wrapper (DDP511)."""

from __future__ import annotations

from ddpify_codemods.rules.lint.unfrozen_later import RULE

from .wrapped import told

FREEZES = "for p in net.parameters():\n    p.requires_grad = False\n"
THAWS = "for p in net.parameters():\n    p.requires_grad_({})\n"


def test_what_the_wrapper_does_not_know() -> None:
    assert told(RULE, THAWS.format(""), before=FREEZES) == ["p.requires_grad_()"]
    assert told(RULE, THAWS.format("True"), before=FREEZES) == ["p.requires_grad_(True)"]


def test_what_it_knows_or_nobody_froze() -> None:
    assert not told(RULE, THAWS.format(""))
    assert not told(RULE, THAWS.format("False"), before=FREEZES)
    assert not told(RULE, before=FREEZES + THAWS.format(""))
    assert not told(RULE, THAWS.format("") + "model = DDP(net)\n", before=FREEZES)
