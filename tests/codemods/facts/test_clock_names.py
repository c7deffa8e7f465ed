"""A time becomes a name, or is measured."""

from __future__ import annotations

import pytest
from ddpify_codemods.facts.clock_names import names_something

from tests.codemods.checks import node_of, script_of

HEAD = "import os, time\nfrom datetime import datetime\n"


@pytest.mark.parametrize(
    ("lines", "clock", "names"),
    [
        ("os.makedirs(f'runs/{time.time()}')", "time.time()", True),
        ("name = time.strftime('%H%M')\nopen(name, 'w')", "time.strftime('%H%M')", True),
        ("now = datetime.now()\npath = now.strftime('%H')\nopen(path, 'w')", "datetime.now()", True),
        ("start = time.time()", "time.time()", False),
        ("print(f'{time.time()}')", "time.time()", False),
        ("text = time.ctime()\nprint(text)", "time.ctime()", False),
    ],
)
def test_a_time_that_names_something(lines: str, clock: str, names: bool) -> None:
    script = script_of(HEAD + lines)
    assert names_something(script, node_of(script, clock)) is names
