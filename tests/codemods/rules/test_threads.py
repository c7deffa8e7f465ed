"""DDP309: training in threads and processes."""

from __future__ import annotations

import pytest
from ddpify_codemods.rules.refuse.threads import RULE

from ..checks import assert_refused, assert_silent

HEAD = """\
import threading, multiprocessing
from concurrent.futures import ThreadPoolExecutor
def read(x): return open(x)
def step(): loss.backward()
def train(): step()
"""


@pytest.mark.parametrize(
    "source",
    [
        "train()",
        "threading.Thread(target=read).start()",
        "multiprocessing.Pool(4).map(read, files)",
        "model.apply(train)",
        "list(map(train, xs))",
    ],
)
def test_training_in_the_main_thread(source: str) -> None:
    assert_silent(RULE, HEAD + source)


@pytest.mark.parametrize(
    "source",
    [
        "threading.Thread(target=train).start()",
        "multiprocessing.Process(target=step)",
        "multiprocessing.Pool(4).map(train, seeds)",
        "ThreadPoolExecutor().submit(train, 1)",
    ],
)
def test_training_elsewhere(source: str) -> None:
    assert_refused(RULE, HEAD + source, line=6)
