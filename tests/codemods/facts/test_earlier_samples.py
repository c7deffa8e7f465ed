"""Data sets whose samples depend on what was loaded before, which plain code refuses."""

from __future__ import annotations

import pytest

from tests.codemods.plain.test_followed import plain, refusals, training

OWN = """\
class Numbers(torch.utils.data.Dataset):
    def __init__(self, base):
        self.base, self.kept, self.count = base, {{}}, 0

    def __len__(self):
        return len(self.base)

    def __getitem__(self, i):
        {body}

    def scaled(self, x):
        self.count += 1
        return x * self.count


train_loader = """


def own(body: str, makes: str = "Numbers(train_set)") -> list[str]:
    """Why a script with such a data set is refused."""
    source = training().replace("train_loader = ", OWN.format(body=body), 1)
    return refusals(plain(source.replace("DataLoader(train_set", f"DataLoader({makes}", 1)))


@pytest.mark.parametrize(
    "body",
    [
        "self.count += 1; x, y = self.base[i]; return x * min(1.0, self.count / 50), y",
        "at = self.count; self.count = (self.count + 1) % len(self.base); return self.base[at]",
        "x, y = self.base[i]; return self.scaled(x), y",
    ],
)
def test_a_data_set_that_goes_on_from_earlier_samples_is_refused(body: str) -> None:
    assert any("(D20)" in each for each in own(body))


@pytest.mark.parametrize(
    "body",
    [
        "self.count += 1; return self.base[i]",
        "self.kept[i] = self.kept.get(i, self.base[i]); return self.kept[i]",
        "self.count = i; x, y = self.base[i]; return x * (self.count >= 0), y",
        "return self.base[i]",
    ],
)
def test_what_it_only_counts_or_keeps_by_the_index_changes_no_sample(body: str) -> None:
    assert not own(body)


def test_a_data_set_that_is_not_made_does_not_matter() -> None:
    assert not own("x, y = self.base[i]; return self.scaled(x), y", makes="train_set")


@pytest.mark.parametrize(
    ("made", "draws", "alike"),
    [
        ("random.Random(0)", "self.count.random()", True),
        ("torch.Generator().manual_seed(0)", "torch.rand(4, generator=self.count)", True),
        ("random.Random()", "self.count.random()", False),
        ("random.Random(0)", "1.0", False),
    ],
)
def test_a_generator_of_the_data_sets_own_is_said(made: str, draws: str, alike: bool) -> None:
    body = f"x, y = self.base[i]; return x * {draws}, y"
    source = training().replace("train_loader = ", OWN.format(body=body).replace("{}, 0", f"{{}}, {made}", 1), 1)
    source = source.replace(
        "self.base, self.kept, self.count = base, {}, ", "self.base, self.kept = base, {}\n        self.count = "
    )
    result = plain(source.replace("DataLoader(train_set", "DataLoader(Numbers(train_set)", 1))
    said = [finding.message for finding in result.findings]
    assert any("of the data set's own" in each for each in said) is alike


CHANGED = """\
class Changed(torch.utils.data.Dataset):
    def __init__(self, base, change):
        self.base, self.change = base, change

    def __len__(self):
        return len(self.base)

    def __getitem__(self, i):
        return self.change(self.base[i][0]), self.base[i][1]


class Fading{bases}:
    def __init__(self):
        {begins}self.calls = 0

    def {name}(self, x):
        self.calls += 1
        {gives}


fading = Fading()
train_loader = """


@pytest.mark.parametrize(
    ("makes", "found"),
    [
        ("Changed(train_set, Fading())", True),
        ("Changed(train_set, change=fading)", True),
        ("Changed(train_set, transforms.Compose([fading]))", True),
        ("CIFAR10(transform=fading)", True),
        ("Changed(train_set, print)", False),
    ],
)
@pytest.mark.parametrize(
    ("bases", "begins", "name"), [("", "", "__call__"), ("(nn.Module)", "super().__init__(); ", "forward")]
)
def test_what_changes_samples_by_how_many_there_were_is_refused(
    makes: str, found: bool, bases: str, begins: str, name: str
) -> None:
    for gives, goes_on in (("return x * min(1.0, self.calls / 50)", True), ("return x * 2", False)):
        head = CHANGED.format(bases=bases, begins=begins, name=name, gives=gives)
        source = "from torchvision import transforms\nfrom torchvision.datasets import CIFAR10\n" + training()
        source = source.replace("train_loader = ", head, 1).replace("DataLoader(train_set", f"DataLoader({makes}", 1)
        assert any("(D20)" in each for each in refusals(plain(source))) is (found and goes_on)


def test_an_object_that_the_training_loop_calls_may_count() -> None:
    head = CHANGED.format(bases="", begins="", name="__call__", gives="return self.calls > x")
    source = training(step="if fading(3): break").replace("train_loader = ", head, 1)
    assert not refusals(plain(source))
