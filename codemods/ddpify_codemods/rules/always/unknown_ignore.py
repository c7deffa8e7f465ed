"""DDP402: a comment that switches off a rule which does not exist."""

from __future__ import annotations

from collections.abc import Iterator
from difflib import get_close_matches

from ...facts.ignores import ignored
from ...facts.script import Script
from ...rule import Edit, Finding, Rule
from ...targets import Target


def check(script: Script, target: Target) -> Iterator[Edit | Finding]:
    """Report names in `# ddpify: ignore[…]` that are those of no rule."""
    found = ignored(script.text)
    if not found:
        return
    from .. import all_rules

    known = [rule.id for rule in all_rules()]
    for line, names in found.items():
        for name in sorted(names - {"", *known}):
            near = get_close_matches(name.upper(), known, n=1)
            hint = f"did you mean {near[0]}? " if near else ""
            message = f"there is no rule {name!r}, so this comment does not switch it off"
            yield Finding(RULE.id, "warning", line, message, f"{hint}ddpify rules lists them")


RULE = Rule(
    id="DDP402",
    title="Comments name rules that exist",
    why="""\
`# ddpify: ignore[…]` with a misspelt name switches nothing off, and whoever reads it believes that it does.""",
    before="""\
import torch

model = torch.nn.Linear(2, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
model(torch.ones(4, 2)).mean().backward()
optimizer.step()
torch.save(model.state_dict(), "model.pt")  # ddpify: ignore[DDP0105]
""",
    after="""\
import torch
from ddpify_runtime import (
    DistributedDataParallel,
    destroy_process_group,
    init_process_group,
    rank_zero_only,
)

init_process_group("gloo")

model = torch.nn.Linear(2, 1)
model = DistributedDataParallel(model)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
model(torch.ones(4, 2)).mean().backward()
optimizer.step()
rank_zero_only(torch.save)(model.state_dict(), "model.pt")  # ddpify: ignore[DDP0105]
destroy_process_group()
""",
    check=check,
    target="cpu",
)
