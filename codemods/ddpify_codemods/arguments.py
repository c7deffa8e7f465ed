"""Put a keyword argument into a call, or take one out, laid out as the arguments beside it are."""

from __future__ import annotations

from collections.abc import Sequence

import libcst as cst

_NO_COMMA = cst.MaybeSentinel.DEFAULT
_ONE_BLANK = cst.SimpleWhitespace(" ")


def with_keyword(call: cst.Call, instead: str, name: str, value: cst.BaseExpression) -> cst.Call:
    """A call with `name=value` in the place of its keyword `instead`, or of the positional argument of that place, "2";
    behind its last argument where that is ""."""
    if not instead:
        return call.with_changes(args=_added(call, cst.Arg(value, cst.Name(name), equal=_EQUAL)))
    args = [
        arg.with_changes(keyword=cst.Name(name), value=value, equal=_EQUAL if arg.keyword is None else arg.equal)
        if instead in (_keyword(arg), str(place))
        else arg
        for place, arg in enumerate(call.args)
    ]
    return call.with_changes(args=args)


def with_second(call: cst.Call, name: str, value: cst.BaseExpression, names: Sequence[str]) -> cst.Call:
    """A call with `name=value` behind its first argument; the positional ones after that get names, in turn."""
    first, *others = call.args
    if isinstance(first.value, cst.GeneratorExp) and not first.value.lpar:
        first = first.with_changes(value=first.value.with_changes(lpar=[cst.LeftParen()], rpar=[cst.RightParen()]))
    if not others:
        return with_keyword(call.with_changes(args=[first]), "", name, value)
    unnamed = sum(not arg.keyword and not arg.star for arg in others)
    named = [
        *(
            arg.with_changes(keyword=cst.Name(each), equal=_EQUAL)
            for arg, each in zip(others, names[:unnamed], strict=False)
        ),
        *others[unnamed:],
    ]
    new = cst.Arg(value, cst.Name(name), equal=_EQUAL)
    after = cst.Comma(whitespace_after=_after(first))
    between = cst.Comma(whitespace_after=_without_comment(_after(first)))
    return call.with_changes(args=[first.with_changes(comma=between), new.with_changes(comma=after), *named])


def without_keyword(call: cst.Call, name: str) -> cst.Call:
    """A call without one of its keywords: what was there before `with_keyword` has put it behind the others."""
    place = next(number for number, arg in enumerate(call.args) if _keyword(arg) == name)
    args, gone = [*call.args], call.args[place]
    if place and place == len(args) - 1:
        before = args[place - 1]
        args[place - 1] = _ended(before, gone, comment=_after(before))
    return call.with_changes(args=[arg for arg in args if arg is not gone])


def with_name(call: cst.Call, value: cst.BaseExpression, name: str) -> cst.Call:
    """A call one of whose arguments gets a name where it stands: `f(name := value)`, `f(word=(name := value))`."""
    named = cst.NamedExpr(cst.Name(name), value)
    bracketed = named.with_changes(lpar=[cst.LeftParen()], rpar=[cst.RightParen()])
    args = [
        arg.with_changes(value=bracketed if arg.keyword else named) if arg.value is value else arg for arg in call.args
    ]
    return call.with_changes(args=args)


_EQUAL = cst.AssignEqual(cst.SimpleWhitespace(""), cst.SimpleWhitespace(""))


def _keyword(arg: cst.Arg) -> str:
    return arg.keyword.value if arg.keyword else ""


def _added(call: cst.Call, new: cst.Arg) -> Sequence[cst.Arg]:
    args = [*call.args]
    if not args:
        return [new]
    place = next((number for number, arg in enumerate(args) if arg.star == "**"), len(args))
    last = args[place - 1]
    if place < len(args):
        separator = cst.Comma(whitespace_after=_without_comment(_after(last)))
        return [*args[:place], new.with_changes(comma=separator), *args[place:]]
    between = _after(args[-2]) if len(args) > 1 else _ONE_BLANK
    if len(args) == 1 and isinstance(last.comma, cst.Comma):
        between = call.whitespace_before_args
    separator = cst.Comma(whitespace_after=_commented(_without_comment(between), _after(last)))
    kept = last.with_changes(comma=separator, whitespace_after_arg=cst.SimpleWhitespace(""))
    return [*args[:-1], kept, _ended(new, last, comment=None)]


def _ended(arg: cst.Arg, like: cst.Arg, comment: cst.BaseParenthesizableWhitespace | None) -> cst.Arg:
    """An argument that ends as another one does, with a comment of its own."""
    if isinstance(like.comma, cst.Comma):
        after = _commented(_without_comment(like.comma.whitespace_after), comment)
        return arg.with_changes(
            comma=like.comma.with_changes(whitespace_after=after), whitespace_after_arg=like.whitespace_after_arg
        )
    after = _commented(_without_comment(like.whitespace_after_arg), comment)
    return arg.with_changes(comma=_NO_COMMA, whitespace_after_arg=after)


def _after(arg: cst.Arg) -> cst.BaseParenthesizableWhitespace:
    return arg.comma.whitespace_after if isinstance(arg.comma, cst.Comma) else arg.whitespace_after_arg


def _commented(
    space: cst.BaseParenthesizableWhitespace, other: cst.BaseParenthesizableWhitespace | None
) -> cst.BaseParenthesizableWhitespace:
    """White space with the comment of another one, if that has one."""
    if not isinstance(other, cst.ParenthesizedWhitespace) or other.first_line.comment is None:
        return space
    if not isinstance(space, cst.ParenthesizedWhitespace):
        return other
    return space.with_changes(first_line=other.first_line)


def _without_comment(space: cst.BaseParenthesizableWhitespace) -> cst.BaseParenthesizableWhitespace:
    if not isinstance(space, cst.ParenthesizedWhitespace) or space.first_line.comment is None:
        return space
    first = space.first_line.with_changes(whitespace=cst.SimpleWhitespace(""), comment=None)
    return space.with_changes(first_line=first)
