"""By what the folders that a program makes, and the files that it writes, get their names, in all of its functions."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import lru_cache

from ...facts.effects import effects, makes_folder, opened_for_writing
from ...facts.flow.program import Program
from ...facts.same_file import path_of, writes_a_file
from ...facts.script import KEPT, Script

_Function = ast.FunctionDef | ast.AsyncFunctionDef
# The function that a name is a variable of, or None, and the name; of an attribute, with a dot before, whoever has it.
_Key = tuple[ast.AST | None, str]
_Code = tuple[Script, ast.expr]
_FOLDERS = frozenset({"log_dir", "logdir", "save_dir"})  # how libraries call the folder that they write to


@lru_cache(maxsize=KEPT)
def naming_expressions(program: Program) -> frozenset[ast.AST]:
    """The expressions of which the names of folders and files that a program writes are made, as far as is seen."""
    found, keys = set[ast.AST](), set[_Key]()
    waiting = [*_written(program)]
    while waiting:
        script, node = waiting.pop()
        if node in found:
            continue
        for part in ast.walk(node):
            found.add(part)
            if isinstance(part, ast.Call):
                waiting += _returned(program, part)
            elif isinstance(part, ast.Name | ast.Attribute) and (key := _key(script, part)) not in keys:
                keys.add(key)
                waiting += _values(program).get(key, ())
    return frozenset(found)


def _written(program: Program) -> Iterator[_Code]:
    """What names the folders that a program makes, and the files that it writes."""
    for script in program.scripts:
        for call in script.find(ast.Call):
            if makes_folder(script, call):
                yield from ((script, each) for each in call.args[:1])
                if isinstance(call.func, ast.Attribute) and call.func.attr == "mkdir":
                    yield script, call.func.value
        for call in effects(script):
            paths = [opened_for_writing(script, call), path_of(script, call) if writes_a_file(script, call) else None]
            paths += [word.value for word in call.keywords if word.arg in _FOLDERS]
            yield from ((script, each) for each in paths if each is not None)


def _returned(program: Program, call: ast.Call) -> Iterator[_Code]:
    """What the functions of a program that a call calls give back."""
    for script, function in called(program).get(call, ()):
        inside = (each for each in ast.walk(function) if isinstance(each, ast.Return))
        yield from ((script, each.value) for each in inside if each.value is not None)


@lru_cache(maxsize=KEPT)
def called(program: Program) -> dict[ast.Call, list[tuple[Script, ast.FunctionDef]]]:
    """The functions of a program that its calls call."""
    found: dict[ast.Call, list[tuple[Script, ast.FunctionDef]]] = {}
    called_with = program.followed.found.called_with
    for script in program.scripts:
        for function in script.find(ast.FunctionDef):
            for call, _ in called_with.get(function, ()):
                found.setdefault(call, []).append((script, function))
    return found


@lru_cache(maxsize=KEPT)
def _values(program: Program) -> dict[_Key, list[_Code]]:
    """What names are given: by assignments, in loops and as parameters."""
    found: dict[_Key, list[_Code]] = {}
    for script in program.scripts:
        for node in script.find(ast.Assign, ast.AnnAssign, ast.AugAssign):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            for part in (part for each in targets for part in _stored(each)):
                if node.value is not None:
                    found.setdefault(_key(script, part), []).append((script, node.value))
        for loop in script.find(ast.For):
            for part in _stored(loop.target):
                found.setdefault(_key(script, part), []).append((script, loop.iter))
    for function, calls in program.followed.found.called_with.items():
        if isinstance(function, _Function):
            names = [each.arg for each in (*function.args.posonlyargs, *function.args.args)]
            names = names[names[:1] in (["self"], ["cls"]) :]
            for call, there in calls:
                given = [*zip(names, call.args, strict=False), *((word.arg, word.value) for word in call.keywords)]
                for name, value in given:
                    found.setdefault((function, str(name)), []).append((there, value))
    return found


def _stored(target: ast.expr) -> Iterator[ast.Name | ast.Attribute]:
    """The names and attributes that are assigned to: of `runs["a"]`, `runs`."""
    if isinstance(target, ast.Tuple | ast.List):
        for each in target.elts:
            yield from _stored(each)
    elif isinstance(target, ast.Subscript | ast.Starred):
        yield from _stored(target.value)
    elif isinstance(target, ast.Name | ast.Attribute):
        yield target


def _key(script: Script, node: ast.Name | ast.Attribute) -> _Key:
    if isinstance(node, ast.Attribute):
        return None, f".{node.attr}"
    scope = script.scope(node)
    arguments = getattr(scope, "args", None)
    parts = ast.walk(arguments) if arguments is not None else ()
    given = any(each.arg == node.id for each in parts if isinstance(each, ast.arg))
    local = given or (scope, node.id) in script.stores
    return (scope if isinstance(scope, _Function) and local else None), node.id
