"""What a program does with the parameters of its model once they are DTensors."""

from __future__ import annotations

import ast

from ddpify_codemods.facts.fully_sharded import blocks, sharded
from ddpify_codemods.styles import in_program

from tests.codemods.checks import script_of
from tests.codemods.facts.flow.followed import HEAD, TRAINING


def uses(source: str) -> list[tuple[str, str]]:
    (script,) = in_program([script_of(HEAD + TRAINING + source)], fully_sharded=True)
    assert script.program is not None
    return [(ast.unparse(each.node), each.kind) for each in sharded(script, script.program)]


def test_states_are_written_otherwise() -> None:
    assert ("model.state_dict()", "state_dict") in uses("torch.save(model.state_dict(), 'model.pt')")


def test_a_weight_that_is_read_is_a_part() -> None:
    ((node, kind), *_) = uses("print(model.weight.mean())")
    assert node.startswith("model.weight") and kind != "state_dict"


def test_a_model_that_is_only_trained_has_nothing_to_change() -> None:
    assert uses("") == []


def test_lists_of_layers_are_divided_by_themselves() -> None:
    layered = HEAD.replace(
        "model = nn.Linear(4, 3)",
        """\
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList([nn.Linear(4, 4) for _ in range(3)])
        self.head = nn.Linear(4, 3)
    def forward(self, x):
        for layer in self.layers:
            x = layer(x)
        return self.head(x)
model = Net()""",
    )
    (script,) = in_program([script_of(layered + TRAINING)], fully_sharded=True)
    assert script.program is not None
    assert blocks(script.program, script) == ["layers"]
