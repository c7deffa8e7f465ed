"""Several models, each in a DistributedDataParallel of its own: which calls go through it, and what is refused."""

from __future__ import annotations

import pytest

from tests.codemods.plain.test_followed import plain, refusals, training, undivided

HEAD = """\
import itertools
import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.autograd import Variable
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
np.random.seed(0)
loader = DataLoader(TensorDataset(torch.rand(64, 4)), batch_size=8, shuffle=True)
G, D = nn.Linear(2, 4), nn.Linear(4, 1)
opt_G = torch.optim.SGD(G.parameters(), lr=0.1)
opt_D = torch.optim.SGD(D.parameters(), lr=0.1)
Tensor = torch.cuda.FloatTensor if torch.cuda.is_available() else torch.FloatTensor
for epoch in range(2):
    for i, (x,) in enumerate(loader):
"""
GENERATOR = """\
opt_G.zero_grad()
fake = G(torch.randn(x.size(0), 2))
g_loss = -D(fake).mean()
g_loss.backward()
opt_G.step()
"""
DISCRIMINATOR = """\
opt_D.zero_grad()
d_loss = D(fake.detach()).mean() - D(x).mean()
d_loss.backward()
opt_D.step()
"""


def adversarial(*steps: str) -> str:
    """A script that trains a generator and a discriminator by some steps."""
    lines = "".join(steps).splitlines(keepends=True)
    return HEAD + "".join(f"        {line}" for line in lines)


def test_a_step_calls_the_wrapper_of_the_model_that_it_steps() -> None:
    code = plain(adversarial(GENERATOR, DISCRIMINATOR)).code
    assert "fake = ddp_G(torch.randn(x.size(0), 2))" in code
    assert "g_loss = -D(fake).mean()" in code  # its gradients are set to zero before its own step
    assert "d_loss = ddp_D(fake.detach()).mean() - ddp_D(x).mean()" in code
    assert "ddp_D = DistributedDataParallel(D, broadcast_buffers=False)" in code
    assert code.count("noise of its own") == 1


@pytest.mark.parametrize(
    "steps",
    [
        (GENERATOR, DISCRIMINATOR.replace("opt_D.zero_grad()\n", "")),  # D steps with the gradients of both
        (GENERATOR, "n = nn.utils.clip_grad_norm_(D.parameters(), 1.0)\n", DISCRIMINATOR),
        (GENERATOR, "seen = D.weight.grad.sum()\n", DISCRIMINATOR),
        (GENERATOR, DISCRIMINATOR.replace("opt_D.zero_grad()", "if i % 2: opt_D.zero_grad()")),
    ],
)
def test_gradients_that_are_used_are_averaged(steps: tuple[str, ...]) -> None:
    result = plain(adversarial(*steps))
    assert refusals(result) or "g_loss = -ddp_D(fake).mean()" in result.code


@pytest.mark.parametrize(
    "steps",
    [
        # One forward of G, two backward passes whose gradients are stepped with
        (GENERATOR, "again = F.mse_loss(fake, x)\nagain.backward()\nopt_G.step()\n", DISCRIMINATOR),
        # Two forwards of D, then a backward pass for each of them, with something between
        (
            "opt_D.zero_grad()\na, b = D(x).mean(), -D(x).mean()\na.backward()\nprint(1)\nb.backward()\nopt_D.step()\n",
            GENERATOR,
        ),
        # A loss that couples the samples of a batch
        (GENERATOR, DISCRIMINATOR.replace("D(x).mean()", "D(x).std()")),
        (GENERATOR.replace("-D(fake).mean()", "F.mse_loss(torch.cdist(fake, fake), torch.zeros(1))"), DISCRIMINATOR),
        # A generator's batch of the script's own size
        (GENERATOR.replace("x.size(0)", "12"), DISCRIMINATOR),
        (GENERATOR.replace("torch.randn(x.size(0), 2)", "Tensor(np.random.normal(0, 1, (8, 2)))"), DISCRIMINATOR),
    ],
)
def test_what_wrappers_would_not_average_is_not_divided(steps: tuple[str, ...]) -> None:
    assert undivided(plain(adversarial(*steps)))


@pytest.mark.parametrize(
    "steps",
    [
        (
            "for p in D.parameters(): p.requires_grad = False\n",
            GENERATOR,
            "for p in D.parameters(): p.requires_grad = True\n",
            DISCRIMINATOR,
        ),
        (
            "fake = G(torch.randn(x.size(0), 2)).detach()\n",
            DISCRIMINATOR,
            "if i % 5 == 0:\n    ",
            GENERATOR.replace("\n", "\n    "),
        ),
        (
            GENERATOR.replace("torch.randn(x.size(0), 2)", "Variable(Tensor(np.random.normal(0, 1, (len(x), 2))))"),
            DISCRIMINATOR,
        ),
        (
            GENERATOR,
            DISCRIMINATOR.replace("D(x).mean()", "F.mse_loss(D(x), Variable(Tensor(x.size(0), 1).fill_(1.0)))"),
        ),
        (GENERATOR, DISCRIMINATOR.replace("D(x).mean()", "F.mse_loss(D(x), Tensor(np.ones((x.size(0), 1))))")),
    ],
)
def test_what_adversarial_scripts_do_is_converted(steps: tuple[str, ...]) -> None:
    assert not refusals(plain(adversarial(*steps)))


def test_noise_from_numpy_is_drawn_from_a_seed_of_each_rank() -> None:
    noise = "Tensor(np.random.normal(0, 1, (x.shape[0], 2)))"
    code = plain(adversarial(GENERATOR.replace("torch.randn(x.size(0), 2)", noise), DISCRIMINATOR)).code
    assert "np.random.seed(torch.initial_seed() % 2**32)" in code


def test_a_decision_by_numbers_of_such_a_generator_is_that_of_rank_0() -> None:
    noise = "Tensor(np.random.normal(0, 1, (x.shape[0], 2)))"
    source = adversarial(GENERATOR.replace("torch.randn(x.size(0), 2)", noise), DISCRIMINATOR)
    for decides, sent in (
        ("np.random.rand() < 0.5", "np.random.rand() < 0.5"),
        ("D(G(torch.randn(3, 2))).mean() > 0", "bool(D(G(torch.randn(3, 2))).mean() > 0)"),
    ):
        result = plain(f"{source}        if {decides}: break\n")
        assert not refusals(result) and f"if from_rank_0({sent}): break" in result.code


TWO = (
    training()
    .replace("nn.Linear(4, 3)", "nn.Linear(8, 3)")
    .replace("optimizer =", "first = nn.Linear(4, 8)\noptimizer =")
    .replace("SGD(model.parameters()", "SGD([*first.parameters(), *model.parameters()]")
    .replace("model(x)", "model(first(x))")
)


def test_two_models_in_one_optimizer_are_wrapped_both() -> None:
    code = plain(TWO).code
    assert "F.cross_entropy(ddp_model(ddp_first(x)), y)" in code
    assert code.count("= DistributedDataParallel(") == 2


def test_a_model_of_which_nothing_is_trained_is_not_wrapped() -> None:
    teacher = TWO.replace("SGD([*first.parameters(), *model.parameters()]", "SGD(model.parameters()")
    code = plain(teacher).code
    assert "ddp_model(first(x))" in code
    assert code.count("= DistributedDataParallel(") == 1


def test_models_that_share_layers_are_refused() -> None:
    models = "core = nn.Linear(8, 8)\n"
    models += "first, model = nn.Sequential(nn.Linear(4, 8), core), nn.Sequential(core, nn.Linear(8, 3))\n"
    assert refusals(plain(TWO.replace("first = nn.Linear(4, 8)\n", models)))


def test_models_of_a_list_that_have_names_of_their_own() -> None:
    models = "nets = [nn.Linear(4, 8), nn.Linear(8, 3)]\nfirst, model = nets[0], nets[1]\n"
    code = plain(TWO.replace("first = nn.Linear(4, 8)\n", models)).code
    assert f"{models}ddp_first = DistributedDataParallel(first)\nddp_model = DistributedDataParallel(model)\n" in code
    assert "F.cross_entropy(ddp_model(ddp_first(x)), y)" in code


def test_batches_of_an_untrained_loader_may_be_taken_one_by_one() -> None:
    sample = "        (shown,) = next(iter(others))\n        torch.save(G(D(shown).expand(-1, 2)).data, 'shown.pt')\n"
    source = adversarial(GENERATOR, DISCRIMINATOR) + sample
    source = source.replace("G, D =", "others = DataLoader(TensorDataset(torch.rand(9, 4)), batch_size=4)\nG, D =")
    result = plain(source)
    assert all("next()" not in each for each in refusals(result))


@pytest.mark.parametrize(
    ("drawn", "shown"),
    [
        ("save_image(fake.data[:25], 'fake.png')", "save_image(whole_fake[:25], 'fake.png')"),
        ("save_image(x, 'real.png', nrow=5)", "save_image(whole_x, 'real.png', nrow=5)"),
    ],
)
def test_pictures_show_the_samples_of_all_ranks(drawn: str, shown: str) -> None:
    source = "from torchvision.utils import save_image\n" + adversarial(GENERATOR, DISCRIMINATOR, f"{drawn}\n")
    result = plain(source)
    assert shown in result.code
    assert all(each.rule != "DDP627" for each in result.findings)


def test_a_picture_of_as_many_samples_as_a_rank_chooses_is_that_of_rank_0() -> None:
    drawn = "bright = fake.data[fake.data.amax(1) > 0.5]\nsave_image(bright, 'fake.png')\n"
    source = "from torchvision.utils import save_image\n" + adversarial(GENERATOR, DISCRIMINATOR, drawn)
    result = plain(source)
    assert "save_image(bright, 'fake.png')" in result.code
    assert [each.rule for each in result.findings if each.severity == "note"].count("DDP627") == 1


@pytest.mark.parametrize(
    ("drawn", "partial"),
    [
        ("save_image(G(torch.randn(25, 2)), 'drawn.png')", 0),
        ("from PIL import Image\nImage.fromarray(make_grid(fake).numpy()).save('fake.png')", 1),
        ("from PIL import Image\nImage.fromarray(make_grid(G(torch.ones(25, 2))).numpy()).save('same.png')", 0),
    ],
)
def test_what_each_rank_draws_is_the_whole_number_and_pictures_that_are_saved_later(drawn: str, partial: int) -> None:
    source = adversarial(GENERATOR, DISCRIMINATOR, "noise = torch.randn_like(x)\n" + drawn + "\n")
    result = plain("from torchvision.utils import make_grid, save_image\n" + source)
    assert not refusals(result)
    assert [each.rule for each in result.findings].count("DDP627") == partial
