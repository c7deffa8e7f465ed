"""Every rank puts together what is logged; rank 0 writes it."""

from __future__ import annotations

import io
import logging
import logging.config
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import loguru
import pytest
import torch
import torch.distributed as dist
from ddpify_runtime import get_rank, rank_zero_only
from ddpify_runtime.agreement.log_settings import elsewhere

from tests.runtime.processes import run

INI = """\
[loggers]
keys=root
[handlers]
keys=file
[formatters]
keys=short
[logger_root]
level=INFO
handlers=file
[handler_file]
class=FileHandler
level=INFO
args=({path!r}, 'w')
formatter=short
[formatter_short]
format=%(levelname)s %(message)s
"""


class OfAllRanks:
    """Something that the ranks put together when it is written, as a loss is."""

    def __str__(self) -> str:
        ranks = torch.ones(1)
        dist.all_reduce(ranks)
        return f"of {int(ranks)} ranks"

    __format__ = object.__format__


def from_dict(path: Path) -> Callable[..., Any]:
    handler = {"class": "logging.FileHandler", "filename": str(path), "mode": "w"}
    handlers = {"file": {**handler, "formatter": "short", "level": "INFO"}, "none": {"class": "logging.NullHandler"}}
    short = {"format": "%(levelname)s %(message)s"}
    root = {"level": "DEBUG", "handlers": ["file"]}
    quiet = {"quiet": {"level": "DEBUG", "handlers": ["none"], "propagate": False}}
    config = {"version": 1, "formatters": {"short": short}, "handlers": handlers, "root": root, "loggers": quiet}
    rank_zero_only(logging.config.dictConfig)(config)
    logging.getLogger("quiet").info("%s", OfAllRanks())
    return lambda name, *given: getattr(logging, name)("%s %s", *given)


def from_file(path: Path) -> Callable[..., Any]:
    settings = path.with_suffix(".ini")
    rank_zero_only(settings.write_text)(INI.format(path=str(path)))
    rank_zero_only(logging.config.fileConfig)(settings, disable_existing_loggers=False)
    return lambda name, *given: getattr(logging, name)("%s %s", *given)


def from_open_file(path: Path) -> Callable[..., Any]:
    settings = io.StringIO(INI.format(path=str(path)))
    rank_zero_only(logging.config.fileConfig)(settings, None, False)
    return lambda name, *given: getattr(logging, name)("%s %s", *given)


def by_loguru(path: Path) -> Callable[..., Any]:
    loguru.logger.remove()
    number = rank_zero_only(loguru.logger.add)(sys.stdout)
    rank_zero_only(loguru.logger.add)(
        sink=path, level="INFO", format="{level} {message}", filter=lambda record: True, rotation="1 MB", enqueue=True
    )
    loguru.logger.remove(number)
    return lambda name, *given: getattr(loguru.logger, name)("{} {}", *given)


WAYS = {each.__name__: each for each in (from_dict, from_file, from_open_file, by_loguru)}


def logged(way: str, path: Path) -> int:
    log = WAYS[way](path)
    for number in range(3):
        log("info", number, OfAllRanks())
        log("debug", number, OfAllRanks())
    log("warning", "the end", OfAllRanks())
    loguru.logger.complete()
    return get_rank()


@pytest.mark.parametrize("way", WAYS)
def test_every_rank_puts_messages_together_and_rank_zero_writes(way: str, tmp_path: Path) -> None:
    path = tmp_path / "run.log"
    assert run(2, logged, way, path) == [0, 1]
    expected = [f"INFO {number} of 2 ranks" for number in range(3)]
    assert path.read_text().splitlines() == [*expected, "WARNING the end of 2 ranks"]


def test_other_functions_are_for_rank_zero_alone() -> None:
    assert elsewhere(set().add) is None and elsewhere(print) is None and elsewhere(loguru.logger.info) is None
