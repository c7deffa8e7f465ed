"""Whether an nn.DataParallel serves the keys of a file alone."""

from __future__ import annotations

import ast

import pytest
from ddpify_codemods.facts.loading_wrapper import uses_for_keys

from tests.codemods.checks import script_of

LOAD = "net.load_state_dict(torch.load('a.pt'))\n"


@pytest.mark.parametrize(
    ("after", "taken"),
    [
        (LOAD + "net = net.module\ntrain(net)\n", 2),
        (LOAD + "features = net.module.features\n", 2),
        (LOAD + "model = net.module\ndel net\n", 2),
        ("if path:\n    " + LOAD + "net = net.module\ntrain(net)\n", 2),
        (LOAD + "if path:\n    net = net.module\ntrain(net)\n", None),
        (LOAD + "net = net.module if train(net) else None\n", None),
        (LOAD + "net = net.module\n\n\ndef show():\n    print(net)\n", 2),
        ("\n\ndef show():\n    print(net)\n\n\n" + LOAD + "show()\nnet = net.module\n", None),
        (LOAD, None),
        ("model = net.module\n", None),
        (LOAD + "torch.save(net.state_dict(), 'b.pt')\nnet = net.module\n", None),
        (LOAD + "loads = net.load_state_dict\nnet = net.module\n", None),
    ],
)
def test_what_is_taken_of_it(after: str, taken: int | None) -> None:
    script = script_of(f"import torch\nfrom torch import nn\n\nnet = nn.DataParallel(net)\n{after}")
    [call] = [each for each in script.find(ast.Call) if ast.unparse(each.func) == "nn.DataParallel"]
    found = uses_for_keys(script, call)
    assert (len(found) if found is not None else None) == taken


@pytest.mark.parametrize(
    "made",
    [
        "for net in nets:\n    net = nn.DataParallel(net)\n    net.load_state_dict(state)\n    net = net.module\n",
        "if a:\n    net = nn.DataParallel(net)\nelse:\n    net = other\nnet.load_state_dict(state)\ntrain(net)\n"
        "net = net.module\n",
        "def load():\n    global net\n    net = nn.DataParallel(net)\n    net.load_state_dict(state)\n    use()\n"
        "    net = net.module\n",
        "self.net = nn.DataParallel(net)\nself.net.load_state_dict(state)\nself.net = self.net.module\n",
    ],
)
def test_where_more_may_become_of_it(made: str) -> None:
    script = script_of(f"from torch import nn\n\n{made}")
    [call] = [each for each in script.find(ast.Call) if ast.unparse(each.func) == "nn.DataParallel"]
    assert uses_for_keys(script, call) is None
