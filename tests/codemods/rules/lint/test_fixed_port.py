"""A port that stands in the script (DDP513)."""

from __future__ import annotations

import pytest
from ddpify_codemods.rules.lint.fixed_port import RULE

from .wrapped import told

PORT = 'os.environ["MASTER_PORT"] = "12355"'


def test_a_constant_port_of_a_script_that_wraps() -> None:
    assert told(RULE, PORT) == [PORT]
    assert not told(RULE, PORT, is_wrapped=False)


@pytest.mark.parametrize("line", ['os.environ["MASTER_PORT"] = str(port)', 'os.environ["MASTER_ADDR"] = "localhost"'])
def test_what_is_computed_or_no_port(line: str) -> None:
    assert not told(RULE, line)
