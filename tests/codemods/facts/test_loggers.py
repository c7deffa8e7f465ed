"""Which objects of a script record a run: a SummaryWriter, a visdom connection, a run of wandb."""

from __future__ import annotations

import ast

import pytest
from ddpify_codemods.facts.loggers import loggers, only_records, tells

from tests.codemods.checks import script_of

IMPORTS = "import optuna\nimport visdom\nimport wandb\nfrom torch.utils.tensorboard import SummaryWriter\n"


@pytest.mark.parametrize(
    ("source", "names"),
    [
        ("w = SummaryWriter()", ["w"]),
        ("class A:\n    def f(self):\n        self.v = visdom.Visdom()", ["self.v"]),
        ("run = wandb.init()", ["run"]),
        ("w = SummaryWriter() if log else None", ["w"]),
        ("w = SummaryWriter() if log else SummaryWriter('a')", []),
        ("a = b = SummaryWriter()", []),
        ("use(SummaryWriter())", []),
        ("w = Other()", []),
    ],
)
def test_loggers_have_a_name(source: str, names: list[str]) -> None:
    assert [*loggers(script_of(IMPORTS + source))] == names


@pytest.mark.parametrize(
    ("made", "asked", "answers", "records"),
    [
        ("visdom.Visdom()", "line", True, True),
        ("SummaryWriter()", "log_dir", True, True),
        ("SummaryWriter()", "file_writer", False, True),
        ("wandb.init()", "name", True, True),
        ("optuna.create_study()", "best_value", False, False),
    ],
)
def test_what_loggers_answer(made: str, asked: str, answers: bool, records: bool) -> None:
    script = script_of(f"{IMPORTS}x = {made}")
    call = next(script.find(ast.Call))
    assert tells(script, call, asked) == answers
    assert only_records(script, call) == records
