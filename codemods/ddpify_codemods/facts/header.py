"""Where a file's leading imports end, and whether it runs anything when it is imported."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from .flow.program import Program
    from .script import Script

# Calls that prepare the interpreter; they stand between imports in real scripts (sys.path.append, …).
_SETUP_CALLS = (
    "sys.",
    "get_ipython",
    "warnings.",
    "matplotlib.",
    "mpl.",
    "plt.switch_backend",
    "plt.ion",
    "plt.style.",
)
_SETUP_VALUES = ("os.environ", "os.path.", "os.getcwd", "Path(", "Path", "pathlib.", "str")
_IMPORTS = (ast.Import, ast.ImportFrom)
# What these do is the same before and after the process group is joined, as is what is made of it by its methods.
_DECLARATIONS = ("argparse.ArgumentParser", "logging.getLogger")
_DECLARING = (*_DECLARATIONS, "logging.basicConfig", "logging.StreamHandler", "logging.Formatter")
# Naming a device, or asking whether there is one, needs no process group, nor that the rank has chosen its own.
_DEVICES = ("torch.device", "torch.cuda.is_available", "torch.backends.mps.is_available")
_DECLARING_METHODS = ("add_argument", "add_argument_group", "set_defaults", "setLevel")


def last_leading_import(tree: ast.Module, before: float = float("inf")) -> ast.stmt | None:
    """The top-level statement after which new imports go.

    Args: the file; the line that needs them first.
    Returns the last import (or block of imports) of the leading run of docstring, imports and simple set-up
    statements; the docstring where no import follows it; None in a file that starts with neither.
    """
    last: ast.stmt | None = None
    for statement in tree.body:
        if (statement.end_lineno or statement.lineno) >= before:
            break
        if _is_import(statement) or (last is None and is_docstring(statement)):
            last = statement
        elif not _is_setup(statement):
            break
    return last


def main_guard(tree: ast.Module) -> ast.If | None:
    """The last top-level `if __name__ == "__main__":` of a file."""
    guards = [node for node in tree.body if isinstance(node, ast.If) and is_guard_test(node.test)]
    return guards[-1] if guards else None


def option_around(script: Script, node: ast.AST) -> ast.expr | None:
    """The condition under which alone a node is run: `if args.fp16: from apex import amp`; None for what always is."""
    guard = main_guard(script.tree)
    for parent in script.ancestors(node):
        if isinstance(parent, ast.If) and parent is not guard and not isinstance(parent.test, ast.Constant):
            return parent.test
    return None


def module_level_work(tree: ast.Module) -> list[ast.stmt]:
    """The top-level statements that do something when the file is run, other than the main guard.

    Imports, definitions, docstrings, simple set-up and assignments of constants do nothing.
    """
    quiet = (*_IMPORTS, ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Pass)
    guard = main_guard(tree)
    return [
        node
        for node in tree.body
        if not isinstance(node, quiet)
        and node is not guard
        and not is_docstring(node)
        and not _is_import(node)
        and not _is_setup(node)
    ]


def declares(script: Script, node: ast.stmt) -> bool:
    """Whether a statement only declares something: the command's arguments, a logger."""
    if not isinstance(node, (ast.Assign, ast.AnnAssign, ast.Expr)):
        return False
    calls = [call for call in ast.walk(node) if isinstance(call, ast.Call)]
    return all(_declares(script, call) for call in calls)


def _declares(script: Script, call: ast.Call) -> bool:
    if script.qualified(call.func) in _DECLARING:
        return not any(keyword.arg in ("filename", "handlers", None) for keyword in call.keywords)
    if not isinstance(call.func, ast.Attribute) or call.func.attr not in _DECLARING_METHODS:
        return False
    made = [
        node.value
        for node in script.tree.body
        if isinstance(node, ast.Assign)
        and [ast.unparse(each) for each in node.targets] == [ast.unparse(call.func.value)]
    ]
    return bool(made) and all(
        isinstance(value, ast.Call) and script.qualified(value.func) in _DECLARATIONS for value in made
    )


def is_docstring(node: ast.stmt) -> bool:
    """Whether a statement is a string that stands alone."""
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)


def is_guard_test(test: ast.expr) -> bool:
    """Whether a condition asks if a file is the one that was started: `__name__ == "__main__"`."""
    return (
        isinstance(test, ast.Compare)
        and len(test.comparators) == 1
        and isinstance(test.ops[0], ast.Eq)
        and {ast.unparse(test.left), ast.unparse(test.comparators[0])} == {"__name__", "'__main__'"}
    )


def _is_import(node: ast.stmt) -> bool:
    if isinstance(node, ast.If) and not is_guard_test(node.test):
        inner = node.body + node.orelse
    elif isinstance(node, ast.Try):
        inner = [*node.body, *node.orelse, *node.finalbody, *(child for part in node.handlers for child in part.body)]
    else:
        return isinstance(node, _IMPORTS)
    harmless = (ast.Pass, ast.Raise)
    return any(_is_import(child) for child in inner) and all(
        _is_import(child) or _is_setup(child) or isinstance(child, harmless) or _is_print(child) for child in inner
    )


def _is_print(node: ast.stmt) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Call) and ast.unparse(node.value.func) == "print"


def _is_setup(node: ast.stmt) -> bool:
    if isinstance(node, ast.Pass):
        return True
    if isinstance(node, (ast.Assign, ast.AnnAssign, ast.AugAssign)):
        return node.value is None or _only_setup_calls(node.value)
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Call) and _only_setup_calls(node.value)


def _only_setup_calls(value: ast.expr) -> bool:
    calls = (node for node in ast.walk(value) if isinstance(node, ast.Call))
    return all(ast.unparse(call.func).startswith(_SETUP_CALLS + _SETUP_VALUES) for call in calls)


def functions_place(script: Script) -> tuple[ast.stmt, Literal["before", "after"]]:
    """Where functions go that the code of a file's top level may call: after its first imports, or at its begin."""
    anchor = last_leading_import(script.tree)
    return (script.tree.body[0], "before") if anchor is None else (anchor, "after")


def joined_after(script: Script) -> tuple[ast.stmt, Literal["before", "after"]]:
    """Where the process group is joined: at the begin of the main guard, or after the imports; above one of these that
    runs what asks for a rank."""
    known = script.program.joined_above if script.program is not None and script.is_entry else None
    return _joined_after(script, script.joined_above or known, script.program is not None)


def _joined_after(
    script: Script, above: ast.stmt | None, is_plain: bool
) -> tuple[ast.stmt, Literal["before", "after"]]:
    if above is not None:
        return above, "before"
    guard = main_guard(script.tree)
    work = module_level_work(script.tree)
    if guard is not None and all(declares(script, node) or (is_plain and _names_device(script, node)) for node in work):
        return guard.body[0], "before"
    return functions_place(script)


def _names_device(script: Script, node: ast.stmt) -> bool:
    """Whether a statement only names a device: `device = torch.device("cuda")`."""
    if not isinstance(node, ast.Assign | ast.AnnAssign):
        return False
    return all(script.qualified(each.func) in _DEVICES for each in ast.walk(node) if isinstance(each, ast.Call))


def is_in_group(script: Script, node: ast.expr | ast.stmt, program: Program | None = None) -> bool:
    """Whether the process group has been joined when an expression is computed, or a statement runs."""
    return runs_early(script, node, program) is None


def runs_early(script: Script, node: ast.expr | ast.stmt, program: Program | None = None) -> ast.stmt | None:
    """The statement at the top of the first file by which something runs before the process group is joined.

    Args: a file, and an expression or statement in it; its program, where the file does not know it.
    Returns None for what runs later.
    """
    program = script.program or program
    above = program.joined_above if program is not None else None
    inside = [each for each in script.ancestors(node) if isinstance(each, ast.FunctionDef | ast.Lambda)]
    if inside and node in _run_by_definition(inside[-1]):
        inside = []
    if script.is_entry:
        early = not inside and _is_before(script, node, *_joined_after(script, above, program is not None))
        return _at_top(script, node) if early else None
    guard = main_guard(script.tree)
    if program is None or any(each is guard for each in script.ancestors(node)):
        return None
    entry, imported = program.scripts[0], program.followed.found.imported
    if inside:
        own = {*ast.walk(inside[-1])} - _run_by_definition(inside[-1])
        runs = {imported[each] for each in own & imported.keys()}
    else:  # any local import may run a package on its way
        runs = {imported[script.tree]} if script.tree in imported else {*imported.values()}
    joined = _joined_after(entry, above, is_plain=True)
    before = [each for each in runs if each is not None and _is_before(entry, each, *joined)]
    return _at_top(entry, min(before, key=lambda each: each.lineno)) if before else None


def _is_before(script: Script, node: ast.expr | ast.stmt, at: ast.stmt, where: Literal["before", "after"]) -> bool:
    """Whether something in a file runs before what is put before or after a statement."""
    own, other = _at_top(script, node), _at_top(script, at)
    if own is other:
        return where == "after" or node.lineno < at.lineno
    return own.lineno < other.lineno


def _run_by_definition(function: ast.FunctionDef | ast.Lambda) -> set[ast.AST]:
    """What runs where a function is defined: its decorators and the defaults of its parameters."""
    around = [function.args, *getattr(function, "decorator_list", ())]
    return {part for each in around for part in ast.walk(each)}


def _at_top(script: Script, node: ast.AST) -> ast.stmt:
    """The statement at the top of a file in which something stands."""
    statement = [node, *script.ancestors(node)][-2]
    assert isinstance(statement, ast.stmt)
    return statement
