"""Progress bars: how often they draw themselves is no difference, what they end with is one."""

from __future__ import annotations

import io

import pytest
from tqdm import tqdm

from ddpify.verify.bars import settled
from ddpify.verify.compare import one_voice
from ddpify.verify.texts import first_difference

OFTEN, SELDOM = 0.0, 60.0  # seconds between two redraws


def trained(every: float, last: float = 0.5, inner: bool = False, total: bool = True) -> str:
    """What a script shows that trains two epochs of 20 steps."""
    screen = io.StringIO()
    epochs = tqdm(range(2), file=screen, mininterval=every) if inner else range(2)
    for epoch in epochs:
        steps = 20 if total else None
        bar = tqdm(total=steps, desc=f"epoch {epoch}", file=screen, mininterval=every, leave=not inner)
        for step in range(20):
            bar.set_postfix(loss=last if step == 19 else step / 7, lr=[0.001], refresh=every == OFTEN)
            bar.update(1)
        tqdm.write(f"epoch {epoch} accuracy [0.9]", file=screen)
        bar.close()
        print("" if inner else "saved", file=screen)
    return screen.getvalue()


@pytest.mark.parametrize("inner", [False, True])
@pytest.mark.parametrize("total", [False, True])
def test_how_often_a_bar_is_drawn_is_no_difference(inner: bool, total: bool) -> None:
    often, seldom = trained(OFTEN, inner=inner, total=total), trained(SELDOM, inner=inner, total=total)
    assert often.count("\r") > 2 * seldom.count("\r")
    assert first_difference(often, seldom, None, 1e-4)[0] is None
    assert list(one_voice(often, seldom)) == list(one_voice(seldom, often)) == []
    assert "epoch 1 accuracy [0.9]" in settled(often).splitlines()


def test_what_a_finished_bar_says_is_compared() -> None:
    assert "epoch 1: 20/20, loss=0.5, lr=[0.001]" in settled(trained(OFTEN)).splitlines()
    found, _ = first_difference(trained(OFTEN), trained(SELDOM, last=0.9), None, 1e-4)
    assert found and found.original == "epoch 0: 20/20, loss=0.5, lr=[0.001]"


def test_other_texts_stay_as_they_are() -> None:
    for text in ("", "a\n\nb", "100% done | 3 [of] 4\r\n", "\r1/3 loss 0.5\r2/3 loss 0.4\n", "[0:10, 3.2]\n"):
        assert settled(text) == text


def test_a_line_between_bars_is_compared() -> None:
    text = trained(OFTEN)
    assert first_difference(text, text.replace("accuracy [0.9]", "accuracy [0.4]"), None, 1e-4)[0]
    assert first_difference(text, text.replace("saved\n", "saved\nsaved\n"), None, 1e-4)[0]
