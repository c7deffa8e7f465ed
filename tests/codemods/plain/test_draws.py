"""Random numbers: what a rank draws for its own samples is its own, and decides nothing that all ranks have to do."""

from __future__ import annotations

import pytest

from tests.codemods.plain.test_followed import HEAD, plain, refusals, training

SET = """\
class Noisy(torch.utils.data.Dataset):
    def __len__(self):
        return 64

    def __getitem__(self, index):
        return torch.rand(4) + ({draw} if index % 2 else 0), index % 3


train_set = Noisy()
"""
SEED = "torch.manual_seed(torch.initial_seed() + dist.get_rank())"


def noisy(source: str, draw: str = "random.random()") -> str:
    """A script whose data set draws for some samples."""
    old = "train_set = TensorDataset(torch.rand(64, 4), torch.randint(3, (64,)))\n"
    return source.replace(old, SET.format(draw=draw)).replace("import random\n", "import random\nimport numpy as np\n")


FOLDS = """\
for fold in range(3):
    {starts}
"""


@pytest.mark.parametrize(
    ("starts", "fine"),
    [
        ("model = nn.Linear(4, 3); model.apply(lambda part: part.reset_parameters()); {makes}", True),
        ("model.reset_parameters(); {makes}", True),  # the wrapper makes them alike
        ("{makes}; model.reset_parameters()", False),
        ("model.reset_parameters()", False),
    ],
)
def test_a_model_that_begins_anew(starts: str, fine: bool) -> None:
    makes = "optimizer = torch.optim.SGD(model.parameters(), lr=0.1)"
    source = noisy(training(), "torch.rand(1)")
    at = source.index("for epoch")
    folds = FOLDS.format(starts=starts.format(makes=makes)) + source[at:].replace("for", "    for", 1)
    head = source[:at] if "makes" not in starts else source[:at].replace(f"{makes}\n", "")
    lines = folds.split("\n")
    first = next(place for place, line in enumerate(lines) if "for epoch" in line)
    indented = [lines[first], *(f"    {line}" if line else line for line in lines[first + 1 :])]
    assert (refusals(plain(head + "\n".join([*lines[:first], *indented]))) == []) is fine


@pytest.mark.parametrize("draws", ["torch.randint(1, 3, (1,)).item()", "int(torch.rand(1) * 3)"])
def test_how_often_a_loop_runs_is_drawn(draws: str) -> None:
    loss = f"sum(F.cross_entropy(model(x + torch.randn_like(x)), y) for _ in range({draws}))"
    assert refusals(plain(training(loss)))


NUMBERS = [
    "random.random()",
    "np.random.rand()",
    "torch.rand(1).item()",
    "torch.distributions.Beta(0.4, 0.4).sample().item()",
]


@pytest.mark.parametrize("draw", NUMBERS)
@pytest.mark.parametrize(
    ("step", "taken"),
    [
        ("if {draw} < 0.5: optimizer.step()", "if from_rank_0({draw} < 0.5):"),
        ("lr = {draw}; optimizer.param_groups[0]['lr'] = lr", "optimizer.param_groups[0]['lr'] = from_rank_0(lr)"),
        ("for p in model.parameters(): p.data.mul_({draw})", "p.data.mul_(from_rank_0({draw}))"),
        (
            "lr = 1.0 if {draw} < 0.5 else 0.5; optimizer.param_groups[0]['lr'] = lr",
            "1.0 if from_rank_0({draw} < 0.5) else",
        ),
        (
            "if {draw} < 0.5 and {draw} < 0.4: break",
            "if from_rank_0({draw} < 0.5) and from_rank_0({draw} < 0.4): break",
        ),
    ],
)
def test_a_decision_by_a_generator_that_ranks_use_unequally_is_that_of_rank_0(step: str, taken: str, draw: str) -> None:
    result = plain(noisy(training(step=step.format(draw=draw)), draw))
    assert not refusals(result) and taken.format(draw=draw) in result.code


def test_a_number_that_is_drawn_by_the_size_of_a_batch_decides_on_no_rank() -> None:
    """Rank 0's batch is not that of one process."""
    assert refusals(
        plain(noisy(training(step="if random.randint(0, len(x)) > 3: optimizer.step()"), "random.random()"))
    )


@pytest.mark.parametrize(
    "loss", ["random.random() * F.cross_entropy(model(x), y)", "F.cross_entropy(model(x + random.random()), y)"]
)
def test_a_loss_by_such_a_number_is_refused(loss: str) -> None:
    assert refusals(plain(noisy(training(loss))))


@pytest.mark.parametrize(
    "after",
    [
        "    nn.init.normal_(model.weight)\n",
        "    torch.utils.data.random_split(train_set, [32, 32])\n",
        "    with torch.no_grad():\n        for p in model.parameters(): p.add_(torch.randn_like(p))\n",
        "    model.reset_parameters()\n",
        "    model.weight.data.normal_(0, 0.1)\n",
        "    for p in model.parameters(): p.data.uniform_(-1, 1)\n",
        "    model.apply(lambda part: part.reset_parameters())\n",
        "    for part in model.modules(): part.reset_parameters()\n",
        "    torch.nn.utils.prune.random_unstructured(model, 'weight', 0.2)\n",
    ],
)
def test_what_all_ranks_have_to_draw_alike_is_refused_after_they_went_apart(after: str) -> None:
    assert refusals(plain(noisy(training(after=after), "torch.rand(1)")))


@pytest.mark.parametrize("step", ["if random.random() < 0.5: optimizer.step()", "total = random.random()"])
def test_a_generator_that_is_used_alike_may_decide(step: str) -> None:
    assert not refusals(plain(training(step=step)))


WORKERS = "batch_size=8, num_workers={}, shuffle=True"
DECIDES = "if random.random() < 0.5: optimizer.step()"


@pytest.mark.parametrize(
    ("workers", "draw", "step", "sent"),
    [
        (2, "random.random()", DECIDES, False),
        (0, "random.random()", DECIDES, True),
        ("len(train_set)", "random.random()", DECIDES, True),
        (2, "np.random.rand()", DECIDES.replace("random.random", "np.random.rand"), True),
        (2, "random.random()", DECIDES.replace("random.random()", "torch.rand(1).item()"), True),
    ],
)
def test_workers_seed_python_s_generator_by_torch_s(workers: object, draw: str, step: str, sent: bool) -> None:
    """So the process itself draws by it what all ranks draw, if none of its loaders loads there."""
    source = noisy(training(step=step).replace("batch_size=8, shuffle=True", WORKERS.format(workers)), draw)
    if not sent:
        source = source.replace("DataLoader(test_set, batch_size=8", "DataLoader(test_set, num_workers=1, batch_size=8")
    result = plain(source)
    assert not refusals(result) and ("if from_rank_0(" in result.code) is sent
    assert sent or (SEED in result.code and "random.seed(torch.initial_seed" not in result.code)


def test_torch_s_generator_goes_apart_with_those_that_it_seeds() -> None:
    """It is not used for samples itself."""
    epoch = training().replace(
        "    for x, y in train_loader", "    on = torch.rand(1).item() < 0.5\n    for x, y in train_loader"
    )
    epoch = epoch.replace("optimizer.step()", "if on: optimizer.step()")
    alike, apart = plain(epoch), plain(noisy(epoch))
    assert not refusals(alike) and "from_rank_0(on)" not in alike.code
    assert not refusals(apart) and "if from_rank_0(on):" in apart.code


def test_what_a_whole_evaluation_draws_for_each_sample_all_ranks_draw() -> None:
    shown = "shown = []\nfor x, y in test_loader:\n    for each in x:\n        if random.random() < 0.1:\n"
    shown += "            shown.append(each)\n"
    result = plain(training(after=f"{shown}print(len(shown), torch.stack(shown).std())\n"))
    assert not refusals(result)
    assert "range(dist.get_rank()" not in result.code and "DataLoader(test_set, batch_size=8)" in result.code


@pytest.mark.parametrize(
    "loss",
    [
        "F.cross_entropy(model(x + torch.randn_like(x)), y)",
        "F.cross_entropy(model(F.dropout(x)), y)",
        "F.cross_entropy(model(x + torch.distributions.Normal(0.0, 1.0).sample([x.shape[0], 4])), y)",
        "F.cross_entropy(model(x * torch.distributions.Uniform(0.0, 1.0).sample((len(x), 1))), y)",
    ],
)
def test_noise_of_a_step_is_that_of_a_rank(loss: str) -> None:
    result = plain(training(loss))
    assert not refusals(result)
    assert SEED in result.code


def test_a_data_set_draws_for_each_rank_other_numbers() -> None:
    result = plain(noisy(training(), "np.random.rand()"))
    assert f"if dist.get_rank() != 0:  # noise of its own for its samples\n    {SEED}\n" in result.code
    assert "    np.random.seed(torch.initial_seed() % 2**32)" in result.code


def test_a_script_without_noise_is_not_seeded_again() -> None:
    assert SEED not in plain(training()).code


def test_a_seed_that_is_drawn_is_the_same_on_all_ranks() -> None:
    drawn = training().replace("random.seed(0)\n", "seed = random.randint(1, 9)\nrandom.seed(seed)\n")
    drawn = drawn.replace("torch.manual_seed(0)\n", "").replace(
        "random.seed(seed)", "random.seed(seed)\ntorch.manual_seed(seed)"
    )
    code = plain(drawn).code
    assert code.index("random.seed(0)") < code.index("random.randint(1, 9)")


@pytest.mark.parametrize(
    ("loop", "place"),
    [
        ("for epoch in range(3):\n{}", "for epoch in range(3):"),
        ("def train():\n    order = torch.randperm(3)\n{}train()\n", "    for x, y in train_loader:"),
        ("def train():\n{}for epoch in range(3):\n    train()\n", "for epoch in range(3):"),
        (
            "def train():\n    torch.manual_seed(1)\n    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)\n{}"
            "for fold in range(3):\n    train()\n",
            "    for x, y in train_loader:",
        ),
    ],
)
def test_ranks_go_apart_where_training_begins(loop: str, place: str) -> None:
    """What is drawn before is the same on all of them."""
    lines = training().partition("for epoch in range(3):\n")[2]
    head = training().partition("for epoch in range(3):\n")[0].replace("nn.Linear(4, 3)", "nn.Sequential(nn.Dropout())")
    result = plain(head + loop.format(lines))
    assert not refusals(result)
    code = result.code
    assert code.count("noise of its own") == 1
    assert code.partition(" + dist.get_rank())\n")[2].startswith(place)


SPLIT = "torch.utils.data.random_split(train_set, [32, 32])\n"


def test_what_is_drawn_once_generators_are_seeded_again_is_the_same_on_all_ranks() -> None:
    """`for x, y in train_loader: break`, to look at it, and then a seed."""
    look = "for x, y in train_loader:\n    break\n"
    head, _, loop = noisy(training(), "torch.rand(1)").partition("for epoch")
    assert refusals(plain(head + look + SPLIT + "for epoch" + loop))
    assert not refusals(plain(head + look + "torch.manual_seed(1)\n" + SPLIT + "for epoch" + loop))


@pytest.mark.parametrize(
    "seed",
    [
        "random.seed(1)",
        "torch.seed()",
        "torch.manual_seed(int(input()))",
        "if input():\n    torch.manual_seed(1)",
        "for x, y in train_loader: torch.manual_seed(1)",
    ],
)
def test_another_seed_leaves_them_apart(seed: str) -> None:
    assert refusals(plain(noisy(training(after=seed + "\n" + SPLIT), "torch.rand(1)")))


def test_noise_of_the_shape_of_a_batch_may_be_given_dimension_by_dimension() -> None:
    assert not refusals(plain(training("F.cross_entropy(model(x + torch.randn(*x.shape)), y)")))
    assert refusals(plain(training("F.cross_entropy(model(x + torch.randn(*x.shape[1:])), y)")))
    assert refusals(plain(training("F.cross_entropy(model(x) * torch.tensor([*x.shape])[0], y)")))


@pytest.mark.parametrize(
    "index",
    [
        "np.random.randint(0, len(x), 5)",
        "np.random.randint(len(x))",
        "torch.randint(0, x.size(0), (5,))",
        "torch.randint(x.size(0), size=(5,))",
        "random.randint(0, len(x) - 1)",
        "random.randrange(len(x))",
        "random.sample(range(len(x)), 3)",
        "np.random.choice(len(x), 3)",
        "np.random.choice(range(len(x)))",
    ],
)
def test_samples_that_are_chosen_by_their_number_are_none_of_all_ranks(index: str) -> None:
    """The number of all ranks' samples said which of a rank's are shown: an IndexError."""
    for use in ("print(x[{}])", "i = {}\n        torch.save(x[i], 'x.pt')"):
        step = f"optimizer.step()\n        {use.format(index)}"
        assert refusals(plain("import numpy as np\n" + training(step=step)))


@pytest.mark.parametrize("size", ["len(x) // 2", "len(x) * 3 // 6"])
def test_tensors_for_some_of_a_rank_s_samples_are_not_as_long_as_for_all(size: str) -> None:
    """The size was that of all ranks: as many rows too many."""
    assert refusals(plain(training(f"F.mse_loss(model(x).reshape(-1, 6), torch.zeros({size}, 6))")))


@pytest.mark.parametrize("noise", ["np.random.randn(len(x), 4)", "np.random.normal(0, 1, (len(x), 4))"])
def test_noise_for_each_sample_is_no_choice(noise: str) -> None:
    loss = f"F.cross_entropy(model(x + torch.from_numpy({noise}).float()), y)"
    assert not refusals(plain("import numpy as np\n" + training(loss)))


@pytest.mark.parametrize(
    ("head", "seeds", "place", "apart"),
    [
        ("", "torch.manual_seed(epoch)", "    for x, y in train_loader", 1),  # in each epoch
        ("torch.manual_seed(1)\n", "pass", "for epoch", 1),
        ("", "pass", "for epoch", 1),
        (training().partition("total = 0.0\n")[2] + "torch.manual_seed(2)\n", "pass", "for epoch", 2),
    ],
)
def test_ranks_go_apart_again_where_all_are_seeded_alike(head: str, seeds: str, place: str, apart: int) -> None:
    """They drew the same masks for their samples."""
    before, _, loop = noisy(training(), "torch.rand(1)").partition("for epoch in range(3):\n")
    code = plain(f"{before}{head}for epoch in range(3):\n    {seeds}\n{loop}").code
    assert code.count("noise of its own") == apart
    assert all(each.startswith(place) for each in code.split(SEED + "\n")[1:])


AGAIN = "torch.manual_seed(torch.randint(2**31, ()).item() + dist.get_rank())"
IN_A_FUNCTION = """\
def train(model):
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for x, y in train_loader:
        loss = F.cross_entropy(model(x + torch.randn_like(x)), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


model = nn.Linear(4, 3)
"""


@pytest.mark.parametrize(
    ("calls", "again"),
    [("train(model)\n", False), ("for epoch in range(3):\n    train(model)\n", True)],
)
def test_a_seed_is_not_that_of_another_rank_the_epoch_before(calls: str, again: bool) -> None:
    """`initial_seed() + rank` of rank 1 in its second epoch was that of rank 2 in its first one."""
    code = plain(HEAD.partition("model = ")[0] + IN_A_FUNCTION + calls).code
    assert (AGAIN in code) is again and (SEED in code) is not again


DRAWS = "\ndef draws():\n    for k in range(3):\n        if torch.rand(1).item() > 0.5:\n            print(k)\n"


def test_what_one_way_draws_is_not_drawn_behind_the_other() -> None:
    train = training().removeprefix(HEAD).replace("model(x)", "model(x + torch.randn_like(x))")
    train = "\ndef train():\n    " + train.replace("\n", "\n    ")
    head = "import sys\n" + HEAD + DRAWS + train
    ways = "\nif sys.argv[1:]:\n    train()\nelse:\n    draws()\n"
    assert "if torch.rand(1).item() > 0.5:" in plain(head + ways).code
    again = "\nfor mode in sys.argv[1:]:\n    if mode:\n        train()\n    else:\n        draws()\n"
    for other in (ways + "draws()\n", "\ntrain()" + ways, ways + ways, again):
        result = plain(head + other)
        assert refusals(result) or "from_rank_0(torch.rand(1).item() > 0.5)" in result.code


def test_in_a_loop_the_other_way_may_be_behind_it() -> None:
    train = training().removeprefix(HEAD).replace("model(x)", "model(x + torch.randn_like(x))")
    train = "\ndef train():\n    " + train.replace("\n", "\n    ")
    ways = "    if part % 2:\n        train()\n    else:\n        lr = lr * torch.rand(1).item()\n"
    sets = "    for group in optimizer.param_groups:\n        group['lr'] = lr\n"
    result = plain(HEAD + train + "\nlr = 0.1\nfor part in range(4):\n" + ways + sets)
    assert not refusals(result)
    assert "group['lr'] = from_rank_0(lr)" in result.code
