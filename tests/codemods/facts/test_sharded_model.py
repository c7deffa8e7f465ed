"""What a script does with a model of which each process has a part is known, or refused."""

from __future__ import annotations

import ast

import pytest
from ddpify_codemods.facts.sharded_model import strange_uses

from tests.codemods.checks import node_of, script_of

HEAD = """\
import copy, torch
def evaluate(net):
    net.eval()
model = torch.nn.Linear(4, 3)
print(model.weight)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
"""


def uses(source: str) -> list[tuple[str, str]]:
    """The uses, behind the line that builds the optimizer, that only the whole of a model is right for, and why."""
    script = script_of(HEAD + source)
    made: set[ast.expr] = {node_of(script, "torch.nn.Linear(4, 3)")}
    trained: set[ast.AST] = {node_of(script, "torch.optim.SGD(model.parameters(), lr=0.1)")}
    return [(ast.unparse(node), why) for node, why in strange_uses(script, made, trained, script.tree.body[4])]


@pytest.mark.parametrize(
    "line",
    [
        "",
        "model.train()",
        "model(x).sum().backward()",
        "net = model",
        "evaluate(model)",
        "print(model)",
        "torch.save(model.state_dict(), 'a.pt')",
        "kept = copy.deepcopy(model.state_dict())",
        "model.load_state_dict(torch.load('a.pt'))",
        "torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)",
        "count = sum(p.numel() for p in model.parameters())",
        "def of_this_file():\n    return model",
    ],
)
def test_uses_that_are_right_on_every_rank(line: str) -> None:
    assert uses(line) == []


@pytest.mark.parametrize(
    ("line", "node", "why"),
    [
        ("norm = model.weight.norm()", "model.weight", "is read, and each process has a part"),
        ("net = model\nnorm = net.weight.norm()", "net.weight", "is read, and each process has a part"),
        ("def show(net):\n    print(net.weight)\nshow(model)", "net.weight", "is read, and each process has a part"),
        ("model.double()", "model.double", "is called, and each process has a part"),
        ("for p in model.parameters():\n    p.sum()", "model.parameters", "is read, and each process has a part"),
        ("model.load_state_dict(s, assign=True)", "model.load_state_dict", "puts whole parameters in the place"),
        ("other.watch(model)", "model", "other.watch is given a model"),
        ("evaluate(*[model])", "model", "kept where it is not followed"),
        ("nets = [model]", "model", "kept where it is not followed"),
        ("class A:\n    def get(self):\n        return model", "model", "is returned, and not followed"),
        ("state = model.state_dict()\nw = state['weight']", "state", "the model's state is looked into"),
        ("for name in model.state_dict():\n    print(name)", "model.state_dict()", "the model's state is looked into"),
    ],
)
def test_uses_that_want_the_whole(line: str, node: str, why: str) -> None:
    ((found, told),) = uses(line)
    assert found == node and why in told
