"""Subscripts: which part of a rank's samples is taken."""

from __future__ import annotations

import ast

import pytest

from tests.codemods.facts.flow.followed import TRAINING, followed, of_evaluation, reasons, undivided


@pytest.mark.parametrize(
    ("taken", "fine"),
    [("[:, 0]", True), ("[..., :1]", True), ("[:, None]", True), ("[0]", False), ("[:2]", False), ("[::2]", False)],
)
def test_a_loss_over_a_part_of_each_sample_is_divided(taken: str, fine: bool) -> None:
    loss = f"(model(x){taken} ** 2).mean()"
    assert (undivided(TRAINING.replace("F.cross_entropy(model(x), y)", loss)) == []) is fine


@pytest.mark.parametrize(("taken", "fine"), [("[y > 0, :]", True), ("[y > 0]", True), ("[:2, :]", False)])
def test_a_mask_takes_the_same_of_all_dimensions_behind_it(taken: str, fine: bool) -> None:
    loss = f"F.cross_entropy(model(x){taken}, y{taken.removesuffix(', :]').removesuffix(']')}])"
    problems = reasons(TRAINING.replace("F.cross_entropy(model(x), y)", loss))
    assert (problems == []) is fine


def test_the_second_of_what_max_gives_are_indices_of_each_sample() -> None:
    found = of_evaluation("total += (model(x).max(1)[1] == y).float().sum().item()")
    assert found.problems == () and "sharded" in found.status.values()


@pytest.mark.parametrize("part", ["[:len(x)]", "[:len(x), :]", "[: x.size(0), ..., :2]", "[-x.shape[0] :, :]"])
def test_as_many_rows_of_a_table_as_a_rank_has_samples_are_refused(part: str) -> None:
    """The first samples of each rank would meet the same rows."""
    source = f"table = torch.rand(8, 3)\n{TRAINING}"
    loss = "(F.softmax(model(x), 1) * table{}).mean()"
    assert undivided(source.replace("F.cross_entropy(model(x), y)", loss.format(part)))
    assert not undivided(source.replace("F.cross_entropy(model(x), y)", loss.format("[:1, :]")))


STEPS_FIRST = "(model(x).view(-1, 1, 3).transpose(0, 1).expand(4, -1, -1){} ** 2).mean()"


@pytest.mark.parametrize(
    ("taken", "fine"),
    [
        *(("[1:]", True), ("[:-1, :]", True), ("[1:, :, :2]", True), ("[-1, :]", True), ("[:, :, 0]", True)),
        *(("[:, :4]", False), ("[:-1, 1:]", False), ("[:, 0]", False), ("[:, -1, :2]", False), ("[-1, :4]", False)),
        *(("[:-1, :][0]", True), ("[:-1, :][:, 0]", False), (".transpose(1, 2)[..., :2]", False)),
        *(
            (".transpose(1, 2)[:2]", True),
            (".reshape(4, -1)[:, :5]", False),
            ("[..., 0, :]", False),
            ("[..., :2]", True),
        ),
        *(("[:, [0, 1]]", False), ("[None][:, :, :2]", False), (".transpose(1, 2)[:, :, :2]", False)),
        *(("[:, (x > 0.5)[:, 0]]", False), ("[(x[:, 0] > 0.5).expand(4, -1)]", False), ("[:, y]", False)),
    ],
)
def test_samples_that_lie_along_the_second_dimension(taken: str, fine: bool) -> None:
    """As many are taken of each rank as of another only by slices of other dimensions."""
    assert (undivided(TRAINING.replace("F.cross_entropy(model(x), y)", STEPS_FIRST.format(taken))) == []) is fine


@pytest.mark.parametrize(
    ("taken", "fine"),
    [
        *(("[-1, :, :].softmax(1)", True), ("[0, :].softmax(1)", True), ("[0, :, :].view(len(x), -1)", True)),
        *(("[0, :, 1:].softmax(1)", True), ("[0, :, 2]", True), ("[-1, :, :].softmax(0)", False)),
        *(("[-1, :, 2].softmax(0)", False), ("[0, :4, :].softmax(1)", False), ("[True, :].softmax(1)", False)),
        *(("[0, None, :].softmax(1)", False), ("[[0], :, :].softmax(1)", False), ("[0, :, [1]].softmax(1)", False)),
        *(("[0, :, None].softmax(1)", False), ("[0, y].softmax(1)", False), ("[:1, :, :].softmax(1)", False)),
        *(("[k, :].softmax(1)", True), ("[y[0], :].softmax(1)", False), ("[0, :, :].cumsum(0)", False)),
        *(("[:, 0, :].softmax(1)", False), ("[1:, :, 0].softmax(1)", False), ("[..., 0, :].softmax(1)", False)),
    ],
)
def test_one_of_the_steps_that_lie_before_the_samples(taken: str, fine: bool) -> None:
    """`outputs[-1, :, :]` is `outputs[-1]`: its samples lie along the first dimension."""
    source = TRAINING.replace("F.cross_entropy(model(x), y)", STEPS_FIRST.format(taken))
    assert (undivided("k = 2\n" + source) == []) is fine


TURNED = {"": 1, ".transpose(1, 2)": 2, ".flatten(0, 1)": 0}


@pytest.mark.parametrize("turned", TURNED)
@pytest.mark.parametrize(
    "operation",
    ["softmax({})", "std({})", "cumsum({})", "narrow({}, 0, 3)", "split(3, {})[0]", "mean({}) ** 2", "amax({})"],
)
def test_operations_over_samples_that_may_lie_anywhere(turned: str, operation: str) -> None:
    made = STEPS_FIRST.format(f"{turned}.{operation.format(TURNED[turned])}")
    assert undivided(TRAINING.replace("F.cross_entropy(model(x), y)", made))


STEPS = """\
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.cell = nn.GRUCell(4, 8)
        self.out = nn.Linear(8, 3)
    def forward(self, x):
        x = x.unsqueeze(1).repeat(1, 5, 1).transpose(0, 1)
        outputs, h = torch.zeros(5, x.size(1), 3), torch.zeros(x.size(1), 8)
        for step in range(1, 5):
            h = self.cell({taken}, h)
            outputs[{at}] = self.out(h)
        return {given}
model = Net()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
"""


@pytest.mark.parametrize(
    ("taken", "at", "given", "right"),
    [
        ("x[step]", "step", "outputs[-1]", True),
        ("x[step - 1]", "step", "outputs.mean(0)", True),
        ("x[step]", "step", "outputs[1:].transpose(0, 1).flatten(1)", True),
        ("x[step]", "step", "outputs[:, -1]", False),
        ("x[step]", "step", "outputs[:, :5]", False),
        ("x[:, step]", "step", "outputs[-1]", False),
    ],
)
def test_steps_are_taken_and_put_one_by_one(taken: str, at: str, given: str, right: bool) -> None:
    source = STEPS.format(taken=taken, at=at, given=given) + TRAINING
    assert (undivided(source) == []) is right


TABLE = TRAINING.replace("train_loader:\n", "train_loader:\n        taken = table[{}]\n")
TABLE = f"table, matrix = torch.rand(4, 4), torch.rand(4, 4, 4)\n{TABLE}        print(taken.mean().item())\n"


@pytest.mark.parametrize(
    "index", ["y,", "y, 0", "0, y", "y, :2", ":, y", "..., y", "y, y", "y, model(x).argmax(1)", "epoch, y", "None, y"]
)
def test_what_samples_take_of_a_table_by_several_indices_is_theirs(index: str) -> None:
    found = followed(TABLE.format(index)).found
    assert [ast.unparse(each) for each in found.reductions] == ["taken.mean().item()"]


@pytest.mark.parametrize("index", ["y[:, None], y", "y[:, None], y[None]", "y, y.view(-1, 1)", "y.sum(), 0"])
def test_samples_that_meet_in_a_table_or_take_their_sum_are_no_samples(index: str) -> None:
    found = followed(TABLE.format(index)).found
    assert "taken.mean().item()" not in map(ast.unparse, found.reductions)
    assert undivided(TABLE.format(index)) or found.read_same


def test_a_table_that_samples_take_parts_of_in_a_loss() -> None:
    loss = "(F.cross_entropy(model(x), y, reduction='none') * table[y, 0]).mean()"
    assert undivided(f"table = torch.rand(3, 2)\n{TRAINING.replace('F.cross_entropy(model(x), y)', loss)}") == []
    loss = loss.replace("table[y, 0]", "table[:, y].softmax(1)[0]")
    assert undivided(f"table = torch.rand(3, 3)\n{TRAINING.replace('F.cross_entropy(model(x), y)', loss)}")
