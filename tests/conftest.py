"""What all tests share: signals as a terminal gives them, and a heap in which collections are cheap.

Tests send Ctrl-C to processes that they start; a shell that runs the tests in the background has it ignored.
"""

import gc
import signal

import pytest

signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Tests that fork come first: converting scripts makes this process large, and every fork of it slow."""
    items.sort(key=lambda item: "runtime" not in item.path.parts)


def pytest_collection_finish() -> None:
    """Thousands of tests and all of torch stay until the end: no collection has to go through them."""
    gc.collect()
    gc.freeze()
