"""Functions that do nothing but look at the disk, and make folders, and give back a text or a path.

An allow-list: what is not seen to do no more is left to every rank.
"""

from __future__ import annotations

import ast
import builtins
from collections.abc import Iterator

from ...facts.called_modules import last_name
from ...facts.effects import makes_folder
from ...facts.script import Script

_NODES: tuple[type[ast.AST], ...] = (ast.Assign, ast.AugAssign, ast.AnnAssign, ast.Return, ast.Expr)
_NODES += (ast.If, ast.While, ast.For, ast.Break, ast.Continue, ast.Pass, ast.Try, ast.ExceptHandler)
_NODES += (ast.Call, ast.keyword, ast.Name, ast.Attribute, ast.Constant, ast.JoinedStr, ast.FormattedValue)
_NODES += (ast.BinOp, ast.UnaryOp, ast.BoolOp, ast.Compare, ast.IfExp, ast.Subscript, ast.Slice, ast.Tuple, ast.List)
_NODES += (ast.ListComp, ast.GeneratorExp, ast.comprehension)
_NODES += (ast.operator, ast.unaryop, ast.boolop, ast.cmpop, ast.expr_context)
_PATH_CALLS = frozenset(
    {f"os.path.{name}" for name in ("join", "exists", "isdir", "isfile", "lexists", "basename", "dirname", "abspath")}
    | {f"os.path.{name}" for name in ("getmtime", "getsize", "split", "expanduser")}
    | {"os.listdir", "os.walk", "os.makedirs", "os.mkdir", "glob.glob", "glob.iglob", "pathlib.Path"}
)
_CALLS = _PATH_CALLS | {"os.getcwd"}
_CALLS |= {f"re.{name}" for name in ("match", "search", "fullmatch", "findall", "sub", "compile")}
_BUILTINS = frozenset(
    {"len", "int", "str", "float", "max", "min", "sorted", "list", "set", "range", "enumerate", "filter", "map", "next"}
    | {"isinstance", "any", "all", "sum", "zip", "reversed", "iter", "tuple", "abs"}
)
_TEXTS = frozenset(
    {"split", "rsplit", "strip", "lstrip", "rstrip", "startswith", "endswith", "format", "join", "isdigit"}
    | {"isdecimal", "lower", "upper", "zfill", "rjust", "replace", "count"}
)
_NEW_PATHS = frozenset({"joinpath", "with_name", "with_suffix", "resolve", "absolute", "expanduser"})
_METHODS = _TEXTS | _NEW_PATHS | {"exists", "is_dir", "is_file", "mkdir", "iterdir", "glob", "rglob", "as_posix"}
_METHODS |= {"group", "groups", "match", "search", "fullmatch", "findall", "sub"}
_OF_PATHS = frozenset({"parent", "name", "stem", "suffix", "parts"})
_OWN = frozenset({"append", "sort"})  # of lists that a function makes itself
_COMPARED = frozenset({"startswith", "endswith", "split", "format", "replace", "joinpath", "glob", "match", "search"})
_READ: tuple[type[ast.AST], ...] = (
    ast.FormattedValue,
    ast.BinOp,
    ast.Compare,
    ast.BoolOp,
    ast.UnaryOp,
    ast.Return,
    ast.Assign,
    ast.AnnAssign,
)
_READ += (ast.If, ast.IfExp, ast.While, ast.Tuple)
_TELLING: tuple[type[ast.AST], ...] = (
    ast.Constant,
    ast.JoinedStr,
    ast.FormattedValue,
    ast.Name,
    ast.Attribute,
    ast.BinOp,
    ast.Call,
    ast.keyword,
)
_TELLING += (ast.Subscript, ast.operator, ast.expr_context)


def looks_only(script: Script, function: ast.FunctionDef) -> bool:
    """Whether a function only looks at the disk and makes folders, by texts and paths, and gives back one."""
    parts = [part for each in function.body for part in ast.walk(each)]
    arguments = function.args
    defaults = (*arguments.defaults, *(each for each in arguments.kw_defaults if each is not None))
    return (
        script.parents[function] is script.tree
        and not function.decorator_list
        and not arguments.vararg
        and not arguments.kwarg
        and all(isinstance(each, ast.Constant) for each in defaults)
        and all(isinstance(each, _NODES) and _is_harmless(script, function, each) for each in parts)
        and _gives_texts(script, function)
    )


def only_tells(script: Script, call: ast.Call) -> bool:
    """Whether what a call is given is made of names and texts, without a trace."""
    for each in (*call.args, *call.keywords):
        for part in ast.walk(each):
            if not isinstance(part, _TELLING):
                return False
            if isinstance(part, ast.Attribute) and part.attr in script.defined:
                return False
            name = script.qualified(part.func) if isinstance(part, ast.Call) else "str"
            if name not in {*_PATH_CALLS, "str", "len", "int", "os.getcwd"} or name in ("os.makedirs", "os.mkdir"):
                return False
    return True


def _is_harmless(script: Script, function: ast.FunctionDef, node: ast.AST) -> bool:
    """Whether a part of a function leaves no trace but on the disk, as far as it does not lie in its own parts."""
    if isinstance(node, ast.Attribute | ast.Subscript) and not isinstance(node.ctx, ast.Load):
        return False
    if isinstance(node, ast.Name):
        return isinstance(node.ctx, ast.Store) or _may_be_read(script, function, node)
    if isinstance(node, ast.Attribute):
        return _may_be_asked(script, function, node)
    if isinstance(node, ast.Call):
        return _may_be_called(script, function, node)
    if isinstance(node, ast.Expr):
        made = isinstance(node.value, ast.Call) and (makes_folder(script, node.value) or _is_own(function, node.value))
        return made or isinstance(node.value, ast.Constant)
    if isinstance(node, ast.AugAssign):
        return isinstance(node.target, ast.Name) and _is_made_here(script, function, node.target.id)
    if isinstance(node, ast.Try):  # a rank that makes a folder for others, or not, is another matter
        calls = (each for each in ast.walk(node) if isinstance(each, ast.Call))
        return not any(makes_folder(script, each) for each in calls)
    if isinstance(node, ast.For | ast.comprehension):
        return all(isinstance(each, ast.Name | ast.Tuple | ast.expr_context) for each in ast.walk(node.target))
    return True


def _may_be_read(script: Script, function: ast.FunctionDef, name: ast.Name) -> bool:
    """Whether a name is a function's own, a library's or a constant; a parameter only where it is looked at."""
    parent = script.parents[name]
    if name.id in _given(function):
        is_in = isinstance(parent, ast.Compare) and any(isinstance(each, ast.In | ast.NotIn) for each in parent.ops)
        goes_through = is_in and name is not parent.left  # type: ignore[attr-defined]
        return not goes_through and (isinstance(parent, _READ) or _is_path_of(script, name))
    if name.id in _stored(function):
        return True
    if name.id in script.imported:
        return isinstance(parent, ast.Attribute) or script.qualified(name) in _CALLS
    if name.id in _BUILTINS or isinstance(getattr(builtins, name.id, None), type):
        return name.id not in script.defined and (script.tree, name.id) not in script.stores
    stores = script.stores.get((script.tree, name.id), [])
    constant = script.parents[stores[0]] if len(stores) == 1 else None
    return isinstance(constant, ast.Assign) and isinstance(constant.value, ast.Constant)


def _is_path_of(script: Script, name: ast.Name) -> bool:
    """Whether a name is given to what takes a path, or asked for what a path or a text has."""
    parent = script.parents[name]
    if isinstance(parent, ast.Call):
        takes = script.qualified(parent.func) in {*_PATH_CALLS, "str", "int", "len"}
        compared = isinstance(parent.func, ast.Attribute) and parent.func.attr in _COMPARED
        return name is not parent.func and (takes or compared)
    return isinstance(parent, ast.Attribute)


def _may_be_asked(script: Script, function: ast.FunctionDef, node: ast.Attribute) -> bool:
    parent, owner = script.parents[node], node.value
    while isinstance(owner, ast.Attribute):
        owner = owner.value
    if isinstance(owner, ast.Name) and owner.id in script.imported and owner.id not in _stored(function):
        whole = script.qualified(node)
        return whole in _CALLS or isinstance(parent, ast.Attribute)
    is_called = isinstance(parent, ast.Call) and parent.func is node
    return (node.attr in _METHODS | _OWN if is_called else node.attr in _OF_PATHS) and node.attr not in script.defined


def _may_be_called(script: Script, function: ast.FunctionDef, call: ast.Call) -> bool:
    if isinstance(call.func, ast.Attribute) and script.qualified(call.func) not in _CALLS:
        return call.func.attr in _METHODS or _is_own(function, call)
    if not isinstance(call.func, ast.Name | ast.Attribute) or last_name(call.func) in _stored(function):
        return False
    return script.qualified(call.func) in _CALLS | _BUILTINS


def _is_own(function: ast.FunctionDef, call: ast.Call) -> bool:
    """Whether a call changes a list that a function makes itself."""
    func = call.func
    if not isinstance(func, ast.Attribute) or func.attr not in _OWN or not isinstance(func.value, ast.Name):
        return False
    values = _assigned(function).get(func.value.id, [None])
    return func.value.id not in _given(function) and all(isinstance(each, ast.List | ast.ListComp) for each in values)


def _is_made_here(script: Script, function: ast.FunctionDef, name: str) -> bool:
    """Whether a name is a function's own number, text or list: `parts += [...]` would change what a caller has."""
    values = [
        value
        for node in ast.walk(function)
        if not isinstance(node, ast.AugAssign)
        for target, value in _pairs(node)
        if isinstance(target, ast.Name) and target.id == name
    ]
    made = (ast.Constant, ast.JoinedStr, ast.BinOp, ast.List, ast.ListComp)
    calls = _PATH_CALLS | {"len", "int", "str"}
    return bool(values) and all(
        isinstance(each, made) or (isinstance(each, ast.Call) and script.qualified(each.func) in calls)
        for each in values
    )


def _stored(function: ast.FunctionDef) -> set[str]:
    names = {each.id for each in ast.walk(function) if isinstance(each, ast.Name) and isinstance(each.ctx, ast.Store)}
    return names | {each.arg for each in ast.walk(function) if isinstance(each, ast.arg)}


def _given(function: ast.FunctionDef) -> set[str]:
    """The parameters of a function, and names for them."""
    names = {each.arg for each in ast.walk(function.args) if isinstance(each, ast.arg)}
    for _ in range(3):
        for name, values in _assigned(function).items():
            if any(isinstance(each, ast.Name) and each.id in names for each in values):
                names.add(name)
    return names


def _assigned(function: ast.FunctionDef) -> dict[str, list[ast.expr | None]]:
    """What the names of a function are assigned; None where it is a part of something."""
    found: dict[str, list[ast.expr | None]] = {}
    for node in ast.walk(function):
        for target, value in _pairs(node):
            if isinstance(target, ast.Name):
                found.setdefault(target.id, []).append(value)
    return found


def _pairs(node: ast.AST) -> Iterator[tuple[ast.AST, ast.expr | None]]:
    if isinstance(node, ast.Assign):
        for target in node.targets:
            yield target, node.value
            if not isinstance(target, ast.Name):
                yield from ((each, None) for each in ast.walk(target))
    elif isinstance(node, ast.AnnAssign | ast.AugAssign):
        yield node.target, node.value
    elif isinstance(node, ast.For | ast.comprehension):
        yield from ((each, None) for each in ast.walk(node.target))


def _gives_texts(script: Script, function: ast.FunctionDef) -> bool:
    """Whether a function gives back texts, paths and numbers, which can be sent, and are no one's own."""
    assigned, given = _assigned(function), {each.arg for each in ast.walk(function.args) if isinstance(each, ast.arg)}
    paths = {
        each.id
        for call in ast.walk(function)
        if isinstance(call, ast.Call) and script.qualified(call.func) in _PATH_CALLS
        for each in call.args
        if isinstance(each, ast.Name)
    }

    def is_text(node: ast.expr | None, seen: frozenset[str] = frozenset()) -> bool:
        if isinstance(node, ast.Constant | ast.JoinedStr):
            return True
        if isinstance(node, ast.Name):
            if node.id in seen:
                return True
            known = node.id in assigned or node.id in given
            said = node.id not in given or node.id in paths
            return known and said and all(is_text(each, seen | {node.id}) for each in assigned.get(node.id, ()))
        if isinstance(node, ast.BinOp):
            return is_text(node.left, seen) or is_text(node.right, seen)
        if isinstance(node, ast.IfExp):
            return is_text(node.body, seen) and is_text(node.orelse, seen)
        if isinstance(node, ast.Tuple):
            return all(is_text(each, seen) for each in node.elts)
        if isinstance(node, ast.Call):
            if isinstance(node.func, ast.Attribute) and node.func.attr in {"format", "join", "replace"} | _NEW_PATHS:
                return True
            name = script.qualified(node.func)
            return name in _PATH_CALLS - {"os.walk", "glob.iglob"} or name in ("str", "int", "len")
        return False

    returned = [each.value for each in ast.walk(function) if isinstance(each, ast.Return)]
    return bool(returned) and all(map(is_text, returned))
