"""Names of members of enumerations, by which a program goes one way."""

from __future__ import annotations

import pytest

from tests.codemods.plain.test_followed import CE, plain, training

KINDS = """\
import enum


class Kind(enum.Enum):
    {members}


"""


@pytest.mark.parametrize(
    ("members", "known"),
    [
        ("FIRST = 1\n    SECOND = 2", True),
        ("FIRST = (1,)\n    SECOND = 'two'", True),
        ("SECOND = 1\n    FIRST = 1", False),  # its name is SECOND
        ("FIRST = 1\n    SECOND = True", False),
        ("FIRST = enum.auto()", False),
        ("FIRST = 1\n    @property\n    def name(self):\n        return 'other'", False),
    ],
)
def test_the_name_of_a_member_decides(members: str, known: bool) -> None:
    source = KINDS.format(members=members) + training()
    loss = f"loss = {CE}"
    asked = "loss = torch.std(model(x)) if Kind.FIRST.name != 'FIRST' else " + CE
    result = plain(source.replace(loss, asked))
    assert ("differentiable" not in result.code) is known
