"""A teacher in eval() beside a student: what is true of the teacher's layers alone is neither said nor provided for."""

from __future__ import annotations

import pytest

from tests.codemods.plain.test_followed import plain, refusals, training

MODEL = "model = nn.Linear(4, 3)\n"
TEACHER = """\
class Teacher(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm = nn.BatchNorm1d(4)
        self.drop = nn.Dropout()
        self.head = nn.Linear(4, 3)

    def forward(self, x):
        return self.head(self.drop(self.norm(x)))


class Student(nn.Module):
    def __init__(self, first):
        super().__init__()
        self.first = first
        self.head = nn.Linear(4, 3)

    def forward(self, x):
        return self.head(self.first(x))


teacher = Teacher()
teacher.eval()
model = Student(nn.Linear(4, 4))
"""
LOSS = "F.cross_entropy(model(x), y) + F.mse_loss(model(x), teacher(x).detach())"
EVALUATES = "model.eval()\nprint(model(torch.ones(2, 4)).sum().item())\n"


def said(*changes: tuple[str, str], source: str = TEACHER, loss: str = LOSS) -> set[str]:
    """What is said and done for a program whose teacher has BatchNorm and dropout."""
    for before, after in changes:
        assert before in source
        source = source.replace(before, after)
    result = plain(training(loss).replace(MODEL, source, 1) + EVALUATES)
    assert not refusals(result)
    messages = " ".join(each.message for each in result.findings)
    words = {"BatchNorm": "BatchNorm takes", "dropout": "dropout draws"}
    done = {"noise": "noise of its own", "buffers": "model.buffers()"}
    found = {name for name, word in words.items() if word in messages}
    return found | {name for name, word in done.items() if word in result.code}


def test_a_teacher_in_evaluation_counts_for_nothing() -> None:
    assert said() == set()
    in_turn = "teacher = nn.Sequential(nn.BatchNorm1d(4), nn.Dropout(), nn.Linear(4, 3))"
    without_class = "class Student" + TEACHER.partition("class Student")[2]
    assert said(("teacher = Teacher()", in_turn), source=without_class) == set()


@pytest.mark.parametrize(
    "changes",
    [
        [("teacher.eval()", "teacher.train()")],
        [("teacher.eval()\n", "")],
        [("teacher.eval()", "teacher.eval()\nteacher.train(random.random() < 2)")],
        [("self.first = first", "self.first = getattr(nn, 'Linear')(4, 4)")],
        [("class Student(nn.Module)", "class Student(Teacher)")],
        [("model = Student", "import networks\nmodel = nn.Sequential(networks.first()) if 0 else Student")],
    ],
)
def test_a_teacher_that_may_be_trained_or_not_be_in_evaluation(changes: list[tuple[str, str]]) -> None:
    assert {"BatchNorm", "dropout", "noise"} <= said(*changes)


def test_what_the_student_has_itself_is_said() -> None:
    assert said(("nn.Linear(4, 4))", "nn.Dropout())")) == {"dropout", "noise"}
    assert said(("nn.Linear(4, 4))", "nn.BatchNorm1d(4))")) == {"BatchNorm", "buffers"}
    assert said(("nn.Linear(4, 4))", "teacher.norm)")) == {"BatchNorm", "buffers"}
    assert said(("nn.Linear(4, 4))", "Teacher().norm)")) >= {"BatchNorm", "dropout", "buffers"}


def test_a_teacher_that_drops_numbers_in_evaluation_too() -> None:
    always = ("self.drop(self.norm(x))", "F.dropout(self.norm(x), 0.5)")
    assert {"dropout", "noise"} <= said(always)
    assert said(("self.drop(self.norm(x))", "F.dropout(self.norm(x), 0.5, self.training)")) == set()
