"""Layers that a forward calls by conditions on arguments that no call gives, so that their defaults decide."""

from __future__ import annotations

import pytest

from tests.codemods.plain.test_followed import HEAD, LOOP, plain, refusals

NET = """\
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.last = nn.Linear(4, 4), nn.Linear(4, 3)

    def forward(self, x, lin=0, lout=5):
        {body}


model = Net()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
"""
BODY = "if lin < 1 and lout > -1:\n    x = self.first(x)\nif lout > 4:\n    x = self.last(x)\nreturn x"


def looks_for_unused(body: str = BODY, call: str = "model(x)", after: str = "") -> bool:
    """Whether the wrapper of a network looks for unused parameters."""
    code = HEAD.partition("model = ")[0] + NET.format(body=body.replace("\n", "\n        "))
    result = plain(code + LOOP.format(loss=f"F.cross_entropy({call}, y)", step="optimizer.step()") + after)
    assert not refusals(result)
    return "find_unused_parameters=True" in result.code


@pytest.mark.parametrize("body", [BODY, BODY.replace("lin < 1 and", "lin == 0 or")])
def test_conditions_that_hold_by_default(body: str) -> None:
    assert not looks_for_unused(body)


@pytest.mark.parametrize(
    ("body", "call"),
    [
        (BODY, "model(x, 0)"),
        (BODY, "model(x, lin=epoch)"),
        (BODY, "model(*(x, 2))"),
        (BODY, "model(x, **{'lin': epoch})"),
        (BODY.replace("lin < 1 and", "lin < x.size(1) and"), "model(x)"),
        ("lin = lin + int(torch.rand(1) < 0.5)\n" + BODY, "model(x)"),
    ],
)
def test_arguments_that_decide_otherwise_are_not_taken_for_their_defaults(body: str, call: str) -> None:
    assert looks_for_unused(body, call)


def test_a_layer_that_a_default_leaves_out_is_looked_for_where_another_call_takes_it() -> None:
    body = "x = self.last(x)\nif lin > 0:\n    x = x + self.last(self.first(x))\nreturn x"
    with_all = "with torch.no_grad():\n    print(model(torch.rand(2, 4), 1).sum().item())\n"
    assert looks_for_unused(body, after=with_all)
    ends = "if lin < 1:\n    return self.last(x)\nreturn self.last(self.first(x))"
    assert looks_for_unused(ends, after=with_all)
