"""The two styles of conversion."""

from __future__ import annotations

from ddpify_codemods.rule import Finding
from ddpify_codemods.rules import in_folders
from ddpify_codemods.styles import in_program, plain_rules
from ddpify_codemods.targets import TARGETS

from tests.codemods.checks import script_of

PENALTY = """\
import torch
model = torch.nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
gradients = torch.autograd.grad(model(torch.rand(8, 4)).mean(), model.parameters())
for parameter, gradient in zip(model.parameters(), gradients):
    parameter.grad = gradient
optimizer.step()
"""


def test_scripts_of_a_program_know_each_other() -> None:
    scripts = in_program([script_of("import net"), script_of("x = 1", is_entry=False)])
    assert scripts[0].program is scripts[1].program is not None


def test_plain_has_its_own_rules_and_the_shared_ones() -> None:
    plain = {rule.id for rule in plain_rules()}
    assert {rule.id for rule in in_folders("plain", "refuse")} <= plain
    assert not {rule.id for rule in in_folders("exact")} & plain


def test_an_edit_that_needs_the_runtime_is_refused() -> None:
    (script,) = in_program([script_of(PENALTY)])
    exact = [item for rule in in_folders("convert") for item in rule.check(script, TARGETS["cpu"])]
    plain = [item for rule in plain_rules() for item in rule.check(script, TARGETS["cpu"])]
    needing = [item for item in exact if getattr(item, "imports", ())]
    assert not any(getattr(item, "imports", ()) for item in plain)
    refused = [item.rule for item in plain if isinstance(item, Finding) and item.severity == "refused"]
    assert needing and "DDP127" in refused
