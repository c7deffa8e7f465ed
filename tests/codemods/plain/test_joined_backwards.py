"""Backward passes that come one after the other, through one forward."""

from __future__ import annotations

import pytest

from tests.codemods.plain.test_followed import HEAD, plain, refusals

KEEPS = "loss.backward(retain_graph=True)\n    "
LOOP = """\
for x, y in train_loader:
    out = model(x)
    loss = F.cross_entropy(out, y)
    size = out.abs().mean()
    optimizer.zero_grad()
    {}
    optimizer.step()
"""
CLASS = """\
class Clipped(torch.autograd.Function):
    @staticmethod
    def forward(context, x):
        return x.clone()
    @staticmethod
    def backward(context, gradient):
        return gradient.clamp(-1, 1)
"""


@pytest.mark.parametrize(
    ("written", "joined"),
    [
        (KEEPS + "size.backward()", "(loss + size).backward(retain_graph=True)"),
        ("loss.backward(retain_graph=True); size.backward()", "(loss + size).backward(retain_graph=True)"),
        (KEEPS + "size.backward(retain_graph=True)", "(loss + size).backward(retain_graph=True)"),
        (KEEPS + "size.backward(retain_graph=True)\n    loss.backward()", "(loss + size + loss).backward("),
        (KEEPS + "(0.1 * size).backward()", "(loss + 0.1 * size).backward(retain_graph=True)"),
        ("(loss / 2).backward(retain_graph=True)\n    size.backward()", "    (loss / 2 + size).backward("),
        (
            "if y.ndim == 1:\n        loss.backward(retain_graph=True)\n        size.backward()",
            "(loss + size).backward(retain_graph=True)",
        ),
    ],
)
def test_they_are_one_of_the_sum(written: str, joined: str) -> None:
    code = plain(HEAD + LOOP.format(written)).code
    assert joined in code and code.count("backward(") == 1


@pytest.mark.parametrize(
    "written",
    [
        KEEPS + "optimizer.zero_grad()\n    size.backward()",
        KEEPS + "nn.utils.clip_grad_norm_(model.parameters(), 1)\n    size.backward()",
        KEEPS + "optimizer.step()\n    size.backward()",
        KEEPS + "if y.ndim == 1:\n        size.backward()",
        KEEPS + "size.backward(inputs=list(model.parameters()))",
        KEEPS + "size.backward(torch.ones(()))",
        KEEPS + "for _ in range(2):\n        size.backward()",
        KEEPS + "size.mean().backward()",  # of an object of its own, it may do more
        KEEPS + "scaler.scale(size).backward()",
        "loss.backward()\n    loss.backward()",  # an error of the script
        "loss.backward(retain_graph=True, create_graph=True)\n    size.backward()",
        KEEPS + "size.backward(retain_graph=True)\n    print(1)\n    loss.backward()",
    ],
)
def test_others_are_refused(written: str) -> None:
    source = HEAD + "scaler = torch.amp.GradScaler()\n" + LOOP.format(written)
    assert any("two backward passes" in each for each in refusals(plain(source)))


@pytest.mark.parametrize(
    ("before", "out"),
    [
        (CLASS, "Clipped.apply(model(x))"),  # what goes back is clipped twice, or once
        ("from torch.utils.checkpoint import checkpoint\n", "model(x)"),
        ("import torch.utils.checkpoint as again\n", "model(x)"),
        ("from torch.utils import data, checkpoint\n", "model(x)"),
        (
            "from torch.autograd import Function as Own\n" + CLASS.replace("torch.autograd.Function", "Own"),
            "Clipped.apply(model(x))",
        ),
    ],
)
def test_a_backward_pass_of_the_sum_would_be_another_one(before: str, out: str) -> None:
    source = HEAD + before + LOOP.format(KEEPS + "size.backward()").replace("model(x)", out)
    assert any("two backward passes" in each for each in refusals(plain(source)))


def test_where_none_goes_through_a_forward_again_all_stays_as_it_is() -> None:
    apart = "loss.backward()\n    extra = model(x).abs().mean()\n    extra.backward()"
    code = plain(HEAD + LOOP.format(apart)).code
    assert "    loss.backward()\n" in code and "    extra.backward()\n" in code
