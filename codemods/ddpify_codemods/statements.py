"""What an edit makes of one statement: its parameters, its guard, its names, its imports, its place on a line."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import libcst as cst
from libcst.helpers import get_full_name_for_node

from .leading_lines import Statement, with_lines_above
from .rule import ChangeParameters, Delete, DropImport, Edit, Guard, GuardToFunction, Insert, ReplaceImport


def with_parameters(function: Statement, edit: ChangeParameters) -> Statement:
    """A function with other parameters."""
    assert isinstance(function, cst.FunctionDef)
    kept = [parameter for parameter in function.params.params if parameter.name.value not in edit.dropped]
    if edit.first:
        kept.insert(0, cst.Param(cst.Name(edit.first)))
    elif kept and kept[-1] is not function.params.params[-1]:
        kept[-1] = kept[-1].with_changes(comma=function.params.params[-1].comma)
    return function.with_changes(params=function.params.with_changes(params=kept))


def unguarded(guard: cst.If) -> tuple[list[Statement], list[cst.EmptyLine]]:
    """The statements of a block without the `if` above them."""
    if isinstance(guard.body, cst.SimpleStatementSuite):
        line = cst.SimpleStatementLine(guard.body.body, trailing_whitespace=guard.body.trailing_whitespace)
        return [line.with_changes(leading_lines=guard.leading_lines)], []
    assert isinstance(guard.body, cst.IndentedBlock)
    first, *others = guard.body.body
    assert isinstance(first, (cst.SimpleStatementLine, cst.BaseCompoundStatement))
    statements = [with_lines_above(first, guard.leading_lines), *others]
    return statements, list(guard.body.footer)  # type: ignore[return-value]


def otherwise(guard: cst.If) -> cst.If:
    """An `if` with what its `else` holds as its block."""
    other = guard.orelse
    if isinstance(other, cst.If):
        return guard.with_changes(body=cst.IndentedBlock([other.with_changes(leading_lines=[])]), orelse=None)
    assert isinstance(other, cst.Else)
    return guard.with_changes(body=other.body, orelse=None)


def guard_of(old: cst.CSTNode, new: Sequence[Statement]) -> cst.If | None:
    """The guard that a line became."""
    became = new[0] if new and isinstance(old, cst.SimpleStatementLine) else None
    return became if isinstance(became, cst.If) else None


def with_block_of(guard: cst.If, following: cst.If) -> cst.If:
    """A guard that holds what the next one does, too."""
    return guard.with_changes(body=guard.body.with_changes(body=[*guard.body.body, *following.body.body]))


def indented(statement: Statement, indent: str) -> Statement:
    """A new statement whose blocks have the indent of the block around them, which is not the file's usual one."""
    changed = statement.visit(_Indented(indent))
    assert isinstance(changed, (cst.SimpleStatementLine, cst.BaseCompoundStatement))
    return changed


class _Indented(cst.CSTTransformer):
    def __init__(self, indent: str) -> None:
        super().__init__()
        self._indent = indent

    def leave_IndentedBlock(  # noqa: N802  the name that libcst asks for
        self, original_node: cst.IndentedBlock, updated_node: cst.IndentedBlock
    ) -> cst.IndentedBlock:
        return updated_node if updated_node.indent is not None else updated_node.with_changes(indent=self._indent)


def as_function(guard: cst.If, edit: GuardToFunction) -> cst.FunctionDef:
    """The block of a main guard as a function."""
    parameters = cst.Parameters([cst.Param(cst.Name(edit.parameter))])
    return cst.FunctionDef(cst.Name(edit.name), parameters, guard.body, leading_lines=guard.leading_lines)


def insertions(edits: Iterable[Edit], where: str) -> list[Insert]:
    """What goes before or after a statement, in its order; where: "before" or "after"."""
    found = [edit for edit in edits if isinstance(edit, Insert) and edit.where == where]
    return sorted(found, key=lambda edit: edit.last)


def as_line(
    group: list[cst.BaseSmallStatement], line: cst.SimpleStatementLine, first: bool, last: bool
) -> cst.SimpleStatementLine:
    """Some of the statements of a line as a line; first, last: whether they stood first, or last, in it."""
    if group[-1] is not line.body[-1]:
        group[-1] = group[-1].with_changes(semicolon=cst.MaybeSentinel.DEFAULT)
    return cst.SimpleStatementLine(
        group,
        leading_lines=line.leading_lines if first else (),
        trailing_whitespace=line.trailing_whitespace if last else cst.TrailingWhitespace(),
    )


def remaining(small: cst.BaseSmallStatement, edits: Iterable[Edit]) -> cst.BaseSmallStatement | None:
    """A statement without the names that are no longer imported; None where nothing of it is left."""
    for edit in edits:
        if isinstance(edit, Delete):
            return None
    names = {edit.name for edit in edits if isinstance(edit, (ReplaceImport, DropImport))}
    if not names:
        return small
    assert isinstance(small, (cst.Import, cst.ImportFrom)) and not isinstance(small.names, cst.ImportStar)
    kept = [alias for alias in small.names if get_full_name_for_node(alias.name) not in names]
    if not kept:
        return None
    if kept[-1] is not small.names[-1]:
        kept[-1] = kept[-1].with_changes(comma=_closing_comma(kept[-1], small.names[-1]))
    return small.with_changes(names=kept)


def with_names(small: cst.BaseSmallStatement, guard: Guard) -> tuple[list[Statement], cst.BaseSmallStatement]:
    """The lines that give arguments of a call their names, and the call with the names."""
    lines: list[Statement] = []
    for place, name in guard.named:
        assert isinstance(small, cst.Expr) and isinstance(small.value, cst.Call)
        call = small.value
        if place < 0:
            assert isinstance(call.func, cst.Attribute)
            value = call.func.value
            call = call.with_changes(func=call.func.with_changes(value=cst.Name(name)))
        else:
            given = call.args[place]
            value = given.value
            call = call.with_deep_changes(given, value=cst.Name(name))
        assignment = cst.Assign([cst.AssignTarget(cst.Name(name))], _in_parentheses(value))
        lines.append(cst.SimpleStatementLine([assignment]))
        small = small.with_changes(value=call)
    return lines, small


def _in_parentheses(value: cst.BaseExpression) -> cst.BaseExpression:
    """An expression that may stand on several lines by itself."""
    code = cst.Module([]).code_for_node(value)
    try:
        compile(code, "", "eval", dont_inherit=True)
    except SyntaxError:
        return value.with_changes(lpar=[cst.LeftParen()], rpar=[cst.RightParen()])
    return value


def _closing_comma(kept: cst.ImportAlias, last: cst.ImportAlias) -> cst.Comma | cst.MaybeSentinel:
    """The comma of the name that is last now: none, or the old last one's, with the comment of the kept one."""
    if not isinstance(last.comma, cst.Comma) or not isinstance(kept.comma, cst.Comma):
        return cst.MaybeSentinel.DEFAULT
    mine, theirs = kept.comma.whitespace_after, last.comma.whitespace_after
    if isinstance(mine, cst.ParenthesizedWhitespace) and isinstance(theirs, cst.ParenthesizedWhitespace):
        theirs = theirs.with_changes(first_line=mine.first_line)
    return last.comma.with_changes(whitespace_after=theirs)
