"""Where the trail is lost: gradients of which it cannot be seen what they are used for."""

from __future__ import annotations

import pytest
from ddpify_codemods.facts.trail import computes_gradients, lost_trail

from tests.codemods.checks import script_of


@pytest.mark.parametrize(
    ("source", "place"),
    [
        ("loss.backward()\nopt = build()\nopt.step()", (3, "DDP311")),
        ("loss.backward()\nw.data -= 0.1 * w.grad", (2, "DDP304")),
        ("loss.backward()\nprint(x.grad)", None),
        ("import importlib, sys\nimportlib.import_module(sys.argv[1]).main()", (2, "DDP311")),
        ("print(3)", None),
    ],
)
def test_the_place_from_which_on_training_cannot_be_followed(source: str, place: tuple[int, str] | None) -> None:
    lost = lost_trail([script_of(source)])
    assert (lost and (lost.line, lost.rule)) == place


def test_gradients_are_computed() -> None:
    assert computes_gradients(script_of("loss.backward()"))
    assert computes_gradients(script_of("getattr(loss, 'backward')()"))
    assert not computes_gradients(script_of("loss.forward()"))
    taken = "import torch\nfor p, g in zip(ps, torch.autograd.grad(loss, ps)):\n    "
    assert computes_gradients(script_of(f"{taken}p.grad = g\nopt.step()"))
    assert not computes_gradients(script_of(f"{taken}print(p.grad, g)"))
