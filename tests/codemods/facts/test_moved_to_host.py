"""Programs that move a model back to the CPU."""

from __future__ import annotations

import pytest
from ddpify_codemods.facts.moved_to_host import moves_models_to_host

from tests.codemods.checks import script_of

MADE = "optimizer = torch.optim.SGD(self.net.parameters(), lr=0.1)\n"


@pytest.mark.parametrize(
    ("lines", "moves"),
    [
        ("self.net.cpu()", True),
        ("self.net.module.to('cpu')", True),
        ("torch.save(self.net.eval().float().to(device=torch.device('cpu')), 'net.pt')", True),
        ("def save(model):\n    torch.save(model.cpu().state_dict(), 'net.pt')\n    model.train()", True),
        ("self.net.to(device)", False),
        ("out = self.net(x).cpu()", False),
        ("weights = {name: value.cpu() for name, value in self.net.state_dict().items()}", False),
    ],
)
def test_models_and_tensors(lines: str, moves: bool) -> None:
    assert moves_models_to_host([script_of(f"import torch\n{MADE}"), script_of(f"import torch\n{lines}\n")]) is moves
