"""Losses of each sample in turn: a loop over a rank's samples adds up over them, and its last turn is another sample's
on each rank."""

from __future__ import annotations

import pytest

from tests.codemods.plain.test_followed import plain, refusals, training

LOSS = "F.cross_entropy(o, t)"
SCALED = "(loss * dist.get_world_size()).backward()"


def after(lines: str, loss: str) -> str:
    """A script that computes its loss from what some lines make of the outputs."""
    made = "\n        ".join(["out = model(x)", *lines.split("\n")])
    source = training(loss)
    return source.replace(f"loss = {loss}", f"{made}\n        loss = {loss}")


IN_TURN = "for o, t in zip(out, y):\n    "


@pytest.mark.parametrize(
    ("lines", "loss"),
    [
        ("", f"sum({LOSS} for o, t in zip(out, y))"),
        ("", f"torch.stack([{LOSS} for o, t in zip(out, y)]).sum()"),
        (f"total = 0\n{IN_TURN}total += {LOSS}", "total"),
        (f"total = 0\n{IN_TURN}total = total + {LOSS}", "total"),
        ("total = 0\nfor i, o in enumerate(out):\n    total += F.cross_entropy(o, y[i])", "total"),
        (f"losses = []\n{IN_TURN}losses.append({LOSS})", "sum(losses)"),
    ],
)
def test_a_sum_over_samples_is_scaled(lines: str, loss: str) -> None:
    """It was taken for a mean: ranks stepped with a W-th of the gradient."""
    result = plain(after(lines, loss))
    assert not refusals(result) and SCALED in result.code


@pytest.mark.parametrize(
    ("lines", "loss"),
    [
        ("", f"sum({LOSS} for o, t in zip(out, y)) / len(x)"),
        ("", f"torch.stack([{LOSS} for o, t in zip(out, y)]).mean()"),
        (f"total = 0\n{IN_TURN}total += {LOSS}", "total / len(x)"),
        (f"losses = []\n{IN_TURN}losses.append({LOSS})", "sum(losses) / len(losses)"),
        (f"losses = [{LOSS} for o, t in zip(out, y)]", "sum(losses) / len(losses)"),
        ("losses = [F.cross_entropy(head, y) for head in (out, out * 2)]", "sum(losses) / len(losses)"),
    ],
)
def test_a_mean_over_samples_stays(lines: str, loss: str) -> None:
    result = plain(after(lines, loss))
    assert not refusals(result) and "loss.backward()" in result.code


@pytest.mark.parametrize(
    ("lines", "loss"),
    [
        ("", f"[{LOSS} for o, t in zip(out, y)][0]"),
        ("", "F.cross_entropy([o for o in out][0], y[0])"),
        ("", "F.cross_entropy(next(iter(out)), y[0])"),
        (f"losses = []\n{IN_TURN}losses.append({LOSS})", "losses[0]"),
        (f"{IN_TURN}last = {LOSS}", "last"),
        ("for o in out:\n    last = o.sum()", "last"),
    ],
)
def test_one_sample_is_none_of_all_ranks(lines: str, loss: str) -> None:
    assert refusals(plain(after(lines, loss)))


def test_a_list_of_losses_may_be_one_of_each_sample_or_of_each_output() -> None:
    """Its mean is a mean in both cases; its sum is scaled, or not."""
    one_by_one = "torch.stack([F.cross_entropy(o, y) for o in model(x.squeeze())])"
    for code, right in (("mean()", True), ("sum()", False), ("mul(2).sum()", False)):
        source = training(f"{one_by_one}.{code}").replace("nn.Linear(4, 3)", "nn.Sequential(nn.Linear(4, 3))")
        assert bool(refusals(plain(source))) is not right


def test_entries_of_a_batch_are_no_samples() -> None:
    """`batch` may be a tuple of tensors."""
    assert not refusals(plain(training("F.cross_entropy(model([t.float() for t in (x, y)][0]), y)")))
