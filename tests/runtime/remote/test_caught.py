"""What the script may catch, by the lines of its source."""

from __future__ import annotations

import json
import sys
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress

import pytest
from ddpify_runtime.remote.caught import may_be_caught


def here() -> bool:
    return may_be_caught(sys._getframe(1))


def tried() -> bool:
    try:
        return here()
    except ValueError:
        return here()


def handled() -> bool:
    try:
        raise ValueError
    except ValueError:
        return here()


def suppressed() -> bool:
    with suppress(OSError):
        return here()
    return False


def calls_what_it_tries() -> bool:
    def called() -> bool:
        return here()

    try:
        return called()
    except ValueError:
        return False


def raises_again() -> bool:
    try:
        return here()
    except ValueError as error:
        json.dumps(str(error))
        raise


def tries_again() -> bool:
    for tries in range(3):
        try:
            return here()
        except ValueError:
            if tries < 2:
                continue
            raise
    return False


def in_a_thread() -> bool:
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(tried).result()


def ends_orderly() -> bool:
    try:
        return here()
    except (KeyboardInterrupt, SystemExit):
        raise
    finally:
        json.dumps([])


def library_tries() -> bool:
    seen = []
    json.loads("{}", object_hook=lambda _: seen.append(here()))  # `raw_decode` tries
    return seen[0]


@pytest.mark.parametrize("function", [tried, suppressed, tries_again])
def test_what_is_tried_may_be_caught(function: object) -> None:
    assert function()  # type: ignore[operator]


@pytest.mark.parametrize(
    "function", [here, handled, ends_orderly, library_tries, calls_what_it_tries, raises_again, in_a_thread]
)
def test_what_ends_the_run_or_is_tried_elsewhere_may_not(function: object) -> None:
    assert not function()  # type: ignore[operator]
