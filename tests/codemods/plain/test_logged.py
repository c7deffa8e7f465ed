"""Which loggers rank 0 alone has, how they are used, and what they are asked for."""

from __future__ import annotations

import ast

import pytest
from ddpify_codemods.rules.plain.logged import answers, guarded, is_kept_for, is_logged, method_of, uses_of
from ddpify_codemods.styles import in_program

from tests.codemods.checks import node_of, script_of, sources_of
from tests.codemods.plain.test_followed import plain, refusals, training

HEAD = """\
import wandb
from torch.utils.tensorboard import SummaryWriter
from visdom import Visdom
writer = SummaryWriter()
"""


@pytest.mark.parametrize(
    ("use", "is_guarded"),
    [
        ("writer.add_scalar('a', 1)", True),
        ("writer.add_scalar('a', len(x))", True),
        ("writer.add_scalar('a', model(x))", False),
        ("x = writer.add_scalar('a', 1)", False),
        ("print(writer)", False),
        ("writer.file_writer.flush()", True),
    ],
)
def test_rank_0_alone_has_what_only_logs(use: str, is_guarded: bool) -> None:
    (script,) = in_program([script_of(f"{HEAD}{use}\n")])
    assert guarded(script) == ({"writer"} if is_guarded else set())


@pytest.mark.parametrize(
    ("line", "expected"),
    [("writer.close()", True), ("print(1)", False), ("torch.save(x, 'a')", True), ("x = 1", False)],
)
def test_which_statements_log_or_write(line: str, expected: bool) -> None:
    (script,) = in_program([script_of(f"import torch\n{HEAD}{line}\n")])
    assert is_logged(script, script.tree.body[-1]) is expected


def test_what_a_logger_is_asked_for() -> None:
    (script,) = in_program([script_of(HEAD + "print(writer.log_dir)\nprint(writer.file_writer)\n")])
    assert sources_of(answers(script)) == ["writer.log_dir"]


def test_where_a_name_is_read() -> None:
    script = script_of("self.w = 1\nself.w.close()\nprint(w, self.w)\n")
    assert sorted(node.lineno for node in uses_of(script, "self.w")) == [2, 3]


@pytest.mark.parametrize(
    ("source", "kept", "called"),
    [
        ("run.log(1)", False, "run.log(1)"),
        ("run.config.update(1)", True, "run.config.update(1)"),
        ("run.config.update(1)", False, None),
        ("print(run.name)", True, None),
    ],
)
def test_the_method_that_is_called(source: str, kept: bool, called: str | None) -> None:
    script = script_of(source)
    call = method_of(script, node_of(script, "run"), kept)
    assert (call and ast.unparse(call)) == called


@pytest.mark.parametrize(
    ("source", "expected"),
    [("run.config.update(1)", True), ("x = run.config.get(1)", False), ("x = run.config", False)],
)
def test_what_a_logger_keeps_is_read_for_a_method(source: str, expected: bool) -> None:
    script = script_of(source)
    assert is_kept_for(script, node_of(script, "run.config")) is expected


LOGS = """\
writer.add_scalar("loss", loss.item(), i)
writer.add_images("first", x[:3], i)
{between}
writer.add_images("second", x[:3] + x[3:], i)
"""


@pytest.mark.parametrize(
    ("between", "gathers"),
    [
        ("writer.add_scalar('i', i)", 1),
        ("torch.save(i, 'i.pt')", 1),
        ("x += 1", 2),
        ("x = x + 1", 2),
        ("i += 1", 2),
        ("if i:\n    x.zero_()", 2),
        ("x.zero_()", 2),
    ],
)
def test_statements_that_log_one_behind_the_other_share_what_is_brought_together(between: str, gathers: int) -> None:
    step = LOGS.format(between=between).rstrip().replace("\n", "\n        ")
    source = training(step=f"i = 1\n        {step}").replace("for epoch", f"{HEAD.splitlines()[3]}\nfor epoch", 1)
    result = plain("from torch.utils.tensorboard import SummaryWriter\n" + source)
    assert not refusals(result)
    assert result.code.count("= whole_batch(x)") == gathers
    shown = result.code.partition('"second", ')[2].partition(", i)")[0]
    name = "whole_x" if gathers == 1 else "whole_x_"
    assert shown == f"{name}[:3] + {name}[3:]"
