"""Noise that is drawn on the way to a sample: each rank draws its own, wherever the draw stands."""

from __future__ import annotations

import pytest

from tests.codemods.plain.test_followed import CE, LOOP, plain, refusals

PROGRAM = """\
import random
import numpy as np
import torch
import torch.nn.functional as F
from torch.utils.data import DataLoader, Dataset


class Flip:
    def __call__(self, image):
        return {flip}


class Compose:
    def __init__(self, parts):
        self.parts = parts

    def __call__(self, image):
        for part in self.parts:
            image = part(image)
        return image


def crop(image):
    at = random.randint(0, 1)
    return torch.roll(image, at)


class Data(Dataset):
    def __init__(self, transform=None):
        self.images, self.labels = torch.rand(64, 4), torch.randint(3, (64,))
        self.transform = transform

    def __len__(self):
        return len(self.images)

    def __getitem__(self, i):
        return {sample}, self.labels[i]


flip = Flip()
torch.manual_seed(0)
random.seed(0)
np.random.seed(0)
train_loader = DataLoader({data}, batch_size=8, shuffle=True{workers})
model = torch.nn.Linear(4, 3)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
"""
FLIP = "image.flip(0) if random.random() < 0.5 else image"


def seeded(
    flip: str = FLIP, sample: str = "self.transform(self.images[i])", data: str = "Data(Flip())", workers: str = ""
) -> str:
    program = PROGRAM.format(flip=flip, sample=sample, data=data, workers=workers)
    if "Compose" not in data:
        program = program.replace("class Compose", "class Chain")
    result = plain(program + LOOP.format(loss=CE, step="optimizer.step()"))
    assert not refusals(result)
    return result.code


@pytest.mark.parametrize(
    "found",
    [
        {},
        {"data": "Data(Compose([Flip()]))"},
        {"data": "Data(transform=Compose([Flip()]))"},
        {"data": "Data(flip)"},
        {"sample": "Flip()(self.images[i])", "data": "Data(Flip())"},
        {"sample": "crop(self.images[i])", "flip": "image", "data": "Data()"},
    ],
)
def test_transforms_of_the_program_draw_on_each_rank_for_itself(found: dict[str, str]) -> None:
    code = seeded(**found)
    assert "noise of its own" in code and "    random.seed(torch.initial_seed())" in code


def test_workers_take_their_noise_from_the_generator_of_torch() -> None:
    code = seeded(workers=", num_workers=2")
    assert "torch.manual_seed(torch.initial_seed() + dist.get_rank())" in code
    assert "random.seed(torch.initial_seed())" not in code


def test_numbers_of_numpy_are_drawn_apart_too() -> None:
    assert "np.random.seed(torch.initial_seed() % 2**32)" in seeded("image + np.random.rand()")
