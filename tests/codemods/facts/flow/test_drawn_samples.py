"""Data sets that draw: where every rank goes through all of an evaluation, its numbers are others on each."""

from __future__ import annotations

import pytest

from tests.codemods.plain.test_followed import CE, HEAD, LOOP, plain, refusals

DATA = """\
class Data(torch.utils.data.Dataset):
    def __init__(self, base):
        self.base, self.train = base, False
    def __len__(self):
        return len(self.base)
    def changed(self, x):
        return x + torch.randn(4)
    def __getitem__(self, index):
        x, y = self.base[index]
        {}
        return x, y
test_loader = DataLoader(Data(test_set), batch_size=8)
"""
# Its largest distance cannot be added up.
EVALUATION = """\
    largest = 0
    with torch.no_grad():
        for x, y in test_loader:
            largest = max(largest, torch.cdist(model(x), model(x)).max().item())
    if largest > 3:
        break
"""


# What is made of a data set that draws draws, too.
MADE = """\
import albumentations as A
from torchvision import datasets, transforms
class Test(Data):
    pass
class Noise:
    def __call__(self, x):
        return x + torch.randn(4)
class Changed(Data):
    def __init__(self, base, change):
        self.base, self.change = base, change
    def __getitem__(self, index):
        x, y = self.base[index]
        return self.change(x), y
class All:
    def __init__(self, changes):
        self.changes = changes
    def __call__(self, x):
        for change in self.changes:
            x = change(x)
        return x
class First(Changed):
    def __getitem__(self, index):
        x, y = self.base[index]
        return self.change[0](x), y
class Augmented(Data):
    def __init__(self, base, augment=None):
        self.base, self.augment = base, augment
    def __getitem__(self, index):
        x, y = self.base[index]
        if self.augment is not None:
            x = self.augment(x)
        return x, y
class Wrapped(Data):
    def __getitem__(self, index):
        return self.base[index]
def parts(data):
    first, second = torch.utils.data.random_split(data, [10, 20])
    return DataLoader(second, batch_size=8)
"""


@pytest.mark.parametrize(
    ("made", "apart"),
    [
        ("DataLoader(Test(test_set), batch_size=8)", True),
        ("DataLoader(torch.utils.data.Subset(Data(test_set), range(20)), batch_size=8)", True),
        ("DataLoader(torch.utils.data.Subset(test_set, range(20)), batch_size=8)", False),
        ("DataLoader(torch.utils.data.ConcatDataset([Data(test_set), test_set]), batch_size=8)", True),
        ("DataLoader(Changed(test_set, Noise()), batch_size=8)", True),
        ("parts(Data(test_set))", True),
        ("parts(test_set)", False),
        ("DataLoader(Changed(test_set, transforms.RandomErasing()), batch_size=8)", True),
        ("DataLoader(Changed(test_set, transforms.Compose([transforms.RandomErasing()])), batch_size=8)", True),
        ("DataLoader(Changed(test_set, transforms.Normalize(0, 1)), batch_size=8)", False),
        ("parts(datasets.FakeData(transform=transforms.RandomErasing()))", True),
        ("parts(datasets.FakeData(transform=transforms.ToTensor()))", False),
        ("parts(datasets.FakeData(transform=transforms.Compose([transforms.ToTensor(), Noise()])))", True),
        ("DataLoader(Changed(test_set, All([torch.sin, Noise()])), batch_size=8)", True),
        ("DataLoader(Changed(test_set, All([torch.sin])), batch_size=8)", False),
        ("DataLoader(First(test_set, [Noise()]), batch_size=8)", True),
        ("DataLoader(Augmented(test_set, A.Compose([A.HorizontalFlip()])), batch_size=8)", True),
        ("DataLoader(Augmented(test_set, A.Compose([A.Resize(4, 4)])), batch_size=8)", False),
        ("DataLoader(Augmented(test_set, open('augment.pkl')), batch_size=8)", True),
        ("DataLoader(Augmented(test_set), batch_size=8)", False),
        ("DataLoader(Wrapped(Data(test_set)), batch_size=8)", True),
        ("DataLoader(Wrapped(test_set), batch_size=8)", False),
    ],
)
def test_what_is_made_of_a_data_set_that_draws(made: str, apart: bool) -> None:
    data = DATA.format("x = x + torch.randn(4)") + MADE + f"test_loader = {made}\n"
    result = plain(HEAD + data + LOOP.format(loss=CE, step="optimizer.step()") + EVALUATION)
    assert not refusals(result)
    assert ("if from_rank_0(largest > 3):" in result.code) is apart


@pytest.mark.parametrize(
    ("changes", "apart"),
    [
        ("x = x + torch.randn(4)", True),
        ("x = self.changed(x)", True),
        ("x = x * random.choice([1, 2])", True),
        ("x = 2 * x", False),
        ("x = self.changed(x) if self.train else x", False),
        ("if self.train:\n            x = self.changed(x)", False),
        ("if not self.train:\n            x = self.changed(x)", True),
        ("if self.train is None:\n            x = self.changed(x)", False),
        ("if augment:\n            x = self.changed(x)", False),
        ("if len(x) > 3:\n            x = x + random.random()", True),
        ("if random.random() > 0.5:\n            x = -x", True),
        ("if augment and len(x) > 3:\n            x = self.changed(x)", False),
        ("x = x + torch.randn(4, generator=self.generator)", False),
    ],
)
def test_a_decision_by_samples_that_each_rank_draws_is_that_of_rank_0(changes: str, apart: bool) -> None:
    result = plain(HEAD + DATA.format(changes) + LOOP.format(loss=CE, step="optimizer.step()") + EVALUATION)
    assert not refusals(result)
    assert ("if from_rank_0(largest > 3):" in result.code) is apart


@pytest.mark.parametrize(
    ("loader", "apart"),
    [
        ("DataLoader(test_set, batch_size=8, shuffle=True, drop_last=True)", True),
        ("DataLoader(test_set, batch_size=8, shuffle=False, drop_last=True)", False),
        ("DataLoader(test_set, batch_size=1, shuffle=True, drop_last=True)", False),
        ("DataLoader(test_set, batch_size=8, shuffle=True)", False),
    ],
)
def test_an_order_that_leaves_samples_out_is_another_on_each_rank(loader: str, apart: bool) -> None:
    source = HEAD.replace("nn.Linear(4, 3)", "nn.Sequential(nn.Linear(4, 3), nn.Dropout(0.1))", 1)
    made = f"test_loader = {loader}\n"
    evaluation = EVALUATION.replace("    largest = 0\n", "    model.eval()\n    largest = 0\n")
    result = plain(source + made + LOOP.format(loss=CE, step="optimizer.step()") + evaluation)
    assert not refusals(result)
    assert ("if from_rank_0(largest > 3):" in result.code) is apart
    assert ("shuffle=True" in result.code.split("test_loader = ")[-1].split("\n")[0]) is apart


CALLED = """\
import functools
import albumentations as A
from torchvision import transforms
def flipped(x):
    return -x if random.random() < 0.5 else x
def twice(x):
    return flipped(flipped(x))
def at_times(x, augment=False):
    if augment:
        x = flipped(x)
    return 2 * x
def unless(x, training):
    if not training:
        return x
    return flipped(x)
def seeded(x):
    torch.manual_seed(int(x.sum()))
    return x + torch.randn(4)
def first(x):
    return second(x)
def second(x):
    return third(x)
def third(x):
    return fourth(x)
def fourth(x):
    return fifth(x)
def fifth(x):
    return flipped(x)
noisy = transforms.Compose([transforms.RandomErasing()])
still = transforms.Compose([transforms.Normalize(0, 1)])
class Noise:
    def __call__(self, x):
        return x + torch.randn(4)
noise = Noise()
class Changed(Data):
    def __init__(self, base, mode="val", change=None):
        self.base, self.mode, self.change = base, mode, change
    def _train_transform(self, x):
        return x + torch.randn(4)
    def _test_changed(self, x):
        {}
        return x
    def __getitem__(self, index):
        x, y = self.base[index]
        if self.mode == "train":
            x = self._train_transform(x)
        else:
            x = self._test_changed(x)
        return x, y
test_loader = DataLoader(Changed(test_set{}), batch_size=8)
"""


@pytest.mark.parametrize(
    ("changes", "given", "apart"),
    [
        ("x = 2 * x", ", mode='train'", True),
        ("x = self._train_transform(x)", "", True),
        ("x = flipped(x)", "", True),
        ("x = twice(x)", "", True),
        ("x = at_times(x)", "", False),
        ("x = unless(x, False)", "", False),
        ("x = seeded(x)", "", False),
        ("x = first(x); x = flipped(x)", "", True),
        ("flipped = abs; x = flipped(x)", "", False),
        ("x = torch.stack([*map(flipped, [x])])[0]", "", True),
        ("x = noisy(x)", "", True),
        ("x = still(x)", "", False),
        ("x = noise(x)", "", True),
        ("x = Noise()(x)", "", True),
        ("x = transforms.RandomErasing()(x)", "", True),
        ("x = transforms.Normalize(0, 1)(x)", "", False),
        ("row, *_ = transforms.RandomCrop.get_params(x, (2, 2)); x = x[row:]", "", True),
        ("x = A.HorizontalFlip()(image=x)['image']", "", True),
        ("x = self.change(x)", ", change=flipped", True),
        ("x = self.change(x)", ", change=functools.partial(flipped)", True),
        ("x = self.change(x)", ", change=transforms.Lambda(flipped)", True),
        ("x = self.change(x)", ", change=lambda x: x + torch.randn(4)", True),
        ("x = self.change(x)", ", change=at_times", False),
    ],
)
def test_what_a_method_of_a_data_set_calls(changes: str, given: str, apart: bool) -> None:
    data = DATA.format("pass") + CALLED.format(changes, given)
    result = plain(HEAD + data + LOOP.format(loss=CE, step="optimizer.step()") + EVALUATION)
    assert not refusals(result)
    assert ("if from_rank_0(largest > 3):" in result.code) is apart


@pytest.mark.parametrize(
    ("changes", "apart"), [("x = x.resize(4).copy()", False), ("x = x.jitter(4)", True), ("x = at_times(x)", True)]
)
def test_a_method_that_is_called_what_augments_samples_is(changes: str, apart: bool) -> None:
    data = DATA.format("pass") + CALLED.format(changes, "").replace("_test_changed", "_test_transform")
    result = plain(HEAD + data + LOOP.format(loss=CE, step="optimizer.step()") + EVALUATION)
    assert not refusals(result)
    assert ("if from_rank_0(largest > 3):" in result.code) is apart
