"""The quotes of strings within f-strings, which may not be those of the f-string before Python 3.12."""

from __future__ import annotations

import libcst as cst
from libcst.matchers import SimpleString, findall


def with_other_quotes(before: cst.FormattedString, after: cst.FormattedString) -> cst.FormattedString:
    """An f-string whose new strings are in quotes that do not end it.

    Args: the f-string as it was, and with what edits have put into it.
    """
    quote = before.end
    if len(quote) > 1 or before.deep_equals(after):
        return after
    known = {cst.ensure_type(each, cst.SimpleString).value for each in findall(before, SimpleString())}
    result = after.visit(_OtherQuotes(quote, "'" if quote == '"' else '"', known))
    assert isinstance(result, cst.FormattedString)
    return result


class _OtherQuotes(cst.CSTTransformer):
    def __init__(self, quote: str, other: str, known: set[str]) -> None:
        super().__init__()
        self._quote, self._other, self._known = quote, other, known

    def on_leave(self, original_node: cst.CSTNode, updated_node: cst.CSTNode) -> cst.CSTNode:  # type: ignore[override]
        if not isinstance(updated_node, cst.SimpleString):
            return updated_node
        value = updated_node.value
        if value in self._known or not value.endswith(self._quote) or self._other in value or "\\" in value:
            return updated_node
        return updated_node.with_changes(value=value.replace(self._quote, self._other))
