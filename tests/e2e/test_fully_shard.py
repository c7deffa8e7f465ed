"""With --strategy fsdp2 plain code trains what one process trains on the same batches, and a rank keeps a part."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import pytest
import torch
from ddpify_codemods import convert
from torch import nn

from ddpify.verify import verdict
from ddpify.verify.unions import NEUTRAL, unions
from tests.e2e import fixtures, harness
from tests.e2e.test_plain import START, plain
from tests.runtime import processes

nightly = pytest.mark.nightly

SCRIPT = """\
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList([nn.Linear(16, 16) for _ in range(6)])
        self.head = nn.Linear(16, 1)

    def forward(self, x):
        for layer in self.layers:
            x = layer(x).tanh()
        return self.head(x)

torch.manual_seed(0)
loader = DataLoader(TensorDataset(torch.rand(64, 16), torch.rand(64, 1)), batch_size=8, shuffle=True)
model = Net()
model.load_state_dict(torch.load("first.pt"))
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
for x, y in loader:
    loss = nn.functional.mse_loss(model(x), y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
torch.save(model.state_dict(), "last.pt")
model.load_state_dict(torch.load("first.pt"))
"""


def trained(code: str, folder: str) -> Any:
    """How many numbers a rank keeps of parameters, gradients and the optimizer's state; the parameters in the end."""
    warnings.simplefilter("ignore")
    names: dict[str, Any] = {"__name__": "__main__"}
    path = Path(folder)
    code = code.replace("first.pt", str(path / "first.pt")).replace("last.pt", str(path / "last.pt"))
    code = code.replace('dist.init_process_group("gloo")', "").replace("dist.destroy_process_group()", "")
    code = code.replace('sys.stdout = open(os.devnull, "w")', "pass")
    exec(compile(code, "train.py", "exec"), names)

    def local(tensor: Any) -> int:
        return int((tensor.to_local() if hasattr(tensor, "to_local") else tensor).numel())

    parameters = [*names["model"].parameters()]
    states = [value for each in names["optimizer"].state.values() for value in each.values() if value.dim()]
    counts = [sum(map(local, parameters)), sum(local(p.grad) for p in parameters), sum(map(local, states))]
    whole = [(p.full_tensor() if hasattr(p, "full_tensor") else p).detach().clone() for p in parameters]
    return counts, whole


def test_a_rank_keeps_its_part_and_checkpoints_are_those_of_the_original(tmp_path: Path) -> None:
    [result] = convert({Path("train.py"): SCRIPT}, "cpu", style="plain", fully_sharded=True).values()
    assert not [finding for finding in result.findings if finding.severity == "refused"]
    names: dict[str, Any] = {}
    exec(SCRIPT[: SCRIPT.index("torch.manual_seed")], names)
    torch.manual_seed(3)
    first = names["Net"]()
    torch.save(first.state_dict(), tmp_path / "first.pt")
    [(alone, _)] = processes.run(1, trained, SCRIPT, str(tmp_path))
    parts = processes.run(2, trained, result.code, str(tmp_path))
    for counts, whole in parts:
        assert all(part <= 0.55 * everything for part, everything in zip(counts, alone, strict=True))
        for parameter, expected in zip(whole, first.parameters(), strict=True):  # loaded again at the end
            torch.testing.assert_close(parameter, expected.detach(), rtol=0, atol=0)
    assert [sum(counts) for counts in zip(*(counts for counts, _ in parts), strict=True)] == alone
    again: nn.Module = names["Net"]()
    again.load_state_dict(torch.load(tmp_path / "last.pt"))
    assert all((a != b).any() for a, b in zip(again.parameters(), first.parameters(), strict=True))


@pytest.mark.parametrize(
    ("name", "ranks"),
    [("main_guard", 2), *(pytest.param(each, 3, marks=nightly) for each in ("dropout", "three_modules", "ragged"))],
)
def test_it_trains_the_same(name: str, ranks: int, tmp_path: Path) -> None:
    """As tests/e2e/test_plain.py; a state dict that was put together lacks `_metadata`, and loads without."""
    fixture = fixtures.load(name)
    original = {name: path.read_bytes() for name, path in fixtures.files(fixture).items()}
    changed = plain(fixture.name, fully_sharded=True)
    assert any(b"fully_shard(" in code for code in changed.values())
    settings = NEUTRAL | {"DDPIFY_PRETEND": ""}
    many = harness.run_sources(fixture, original | changed, ranks, settings=settings)
    assert many.rc == 0, many.stderr[-3000:]
    drawn = tmp_path / "unions.json"
    drawn.write_text(unions([many.records[rank] for rank in range(ranks)]), encoding="utf-8")
    settings |= {"DDPIFY_UNIONS": str(drawn), "DDPIFY_SEED": START}
    one = harness.run_sources(fixture, original, settings=settings)
    text = "\n".join(fixtures.program(fixture).values())

    def noisy(number: int) -> Any:
        noise = {"DDPIFY_NOISE": str(verdict.NOISE), "DDPIFY_NOISE_SEED": str(number)}
        return harness.run_sources(fixture, original, settings=settings | noise)

    found = verdict.judge(one, many, ranks, text, noisy, fixture.tolerance, given=True)
    assert one.steps() and len(one.steps()) == len(many.steps())
    assert not [str(each) for each in found.differences if "_metadata" not in str(each)]
