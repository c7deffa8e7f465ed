"""Backward passes that leave gradients in a model for nothing."""

from __future__ import annotations

import pytest

from tests.codemods.plain.test_followed import HEAD, plain, refusals

GAN = (
    HEAD.replace("model = nn.Linear(4, 3)\n", "generator, critic = nn.Linear(4, 4), nn.Linear(4, 1)\n").replace(
        "optimizer = torch.optim.SGD(model.parameters(), lr=0.1)\n",
        "for_generator = torch.optim.SGD(generator.parameters(), lr=0.1)\n"
        "for_critic = torch.optim.SGD(critic.parameters(), lr=0.1)\n",
    )
    + """\
for x, y in train_loader:
    fake = generator(x)
    loss = critic(fake).mean() - critic(x).mean()
    for_critic.zero_grad()
    loss.backward(retain_graph=True)
    for_critic.step()
    loss = -critic(fake).mean()
    for_generator.zero_grad()
    loss.backward()
    for_generator.step()
"""
)
KEPT = "loss.backward(retain_graph=True)"
SAID = "loss.backward(retain_graph=True, inputs=list(critic.parameters()))"


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("for_generator.zero_grad", "for_generator.zero_grad"),
        ("for_generator.zero_grad", "generator.zero_grad"),
        (KEPT, SAID),  # by the author
    ],
)
def test_the_critic_does_not_go_backward_through_the_generator(old: str, new: str) -> None:
    result = plain(GAN.replace(old, new))
    assert not refusals(result)
    assert SAID in result.code and "ddp_generator(x)" in result.code


def test_two_models_are_both_named() -> None:
    second = GAN.replace("generator, critic =", "other, generator, critic = nn.Linear(4, 1),")
    second = second.replace("    fake =", "    out = other(x).mean()\n    fake =", 1)
    second = second.replace("critic(x).mean()\n", "critic(x).mean() + out\n    for_other.zero_grad()\n")
    second = second.replace("    for_critic.step()", "    for_critic.step()\n    for_other.step()")
    second = second.replace("for_critic =", "for_other = torch.optim.SGD(other.parameters(), lr=0.1)\nfor_critic =")
    result = plain(second)
    assert not refusals(result)
    assert "retain_graph=True, inputs=[*critic.parameters(), *other.parameters()])" in result.code


def test_frozen_parameters_are_left_out() -> None:
    """torch.autograd.backward takes no inputs that get no gradients."""
    result = plain(GAN.replace("for x, y in", "critic.bias.requires_grad = False\nfor x, y in"))
    assert not refusals(result)
    assert "inputs=[p for p in critic.parameters() if p.requires_grad])" in result.code


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("    for_generator.zero_grad()\n", ""),  # it steps by both
        ("    for_critic.zero_grad()\n", "    for_critic.zero_grad()\n    for_generator.zero_grad()\n"),
        ("for_critic.step()", "for_critic.step(); for_generator.step()"),
    ],
)
def test_gradients_that_are_stepped_by_are_not_left_out(old: str, new: str) -> None:
    source = GAN.replace(old, new, 1)
    source = (
        source.replace("    for_generator.zero_grad()\n    loss.backward()", "    loss.backward()")
        if old in new
        else source
    )
    assert any("two backward passes" in each for each in refusals(plain(source)))
