"""Ignite wraps models and optimizers (DDP633)."""

from __future__ import annotations

import pytest
from ddpify_codemods.rules.ignite.wrapped import RULE

from tests.codemods.checks import findings_of, rewritten

HEAD = "import torch\nimport torch.distributed as dist\nfrom torch.nn.parallel import DistributedDataParallel as DDP\n"


@pytest.mark.parametrize(
    ("line", "after"),
    [
        ("model = DDP(net)", "model = idist.auto_model(net)"),
        (
            "model = DDP(module=net, device_ids=[0], find_unused_parameters=True)",
            "model = idist.auto_model(net, find_unused_parameters=True)",
        ),
        (
            "optimizer = torch.optim.SGD(net.parameters(), lr=1)",
            "optimizer = idist.auto_optim(torch.optim.SGD(net.parameters(), lr=1))",
        ),
        ("self.net.module.save()", "getattr(self.net, 'module', self.net).save()"),
    ],
)
def test_what_is_wrapped(line: str, after: str) -> None:
    assert rewritten(RULE, HEAD + line, "ignite").endswith(after)


@pytest.mark.parametrize(
    "line",
    ["model = DDP(net, **given)", "model = DDP(net, process_group=pair)", "self.module = net; self.module.save()"],
)
def test_what_has_no_form_in_ignite(line: str) -> None:
    assert [(each.severity, each.line) for each in findings_of(RULE, HEAD + line, "ignite")] == [("refused", 4)]
    assert rewritten(RULE, HEAD + line, "ignite").endswith(line)
