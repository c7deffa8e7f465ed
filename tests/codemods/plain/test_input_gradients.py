"""Gradients of samples by torch.autograd.grad: penalties, attacks (HAZARDS L14)."""

from __future__ import annotations

import pytest

from .test_followed import CE, plain, refusals, training, undivided

PENALTY = """\
mixed = (x + 0.1 * torch.rand_like(x)).requires_grad_()
        out = model(mixed)
        gradients = torch.autograd.grad({arguments}, create_graph=True)[0]
        loss = F.cross_entropy(model(x), y) + {penalty}"""
WEIGHTS = "out, mixed, torch.ones_like(out)"
NORM = "((gradients.norm(2, dim=1) - 1) ** 2).mean()"


def penalized(arguments: str, penalty: str) -> str:
    """A script whose loss has a penalty of gradients."""
    return training().replace(f"loss = {CE}", PENALTY.format(arguments=arguments, penalty=penalty))


@pytest.mark.parametrize(
    ("arguments", "penalty"),
    [
        (WEIGHTS, NORM),
        ("outputs=out, inputs=mixed, grad_outputs=torch.ones(out.size())", NORM),
        ("out.sum(), mixed", NORM),
        ("out[:, 0].sum(), [mixed]", NORM),
        (WEIGHTS, "gradients.view(x.size(0), -1).pow(2).sum(1).mean()"),
    ],
)
def test_a_penalty_for_each_sample_is_divided(arguments: str, penalty: str) -> None:
    result = plain(penalized(arguments, penalty))
    assert not refusals(result)
    assert "out = ddp_model(mixed)" in result.code


@pytest.mark.parametrize(
    ("arguments", "penalty"),
    [
        (WEIGHTS, "gradients.norm()"),
        (WEIGHTS, "gradients.mean(0).norm()"),
        ("out.mean(), mixed", NORM),  # divided by the number of a rank's samples
        (f"{CE}, mixed", NORM),
        ("out.std(0).sum(), mixed", NORM),
        ("out, mixed, torch.ones(8, 3)", NORM),
        ("out.sum(), list(model.parameters())", "gradients.norm()"),
        ("out.sum(), model.weight", "gradients.norm()"),
    ],
)
def test_other_gradients_are_refused(arguments: str, penalty: str) -> None:
    assert undivided(plain(penalized(arguments, penalty)))


ATTACK = """\
        attacked = x.detach() + torch.zeros_like(x).uniform_(-0.1, 0.1)
        attacked.requires_grad_()
        gradients = torch.autograd.grad({loss}, [attacked])[0]
        attacked = attacked.detach() + {change}
        attacked = torch.min(torch.max(attacked, x - 0.1), x + 0.1)
        loss = F.cross_entropy(model(torch.clamp(attacked, 0, 1)), y)"""
ATTACKED = "F.cross_entropy(model(attacked), y)"


@pytest.mark.parametrize(
    ("loss", "change", "right"),
    [
        (ATTACKED, "0.1 * torch.sign(gradients.detach())", True),
        (ATTACKED, "0.1 * gradients.sign()", True),
        (ATTACKED, "0.1 * gradients", False),
        (ATTACKED, "0.1 * torch.sign(gradients + x)", False),
        (ATTACKED, "0.1 * torch.sign(gradients - gradients.mean(0))", False),
        ('F.cross_entropy(model(attacked), y, reduction="sum")', "0.1 * gradients", True),
    ],
)
def test_an_attack_takes_the_signs_of_gradients(loss: str, change: str, right: bool) -> None:
    source = training().replace(f"        loss = {CE}", ATTACK.format(loss=loss, change=change))
    result = plain(source)
    assert bool(refusals(result)) is not right
    if right:
        assert "model(attacked), y" in result.code
        assert "ddp_model(torch.clamp(attacked, 0, 1))" in result.code


CRITIC = f"""\
loss = model(x).mean()
        loss.backward(){{step}}
        mixed = (x + 0.1).requires_grad_()
        out = model(mixed)
        gradients = torch.autograd.grad({WEIGHTS}, create_graph=True)[0]
        penalty = {NORM}
        {{loss}}.backward()
        optimizer.step()
        optimizer.zero_grad()
"""


def of_critic(last: str, loss: str, step: str = "") -> str:
    """A script that trains a critic by its outputs, and then by a penalty of its gradients."""
    start = training().partition(f"loss = {CE}")[0] + CRITIC.format(loss=loss, step=step)
    return start.replace("nn.Linear(4, 3)", f"nn.Sequential(nn.Linear(4, 8), nn.Tanh(), {last})")


@pytest.mark.parametrize(
    ("last", "loss", "warned"),
    [
        ("nn.Linear(8, 1)", "penalty", True),
        ("nn.Linear(8, 1)", "(10 * penalty)", True),
        ("nn.Linear(8, 1), nn.Flatten()", "penalty", True),
        ("nn.Linear(8, 1, bias=False)", "penalty", False),
        ("nn.Linear(8, 1), nn.Sigmoid()", "penalty", False),
        ("nn.Linear(8, 1)", "(model(x + 1).mean() + penalty)", False),
        ("nn.Linear(8, 1)", "(penalty + 0 * out.mean())", False),
    ],
)
@pytest.mark.parametrize("step", ["\n        optimizer.step()\n        optimizer.zero_grad()", ""])
def test_a_penalty_with_a_backward_pass_of_its_own(last: str, loss: str, warned: bool, step: str) -> None:
    result = plain(of_critic(last, loss, step))
    assert not refusals(result)
    assert any("a loss of gradients alone" in each.message for each in result.findings) is warned


def test_a_penalty_in_the_backward_pass_of_the_outputs() -> None:
    source = of_critic("nn.Linear(8, 1)", "(loss + penalty)").replace("        loss.backward()\n", "")
    assert not refusals(plain(source))
