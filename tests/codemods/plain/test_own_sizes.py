"""Tensors that are as long as the batch of all ranks, and pictures that are put together sample by sample."""

from __future__ import annotations

import pytest

from .test_followed import CE, plain, refusals, training

SOURCE = training().replace("batch_size=8", "batch_size=size").replace("train_set =", "size = 8\ntrain_set =", 1)


@pytest.mark.parametrize(
    ("target", "right"),
    [
        ("torch.ones(len(x), 3)", True),
        ("torch.ones(size, 3)", False),
        ("torch.ones((size, 3)).to(x.device)", False),
        ("torch.FloatTensor(size, 3).fill_(1.0)", False),
        ("torch.ones(1, 3).repeat(size, 1)", False),
        ("torch.ones(1, 3).repeat(len(x), 1)", True),
        ("torch.ones(1, 3)", True),
        ("torch.ones(3, size)[:, 0]", True),
    ],
)
def test_targets_of_the_scripts_own_length_are_refused(target: str, right: bool) -> None:
    for loss in (f"F.mse_loss(model(x), {target})", f"((model(x) - {target}) ** 2).mean()"):
        assert bool(refusals(plain(SOURCE.replace(f"loss = {CE}", f"loss = {loss}")))) is not right


def test_noise_that_only_shows_what_a_model_makes_may_have_that_length() -> None:
    source = SOURCE.replace("for epoch", "fixed = torch.rand(size, 4)\nfor epoch", 1)
    assert not refusals(plain(source + "    print(model(fixed))\n"))


MERGED = """\
def merged(images):
    whole = torch.zeros(4, 8)
    for place, (image, other) in enumerate(zip(images, images)):
        whole[{at}] = image
    return whole


"""


@pytest.mark.parametrize("at", [":, place", "place // 2, place % 2", "2 * place"])
def test_a_picture_is_put_together_of_the_samples_of_all_ranks(at: str) -> None:
    """`enumerate(zip(…))` was taken for something that all ranks have alike."""
    source = training(step="optimizer.step()\n        picture = merged(x)\n        torch.save(picture, 'picture.pt')")
    result = plain(source.replace("for epoch", MERGED.format(at=at) + "for epoch", 1))
    assert refusals(result) or "merged(whole_batch(x))" in result.code


def test_a_picture_that_is_turned_afterwards_is_put_together_of_the_samples_of_all_ranks() -> None:
    """Where it is turned, samples are at places of it already: the batches of all ranks are wanted before."""
    merged = MERGED.format(at=":, place : place + 2").replace("return whole", "return whole.t()")
    step = "optimizer.step()\n        picture = merged(x)\n        imsave('picture.png', picture)"
    source = training(step=step).replace("for epoch", merged + "for epoch", 1)
    result = plain("from matplotlib.pyplot import imsave\n" + source)
    assert not refusals(result) and "picture = merged(whole_batch(x))" in result.code


def test_what_is_trained_on_such_a_picture_is_refused() -> None:
    source = training(f"{CE} + merged(x).t().mean() * model(x).mean()")
    assert refusals(plain(source.replace("for epoch", MERGED.format(at=":, place // 2") + "for epoch", 1)))
