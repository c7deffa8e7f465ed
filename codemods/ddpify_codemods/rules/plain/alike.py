"""Conditions that are alike on all ranks for sure: of constants, and of what the command line says."""

from __future__ import annotations

import ast

from ...facts.called_modules import last_name
from ...facts.flow.program import Program
from ...facts.origins import origins
from ...facts.script import Script

_SHAPES: tuple[type[ast.AST], ...] = (
    ast.Compare,
    ast.BoolOp,
    ast.UnaryOp,
    ast.BinOp,
    ast.Constant,
    ast.Name,
    ast.Attribute,
    ast.Call,
)
_SHAPES += (ast.cmpop, ast.boolop, ast.unaryop, ast.operator, ast.expr_context)
_CALLS = frozenset({"range", "len", "torch.cuda.is_available"})
_CHANGERS = frozenset({"setattr", "vars", "exec", "eval", "set_defaults", "Namespace", "SimpleNamespace"})
_TYPES = frozenset({"int", "float", "str", "bool"})


def is_alike(program: Program, script: Script, test: ast.AST) -> bool:
    """Whether an expression has the same value on all ranks, as far as it is made of nothing else."""
    for part in ast.walk(test):
        if not isinstance(part, _SHAPES):
            return False
        if isinstance(part, ast.Call) and script.qualified(part.func) not in _CALLS:
            return False
        parent = script.parents.get(part)
        is_part = isinstance(parent, ast.Attribute) or (isinstance(parent, ast.Call) and parent.func is part)
        if isinstance(part, ast.Name | ast.Attribute) and not is_part and not _is_said(program, script, part):
            return False
    return True


def _is_said(program: Program, script: Script, node: ast.Name | ast.Attribute) -> bool:
    """Whether a name is a constant, or what the command line says, and is given nothing else."""
    if script.qualified(node) in ("__name__", "sys.argv"):
        return True
    if any(
        _may_change(there, each, last_name(node)) for there in program.scripts for each in there.find(ast.Attribute)
    ):
        return False
    if isinstance(node, ast.Attribute):
        simple = all(map(_are_simple, program.scripts))
        return isinstance(node.value, ast.Name) and simple and _is_once(script, node.value, parsed=True)
    return _is_once(script, node, parsed=False)


def _may_change(script: Script, attribute: ast.Attribute, name: str) -> bool:
    """Whether `args.name` is assigned to, or asked to do something: `args.name.append(…)`."""
    around = script.parents[attribute]
    stored = isinstance(attribute.ctx, ast.Store) or (isinstance(around, ast.Subscript) and around.value is attribute)
    return attribute.attr == name and (stored or isinstance(around, ast.Attribute))


def _are_simple(script: Script) -> bool:
    """Whether a file lets what the command line says be just that: no option is what a call has found."""
    if any(each.attr == "__dict__" for each in script.find(ast.Attribute)):
        return False
    for call in script.find(ast.Call):
        name = last_name(call.func)
        if name in _CHANGERS or (name == "parse_args" and (call.args or call.keywords)):
            return False
        for word in call.keywords if name in ("add_argument", "add_option") else ():
            value = word.value
            of_type = word.arg == "type" and isinstance(value, ast.Name) and value.id in _TYPES - script.defined
            if not isinstance(value, ast.Constant) and not of_type and word.arg not in ("help", "choices", "metavar"):
                return False
    return True


def _is_once(script: Script, name: ast.Name, parsed: bool) -> bool:
    """Whether all that a name was given is one constant, or what a parser of the command line read."""
    made = [*origins(script, name)]
    names = {(script.scope(each), each.id) for each in made if isinstance(each, ast.Name)}
    once = all(
        len(script.stores.get(key, ())) < 2 and len(script.stores.get((script.tree, key[1]), ())) < 2 for key in names
    )
    once &= not any(name in each.names for each in script.find(ast.Global, ast.Nonlocal) for _, name in names)
    given = [each for each in made if not isinstance(each, ast.Name)]
    handed = any(name in _parameters(scope) for scope, name in names)  # by callers in other files too
    if parsed:
        return once and bool(given) and all(last_name(getattr(each, "func", each)) == "parse_args" for each in given)
    return once and not handed and len(given) == 1 and isinstance(given[0], ast.Constant)


def _parameters(scope: ast.AST) -> set[str]:
    arguments = getattr(scope, "args", None)
    return {each.arg for each in ast.walk(arguments) if isinstance(each, ast.arg)} if arguments is not None else set()
