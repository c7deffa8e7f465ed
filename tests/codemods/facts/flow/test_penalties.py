"""Losses that take the parameters of a model themselves."""

from __future__ import annotations

import pytest
from ddpify_codemods.facts.flow.penalties import penalizes

from tests.codemods.checks import script_of
from tests.codemods.plain.test_followed import plain, refusals, training

UNUSED = """\
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.used, self.other = nn.Linear(4, 3), nn.Linear(4, 3)
    def forward(self, x):
        return self.used(x)
model = Net()
"""


@pytest.mark.parametrize(
    ("source", "penalty"),
    [
        ("loss = sum(p.abs().sum() for p in model.parameters())", True),
        ("loss = sum([torch.norm(p) for n, p in model.named_parameters() if 'bias' not in n])", True),
        ("for p in model.parameters():\n    loss = loss + p.pow(2).sum()", True),
        ("for n, p in model.named_parameters():\n    loss = loss + (p * p).sum()", True),
        ("for p in model.parameters():\n    seen = p.name\n    loss = loss + p.abs().sum()", True),
        ("norms = {n: p.norm() for n, p in model.named_parameters()}\nloss = sum(norms.values())", True),
        ("loss = sum(map(lambda p: p.abs().sum(), model.parameters()))", True),
        ("loss = sum(map(torch.norm, model.parameters()))", True),
        ("loss = torch.nn.utils.parameters_to_vector(model.parameters()).norm()", True),
        ("loss = sum(F.mse_loss(p, q) for p, q in zip(model.parameters(), kept))", True),
        ("print(sum(map(lambda p: p.numel(), model.parameters())))", False),
        ("print(torch.nn.utils.parameters_to_vector(model.parameters()).norm().item())", False),
        ("sizes = {n: p.numel() for n, p in model.named_parameters()}", False),
        ("optimizer = SGD(filter(lambda p: p.requires_grad, model.parameters()))", False),
        ("print(sum(p.numel() for p in model.parameters()))", False),
        ("for p in model.parameters():\n    p.requires_grad = False", False),
        ("optimizer = SGD([p for p in model.parameters() if p.requires_grad])", False),
        ("for p in model.parameters():\n    p.grad.clamp_(-1, 1)\n    p.data.mul_(2)", False),
        ("nn.utils.clip_grad_norm_(model.parameters(), 1)", False),
        ("for n, p in model.named_parameters():\n    if p.grad is None:\n        seen.add(n.split('.')[0])", False),
        ("print([p.norm().item() for p in model.parameters()])", False),
        ("print(sum(p.double().sum() for p in model.parameters()).item())", False),
        ("print(torch.stack([p.norm() for p in model.parameters()]).norm().tolist())", False),
        ("seen = {n: float(p.abs().mean()) for n, p in model.named_parameters()}", False),
        ("for n, p in model.named_parameters():\n    print(f'{n}: {p.norm()}', p.sum())", False),
        (
            "with torch.no_grad():\n    for p in model.parameters():\n        p.mul_(2)\n        total = (p * p).sum()",
            False,
        ),
        ("sparse = sum((p.abs() > 0.1).sum() for p in model.parameters())", False),
        ("loss = sum(p.norm() / p.norm().item() for p in model.parameters())", True),
        ("loss = sum((p.abs() > 0.1) * p.pow(2) for p in model.parameters())", True),
        ("for p in model.parameters():\n    print((n := p.norm()).item())\n    loss = loss + n", True),
        ("for p in model.parameters():\n    print(penalty(p.norm()).item())", True),
        ("for p in model.parameters():\n    n = p.norm()\n    print(n.item())\n    loss = loss + n", True),
        ("with torch.enable_grad():\n    loss = sum(p.norm() for p in model.parameters())", True),
    ],
)
def test_parameters_that_are_computed_with(source: str, penalty: bool) -> None:
    assert penalizes([script_of(f"import torch\n{source}\n")]) is penalty


def test_parameters_that_are_only_shown() -> None:
    source = training().replace("model = nn.Linear(4, 3)\n", UNUSED, 1)
    result = plain(source + "print([p.norm().item() for p in model.parameters()])\n")
    assert not refusals(result) and "find_unused_parameters=True" in result.code


@pytest.mark.parametrize("penalty", ["", " + 0.1 * sum(p.abs().sum() for p in model.parameters())"])
def test_a_penalty_takes_parameters_that_the_forward_leaves_out(penalty: str) -> None:
    """The wrapper would end the run: a parameter is ready twice."""
    source = training(f"F.cross_entropy(model(x), y){penalty}").replace("model = nn.Linear(4, 3)\n", UNUSED, 1)
    result = plain(source)
    assert [each.partition(",")[0] for each in refusals(result)] == (
        ["a penalty takes parameters that the forward may leave out"] if penalty else []
    )
    assert ("find_unused_parameters=True" in result.code) is not bool(penalty)
