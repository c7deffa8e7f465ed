"""What a model decides by numbers that it draws, each rank decides for its own samples; it leads to nothing that all
ranks have to do together, or alike."""

from __future__ import annotations

from pathlib import Path

import pytest
from ddpify_codemods import convert

from tests.codemods.facts.flow.followed import HEAD, TRAINING, followed, reasons
from tests.codemods.plain.test_followed import plain, refusals

NET = """\
class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.out, self.calls, self.p = nn.Linear(4, 4), 0, 0.5
    def forward(self, x):
        {decides}
        return x + self.out(x)
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList([Block() for _ in range(3)])
        self.head = nn.Sequential({norm}nn.Linear(4, 3))
    def forward(self, x):
        {layers}
        return self.head(x)
model = Net()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
"""
EACH = "for layer in self.layers: x = layer(x)"
LINE = "\n        "
TEST = """\
    {quiet}
    {mode}
    correct = 0
    for x, y in test_loader:
        correct += (model(x).argmax(1) == y).sum().item()
        print(correct)
"""


def program(decides: str = "pass", layers: str = EACH, norm: str = "", after: str = "") -> str:
    return NET.format(decides=decides, layers=layers, norm=norm) + TRAINING + after


OWN = [
    "if torch.rand(1) < self.p: return x",
    "if self.training and torch.rand(1).item() < self.p: return x",
    "if not torch.bernoulli(torch.tensor(self.p)): return x",
    "drop = torch.rand(1).item() < self.p" + LINE + "if drop: return x",
    "if torch.rand(1) < self.p:" + LINE + "    x = torch.relu(x)",
    "x = torch.relu(x) if torch.rand(1) < self.p else x",
]


@pytest.mark.parametrize("noise", ["x.mean()", "len(x)", "(x > 0).sum().item()"])
def test_what_is_drawn_and_of_samples_is_not_its_own_to_decide(noise: str) -> None:
    for decides in (f"if torch.rand(1) + {noise} < 9: return x", f"if torch.rand(1) * {noise} < 9: return x"):
        assert reasons(program(decides)), decides


def test_drawn_numbers_are_not_shown_with_those_of_samples() -> None:
    added = TRAINING.replace("loss.backward()", "total += {}; loss.backward(); total += loss.item()")
    script = NET.format(decides=OWN[0], layers=EACH, norm="") + "total = 0.0\n" + added + "print(total)\n"
    assert reasons(script.format("torch.rand(1).item()")) and not reasons(script.format("1"))


@pytest.mark.parametrize("decides", OWN)
def test_a_rank_decides_for_its_own_samples(decides: str) -> None:
    found = followed(program(decides))
    assert not found.problems and found.found.own_decisions
    assert "torch" in found.drawn
    assert bool(found.found.unused) is ("return" in decides)


def test_layers_that_are_drawn_are_used_at_times() -> None:
    left = "[a for a, b in zip(self.layers, drop) if not b]"
    drawn = "drop = torch.rand(3) < 0.5" + LINE + f"for layer in {left}: x = layer(x)"
    found = followed(program(layers=drawn))
    assert not found.problems and found.found.unused


@pytest.mark.parametrize(
    "decides",
    [
        "if x.mean() < torch.rand(1): return x",
        "if torch.rand(len(x))[0] < x[0, 0]: return x",
        "if torch.rand(1) < self.p:" + LINE + "    self.calls += 1",
        "if torch.rand(1) < self.p: return None",
        "while torch.rand(1) < self.p: x = torch.relu(x)",
        "scale = 2.0 if torch.rand(1) < self.p else 1.0" + LINE + "x = x * scale",
        "x = x[:, :2] if int(torch.randint(1, 4, (1,))) > 1 and len(x) > 3 else x",
    ],
)
def test_what_outlasts_the_forward_or_depends_on_samples_is_a_problem(decides: str) -> None:
    assert reasons(program(decides))


@pytest.mark.parametrize("draw", ["random.random()", "np.random.rand()"])
def test_a_generator_that_is_used_in_one_way_is_at_another_place_on_each_rank(draw: str) -> None:
    decides = "if torch.rand(1) < self.p:" + LINE + f"    x = torch.relu(x) if {draw} < 0.2 else x"
    source = "import random\nimport numpy as np\n" + program(decides)
    last = f"    if {draw} < 0.5: optimizer.step()\n"
    assert not reasons(source)
    assert refusals(plain(HEAD + source + last))  # rank 0's way is that of its own samples
    assert not reasons("import random\nimport numpy as np\n" + program() + last)


@pytest.mark.parametrize("quiet", ["pass", "torch.set_grad_enabled(False)"])
def test_an_evaluation_that_all_ranks_go_through_decides_alike(quiet: str) -> None:
    assert reasons(program("if torch.rand(1) < self.p: return x", after=TEST.format(quiet=quiet, mode="pass")))


def test_one_that_is_divided_decides_for_its_samples_too() -> None:
    after = TEST.format(quiet="pass", mode="model.eval()").replace("        print(correct)\n", "    print(correct)\n")
    assert not reasons(program("if torch.rand(1) < self.p: return x", after=after))


def test_a_model_that_is_not_drawing_in_an_evaluation_is_whole_there() -> None:
    after = "    model.eval()\n    with torch.no_grad():\n        for x, y in test_loader:\n"
    after += "            print((model(x).argmax(1) == y).sum().item())\n"
    assert not reasons(program("if self.training and torch.rand(1) < self.p: return x", after=after))


@pytest.mark.parametrize(("decides", "refused"), [("if torch.rand(1) < self.p: return x", True), ("pass", False)])
def test_what_waits_for_all_ranks_in_the_model_is_refused(decides: str, refused: bool) -> None:
    source = HEAD + program(decides, norm="nn.BatchNorm1d(4), ")
    path = Path("train.py")
    synchronized = convert({path: source}, "cuda", style="plain", sync_batchnorm=True)[path]
    for result in (synchronized, convert({path: source}, "cpu", style="plain", fully_sharded=True)[path]):
        found = [each.message for each in result.findings if "each rank decides here" in each.message]
        assert bool(found) is refused


FIRST = ["torch.sqrt(F.mse_loss(out, y))", "F.cross_entropy(out, y.argmax(1), torch.rand(3))"]


@pytest.mark.parametrize("first", FIRST)
def test_a_criterion_brings_nothing_together_in_one_way(first: str) -> None:
    """A rank would wait for the others, which take another one."""
    own = f"""\
class Own(nn.Module):
    def forward(self, out, y):
        if torch.rand(1) < 0.5: return {first}
        return F.mse_loss(out, y)
criterion = Own()
"""
    source = own + program().replace("F.cross_entropy(model(x), y)", "criterion(model(x), F.one_hot(y, 3).float())")
    found = followed(source)
    within = [node for node in found.found.joined if node.lineno < 20]
    assert not within and not found.found.weighed_together


SAMPLED = (
    """\
model = nn.Sequential(nn.Linear(4, 3), nn.Dropout(0.5))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
"""
    + TRAINING
    + """\
model.eval()
names, drawn = {{0: "a", 1: "b", 2: "c"}}, torch.randint(0, 3, (9,))
rest = drawn if drawn.size(0) < 8 else drawn[:8]
shown = [names[i] for i in rest.tolist()]
print("".join(names[i] for i in shown))
{reads}
"""
)


@pytest.mark.parametrize(
    ("reads", "fits"),
    [
        ("", True),
        ("if shown[0] == 'a': torch.save(model.state_dict(), 'a.pt')", True),  # as rank 0 does
        ("if len(shown) > 2: torch.save(model.state_dict(), 'a.pt')", True),
        ("print(model(torch.rand(2, 4)) if rest[0] else 0)", True),
        ("lr = 0.1 if rest[0] else 0.2\nfor group in optimizer.param_groups: group['lr'] = lr", True),
        ("kept = [model.train() for i in rest.tolist()]", False),
    ],
)
def test_what_is_taken_by_drawn_numbers_may_be_shown(reads: str, fits: bool) -> None:
    assert bool(reasons(SAMPLED.format(reads=reads))) is not fits


NOISY = """\
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.out = nn.Linear(4, 3)
    def forward(self, x):
        z = self.out(x)
        z = z + torch.randn_like(z)
        if z.shape[-1:] != (3,):
            z = z[:, :3]
        return z
model = Net()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
"""
SPREAD = "largest = []\nfor x, y in test_loader:\n    largest.append(model(x).std().item())\nprint(max(largest))\n"


def test_what_is_drawn_in_an_evaluation_of_all_samples_is_not_called_one_of_samples() -> None:
    """Where the evaluation cannot be divided, each rank draws other noise for the same samples."""
    found = reasons(NOISY + TRAINING + SPREAD)
    assert any("by what each rank draws for itself" in each for each in found)
    assert not any("by the samples of its batch" in each for each in found)
    assert reasons(NOISY + TRAINING) == []
