"""Loggers that live on rank 0, and what the others have in their place (DDP612)."""

from __future__ import annotations

from pathlib import Path

import pytest
from ddpify_codemods import convert

from tests.codemods.plain.test_followed import plain, refusals, training
from tests.codemods.plain.test_loggers import logged

STAND_IN = "logger = {made} if dist.get_rank() == 0 else NoLogger()"


@pytest.mark.parametrize(
    "use",
    [
        "logger.add_scalar('norm', model.weight.norm(), 1)\n",
        "if logger:\n    logger.close()\n",
        "if logger is not None:\n    logger.close()\n",
        "def log(writer):\n    writer.add_scalar('a', 1)\nlog(logger)\n",
        "class Log:\n    def __init__(self, writer):\n        self.writer = writer\n"
        "    def add(self, x):\n        self.writer.add_scalar('x', x)\nLog(logger).add(3)\n",
    ],
)
def test_the_others_have_a_stand_in(use: str) -> None:
    result = plain(logged(use))
    assert not refusals(result)
    assert STAND_IN.format(made="SummaryWriter()") in result.code and "class NoLogger:" in result.code
    assert use in result.code


def test_a_logger_that_may_not_be_wanted() -> None:
    result = plain(logged("if logger is not None:\n    logger.close()\n", "SummaryWriter() if len('a') else None"))
    assert "logger = (SummaryWriter() if dist.get_rank() == 0 else NoLogger()) if len('a') else None" in result.code
    result = plain(logged("if logger is not None:\n    logger.close()\n", "len('a') and SummaryWriter()"))
    assert "logger = len('a') and (SummaryWriter() if dist.get_rank() == 0 else NoLogger())" in result.code
    assert not refusals(result)


@pytest.mark.parametrize(
    ("made", "use"),
    [
        ("SummaryWriter()", "print(logger.file_writer)\n"),
        ("SummaryWriter()", "writers = torch.jit.script(logger)\n"),
        ("SummaryWriter()", "print(hasattr(logger, 'add_mesh'))\n"),
        ("SummaryWriter()", "x = logger.add_scalar('a', 1)\nprint(x)\n"),
        ("SummaryWriter()", "with logger as other:\n    other.add_scalar('a', 1)\n"),
        ("Visdom()", "def never():\n    return logger.check_connection()\n"),
        ("SummaryWriter()", "def log():\n    return 1\nlogger.add_scalar('a', log)\n"),
    ],
)
def test_what_a_stand_in_cannot_do_is_refused(made: str, use: str) -> None:
    assert refusals(plain(logged(use, made)))


def test_a_search_has_no_stand_in() -> None:
    head = "import optuna\n"
    script = head + training(after="study = optuna.create_study()\nprint(study.best_value)\n")
    assert refusals(plain(script))


def test_a_logger_of_a_class_is_used_by_others() -> None:
    logs = "from torch.utils.tensorboard import SummaryWriter\nclass Log:\n    def __init__(self):\n"
    logs += "        self.writer = SummaryWriter()\n    def close(self):\n        self.writer.close()\n"
    train = training(after="log = Log()\nlog.writer.add_scalar('a', 1)\nlog.close()\n")
    files = {Path("train.py"): "from logs import Log\n" + train, Path("logs.py"): logs}
    results = convert(files, "cpu", style="plain")
    assert "self.writer = SummaryWriter() if dist.get_rank() == 0 else NoLogger()" in results[Path("logs.py")].code
