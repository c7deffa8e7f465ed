"""What the modules of torch.nn make of a batch."""

from __future__ import annotations

import ast

import pytest
from ddpify_codemods.facts.flow.library_modules import of_library_module
from ddpify_codemods.facts.flow.values import CONCATENATED, COUPLES, Items, Module, Value

from tests.codemods.facts.flow.followed import TRAINING, reasons


def made(source: str, kind: str = "rows", dimensions: int | None = None, reason: str = "") -> Value | None:
    call = ast.parse(source, mode="eval").body
    assert isinstance(call, ast.Call)
    module = Module(call, f"torch.nn.{ast.unparse(call.func)}")
    words = {word.arg or "**": word.value for word in call.keywords}
    for key, node in (dict[int | str, ast.expr](enumerate(call.args)) | words).items():
        module.told[key] = Value(constant=None if isinstance(node, ast.Name) else ast.literal_eval(node))
    return of_library_module(module, [Value(kind, dimensions=dimensions, reason=reason)])  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("source", "given", "kind"),
    [
        ("Linear(4, 3)", "rows", "rows"),
        ("Flatten()", "rows", "rows"),
        ("Flatten(0)", "rows_second", "rows_moved"),
        ("Softmax(dim=1)", "rows", "rows"),
        ("Softmax(dim=0)", "rows", "unknown"),
        ("Softmax(dim=-1)", "rows", "rows"),
        ("Softmax(dim=n)", "rows", "unknown"),
        ("Softmax(**n)", "rows", "unknown"),
        ("GLU()", "rows", "rows"),
        ("GLU(0)", "rows", "unknown"),
        ("Flatten(n)", "rows", "unknown"),
        ("TransformerEncoderLayer(8, 2, batch_first=True)", "rows", "rows"),
        ("TransformerEncoderLayer(8, 2)", "rows", "unknown"),
        ("TransformerEncoderLayer(8, 2)", "rows_second", "rows_second"),
    ],
)
def test_where_the_samples_are_afterwards(source: str, given: str, kind: str) -> None:
    found = made(source, given)
    assert found is not None and found.kind == kind


def test_recurrent_layers_take_time_first_unless_they_are_told() -> None:
    couples, divided = made("LSTM(4, 3)"), made("LSTM(4, 3, batch_first=True)")
    assert couples is not None and couples.kind == "unknown"
    assert divided is not None and divided.things


@pytest.mark.parametrize(
    "source",
    ["LSTM(4, 3, batch_first=True)", "MultiheadAttention(8, 2)", "TransformerEncoderLayer(8, 2, batch_first=True)"],
)
def test_a_matrix_is_one_sequence_to_layers_that_run_over_steps(source: str) -> None:
    found = made(source, dimensions=2)
    assert found is not None and found.kind == "unknown"


def test_other_modules_are_not_known() -> None:
    assert made("Sequential(a, b)") is None
    assert made("Linear(4, 3)", "same") is None


@pytest.mark.parametrize(
    "source",
    ["LSTM(4, 3)", "LSTM(4, 3, batch_first=True)", "MultiheadAttention(8, 2)", "TransformerEncoderLayer(8, 2)"],
)
@pytest.mark.parametrize(("reason", "dimensions"), [("", 2), (CONCATENATED, None)])
def test_some_samples_are_one_sequence_to_them_too(source: str, reason: str, dimensions: int | None) -> None:
    found = made(source, "picked", dimensions, reason)
    assert found is not None and (found.kind, found.reason) == ("unknown", COUPLES)


def test_some_samples_may_be_computed_one_by_one() -> None:
    assert made("Linear(4, 3)", "picked", 3) is None
    states = made("LSTM(4, 3, batch_first=True)", "picked", 3)
    assert states is not None
    (both,) = states.only(Items)
    assert isinstance(both, Items)
    assert both.known[0].kind == "picked"


SOME = """\
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer, self.out = nn.{layer}, nn.Linear(4, 3)
    def forward(self, x):
        return self.out({body})
model = Net()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
"""
SOME_TRAINING = TRAINING.replace(
    "F.cross_entropy(model(x), y)", 'F.cross_entropy(model(x[x[:, 0] > 0]), y[x[:, 0] > 0], reduction="sum")'
)


@pytest.mark.parametrize(
    ("layer", "body"),
    [
        ("TransformerEncoderLayer(4, 2, 8)", "self.layer(x)"),
        ("TransformerEncoderLayer(4, 2, 8, batch_first=True)", "self.layer(x.unsqueeze(0)).squeeze(0)"),
        ("MultiheadAttention(4, 2)", "self.layer(x, x, x)[0]"),
        ("LSTM(4, 4)", "self.layer(x)[0]"),
        ("Conv1d(4, 4, 3, padding=1)", "self.layer(x.t().unsqueeze(0)).squeeze(0).t()"),
    ],
)
def test_programs_whose_layers_run_over_the_samples_that_a_mask_picks_are_refused(layer: str, body: str) -> None:
    assert reasons(SOME.format(layer=layer, body=body) + SOME_TRAINING)


@pytest.mark.parametrize(
    ("layer", "body"),
    [
        ("Linear(4, 4)", "self.layer(x)"),
        ("LSTM(4, 4, batch_first=True)", "self.layer(x.unsqueeze(1))[0][:, -1]"),
        ("TransformerEncoderLayer(4, 2, 8, batch_first=True)", "self.layer(x.unsqueeze(1))[:, 0]"),
    ],
)
def test_programs_whose_layers_compute_each_of_them_alone(layer: str, body: str) -> None:
    assert reasons(SOME.format(layer=layer, body=body) + SOME_TRAINING) == []


@pytest.mark.parametrize(
    ("layer", "loss"),
    [
        ("Linear(4, 4)", "model(x[x[:, 0] > 0]).pow(2).mean()"),
        ("Linear(4, 4)", "model(x).pow(2).mean()"),
        ("LSTM(4, 4, batch_first=True)", "F.cross_entropy(model(x), y)"),
    ],
)
def test_a_mean_over_what_a_mask_has_picked_is_none_over_the_batch(layer: str, loss: str) -> None:
    picks = {"Linear(4, 4)": "self.layer(x[x[:, 0] > 0])"}.get(
        layer, "x + self.layer(x[x[:, 0] > 0].unsqueeze(1))[0][:, -1].mean(0)"
    )
    assert reasons(SOME.format(layer=layer, body=picks) + TRAINING.replace("F.cross_entropy(model(x), y)", loss))
