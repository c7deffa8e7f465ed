"""Models that a function makes with their optimizers, and gives to its callers."""

from __future__ import annotations

import ast

import pytest

from tests.codemods.facts.flow.followed import HEAD, wrapped

BARE = HEAD.partition("model =")[0] + "total = 0\n"
CREATE = """\
def create(width=3):
    model = nn.Linear(4, width)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    return model, optimizer


def fit(model, optimizer):
    for x, y in train_loader:
        optimizer.zero_grad()
        F.cross_entropy(model(x), y).backward()
        optimizer.step()


"""
CALL = "model, optimizer = create()\n"
FIT = "fit(model, optimizer)\n"
SETUP = """\
def setup():
    net, sgd = create()
    return sgd, net


"""
PAIR = """\
def pair():
    gen, disc = nn.Linear(4, 4), nn.Linear(4, 1)
    opt_g = torch.optim.SGD(gen.parameters(), lr=0.1)
    opt_d = torch.optim.SGD(disc.parameters(), lr=0.1)
    return disc, gen, opt_d, opt_g


disc, gen, opt_d, opt_g = pair()
for x, y in train_loader:
    opt_g.zero_grad()
    F.softplus(disc(gen(x))).mean().backward()
    opt_g.step()
    opt_d.zero_grad()
    F.softplus(-disc(x)).mean().backward()
    opt_d.step()
"""


def indented(code: str) -> str:
    return "".join(f"    {line}\n" for line in code.splitlines())


@pytest.mark.parametrize(
    ("source", "behind"),
    [
        (CALL + FIT, ["model, optimizer = create()"]),
        (CALL + "model = model.to(torch.device('cuda'))\n" + FIT, ["model = model.to(torch.device('cuda'))"]),
        (CALL + "print(1)\nmodel = model.to(torch.device('cuda'))\n" + FIT, [CALL.strip()]),
        (CALL + "for epoch in range(2):\n    model = model.train()\n    fit(model, optimizer)\n", [CALL.strip()]),
        (SETUP + "sgd, model = setup()\nfit(model, sgd)\n", ["sgd, model = setup()"]),
        (f"for width in (3, 4):\n{indented(CALL + FIT)}", [CALL.strip()]),
        (f"if total:\n{indented(CALL)}else:\n{indented(CALL)}{FIT}", [CALL.strip()] * 2),
        (f"try:\n{indented(CALL + FIT)}finally:\n    print(total)\n", [CALL.strip()]),
        (f"if total:\n    model, _ = create()\nelse:\n{indented(CALL + FIT)}", [CALL.strip()]),
        (f"def test():\n    model, _ = create()\n    print(model)\n\n\n{CALL}{FIT}test()\n", [CALL.strip()]),
    ],
)
def test_a_model_is_wrapped_behind_the_statement_that_takes_it(source: str, behind: list[str]) -> None:
    found = wrapped(CREATE + source, BARE)
    assert not found.problems
    assert [each.side for each in found.models] == ["after"]
    assert [ast.unparse(each) for each in found.models[0].at] == behind


def test_a_model_that_is_all_that_is_given_back() -> None:
    create = CREATE.replace("return model, optimizer", "model.sgd = optimizer\n    return model")
    found = wrapped(create + "net = create()\nfit(net, net.sgd)\n", BARE)
    assert not found.problems and [each.name for each in found.models] == ["ddp_net"]


def test_several_models_of_one_function_have_their_own_wrappers() -> None:
    found = wrapped(PAIR, BARE)
    assert not found.problems and [each.name for each in found.models] == ["ddp_disc", "ddp_gen"]
    assert sorted({name for _, name in found.calls.values()}) == ["ddp_disc", "ddp_gen"]


@pytest.mark.parametrize(
    "source",
    [
        CALL + "other, second = create()\nfit(other, second)\n" + FIT,
        CALL + FIT + CALL + FIT,
        CALL + "if total:\n    model = nn.Linear(4, 3)\n" + FIT,
        CALL + "for model in [nn.Linear(4, 3)]:\n    print(model)\n" + FIT,
        CALL + "with open('x') as model:\n    pass\n" + FIT,
        CALL + "print(model := nn.Linear(4, 3))\n" + FIT,
        CALL + FIT + "del model\n",
        CALL + "try:\n    pass\nexcept ValueError as model:\n    pass\n" + FIT,
        CALL + "import os as model\n" + FIT,
        CALL + "net = model\nfit(net, optimizer)\n",
        CALL + "other, _ = create()\nmodel, other = other, model\n" + FIT,
        "for model, optimizer in [create(3), create(4)]:\n    fit(model, optimizer)\n",
        "models = []\nfor width in (3, 4):\n"
        + indented(CALL)
        + "    models.append(model)\nfit(models[0], optimizer)\n",
        "fit(*create())\n",
        "class Setup:\n" + indented(CALL) + "\n\nfit(Setup.model, Setup.optimizer)\n",
        "def main():\n"
        + indented(CALL + "def again():\n    nonlocal model\n    model = None\nagain()\n" + FIT)
        + "\n\nmain()\n",
    ],
)
def test_a_name_that_may_hold_another_model_is_not_followed(source: str) -> None:
    found = wrapped(CREATE + source, BARE)
    assert found.problems or not found.calls


@pytest.mark.parametrize(
    "create",
    [
        "import functools\n\n\n@functools.lru_cache\n" + CREATE,
        CREATE.replace("    return model, optimizer", "    fit(model, optimizer)\n    return model, optimizer"),
        CREATE.replace("    return", "    if width > 9:\n        return None, model\n    return"),
        CREATE.replace("    model =", "    if width > 9:\n        model, optimizer = create()\n    model ="),
    ],
)
def test_a_function_that_does_more_is_not_followed(create: str) -> None:
    assert wrapped(create + CALL + FIT, BARE).problems
