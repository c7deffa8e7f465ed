"""Another model that gets the name of one which is trained may get another type: its wrapper has the first one."""

from __future__ import annotations

import pytest

from tests.codemods.facts.flow.followed import HEAD, wrapped

NET = """\
class Net(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.body = nn.Linear(4, width)

    def forward(self, x):
        return self.body(x)


"""
TYPED = "model.to(device=device, dtype=torch.float32)"
AGAIN = f"    model = Net(3)\n    {TYPED}\n    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)\n"
FOLDS = f"""\
def train():
    for x, y in train_loader:
        optimizer.zero_grad()
        F.cross_entropy(model(x), y).backward()
        optimizer.step()


model = Net(3)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
kept = model
for fold in range(3):
    train()
    model = Net(3)
    {TYPED}
    print(model(torch.rand(1, 4)))
{AGAIN}"""


def is_refused(source: str) -> bool:
    """Whether a program is refused that begins as others do, without their model."""
    return bool(wrapped(source, f'{HEAD.partition("model =")[0]}device = torch.device("cuda")\n').problems)


@pytest.mark.parametrize(
    "source",
    [
        FOLDS,
        FOLDS + "    if total_gpus > 1:\n        model = nn.DataParallel(model)\n",
        FOLDS.replace("    model = Net(3)\n", "    model = None\n    model = Net(3)\n"),
    ],
)
def test_a_new_model_gets_a_type(source: str) -> None:
    assert not is_refused("total_gpus = 1\n" + NET + source)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (AGAIN, AGAIN.replace("Net(3)", "kept")),  # the model that is wrapped
        (AGAIN, AGAIN.replace("Net(3)\n", "Net(3)\n    model = kept\n")),
        (AGAIN, AGAIN.replace("    model = Net(3)\n", "    if fold:\n        model = Net(3)\n")),
        (AGAIN, AGAIN.partition("    optimizer")[0]),  # no optimizer knows it
        (AGAIN, ""),
        ("class Net(", "@made_once\nclass Net("),
        ("    def forward", "    def __new__(cls, width):\n        return kept\n\n    def forward"),
        ("nn.Linear(4, width)", "BODY"),
        ("Net(3)", "made(3)"),
        ("def train():\n", "def back():\n    global model\n    model = kept\n\n\ndef train():\n"),
    ],
)
def test_the_model_that_is_wrapped_may_get_one(old: str, new: str) -> None:
    before = "BODY = nn.Linear(4, 3)\n\n\ndef made_once(cls):\n    one = cls(3)\n    return lambda width: one\n\n\n"
    made = "\n\n@functools.lru_cache\ndef made(width):\n    return Net(width)\n\n\n"
    source = NET + made + FOLDS
    assert old in source
    assert is_refused("import functools\n" + before + source.replace(old, new))
