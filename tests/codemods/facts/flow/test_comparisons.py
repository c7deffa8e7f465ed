"""Comparisons: of samples, of numbers that all ranks have to agree on, of the size of a batch."""

from __future__ import annotations

import pytest

from tests.codemods.facts.flow.followed import TRAINING, followed, of_evaluation, reasons, undivided


def test_samples_are_compared_by_themselves() -> None:
    assert "sharded" in of_evaluation("total += (model(x).argmax(1) == y).sum().item()").status.values()


def test_a_number_of_a_ranks_samples_is_agreed_on() -> None:
    found = followed(f"{TRAINING}        if loss.item() > 3:\n            print('large')\n")
    assert found.problems == () and found.found.reductions


def test_a_comparison_of_what_is_not_known_decides_nothing_by_itself() -> None:
    masked = TRAINING.replace("model(x)", "model(x * (x.unfold(1, 4, 1).squeeze(1) > 0).float())")
    assert not any("is read here" in each for each in reasons(masked))
    chosen = "f = [1, 2][int(x.unfold(1, 4, 1) > 0)]\n        loss = f * F"
    assert undivided(TRAINING.replace("loss = F", chosen))


NET = """\
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.out, self.heads = nn.Linear(4, 3), 2
    def forward(self, x):
        count, width = x.size()
        w = x.view(count, self.heads, -1)
        {}
        return self.out(w.flatten(1))
model = Net()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
"""
SIZES = [
    ("if w.size() != (count, self.heads, width // 2):\n            raise ValueError(f'{w.size()}')", True),
    ("if w.shape != (count, self.heads, width // 2): w = w.view(count, self.heads, -1)", True),
    ("assert w.shape == (count, self.heads, width // 2), f'{count}'", True),
    ("assert list(w.size()) == [count, self.heads, width // 2]", True),
    ("assert (count, self.heads, width // 2) == tuple(w.shape)", True),
    ("assert w.view(count * 2, -1).shape == (count * self.heads, width // 2)", True),
    ("if w.shape == (8, self.heads, width // 2): w = w * 2", False),
    ("if w.shape[0] == 8: w = w * 2", False),
    ("if list(w.shape) == [8, 2, 2]: w = w * 2", False),
    ("if w.shape == (int(w.sum()), 2, 2): w = w * 2", False),
]


@pytest.mark.parametrize(("compares", "alike"), SIZES)
def test_sizes_of_a_ranks_part_are_compared_with_such_sizes(compares: str, alike: bool) -> None:
    assert (not reasons(NET.format(compares) + TRAINING)) is alike


@pytest.mark.parametrize(
    ("test", "taken"),
    [
        ("kind in ['net', 'other']", True),
        ("kind not in ('other',)", True),
        ("kind in {'other'}", False),
        ("kind in others", None),
        ("name in ['net']", None),
    ],
)
def test_a_text_is_looked_for_in_a_list(test: str, taken: bool | None) -> None:
    """The other way draws for the samples."""
    head = "import sys\nkind, name, others = 'net', sys.argv[1], sys.argv\n"
    noisy = f"        if {test}:\n            loss = F.cross_entropy(model(x), y)\n"
    noisy += "        else:\n            loss = torch.cdist(model(x), y).mean()\n"
    source = head + TRAINING.replace("        loss = ", noisy + "        old = ", 1)
    assert bool(undivided(source)) is (taken is not True)


ASKS = """\
def note(kinds):
    kinds.append("first")


def loss_of(out, y, wanted):
    loss = F.cross_entropy(out, y)
    if "first" in wanted:
        loss = loss + out[:2].sum()
    return loss


"""
FIRST = '"first" in wanted'
CALL = 'loss_of(model(x), y, ["mean"])'
ASKED = [
    (CALL, "", "", True),
    ('loss_of(model(x), y, wanted=["mean"])', "", "", True),
    ('loss_of(model(x), y, wanted=("mean",))', FIRST, '"mean" not in wanted', True),
    ('loss_of(model(x), y, ["mean", "first"])', "", "", False),
    (CALL, FIRST, '"mean" in wanted', False),
    ("loss_of(model(x), y, [str(epoch)])", "", "", False),
    ("loss_of(model(x), y, kinds)", "def note", 'kinds = ["mean"]\n\n\ndef note', False),
    # They may be others when they are asked for
    (CALL, "    if ", '    wanted.append("first")\n    if ', False),
    (CALL, "    if ", '    wanted += ["first"]\n    if ', False),
    (CALL, "    if ", "    note(wanted)\n    if ", False),
    (CALL, "    if ", '    kinds = wanted\n    kinds.append("first")\n    if ', False),
    # Nor need the function be called with what the call gives
    (
        'loss_of(model(x), ["mean"])',
        "def note(kinds):",
        "import functools\n\n\ndef note(kinds):",
        False,
    ),
]


@pytest.mark.parametrize(("call", "before", "after", "known"), ASKED)
def test_texts_are_asked_for_in_a_list_that_the_call_writes_out(
    call: str, before: str, after: str, known: bool
) -> None:
    source = ASKS.replace(before, after, 1) if before else ASKS
    if "functools" in after:  # y comes first, and then what is wanted
        source += 'loss_of = functools.partial(loss_of, wanted=["first"])\n'
        call = "loss_of(model(x), y=y)"
    assert bool(undivided(source + TRAINING.replace("F.cross_entropy(model(x), y)", call))) is not known


METHODS = """\
class Losses:
    def compute(this, wanted, also, out, y):
        loss = F.cross_entropy(out, y)
        if "first" in wanted:
            loss = loss + out[:2].sum()
        return loss * 2 if "second" in also else loss


class Trainer:
    def __init__(self):
        self.compute = functools.partial(compute, ["first"])


def compute(wanted, also, out, y):
    loss = F.cross_entropy(out, y)
    if "first" in wanted:
        loss = loss + out[:2].sum()
    return loss * 2 if "second" in also else loss


losses, trainer = Losses(), Trainer()
"""


@pytest.mark.parametrize(
    ("call", "known"),
    [
        ('losses.compute(["mean"], ["mean"], model(x), y)', True),
        ('losses.compute(["mean"], also=("second",), out=model(x), y=y)', True),
        ('losses.compute(["first"], ["mean"], model(x), y)', False),
        ('Losses.compute(losses, ["mean"], ["first"], model(x), y)', True),
        ('losses.compute(["mean", str(epoch)], ["mean"], model(x), y)', False),
        ('Losses.compute(losses, ["first"], ["mean"], model(x), y)', False),
        ('trainer.compute(["mean"], model(x), y)', False),
    ],
)
def test_texts_are_those_of_the_parameter_that_gets_them(call: str, known: bool) -> None:
    source = "import functools\n\n\n" + METHODS + TRAINING.replace("F.cross_entropy(model(x), y)", call)
    assert bool(undivided(source)) is not known


SEVERAL = """\
def load(names=True):
    loader = DataLoader(train_set, batch_size=8, shuffle=True)
    if names == {asked}:
        return loader
    return loader, ["a", "b"]
class Trainer:
    def __init__(self, loader):
        self.loader = loader
    def train(self):
        for x, y in self.loader:
            loss = F.cross_entropy(model(x), y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
trainer = Trainer(load({given}))
for epoch in range(2):
    trainer.train()
"""


@pytest.mark.parametrize(
    ("asked", "given", "known"),
    [("False", "False", True), ("True", "", True), ("False", "", False), ("0", "False", False), ("False", "0", False)],
)
def test_what_is_told_true_or_false_is_compared_with_that(asked: str, given: str, known: bool) -> None:
    found = followed(SEVERAL.format(asked=asked, given=given))
    assert {each.loader_here for each in found.found.passes} == ({"self.loader"} if known else set())


def test_a_flag_that_changes_is_either() -> None:
    """The second turn of the loop gets there with another value."""
    source = f"""\
first = True
{TRAINING}        if first == True:
            shown = 0.0
        else:
            shown = loss.item()
        first = False
print(shown)
"""
    assert followed(source).found.reductions or followed(source).found.after
