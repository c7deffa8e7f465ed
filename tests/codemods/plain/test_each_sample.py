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


PAIRS = "(o - out).pow(2).mean()"


@pytest.mark.parametrize(
    ("lines", "loss"),
    [
        (f"total = 0\nfor o in out:\n    total = total + {PAIRS}", "total"),
        (f"total = 0\nfor o in out:\n    total += {PAIRS}", "total"),
        ("total = 0\nfor a in out:\n    for b in out:\n        total += (a - b).pow(2).mean()", "total"),
        ("total = 0\nfor i, o in enumerate(out):\n    total += F.cosine_similarity(o[None], out).mean()", "total"),
        (f"losses = []\nfor o in out:\n    losses.append({PAIRS})", "torch.stack(losses).mean()"),
        ("", f"torch.stack([{PAIRS} for o in out]).mean()"),
        ("", f"sum({PAIRS} for o in out) / len(out)"),
        ("", "torch.stack([(a - b).pow(2).mean() for a in out for b in out]).mean()"),
        ("", "torch.stack([F.cross_entropy(o[None].expand(len(y), -1), y) for o in out]).mean()"),
        ("near = sum((o > out).float().mean() for o in out)", f"near * {LOSS.replace('o', 'out').replace('t)', 'y)')}"),
    ],
)
def test_each_sample_with_all_of_its_rank_is_refused(lines: str, loss: str) -> None:
    """Of one process it would be with all of the batch."""
    assert refusals(plain(after(lines, loss)))


@pytest.mark.parametrize(
    "lines",
    [
        "total = 0\nfor i, o in enumerate(out):\n    total += F.cross_entropy(o, y[i])",
        "total = 0\nfor o, t in zip(out, y):\n    total += F.cross_entropy(o.type_as(out), t)",
        "total = 0\nfor i in range(len(x)):\n    total += F.cross_entropy(model(x)[i], y[i])",
    ],
)
def test_each_sample_with_its_own_target_is_added_up(lines: str) -> None:
    found = refusals(plain(after(lines, "total")))
    assert not any("couples" in each for each in found)


@pytest.mark.parametrize("adds", ["total += {}", "total = total + {}", "total = {} + total"])
def test_a_loop_over_what_may_be_several_outputs_is_refused(adds: str) -> None:
    source = after(f"total = 0\nfor o in out:\n    {adds.format('F.cross_entropy(o, y)')}", "total")
    assert any("is not seen" in each for each in refusals(plain(source.replace("nn.Linear(4, 3)", "build()"))))
    listed = source.replace("for o in out:", "for o in [out, 2 * out]:")
    assert not refusals(plain(listed))
