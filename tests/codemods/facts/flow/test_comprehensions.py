"""Lists, dicts and sets that comprehensions make of batches, of samples and of numbers."""

from __future__ import annotations

import pytest

from tests.codemods.facts.flow.followed import TRAINING, undivided
from tests.codemods.plain.test_followed import plain, refusals, training

CALL = "F.cross_entropy(model(x), y)"


@pytest.mark.parametrize(
    ("loss", "is_followed"),
    [
        ("sum([F.cross_entropy(each, y) for each in (model(x), model(x))])", True),
        ("{name: F.cross_entropy(model(x), y) for name in ['one', 'two']}['two']", True),
        ("torch.stack([F.cross_entropy(o[None], t[None]) for o, t in zip(model(x), y)]).mean()", True),
        ("torch.stack([(o - model(x)).square().mean() for o in model(x)]).mean()", False),
        ("torch.stack([o.max() for o, t in zip(model(x), y) if t > 0]).mean()", False),
    ],
)
def test_a_loss_that_a_comprehension_makes(loss: str, is_followed: bool) -> None:
    assert (undivided(TRAINING.replace(CALL, loss)) == []) is is_followed


def test_parts_of_a_batch_keep_their_places() -> None:
    parts = "        x, y = [each.to('cpu') for each in (x, y)]\n"
    assert (
        undivided(TRAINING.replace("        optimizer.zero_grad()\n", parts + "        optimizer.zero_grad()\n")) == []
    )


SCALED = """\
def step(x, y, mask=None, scale=None):
    out = model(x if mask is None else x * mask)
    loss = F.cross_entropy(out, y)
    return loss if scale is None else loss * scale


model = nn.Linear(4, 3)
"""


@pytest.mark.parametrize("test", ["", " if k != 'scale'", " if k in ['mask']", " if k not in ('scale', 'y')"])
def test_entries_of_a_batch_keep_their_names(test: str) -> None:
    """`scale` is not given, as it would be by a dict of any names."""
    entries = "{{'mask': (x > 0.3).float()}}" if not test else "{{'mask': (x > 0.3).float(), 'scale': y}}"
    call = f"step(x, y, **{{{{k: v.clone() for k, v in {entries}.items(){test}}}}})"
    source = training("0.0").replace("loss = 0.0", f"loss = {call}".format())
    assert not refusals(plain(source.replace("model = nn.Linear(4, 3)\n", SCALED)))
    seen = source.replace("model = nn.Linear(4, 3)\n", SCALED).replace(".items()", ".items() if v.sum() > 0")
    assert test or refusals(plain(seen))


OF_LIST = """\
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(4, 3)

    def forward(self, x):
        rows = [{entry} for row in x]
        return self.layer(torch.stack([{again} for row in rows]).softmax({along}))


model = Net()
"""


@pytest.mark.parametrize(("entry", "again"), [("row * 2", "row * 2"), ("(row * 2, 1)", "row[0]")])
@pytest.mark.parametrize("along", [0, 1])
def test_a_list_that_is_made_of_one_with_samples_has_samples(entry: str, again: str, along: int) -> None:
    """What is computed along the first dimension of their stack couples them."""
    net = OF_LIST.format(entry=entry, again=again, along=along)
    source = training("0.0").replace("loss = 0.0", "loss = model(x).square().mean()")
    assert bool(refusals(plain(source.replace("model = nn.Linear(4, 3)\n", net)))) is (along == 0)
