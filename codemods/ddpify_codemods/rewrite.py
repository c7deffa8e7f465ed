"""Apply all edits of one file in one pass. Everything that no edit names stays byte for byte.

Rules read the tree of `ast`; the text is rebuilt by libcst, which keeps comments and blanks.
"""

from __future__ import annotations

import ast
import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TypeAlias

import libcst as cst

from .arguments import with_keyword, with_name, with_second, without_keyword
from .leading_lines import (
    Statement,
    after_block,
    below_first,
    below_functions,
    lines_above,
    with_lines_above,
    without_first_blanks,
    without_last_blanks,
)
from .local_imports import local_imports
from .places import Place, Places, Span, spans
from .quotes import with_other_quotes
from .rule import (
    ChangeArgument,
    ChangeParameters,
    Delete,
    DropImport,
    Edit,
    Guard,
    GuardToFunction,
    Insert,
    Replace,
    ReplaceImport,
    RewriteImport,
    Unguard,
    place_of,
)
from .runtime_names import runtime_import
from .statements import (
    as_function,
    as_line,
    guard_of,
    indented,
    insertions,
    otherwise,
    remaining,
    unguarded,
    with_block_of,
    with_names,
    with_parameters,
)
from .template import OWN_PARENTHESES, fill

StatementEdit: TypeAlias = (
    Insert | Delete | ReplaceImport | DropImport | RewriteImport | ChangeParameters | GuardToFunction | Guard | Unguard
)


class EditNotPlaced(Exception):
    """An edit names a node that was not found in the text: a bug of ddpify."""


def apply(text: str, tree: ast.Module, edits: Sequence[Edit]) -> str:
    """Rewrite a file.

    Args: its text, its tree (of that very text) and the edits, which refer to nodes of that tree.
    Returns the new text. Raises EditNotPlaced when the text has no such place.
    """
    edits = _without_deleted(edits)
    if not edits:
        return text
    header, renamed = runtime_import(tree, edits)
    edits = [*header, *local_imports(tree, edits), *(_rename(edit, renamed) for edit in edits)]
    module = cst.parse_module(text)
    edited = {place_of(edit).lineno for edit in edits}
    rewriter = _Rewriter(module, spans(module, tree, edited), Places(text), edits)
    code = module.visit(rewriter).code
    if rewriter.pending:
        raise EditNotPlaced(f"no place found for {sorted(rewriter.pending)}")
    return code


def _without_deleted(edits: Iterable[Edit]) -> list[Edit]:
    edits = list(edits)
    deleted = [edit.at for edit in edits if isinstance(edit, Delete)]
    inside = {child for statement in deleted for child in ast.walk(statement) if child is not statement}
    return [edit for edit in edits if place_of(edit) not in inside]


def _rename(edit: Edit, renamed: Mapping[str, str]) -> Edit:
    if isinstance(edit, (Replace, ChangeArgument)):
        return replace(edit, template=_rename_in(edit.template, renamed))
    return replace(edit, code=_rename_in(edit.code, renamed)) if isinstance(edit, Insert) else edit


def _rename_in(code: str, renamed: Mapping[str, str]) -> str:
    for name, alias in renamed.items():
        code = re.sub(rf"(?<![\w.]){name}\b", alias, code)
    return code


class _Rewriter(cst.CSTTransformer):
    def __init__(
        self, module: cst.Module, spans: Mapping[cst.CSTNode, Span], places: Places, edits: Sequence[Edit]
    ) -> None:
        super().__init__()
        self._module = module
        self._spans = spans
        self._replaces: defaultdict[Span, list[Replace | ChangeArgument]] = defaultdict(list)
        self._parts: dict[ast.expr, Span] = {}
        self._statements: defaultdict[Place, list[StatementEdit]] = defaultdict(list)
        for edit in edits:
            if isinstance(edit, (Replace, ChangeArgument)):
                self._replaces[places.span(edit.node)].append(edit)
                self._parts.update((part, places.span(part)) for part in edit.parts)
            else:
                self._statements[places.start(edit.at)].append(edit)
        # Children are left before their parents, so the parts of an expression are known when it is.
        self._part_spans = set(self._parts.values())
        self._updated: dict[Span, cst.BaseExpression] = {}
        self._lines = sorted({key[0] for key in (*self._replaces, *self._statements)})
        self.pending: set[Span | Place] = {*self._replaces, *self._statements}
        self._indents: list[str | None] = [None]  # of the blocks around, as _other_indent tells it

    def _other_indent(self, block: cst.CSTNode) -> str | None:
        """The indent of a block, where it is made of other characters than the file's usual one."""
        indent = block.indent if isinstance(block, cst.IndentedBlock) else None
        return indent if indent and set(indent) != set(self._module.default_indent) else None

    def on_visit(self, node: cst.CSTNode) -> bool:
        if isinstance(node, cst.IndentedBlock):
            self._indents.append(self._other_indent(node))
        if not isinstance(node, (cst.SimpleStatementLine, cst.BaseCompoundStatement)):
            return True
        if node not in self._spans:
            return False
        # A decorator stands above the place of its function or class.
        first = self._spans[next(iter(getattr(node, "decorators", ())), node)][0]
        return any(first <= line <= self._spans[node][2] for line in self._lines)

    def on_leave(self, original_node: cst.CSTNode, updated_node: cst.CSTNode) -> cst.CSTNode:  # type: ignore[override]
        if isinstance(original_node, cst.FormattedString) and isinstance(updated_node, cst.FormattedString):
            updated_node = with_other_quotes(original_node, updated_node)
        if isinstance(original_node, cst.BaseExpression):
            return self._expression(original_node, updated_node)
        if isinstance(original_node, (cst.Module, cst.IndentedBlock)):
            assert isinstance(updated_node, type(original_node))
            if isinstance(original_node, cst.IndentedBlock):
                self._indents.pop()
            return self._block(original_node, updated_node)
        if isinstance(original_node, cst.SimpleStatementSuite):
            assert isinstance(updated_node, cst.SimpleStatementSuite)
            return self._suite(original_node, updated_node)
        return updated_node

    # Expressions

    def _expression(self, original: cst.BaseExpression, updated: cst.CSTNode) -> cst.CSTNode:
        span = self._span(original)
        assert isinstance(updated, cst.BaseExpression)
        for edit in self._replaces.get(span, ()):
            parts = [self._updated[self._parts[part]] for part in edit.parts]
            if isinstance(edit, ChangeArgument):
                updated = self._argument(updated, edit, parts)
            else:
                updated = self._bare(parts[0]) if edit.bare else fill(edit.template, updated, parts, self._module)
            self.pending.discard(span)
        if span in self._part_spans:
            self._updated[span] = updated
        return updated

    def _bare(self, part: cst.BaseExpression) -> cst.BaseExpression:
        """An expression without parentheses of its own; with them where it goes over several lines."""
        own = isinstance(part, OWN_PARENTHESES) or "\n" in self._module.code_for_node(part)
        return part if own else part.with_changes(lpar=(), rpar=())

    def _argument(
        self, call: cst.BaseExpression, edit: ChangeArgument, parts: Sequence[cst.BaseExpression]
    ) -> cst.BaseExpression:
        assert isinstance(call, cst.Call)
        if not edit.name:
            return without_keyword(call, edit.instead)
        if edit.first_named:
            first, named = parts[0], cst.Name(edit.first_named)
            call, parts = with_name(call, first, edit.first_named), [named if part is first else part for part in parts]
        filled = fill(f"_({edit.template})", cst.Name("_"), parts, self._module)  # an argument needs no parentheses
        assert isinstance(filled, cst.Call)
        if edit.names is not None:
            return with_second(call, edit.name, filled.args[0].value, edit.names)
        return with_keyword(call, edit.instead, edit.name, filled.args[0].value)

    def _span(self, node: cst.BaseExpression) -> Span:
        first, start, last, end = self._spans[node]
        # To ast, the parentheses of a tuple or generator are part of it.
        outer = 1 if isinstance(node, (cst.Tuple, cst.GeneratorExp)) and node.lpar else 0
        return first, start - outer, last, end + outer

    # Statements

    def _edits_at(self, node: cst.CSTNode) -> list[StatementEdit]:
        if node not in self._spans:
            return []
        place = self._spans[node][:2]
        self.pending.discard(place)
        return self._statements.get(place, [])

    def _block(
        self, original: cst.Module | cst.IndentedBlock, updated: cst.Module | cst.IndentedBlock
    ) -> cst.Module | cst.IndentedBlock:
        body: list[Statement] = []
        orphans: list[cst.EmptyLine] = []  # the comments above a statement that went away
        touched = False
        guarded: cst.If | None = None  # what the line before became
        for old, new in zip(original.body, updated.body, strict=True):
            assert isinstance(new, (cst.SimpleStatementLine, cst.BaseCompoundStatement))
            statements, left = self._statement(old, new)
            if indent := self._other_indent(original):
                ours = isinstance(new, cst.SimpleStatementLine) or any(each is new for each in statements)
                statements = [indented(s, indent) if ours and s is not new else s for s in statements]
            touched = touched or statements != [new]
            if statements and orphans:
                statements[0] = with_lines_above(statements[0], orphans)
                orphans = []
            guard = guard_of(old, statements)
            if guard and guarded and not guard.leading_lines and guard.test.deep_equals(guarded.test):
                statements = [with_block_of(guarded, guard), *statements[1:]]
                body.pop()
            guarded = guard_of(old, statements) if len(statements) == 1 else None
            if body and isinstance(body[-1], cst.BaseCompoundStatement):
                statements = after_block(statements, lines_above(new))
            body += statements
            orphans = [*without_last_blanks(orphans, left), *left]
        if not touched:
            return updated
        if body and isinstance(original, cst.IndentedBlock) and not getattr(original.body[0], "leading_lines", ()):
            body[0] = body[0].with_changes(leading_lines=without_first_blanks(lines_above(body[0])))
        if isinstance(original, cst.Module):
            body = below_functions(original.body, below_first(original.body[:1], body))
        if not body and isinstance(updated, cst.IndentedBlock):
            body = [with_lines_above(cst.SimpleStatementLine([cst.Pass()]), orphans)]
            orphans = []
        if not any(line.comment for line in orphans):
            orphans = []  # blank lines above a last statement that went away
        return updated.with_changes(body=body, footer=[*orphans, *updated.footer])

    def _suite(
        self, original: cst.SimpleStatementSuite, updated: cst.SimpleStatementSuite
    ) -> cst.SimpleStatementSuite | cst.IndentedBlock:
        line = cst.SimpleStatementLine(updated.body, trailing_whitespace=updated.trailing_whitespace)
        statements, _ = self._small_statements(original.body, line)
        if not statements:
            return updated.with_changes(body=[cst.Pass()])
        if len(statements) == 1 and isinstance(statements[0], cst.SimpleStatementLine):
            return updated.with_changes(body=statements[0].body)
        indent = self._indents[-1]
        return cst.IndentedBlock([indented(each, indent) if indent else each for each in statements], indent=indent)

    def _statement(self, old: cst.CSTNode, new: Statement) -> tuple[list[Statement], list[cst.EmptyLine]]:
        if isinstance(new, cst.SimpleStatementLine):
            assert isinstance(old, cst.SimpleStatementLine)
            return self._small_statements(old.body, new)
        edits = self._edits_at(old)
        before, after = self._inserted(edits, "before"), self._inserted(edits, "after")
        if any(isinstance(edit, Delete) for edit in edits):
            left = [*before, *after]
            if not left:
                return [], lines_above(new)
            return [with_lines_above(left[0], lines_above(new)), *left[1:]], []
        if unguard := next((edit for edit in edits if isinstance(edit, Unguard)), None):
            assert isinstance(new, cst.If)
            statements, footer = unguarded(new if unguard.block == "body" else otherwise(new))
            return [*before, *statements, *after], footer
        following: list[Statement] = []
        for edit in edits:
            if isinstance(edit, ChangeParameters):
                new = with_parameters(new, edit)
            elif isinstance(edit, GuardToFunction):
                assert isinstance(new, cst.If)
                following = self._parse(edit.code)
                new = as_function(new, edit)
        return [*before, new, *following, *after], []

    def _small_statements(
        self, originals: Sequence[cst.BaseSmallStatement], line: cst.SimpleStatementLine
    ) -> tuple[list[Statement], list[cst.EmptyLine]]:
        """Edit the statements that share a line; an insertion among them splits it."""
        edits_of = [self._edits_at(small) for small in originals]
        if not any(edits_of):
            return [line], []
        parts: list[list[cst.BaseSmallStatement] | Statement] = [[]]
        for small, edits in zip(line.body, edits_of, strict=True):
            parts += [*self._inserted(edits, "before"), []] if insertions(edits, "before") else []
            kept = remaining(self._rewritten(small, edits), edits)
            guard = next((edit for edit in edits if isinstance(edit, Guard)), None)
            if kept is not None and guard is not None:
                before, kept = with_names(kept, guard)
                parts += [*before, self._guarded(kept, guard, line), []]
            elif kept is not None:
                group = parts[-1]
                assert isinstance(group, list)
                group.append(kept)
            parts += [*self._inserted(edits, "after"), []] if insertions(edits, "after") else []
        groups = [part for part in parts if isinstance(part, list) and part]
        above = any(edit.above for edits in edits_of for edit in insertions(edits, "before"))
        statements: list[Statement] = []
        for part in parts:
            if not isinstance(part, list):
                statements.append(part)
            elif part:
                first = part is groups[0] and not above
                own = as_line(part, line, first=first, last=part is groups[-1])
                apart = part is groups[0] and any(each.apart for each in insertions(edits_of[0], "before")[-1:])
                statements.append(with_lines_above(own, [cst.EmptyLine(indent=False)]) if apart else own)
        if above or (statements and not groups):
            statements[0] = with_lines_above(statements[0], list(line.leading_lines))
            return statements, []
        return statements, [] if groups else list(line.leading_lines)

    def _guarded(self, small: cst.BaseSmallStatement, guard: Guard, line: cst.SimpleStatementLine) -> Statement:
        small = small.with_changes(semicolon=cst.MaybeSentinel.DEFAULT)
        inner = cst.SimpleStatementLine([small], trailing_whitespace=line.trailing_whitespace)
        test, block = cst.parse_expression(guard.test, self._module.config_for_parsing), cst.IndentedBlock([inner])
        return cst.With([cst.WithItem(test)], block) if guard.is_context else cst.If(test, block)

    def _rewritten(self, small: cst.BaseSmallStatement, edits: Iterable[Edit]) -> cst.BaseSmallStatement:
        for edit in edits:
            if isinstance(edit, RewriteImport):
                line = self._parse(edit.code)[0]
                assert isinstance(line, cst.SimpleStatementLine)
                return line.body[0]
        return small

    def _inserted(self, edits: Iterable[Edit], where: str) -> list[Statement]:
        statements: list[Statement] = []
        apart = False
        for edit in insertions(edits, where):
            new = self._parse(edit.code)
            statements += [with_lines_above(new[0], [cst.EmptyLine(indent=False)]), *new[1:]] if apart else new
            apart = edit.apart
        return statements

    def _parse(self, code: str) -> list[Statement]:
        indent, newline = self._module.default_indent, self._module.default_newline
        code = re.sub(r"^(?: {4})+", lambda match: indent * (len(match[0]) // 4), code.rstrip("\n") + "\n", flags=re.M)
        parsed = cst.parse_module(code.replace("\n", newline), self._module.config_for_parsing)
        body = [node for node in parsed.body if isinstance(node, (cst.SimpleStatementLine, cst.BaseCompoundStatement))]
        header = [line if line.comment else line.with_changes(indent=False) for line in parsed.header]
        body[0] = with_lines_above(body[0], header)
        return body
