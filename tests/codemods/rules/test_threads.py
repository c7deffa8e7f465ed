"""DDP309: training in threads and processes."""

from __future__ import annotations

import pytest
from ddpify_codemods.rules.refuse.threads import RULE

from ..checks import assert_refused, assert_silent, findings_of

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


LOADERS = """\
import queue, threading
def load(part): batches.put(part)
class Loader(threading.Thread):
    def run(self): self.fill()
    def fill(self): self.queue.put(1)
batches = queue.Queue()
"""


@pytest.mark.parametrize(
    "source",
    [
        "loaders = [Loader(batches, part) for part in range(4)]",
        "for part in range(n):\n    loaders.append(Loader(batches, part))",
        "for part in parts: threading.Thread(target=load, args=(part,)).start()",
    ],
)
def test_several_threads_that_fill_one_queue(source: str) -> None:
    [finding] = findings_of(RULE, LOADERS + source)
    assert (finding.severity, finding.message.split(":")[0]) == ("warning", "several threads put into a queue")


@pytest.mark.parametrize(
    "source",
    [
        "Loader(batches, parts).start()",
        "W = 1\nloaders = [Loader(batches, part) for part in range(W)]",
        "loaders = [Loader(queue.Queue(), part) for part in range(4)]",
        "for epoch in range(9):\n    loader = Loader(batches, parts)\n    for batch in batches: train(batch)",
        "for epoch in range(9):\n    threading.Thread(target=load).start()\n    train(batches.get())",
        "for part in parts: threading.Thread(target=print, args=(part,)).start()",
    ],
)
def test_one_thread_that_fills_a_queue(source: str) -> None:
    assert_silent(RULE, LOADERS + source)
