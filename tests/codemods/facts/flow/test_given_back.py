"""Models that functions give back as they were given them."""

from __future__ import annotations

import ast

import pytest
from ddpify_codemods.facts.flow.given_back import is_given_back

from tests.codemods.facts.flow.followed import TRAINING
from tests.codemods.facts.flow.test_models_of_optimizers import MADE, program

FUNCTION = "def load(net, path=''):\n    net.load_state_dict(torch.load(path))\n    return net\n"


@pytest.mark.parametrize(
    ("function", "again", "same"),
    [
        (FUNCTION, "model = load(model)", True),
        (FUNCTION, "model = load(path='a.pt', net=model)", True),
        (FUNCTION, "model = load(other)", False),
        (FUNCTION, "model, path = load(model)", False),
        (FUNCTION.replace("return net", "return net, path"), "model, path = load(model)", True),
        (FUNCTION.replace("return net", "return net, path"), "path, model = load(model)", False),
        (FUNCTION.replace("return net", "net = net.cuda()\n    return net"), "model = load(model)", True),
        (FUNCTION.replace("return net", "net = torch.load(path)\n    return net"), "model = load(model)", False),
        (FUNCTION.replace("return net", "return nn.Sequential(net)"), "model = load(model)", False),
        (FUNCTION, "model = torch.load('a.pt')", False),
        (FUNCTION.replace("return net", "net.bias = None\n    return net"), "model = load(model)", False),
        (FUNCTION.replace("return net", "thaw(net.parameters())\n    return net"), "model = load(model)", False),
        (FUNCTION.replace("return net", "net.eval()\n    return net"), "model = load(model)", True),
        (FUNCTION.replace("return net", "both = (net, path)\n    return net"), "model = load(model)", False),
    ],
)
def test_what_is_given_back(function: str, again: str, same: bool) -> None:
    followed = program(
        f"{function}{MADE}other = nn.Linear(4, 3)\noptimizer = torch.optim.SGD(model.parameters(), lr=0.1)\n"
        f"{again}\n{TRAINING}"
    )
    (script,) = followed.scripts
    stored = [each for each in script.find(ast.Name) if each.id == "model" and not isinstance(each.ctx, ast.Load)]
    assert is_given_back(followed, script, stored[-1], "model") is same


TRAINS = "def load(net, path=''):\n    for x, y in train_loader:\n        net(x)\n    return net\n"


@pytest.mark.parametrize(
    ("function", "again", "same"),
    [
        (TRAINS, "model = load(model)", True),
        (TRAINS.replace("return net", "return net, path"), "model, path = load(model)", True),
        (TRAINS.replace("return net", "return net, path, path"), "*path, model, other = load(model)", False),
        (TRAINS.replace("return net", "return *path, net"), "path, model = load(model)", False),
        (TRAINS.replace("    return net", "    if path:\n        return net"), "model = load(model)", False),
        (
            TRAINS.replace("    return net", "    while True:\n        break\n        return net"),
            "model = load(model)",
            False,
        ),
        (TRAINS.replace("    return net", "    with path:\n        return net"), "model = load(model)", False),
        (
            TRAINS.replace("    return net", "    with torch.no_grad():\n        return net"),
            "model = load(model)",
            True,
        ),
        (
            TRAINS.replace("    return net", "    try:\n        return net\n    except OSError:\n        return net"),
            "model = load(model)",
            True,
        ),
        (TRAINS.replace("return net", "net = path\n    return net"), "model = load(model)", False),
        (TRAINS.replace("return net", "import os as net\n    return net"), "model = load(model)", False),
        (TRAINS.replace("return net", "yield net\n    return net"), "model = load(model)", False),
        (f"@other\n{TRAINS}", "model = load(model)", False),
        (TRAINS, "read = load\nmodel = read(model)", False),
    ],
)
def test_what_a_function_that_is_followed_gives_back(function: str, again: str, same: bool) -> None:
    followed = program(
        f"other = nn.Linear(4, 3)\n{function}{MADE}optimizer = torch.optim.SGD(model.parameters(), lr=0.1)\n"
        f"{again}\n{TRAINING}"
    )
    (script,) = followed.scripts
    stored = [each for each in script.find(ast.Name) if each.id == "model" and not isinstance(each.ctx, ast.Load)]
    assert is_given_back(followed, script, stored[-1], "model", is_followed=True) is same
