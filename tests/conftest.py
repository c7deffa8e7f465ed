"""What all tests share: signals as a terminal gives them, and a heap in which collections are cheap.

Syntax trees are kept for later conversions: millions of objects and no garbage, through which each collection would go.

Tests send Ctrl-C to processes that they start; a shell that runs the tests in the background has it ignored.
"""

import gc
import itertools
import signal

import pytest

from tests.e2e import fixtures

FIXTURES = frozenset(fixtures.names())
OFTEN = 500  # tests after which the whole heap is looked through; what is left then has come to stay

signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Tests that fork come first: converting scripts makes this process large, and every fork of it slow.

    With `--dist loadgroup` one worker converts all that is converted of a fixture: what it knows of it is kept.
    """
    items.sort(key=lambda item: "runtime" not in item.path.parts)
    for item in items:
        fixture = getattr(item, "callspec", None) and item.callspec.params.get("name")  # type: ignore[attr-defined]
        if "codemods" in item.path.parts and fixture in FIXTURES:
            item.add_marker(pytest.mark.xdist_group(fixture))


_ended = itertools.count(1)


def pytest_collection_finish() -> None:
    """Thousands of tests and all of torch stay until the end: no collection has to go through them."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(*gc.get_threshold()[:2], 1_000_000)


def pytest_runtest_logfinish() -> None:
    if next(_ended) % OFTEN == 0:
        gc.collect()
        gc.freeze()
