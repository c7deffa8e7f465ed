"""Where models are wrapped that training knows by another name than the one by which optimizers get their parameters,
and models and optimizers that are chosen in the run.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from ddpify_codemods import convert

from tests.codemods.plain.test_followed import plain, refusals, training, undivided

DATA = """\
import argparse
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, TensorDataset

train_set = TensorDataset(torch.rand(64, 4), torch.randint(3, (64,)))
loader = DataLoader(train_set, batch_size=8, shuffle=True)


def train(model, optimizer):
    for x, y in loader:
        loss = F.cross_entropy(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


def set_optimizer(net, lr):
    optimizer = torch.optim.SGD(net.parameters(), lr=lr)
    return optimizer


"""
TRAINER = """\
class Trainer:
    def __init__(self, model, optimizer):
        self.model = model.to("cpu")
        self.optimizer = optimizer

    def fit(self):
        for x, y in loader:
            loss = F.cross_entropy(self.model(x), y)
            self.optimizer.zero_grad()
            loss.backward()
            self.optimizer.step()
        torch.save(self.model.state_dict(), "model.pt")


def load():
    model = nn.Linear(4, 3)
    return model, torch.optim.SGD(model.parameters(), lr=0.1)


"""


def test_a_function_makes_the_optimizer() -> None:
    script = DATA + "net = nn.Linear(4, 3)\noptimizer = set_optimizer(net, 0.1)\ntrain(net, optimizer)\n"
    result = plain(script)
    assert not refusals(result)
    lines = ["ddp_net = DistributedDataParallel(net)", "optimizer = set_optimizer(net, 0.1)"]
    assert "\n".join([*lines, "train(ddp_net, optimizer)"]) in result.code


@pytest.mark.parametrize(
    "more",
    [
        "other = set_optimizer(nn.Linear(2, 2), 0.1)\n",
        "given = dict(net=net, lr=0.2)\nother = set_optimizer(**given)\n",
    ],
)
def test_a_function_that_makes_several_optimizers_is_refused(more: str) -> None:
    script = DATA + "net = nn.Linear(4, 3)\noptimizer = set_optimizer(net, 0.1)\n" + more + "train(net, optimizer)\n"
    assert refusals(plain(script))


def test_an_object_keeps_the_model_that_it_calls() -> None:
    result = plain(DATA + TRAINER + "model, optimizer = load()\nTrainer(model, optimizer).fit()\n")
    assert not refusals(result)
    kept = 'self.model = model.to("cpu")\n        self.ddp_model = DistributedDataParallel(self.model)\n'
    assert kept in result.code and "self.ddp_model(x)" in result.code and "self.model.state_dict()" in result.code


def test_a_statement_that_makes_the_optimizer_may_give_the_model_its_name_again() -> None:
    fit = "def fit(model, optimizer):\n    train(model, optimizer)\n    return model\n\n\n"
    result = plain(f"{DATA}{fit}net = nn.Linear(4, 3)\nnet = fit(net, torch.optim.SGD(net.parameters(), lr=0.1))\n")
    assert not refusals(result)
    assert "ddp_net = DistributedDataParallel(net)\nnet = fit(ddp_net, " in result.code


@pytest.mark.parametrize("value", ["model", "self.model"])
@pytest.mark.parametrize("last", [False, True])
def test_an_object_moves_the_model_that_it_keeps(value: str, last: bool) -> None:
    made = f"self.model = model\n        if optimizer:\n            self.model = {value}.cuda()\n"
    set_ = "        self.optimizer = optimizer\n"
    trainer = TRAINER.replace(
        f'        self.model = model.to("cpu")\n{set_}', f"{set_}        {made}{'' if last else set_}"
    )
    result = plain(DATA + trainer + "model, optimizer = load()\nTrainer(model, optimizer).fit()\n")
    assert not refusals(result)
    made = made.replace("cuda", "cpu")
    assert f"{made}        self.ddp_model = DistributedDataParallel(self.model)\n" in result.code


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("Trainer(model, optimizer).fit()", "Trainer(model, optimizer).fit()\nTrainer(model, optimizer).fit()"),
        ("    def fit(self):\n", "    def fit(self):\n        self.model = self.model.double()\n"),
        ("Trainer(model, optimizer).fit()", "own = Trainer(model, optimizer)\nown.model = model\nown.fit()"),
        ('self.model = model.to("cpu")\n', 'self.model = model.to("cpu")\n        self.model = nn.Linear(4, 3)\n'),
        ('        self.model = model.to("cpu")\n', "        if optimizer:\n            self.model = model\n"),
        ('self.model = model.to("cpu")\n', "self.model = model\n        self.model += model\n"),
    ],
)
def test_a_model_that_is_kept_in_other_ways_is_refused(old: str, new: str) -> None:
    script = DATA + TRAINER + "model, optimizer = load()\nTrainer(model, optimizer).fit()\n"
    assert old in script
    assert refusals(plain(script.replace(old, new)))


@pytest.mark.parametrize("chosen", ["getattr(torch.optim, args.optim)", "torch.optim.__dict__[args.optim]"])
def test_an_optimizer_is_chosen_in_the_run(chosen: str) -> None:
    script = DATA + "parser = argparse.ArgumentParser()\nargs = parser.parse_args()\nnet = nn.Linear(4, 3)\n"
    result = plain(f"{script}optimizer = {chosen}(net.parameters(), lr=0.1)\ntrain(net, optimizer)\n")
    assert not refusals(result)
    assert "ddp_net = DistributedDataParallel(net)\noptimizer = " in result.code


FIRST = (
    "class First(nn.Module):\n    def __init__(self):\n        super().__init__()\n        self.f = nn.Linear(4, 3)\n"
)
FIRST += "    def forward(self, x):\n        return self.f(x)\n\n\n"
COUPLED = FIRST.replace("First", "Coupled").replace("self.f(x)", "self.f(x) - self.f(x).mean(0)")
MADE = "args = argparse.ArgumentParser().parse_args()\nnet = {chosen}()\noptimizer = set_optimizer(net, 0.1)\n"
CHOSEN = ["getattr(nets, args.net)", "nets.__dict__[args.net]", "vars(nets)[args.net]"]


@pytest.mark.parametrize("chosen", CHOSEN)
@pytest.mark.parametrize("coupled", [False, True])
def test_a_model_is_chosen_in_the_run_from_a_file(chosen: str, coupled: bool) -> None:
    script = "import nets\n" + DATA + MADE.format(chosen=chosen) + "train(net, optimizer)\n"
    files = {Path("train.py"): script, Path("nets.py"): "import torch.nn as nn\n\n\n" + FIRST + COUPLED * coupled}
    results = convert(files, "cpu", style="plain")
    assert bool(any(map(undivided, results.values()))) == coupled
    assert "ddp_net = DistributedDataParallel(net" in results[Path("train.py")].code


PARTS = """\
def layer(width, out):
    return nn.Linear(width, out)


class Part(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.f = layer(width, 3)
    def forward(self, x):
        return self.f(x)


class Whole(nn.Module):
    def __init__(self):
        super().__init__()
        self.part = Part(4)
    def forward(self, x):
        return self.part(x)


"""


@pytest.mark.parametrize("chosen", CHOSEN)
def test_what_cannot_be_called_so_is_not_the_model(chosen: str) -> None:
    """The layers of one model, which a function of the same file makes, were taken for another model."""
    script = "import nets\n" + DATA + MADE.format(chosen=chosen) + "train(net, optimizer)\n"
    files = {Path("train.py"): script, Path("nets.py"): "import torch.nn as nn\n\n\n" + PARTS + FIRST}
    results = convert(files, "cpu", style="plain")
    assert not any(map(refusals, results.values()))
    assert "ddp_net = DistributedDataParallel(net" in results[Path("train.py")].code


@pytest.mark.parametrize("coupled", [False, True])
def test_a_model_is_chosen_from_a_dict_by_the_settings(coupled: bool) -> None:
    classes = f"{FIRST}{COUPLED}classes = {{'first': First, 'other': {'Coupled' if coupled else 'First'}}}\n"
    script = DATA + classes + "args = argparse.ArgumentParser().parse_args()\nargs.net = classes[args.name]\n"
    result = plain(script + "net = args.net()\noptimizer = set_optimizer(net, 0.1)\ntrain(net, optimizer)\n")
    assert bool(undivided(result)) == coupled


PENALTY = """\
def penalty(net, x):
    out = net(x).pow(2)
    return out.mean()


first, second = nn.Linear(4, 3), nn.Linear(4, 3)
one = torch.optim.SGD(first.parameters(), lr=0.1)
two = torch.optim.SGD(second.parameters(), lr=0.1)
for x, y in loader:
    loss = F.cross_entropy(first(x), y) + F.cross_entropy(second(x), y) + penalty(first, x) + penalty(second, x)
    one.zero_grad()
    two.zero_grad()
    loss.backward()
    one.step()
    two.step()
"""


def test_a_function_is_given_one_model_and_another() -> None:
    result = plain(DATA + PENALTY)
    assert not refusals(result)
    assert "penalty(ddp_first, x) + penalty(ddp_second, x)" in result.code
    assert "net(x)" in result.code


def test_a_function_is_given_a_model_and_something_that_is_not_trained() -> None:
    """It would be given a wrapper, whose `.module` it takes, and a model without one."""
    text = PENALTY.replace("out = net(x)", "out = net.forward(x) + net(x)")
    frozen = text.replace("penalty(second, x)", "penalty(third, x)").replace("one =", "third = nn.Linear(4, 3)\none =")
    assert refusals(plain(DATA + frozen))


GENERATORS = {
    "parts(net)": """\
def parts(model):
    layers = [model[0], model[2]]
    for i in range(len(layers)):
        for p in layers[i].parameters():
            if p.requires_grad:
                yield p
""",
    "[p for _, p in named(net)]": "def named(model):\n    yield from model.named_parameters()\n",
    '[{"params": chosen(net), "lr": 0.2}]': (
        "def chosen(model):\n    for name, p in model.named_parameters():\n        yield p\n"
    ),
}
NET = 'net = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 3)).to("cpu")\n'


@pytest.mark.parametrize("given", GENERATORS)
def test_a_generator_gives_the_parameters(given: str) -> None:
    script = f"{DATA}{GENERATORS[given]}\n\n{NET}optimizer = torch.optim.SGD({given}, lr=0.1)\ntrain(net, optimizer)\n"
    result = plain(script)
    assert not refusals(result)
    assert "ddp_net = DistributedDataParallel(net)\noptimizer = " in result.code
    assert "train(ddp_net, optimizer)" in result.code


GROUPS = {
    "for part in net.modules():": "[], []",
    "for name, part in net.named_modules():": "{0: [], 1: []}",
}


@pytest.mark.parametrize("loop", GROUPS)
def test_a_loop_takes_the_parameters_of_each_layer(loop: str) -> None:
    script = f"""\
{DATA}{NET}groups = {GROUPS[loop]}
{loop}
    if isinstance(part, nn.Linear):
        groups[0].append(part.weight)
        groups[1].append(part.bias)
optimizer = torch.optim.SGD(groups[0], lr=0.1)
optimizer.add_param_group({{"params": groups[1], "lr": 0.2}})
train(net, optimizer)
"""
    result = plain(script)
    assert not refusals(result)
    assert "ddp_net = DistributedDataParallel(net)\noptimizer = " in result.code
    assert "train(ddp_net, optimizer)" in result.code


@pytest.mark.parametrize("frozen", ["net[0].parameters()", "list(net.parameters())[:2]", "parts(net)"])
@pytest.mark.parametrize("late", [False, True])
def test_what_is_trained_beside_frozen_parameters_is_wrapped(frozen: str, late: bool) -> None:
    freezes = f"for p in {frozen}:\n    p.requires_grad = False\n"
    steps = "optimizer = set_optimizer(net, 0.1)\n{}train(net, optimizer)\n"
    lines = steps.format(freezes) if late else freezes + steps.format("")
    result = plain(f"{DATA}{GENERATORS['parts(net)']}\n\n{NET}{lines}")
    unclear = late and frozen.startswith("list")
    assert bool(refusals(result)) == unclear
    assert ("train(ddp_net, optimizer)" in result.code) != unclear
    assert (f"{freezes}ddp_net = DistributedDataParallel(net)\n" in result.code) != unclear


def test_a_new_head_on_a_frozen_model_is_wrapped() -> None:
    freezes = "for p in net.parameters():\n    p.requires_grad = False\nnet[2] = nn.Linear(8, 3)\n"
    result = plain(f"{DATA}{NET}{freezes}optimizer = set_optimizer(net, 0.1)\ntrain(net, optimizer)\n")
    assert not refusals(result)
    assert "train(ddp_net, optimizer)" in result.code


CONDITION = """\
for name, p in net.named_parameters():
    if "0" in name:
        p.requires_grad = False
"""
ONLY_THE_LAST = "if len(x) > 8:\n    net.requires_grad_(requires_grad=False)\n    net[2].requires_grad_(True)\n"


@pytest.mark.parametrize(
    "freezes", [CONDITION, CONDITION.replace(".requires_grad = False", ".requires_grad_(False)"), ONLY_THE_LAST]
)
def test_parameters_that_a_condition_freezes_are_left_out_by_the_wrapper(freezes: str) -> None:
    result = plain(f"{DATA}{NET}{freezes}optimizer = set_optimizer(net, 0.1)\ntrain(net, optimizer)\n")
    assert not refusals(result)
    assert "train(ddp_net, optimizer)" in result.code


THAWS = [
    "for p in net.parameters():\n    p.requires_grad = True\n",
    CONDITION.replace("False", "True"),
    "for layer in net.children():\n    for p in layer.parameters():\n        p.requires_grad = True\n",
    "for layer in net.modules():\n    layer.requires_grad_()\n",
    "net[0].weight.requires_grad = True\n",
]


@pytest.mark.parametrize(
    "thaws", [*THAWS, CONDITION.replace('"0"', '"2"'), "def thaw():\n    net.requires_grad_()\nthaw()\n"]
)
def test_the_wrapper_is_made_behind_what_is_unfrozen_before_training(thaws: str) -> None:
    lines = f"{CONDITION}optimizer = set_optimizer(net, 0.1)\n{thaws}train(net, optimizer)\n"
    result = plain(f"{DATA}{NET}{lines}")
    assert not refusals(result)
    assert f"{thaws}ddp_net = DistributedDataParallel(net)\ntrain(ddp_net, optimizer)\n" in result.code


PRETRAIN = """\
def pretrain(model, optimizer):
    for p in model[0].parameters():
        p.requires_grad = False
    train(model, optimizer)
    for p in model[0].parameters():
        p.requires_grad = True


"""
SGD = "optimizer = torch.optim.SGD(net.parameters(), lr=0.1)\n"
TRAINED = "train(net, optimizer)\n"
FREEZES = "for p in net[0].parameters():\n    p.requires_grad = False\n"
THAWED = FREEZES.replace("False", "True")
LOOKING = "DistributedDataParallel(net, find_unused_parameters=True)\n"
FROZEN_LATER = "for epoch in range(4):\n    if epoch == 2:\n        net[0].requires_grad_(False)\n    "


@pytest.mark.parametrize(
    "lines",
    [
        f"{SGD}pretrain(net, optimizer)\n{SGD}{TRAINED}",
        f"{SGD}{TRAINED}{FREEZES}{TRAINED}{THAWED}{TRAINED}",
        f"{SGD}{FREEZES}{TRAINED}{THAWED}{TRAINED}",
        f"{SGD}{FROZEN_LATER}{TRAINED}",
    ],
)
def test_a_wrapper_that_knows_all_parameters_looks_which_are_used(lines: str) -> None:
    """It is made before anything is frozen, so that it averages the gradients of what is unfrozen again."""
    result = plain(f"{DATA}{PRETRAIN if 'pretrain' in lines else ''}{NET}{lines}")
    assert not refusals(result)
    assert f"ddp_net = {LOOKING}{SGD}" in result.code and result.code.count(LOOKING) == result.code.count("ddp_net = ")


@pytest.mark.parametrize(
    "lines",
    [
        f"{FREEZES}{SGD}{TRAINED}{THAWED}{TRAINED}",
        f"{FREEZES}{SGD}pretrain(net, optimizer)\n{TRAINED}",
        f"{SGD}{TRAINED}{FREEZES}{SGD}{TRAINED}{THAWED}{TRAINED}",
        f"{FREEZES}{SGD}{THAWED}{TRAINED}{FREEZES}{TRAINED}",
    ],
)
def test_one_that_does_not_know_them_is_refused(lines: str) -> None:
    """What is unfrozen would be stepped with gradients of each rank's own."""
    found = plain(f"{DATA}{PRETRAIN if 'pretrain' in lines else ''}{NET}{lines}")
    assert any("frozen or unfrozen" in each for each in refusals(found))


@pytest.mark.parametrize(
    "moves", ["net.to(device)\n", "net = net.cuda()\n", "net.double()\n", "net.to(torch.float64)\n"]
)
@pytest.mark.parametrize("freezes", ["", FROZEN_LATER])
def test_a_model_is_wrapped_behind_what_moves_it(moves: str, freezes: str) -> None:
    result = plain(f"{DATA}device = torch.device(0)\n{NET}{SGD}{moves}{freezes}{TRAINED}", "cuda")
    assert not refusals(result)
    assert "ddp_net = DistributedDataParallel(net" in result.code
    lines = [
        line.split(".")[0] for line in result.code.splitlines() if line.startswith(("net", "optimizer", "ddp_net"))
    ]
    assert lines[1] == "optimizer = torch" and lines[2].startswith("net") and lines[3].startswith("ddp_net")


def test_a_model_that_is_moved_behind_what_is_frozen_is_moved_into_its_wrapper() -> None:
    """The wrapper has to know what is unfrozen later, and to get a model that is on its device."""
    lines = f"device = torch.device(0)\n{NET}{SGD}{FREEZES}{{}}{TRAINED}{THAWED}{TRAINED}"
    result = plain(DATA + lines.format("net.to(device)\n"), "cuda")
    assert not refusals(result)
    assert f'ddp_net = DistributedDataParallel(net.to("cuda"), {{}}{SGD}'.partition("{}")[0] in result.code
    for move in ("net.double()\n", "net.to(device, torch.float64)\n", "net.to(device, dtype=torch.float64)\n"):
        found = refusals(plain(DATA + lines.format(move), "cuda"))
        assert any("numbers of another type" in each for each in found), move


LISTED = """\
nets = [nn.Linear(4, 3) for _ in range(2)]
optimizers = [torch.optim.SGD(each.parameters(), lr=0.1) for each in nets]
{}for net, optimizer in zip(nets, optimizers):
    for x, y in loader:
        loss = F.cross_entropy(net(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
{}"""
BIAS = "    net.bias.requires_grad = {}\n"


@pytest.mark.parametrize(
    ("before", "after"),
    [("", BIAS.format(False)), ("", BIAS.format(True)), (f"for net in nets:\n{BIAS.format(True)}", "")],
)
def test_models_of_a_list_are_neither_frozen_nor_unfrozen(before: str, after: str) -> None:
    assert not refusals(plain(DATA + LISTED.format("", "")))
    assert refusals(plain(DATA + LISTED.format(before, after)))


@pytest.mark.parametrize("thaws", THAWS)
@pytest.mark.parametrize(
    "trains", ["train(net, optimizer)\n{}", "for epoch in range(2):\n    train(net, optimizer)\n    {}"]
)
def test_what_is_unfrozen_after_the_wrapper_was_made_is_refused(thaws: str, trains: str) -> None:
    """DistributedDataParallel averages the gradients of the parameters that were not frozen when it was made."""
    thawed = trains.format(thaws.replace("\n", "\n    ").strip() + "\n" if "for epoch" in trains else thaws)
    lines = f"{CONDITION}optimizer = set_optimizer(net, 0.1)\n{thawed}train(net, optimizer)\n"
    (refusal,) = refusals(plain(f"{DATA}{NET}{lines}"))
    assert "frozen or unfrozen" in refusal


@pytest.mark.parametrize(
    ("moves", "is_moved"),
    [
        ("model.to(device)\n", True),
        ("model = model.to(device)\n", True),
        ("print(1)\nmodel.to(device)\nprint(2)\n", True),
        ("other.to(device)\n", False),
        ("for _ in range(2):\n    model.to(device)\n", False),
    ],
)
def test_a_model_is_wrapped_where_it_has_come_to_its_device(moves: str, is_moved: bool) -> None:
    """The process group sends what is on its devices alone."""
    device = "device = torch.device('cpu')\nother = nn.Linear(4, 3)\n"
    script = training().replace("total = 0.0\n", f"total = 0.0\n{device}{moves}")
    code = plain(script + "model.to('cpu')\n").code
    assert (code.index("to(device)") < code.index("ddp_model = ")) is is_moved
    assert code.index("ddp_model = ") < code.index("ddp_model(x)") < code.index("model.to('cpu')")


@pytest.mark.parametrize(
    ("between", "refused"), [(SGD, False), (f"if len(train_set) > 9:\n    {SGD}", True), ("", True)]
)
def test_an_optimizer_behind_what_is_unfrozen_has_a_wrapper_of_its_own(between: str, refused: bool) -> None:
    lines = f"{FREEZES}{SGD}{TRAINED}{THAWED}{between}{TRAINED}"
    result = plain(f"{DATA}{NET}{lines}")
    assert any("frozen or unfrozen" in each for each in refusals(result)) is refused
    assert refused or (result.code.count("= DistributedDataParallel(net)\n") == 2)


def test_an_optimizer_of_another_model_changes_nothing() -> None:
    other = "other = nn.Linear(4, 3)\nsecond = torch.optim.SGD(other.parameters(), lr=0.1)\n"
    lines = f"{SGD}{TRAINED}{{}}{other}{TRAINED}train(other, second)\n"
    assert LOOKING in plain(f"{DATA}{NET}{lines.format(FREEZES)}").code
    (refusal, *_) = refusals(plain(f"{DATA}{NET}{FREEZES}{lines.format(THAWED)}"))
    assert "frozen or unfrozen" in refusal


DEEP = """\
if deep:
    net[0].requires_grad_({0})
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
else:
    net[0].requires_grad_({1})
    optimizer = torch.optim.SGD(net[2].parameters(), lr=0.1)
train(net, optimizer)
"""


@pytest.mark.parametrize("requires", [("True", "False"), ("False", "True")])
def test_a_model_is_wrapped_behind_what_a_condition_freezes(requires: tuple[str, str]) -> None:
    result = plain(DATA + NET + "deep = argparse.ArgumentParser().parse_args().deep\n" + DEEP.format(*requires))
    assert not refusals(result)
    for each in requires:
        assert f"    net[0].requires_grad_({each})\n    ddp_net = DistributedDataParallel(net" in result.code
    assert result.code.count("DistributedDataParallel(net") == 2


@pytest.mark.parametrize("layer", ["net[2] = nn.Linear(8, 3)", "net.append(nn.Linear(3, 3))"])
def test_a_model_that_a_condition_gives_a_layer_is_wrapped_anew(layer: str) -> None:
    phases = f"""\
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
for epoch in range(4):
    if epoch == 2:
        {layer}
        optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    train(net, optimizer)
"""
    result = plain(DATA + NET + phases)
    assert not refusals(result)
    assert f"        {layer}\n        ddp_net = DistributedDataParallel(net" in result.code
    assert result.code.count("DistributedDataParallel(net") == 2


NEW_OPTIMIZER = """\
def new_optimizer({0}):
    {1}
    return torch.optim.SGD(net.parameters(), lr=0.1)


optimizer = new_optimizer({0})
train(net, optimizer)
"""


@pytest.mark.parametrize("given", ["", "net"])
def test_a_model_is_wrapped_where_a_function_is_called_that_makes_its_optimizer(given: str) -> None:
    result = plain(DATA + NET + NEW_OPTIMIZER.format(given, "print('new')"))
    assert not refusals(result)
    assert f"ddp_net = DistributedDataParallel(net)\noptimizer = new_optimizer({given})\n" in result.code
    assert "train(ddp_net, optimizer)" in result.code


@pytest.mark.parametrize(
    "first", ["net[0].requires_grad_(False)", "net[2] = nn.Linear(8, 3)", "global net; net = Net()"]
)
def test_a_wrapper_that_a_function_would_make_for_itself_is_refused(first: str) -> None:
    source = DATA + NET.replace("net =", "def Net(): return") + "net = Net()\n" + NEW_OPTIMIZER.format("", first)
    assert refusals(plain(source))


def test_a_model_is_wrapped_where_an_inner_function_is_called_that_makes_its_optimizer() -> None:
    inner = """\
def main():
    net = nn.Linear(4, 3)

    def new_optimizer():
        return torch.optim.SGD(net.parameters(), lr=0.1)

    train(net, new_optimizer())


main()
"""
    result = plain(DATA + inner)
    assert not refusals(result)
    assert "    ddp_net = DistributedDataParallel(net)\n    train(ddp_net, new_optimizer())\n" in result.code


LAYERS = """\
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.body, self.head = nn.Sequential(nn.Linear(4, 5), nn.ReLU()), nn.Linear(5, 3)

    def forward(self, x):
        return self.head(self.body(x))

    def slow_params(self):
        parts = [self.body]
        for i in range(len(parts)):
            for m in parts[i].named_modules():
                if isinstance(m[1], nn.Linear):
                    for p in m[1].parameters():
                        yield p

    def params_of_head(self):
        for m in self.head.modules():
            for p in m.parameters():
                yield p


model = Net()
optimizer = torch.optim.SGD([{"params": model.slow_params()}, {"params": model.params_of_head()}], lr=0.1)
"""


def test_a_generator_gives_the_parameters_of_layers() -> None:
    made = "model = nn.Linear(4, 3)\noptimizer = torch.optim.SGD(model.parameters(), lr=0.1)\n"
    assert made in training()
    result = plain(training().replace(made, LAYERS))
    assert not refusals(result)
    assert "ddp_model = DistributedDataParallel(model)\noptimizer = " in result.code


OWN = """\
class Basic(nn.Module):
    def get_optimizer(self, lr):
        return torch.optim.SGD(self.parameters(), lr=lr)


class Net(Basic):
    def __init__(self):
        super().__init__()
        self.head = nn.Linear(4, 3)

    def forward(self, x):
        return self.head(x)


model = Net()
optimizer = model.get_optimizer(0.1)
"""


@pytest.mark.parametrize("parameters", ["self.parameters()", "self.head.parameters()"])
def test_a_model_makes_its_optimizer(parameters: str) -> None:
    made = "model = nn.Linear(4, 3)\noptimizer = torch.optim.SGD(model.parameters(), lr=0.1)\n"
    assert made in training()
    result = plain(training().replace(made, OWN.replace("self.parameters()", parameters)))
    assert not refusals(result)
    assert "ddp_model = DistributedDataParallel(model)\noptimizer = model.get_optimizer(0.1)\n" in result.code


@pytest.mark.parametrize(
    "line",
    [
        "other = Net()\nother.get_optimizer(0.1)\nother(train_set[0][0])\noptimizer = model.get_optimizer(0.1)\n",
        "nets = [model]\noptimizer = nets[0].get_optimizer(0.1)\n",
        "part = Basic()\npart.head = model.head\noptimizer = part.get_optimizer(0.1)\n",
    ],
)
def test_another_model_makes_the_optimizer(line: str) -> None:
    made = "model = nn.Linear(4, 3)\noptimizer = torch.optim.SGD(model.parameters(), lr=0.1)\n"
    own = OWN.replace("optimizer = model.get_optimizer(0.1)\n", line)
    assert refusals(plain(training().replace(made, own)))


@pytest.mark.parametrize(
    ("imported", "name", "wrapped"),
    [("from net import model", "model", "ddp_model"), ("import net", "net.model", "net.ddp_model")],
)
def test_a_model_that_another_file_has_made(imported: str, name: str, wrapped: str) -> None:
    made = f"{imported}\n\noptimizer = set_optimizer({name}, 0.1)\ntrain({name}, optimizer)\n"
    files = {Path("train.py"): DATA + made, Path("net.py"): "import torch\n\nmodel = torch.nn.Linear(4, 3)\n"}
    results = convert(files, "cpu", style="plain")
    assert not any(map(refusals, results.values()))
    code = results[Path("train.py")].code
    lines = [f"{wrapped} = DistributedDataParallel({name})", f"optimizer = set_optimizer({name}, 0.1)"]
    assert [line for line in code.splitlines() if line in (*lines, f"train({wrapped}, optimizer)")] == [
        *lines,
        f"train({wrapped}, optimizer)",
    ]


TURNS = """\
model = nn.Linear(4, 3)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
{more}
for epoch in range(2):
    {turn}:
        for x, y in train_loader:
            optimizer.zero_grad()
            F.cross_entropy(model(x), y).backward()
            optimizer.step()
"""
KEPT = "models, optimizers = [model], [optimizer]"
ANOTHER = """
model = nn.Linear(4, 3)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
"""


@pytest.mark.parametrize(
    ("more", "turn"),
    [
        (KEPT, "for model, optimizer in zip(models, optimizers)"),
        (f"first = model, optimizer{ANOTHER}", "for model, optimizer in (first, (model, optimizer))"),
    ],
)
def test_models_that_are_trained_in_turn_are_not_the_last_one(more: str, turn: str) -> None:
    """One wrapper would be called for all of them, and the others would not be trained."""
    head = training().partition("model = ")[0]
    found = refusals(plain(head + TURNS.format(more=more, turn=turn)))
    assert any("given another value here" in each for each in found)
    assert not refusals(plain(head + TURNS.format(more="first = model", turn="if True")))


LOADED = "model, start = torch.load('model.pt')"


def test_a_model_that_gets_another_value_behind_its_optimizer_is_not_the_one_that_is_trained() -> None:
    again = training().replace("for epoch", f"try:\n    {LOADED}\nexcept OSError:\n    pass\nfor epoch", 1)
    assert any("given another value here" in each for each in refusals(plain(again)))
    assert any("given another value here" in each for each in refusals(plain(training() + f"    {LOADED}\n")))
    assert not refusals(plain(training() + f"{LOADED}\nmodel(train_set[0][0])\n"))
    assert not refusals(plain(training().replace("for epoch", "model = model.train()\nfor epoch", 1)))


@pytest.mark.parametrize(
    ("line", "is_same"),
    [
        ("model = nn.Sequential(model, nn.Softplus())", False),
        ("class Scaled(nn.Sequential): pass\nmodel = Scaled(model)", False),
        ("model = nn.DataParallel(model)", True),
    ],
)
def test_a_network_around_the_one_whose_optimizer_was_made_is_another_one(line: str, is_same: bool) -> None:
    """The wrapper has the inner one, and would be called in place of the outer one."""
    found = refusals(plain(training().replace("for epoch", f"{line}\nfor epoch", 1)))
    assert bool(found) is not is_same


def test_a_model_that_its_loop_moves_is_wrapped_where_it_will_be() -> None:
    source = training().replace("optimizer.zero_grad()", "model.cuda()\n        optimizer.zero_grad()", 1)
    assert 'ddp_model = DistributedDataParallel(model.to("cuda"))' in plain(source, "cuda").code
