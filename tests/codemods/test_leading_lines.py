"""The comments and blank lines above a statement."""

from __future__ import annotations

from collections.abc import Sequence

import libcst as cst
from ddpify_codemods.leading_lines import (
    Statement,
    after_block,
    below_first,
    below_functions,
    lines_above,
    with_lines_above,
    without_first_blanks,
    without_last_blanks,
)

BLANK = cst.EmptyLine(indent=False)
COMMENT = cst.EmptyLine(comment=cst.Comment("# why"))


def statement(code: str, lines: Sequence[cst.EmptyLine] = ()) -> Statement:
    made = cst.parse_statement(code)
    assert isinstance(made, (cst.SimpleStatementLine, cst.BaseCompoundStatement))
    return made.with_changes(leading_lines=lines)


def test_lines_come_above_those_of_the_statement() -> None:
    changed = with_lines_above(statement("x = 1", [COMMENT]), [BLANK])
    assert [line.comment is None for line in lines_above(changed)] == [True, False]


def test_blank_lines_do_not_pile_up() -> None:
    assert len(lines_above(with_lines_above(statement("x = 1", [BLANK]), [COMMENT, BLANK, BLANK]))) == 2
    assert without_last_blanks([COMMENT, BLANK], [COMMENT]) == [COMMENT, BLANK]
    assert without_first_blanks([BLANK, BLANK, COMMENT, BLANK]) == [COMMENT, BLANK]


def test_what_is_inserted_behind_a_block_has_the_blanks_and_the_statement_its_comment() -> None:
    lines = [BLANK, COMMENT]
    inserted, own = after_block([statement("new()"), statement("old()", lines)], lines)
    assert (lines_above(inserted), lines_above(own)) == ([BLANK], [COMMENT])


def test_a_file_that_began_with_a_class_has_blank_lines_above_it() -> None:
    module = cst.parse_module("import torch\nclass A:\n    pass\nclass B:\n    pass\n")
    body = below_first(module.body[1:], list(module.body))
    assert module.with_changes(body=body).code == "import torch\n\n\nclass A:\n    pass\nclass B:\n    pass\n"
    assert below_first(module.body[:1], list(module.body)) == list(module.body)


def test_what_follows_a_new_function_has_blank_lines_above_it() -> None:
    old = cst.parse_module("import a\ndef f(): pass\na.start()\n")
    new = statement("def g(): pass")
    body = below_functions(old.body, [old.body[0], new, *old.body[1:]])
    assert [len(lines_above(each)) for each in body] == [0, 0, 2, 0]
    commented = below_functions([], [new, statement("a.start()", [COMMENT]), new, statement("b()", [BLANK])])
    assert [len(lines_above(each)) for each in commented] == [0, 3, 0, 1]
