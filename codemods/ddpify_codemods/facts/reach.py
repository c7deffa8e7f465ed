"""Whether what a script starts can come to a `.backward()`: by names, so rather once too often than once too seldom.

A script that imports a module with a training loop need not train: it may evaluate a model with another part of it.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache

from .header import main_guard
from .script import Script
from .tree import KEPT, of_kinds, walk

_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
_DEFINITIONS = (*_FUNCTIONS, ast.ClassDef)
_LOOKS_UP = frozenset({"getattr", "__import__", "eval", "exec", "globals", "locals", "vars"})
_GRADIENTS = frozenset({"backward", "grad", "grad_and_value"})
# Where one of these occurs, what is imported may be used without its name: `pkg.__dict__[name]()`, `fire.Fire(tasks)`.
_FINDS = frozenset(
    {"__dict__", "modules", "getmembers", "attrgetter", "methodcaller", "import_module", "locate", "Fire", "CLI"}
    | {"instantiate", "run_path", "run_module", "__init_subclass__", "__subclasses__"}
)
_CALLED_BY_PYTHON = frozenset({"forward"})  # besides __init__, __call__ and the like


def reaches_backward(scripts: Sequence[Script]) -> bool:
    """Whether a program may call `.backward()`.

    Args: its scripts, the one that is started first. All of that one counts as reached; of the others what runs when
    they are imported, and the functions, classes and methods whose names occur in something that is reached.
    """
    reached = _reached(scripts, is_imported_used=any(map(_finds_imported, scripts)))
    return any(names & _GRADIENTS or not is_known for _, names, is_known in reached)


def _finds_imported(script: Script) -> bool:
    """Whether a file may find what it imports by other ways than its name, or have its classes registered."""
    registers = any(node.keywords or node.decorator_list for node in script.find(ast.ClassDef))
    defined = (node.name for node in script.find(*_FUNCTIONS))
    return registers or not _FINDS.isdisjoint(defined) or not _FINDS.isdisjoint(all_names(script))


def never_used(scripts: Sequence[Script]) -> Mapping[Script, frozenset[str]]:
    """The functions at the top level of each imported file that nothing names which a program may reach.

    Args: its scripts, as for `reaches_backward`.
    """
    reached: set[ast.AST] = set()
    for node, _, is_known in _reached(scripts, is_imported_used=False):
        if not is_known:
            return {}
        reached.add(node)
    return {
        script: frozenset(
            node.name for node in script.tree.body if isinstance(node, _FUNCTIONS) and node not in reached
        )
        for script in scripts[1:]
    }


def reached_names(scripts: Sequence[Script], without: frozenset[ast.AST] = frozenset()) -> frozenset[str] | None:
    """The names in all that a program may reach; None where more may be used than its files name.

    Args: its scripts, as for `reaches_backward`; the classes and calls that do not count.
    """
    found: set[str] = set()
    for _, names, is_known in _reached(scripts, is_imported_used=False, without=without):
        if not is_known:
            return None
        found |= names
    return None if "__dict__" in found else frozenset(found)  # `models.__dict__[name]()`


def reached_code(scripts: Sequence[Script]) -> list[ast.AST] | None:
    """The statements and functions that a program may reach; None where more may be used than its files name.

    Args: its scripts, as for `reaches_backward`.
    """
    found = [*_reached(scripts, is_imported_used=False)]
    return [node for node, _, _ in found] if all(is_known for _, _, is_known in found) else None


def unused_networks(scripts: Sequence[Script]) -> frozenset[ast.AST]:
    """The classes derived from torch.nn.Module, in imported files, that nothing names which a program may reach."""
    names = reached_names(scripts)
    return frozenset(
        node
        for script in scripts[1:]
        for node in script.find(ast.ClassDef)
        if names is not None and node.name not in names and not node.decorator_list
        if [script.qualified(base) for base in node.bases] == ["torch.nn.Module"]
    )


def all_names(script: Script, without: frozenset[ast.AST] = frozenset()) -> Iterator[str]:
    """All names in a file: of variables, attributes and what is imported; `without` the classes and calls that do not
    count, and what is imported for them under its own name."""
    for node in script.nodes:
        if node in inside(without):
            continue
        if isinstance(node, ast.Attribute):
            yield node.attr
        elif isinstance(node, ast.Name):
            yield node.id
        elif isinstance(node, ast.alias) and (node.asname or not without):
            yield node.name


@lru_cache(maxsize=KEPT)
def inside(code: frozenset[ast.AST]) -> frozenset[ast.AST]:
    """All nodes of some classes and calls."""
    return frozenset(node for each in code for node in walk(each))


def _reached(
    scripts: Sequence[Script], is_imported_used: bool = True, without: frozenset[ast.AST] = frozenset()
) -> Iterator[tuple[ast.AST, frozenset[str], bool]]:
    """What a program may reach, with the names in it, and whether they are all that it can use.

    Args: its scripts; whether what is imported by its name counts as used; the classes and calls that do not count.
    """
    entry, *modules = scripts
    waiting: list[ast.AST] = [entry.tree, *(part for module in modules for part in _run_at_import(module.tree))]
    by_name: dict[str, list[ast.AST]] = {}
    libraries, own = _libraries(scripts), _own_lookups(scripts)
    for module in modules:
        for name, definitions in _definitions(module.tree).items():
            by_name.setdefault(name, []).extend(each for each in definitions if each not in without)
    while waiting:
        node = waiting.pop()
        names, is_known = _names(node, is_imported_used, without, libraries, own)
        yield node, names, is_known
        for name in names & by_name.keys():
            for definition in by_name.pop(name):
                waiting += _body(definition)


@lru_cache(maxsize=KEPT)
def _definitions(tree: ast.Module) -> Mapping[str, list[ast.AST]]:
    found: dict[str, list[ast.AST]] = {}
    with_class = {part for node in of_kinds(tree, (ast.ClassDef,)) for part in _called_by_python(node)}
    for node in of_kinds(tree, _DEFINITIONS):
        if node not in with_class:  # `super().__init__()` names those of all classes
            found.setdefault(node.name, []).append(node)  # type: ignore[attr-defined]
    return found


def _called_by_python(cls: ast.AST) -> list[ast.AST]:
    body = cls.body if isinstance(cls, ast.ClassDef) else []
    return [node for node in body if isinstance(node, _FUNCTIONS) and _is_called_by_python(node.name)]


@lru_cache(maxsize=KEPT)
def _run_at_import(tree: ast.Module) -> tuple[ast.AST, ...]:
    return tuple(_statements_at_import(tree))


def _statements_at_import(tree: ast.Module) -> Iterator[ast.AST]:
    guard = main_guard(tree)
    for node in tree.body:
        if isinstance(node, _DEFINITIONS):
            yield from node.decorator_list
            if node.decorator_list:  # it may be registered somewhere, under another name
                yield from _body(node)
        elif node is not guard:
            yield node


def _body(definition: ast.AST) -> Iterable[ast.AST]:
    """What runs when a definition is used: of a class, not its methods until they are named."""
    if not isinstance(definition, ast.ClassDef):
        return [definition]
    own = (node for node in definition.body if not isinstance(node, _DEFINITIONS) or _is_called_by_python(node.name))
    return [*definition.bases, *own]


def _is_called_by_python(name: str) -> bool:
    return name in _CALLED_BY_PYTHON or (name.startswith("__") and name.endswith("__"))


@lru_cache(maxsize=32 * KEPT)
def _names(
    node: ast.AST,
    is_imported_used: bool = True,
    without: frozenset[ast.AST] = frozenset(),
    libraries: frozenset[str] = frozenset(),
    own: frozenset[str] = frozenset(),
) -> tuple[frozenset[str], bool]:
    """The names in a part of a program, and whether they are all that it can use.

    Args: the part; as for _reached; the names that stand for libraries; the functions of the program's own that have
    the names of those that look something up.
    """
    names: set[str] = set()
    for part in walk(node):
        if part in inside(without):
            continue
        if isinstance(part, ast.Name):
            names.add(part.id)
        elif isinstance(part, ast.Attribute):
            names.add(part.attr)
        elif isinstance(part, ast.alias) and (is_imported_used or part.asname):
            names.add(part.name.rpartition(".")[2])
        elif isinstance(part, ast.Call) and _looks_up(part, own) and not _is_of_library(part, libraries):
            constant = part.args[1] if part.args[1:] else None
            if not (isinstance(constant, ast.Constant) and isinstance(constant.value, str)):
                return frozenset(), False
            names.add(constant.value)
    return frozenset(names), True


def _looks_up(call: ast.Call, own: frozenset[str]) -> bool:
    """Whether a call finds something by a name that is made in the run."""
    if isinstance(call.func, ast.Attribute):
        return call.func.attr in ("import_module", "methodcaller", "__subclasses__")
    return isinstance(call.func, ast.Name) and call.func.id in _LOOKS_UP - own


def _own_lookups(scripts: Sequence[Script]) -> frozenset[str]:
    """The names of functions such as `eval` that each file which calls them defines itself."""
    called = [(script, node.id) for script in scripts for node in script.find(ast.Name) if node.id in _LOOKS_UP]
    defined = {script: {getattr(node, "name", "") for node in script.tree.body} for script, _ in called}
    return frozenset(name for _, name in called) - {name for script, name in called if name not in defined[script]}


def _libraries(scripts: Sequence[Script]) -> frozenset[str]:
    """The names that stand for libraries, or for parts of them, in all files of a program, and for nothing else."""
    files = {part for script in scripts for part in (script.path.stem, script.path.parent.name)}
    named = [each for script in scripts for each in script.imported.items()]
    own = {name for name, meant in named if not files.isdisjoint(meant.split("."))}
    stored = {name for script in scripts for _, name in script.stores}
    given = {each.arg for script in scripts for each in script.find(ast.arg)}
    return frozenset(name for name, _ in named) - own - stored - given


def _is_of_library(call: ast.Call, libraries: frozenset[str]) -> bool:
    """Whether it is `getattr(models, name)` or `eval("datasets." + name)`, of a library."""
    if isinstance(call.func, ast.Name) and call.func.id == "getattr":
        return bool(call.args) and isinstance(call.args[0], ast.Name) and call.args[0].id in libraries
    text = call.args[0] if call.args and isinstance(call.func, ast.Name) and call.func.id == "eval" else None
    while isinstance(text, ast.BinOp) and isinstance(text.op, ast.Add):
        text = text.left
    if isinstance(text, ast.JoinedStr) and text.values:
        text = text.values[0]
    start = text.value if isinstance(text, ast.Constant) and isinstance(text.value, str) else ""
    return start.partition(".")[0] in libraries and "." in start


def run_alone(scripts: Sequence[Script], script: Script) -> frozenset[ast.AST]:
    """The functions at the top level of an imported file that can only run when that file is started itself.

    Args: the program; the file. Others have to take names from it (`from main_ce import set_loader`), and neither those
    of them that the program comes to, nor anything that runs at its import, come to the functions.
    """
    if script is scripts[0]:
        return frozenset()
    reached = _run_in_program(tuple(scripts))
    return frozenset(node for node in script.tree.body if isinstance(node, _FUNCTIONS) and node not in reached)


@lru_cache(maxsize=4)  # asked for each file of a program
def _run_in_program(scripts: tuple[Script, ...]) -> frozenset[ast.AST]:
    """What runs when files are imported, and the definitions at their top level that this and the first file come to.

    A file that another one takes whole, or in which something is looked up by a name that is made in the run
    (`globals()[name]`), counts as run with all that it imports; so does the first.
    """
    by_name = any(name in script.text for script in scripts for name in ("import_module", "__import__"))
    whole = [each for each in scripts if by_name or any(_takes_whole(other, each) for other in scripts)]
    taken = [(script, name) for script in (scripts[0], *whole) for name in _all_of(script)]
    waiting: list[tuple[Script, ast.AST]] = [(scripts[0], node) for node in scripts[0].tree.body]
    waiting += [(script, node) for script in scripts[1:] for node in _run_at_import(script.tree)]
    waiting += [(each, node) for each in scripts for node in each.tree.body if getattr(node, "decorator_list", ())]
    waiting += [(each, part) for each in scripts for node in each.tree.body for part in _when_defined(node)]
    guards = ((each, main_guard(each.tree)) for each in scripts)
    waiting += [(each, part) for each, guard in guards if guard is not None for part in guard.orelse]
    libraries = _libraries(scripts)
    reached: set[ast.AST] = set()
    seen: set[tuple[Script, str]] = set()
    while waiting or taken:
        if waiting:
            script, node = waiting.pop()
            if node not in reached:
                reached.add(node)
                taken += [(script, part.id) for part in walk(node) if isinstance(part, ast.Name)]
                taken += [(script, name) for part in walk(node) for name in _imported_by_class(part)]
                taken += (
                    [(script, name) for name in _all_of(script)] if not _names(node, libraries=libraries)[1] else []
                )
        elif (found := taken.pop()) not in seen:
            seen.add(found)
            script, name = found
            waiting += [(script, node) for node in script.tree.body if getattr(node, "name", "") == name]
            taken += [(other, there) for other in scripts for there in _named_there(script, name, other)]
    return frozenset(reached)


def _when_defined(node: ast.AST) -> Iterator[ast.AST]:
    """What runs when a statement at the top level of a file defines something."""
    if isinstance(node, _FUNCTIONS):
        yield from (each for each in (*node.args.defaults, *node.args.kw_defaults) if each is not None)
    elif isinstance(node, ast.ClassDef):
        yield from (*node.bases, *(each.value for each in node.keywords))
        for part in node.body:
            yield from _when_defined(part) if isinstance(part, _DEFINITIONS) else [part]


def _imported_by_class(node: ast.AST) -> Iterator[str]:
    """The names that a class imports in its body, and has as attributes."""
    for part in node.body if isinstance(node, ast.ClassDef) else ():
        if isinstance(part, ast.Import | ast.ImportFrom):
            yield from (alias.asname or alias.name for alias in part.names)


def _all_of(script: Script) -> Iterator[str]:
    """The names of a file's definitions, and those that its imports give."""
    yield from (node.name for node in script.tree.body if isinstance(node, _DEFINITIONS))
    yield from (alias.asname or alias.name for node in script.imports for alias in node.names)


def _named_there(script: Script, name: str, other: Script) -> Iterator[str]:
    """What a name of a file is called in another one, if it comes from there."""
    for node in script.imports:
        if _is_from(node, other):
            yield from (alias.name for alias in node.names if name == (alias.asname or alias.name))


def _takes_whole(script: Script, other: Script) -> bool:
    """Whether a file takes another one itself, or all of its names."""
    for node in script.imports:
        names = {alias.name.rpartition(".")[2] for alias in node.names}
        of_folder = isinstance(node, ast.Import) and other.path.parent.name in names
        if _stem(other) in names or of_folder or ("*" in names and _is_from(node, other)):
            return True
    return False


def _is_from(node: ast.AST, other: Script) -> bool:
    """Whether an import takes names from a file, or from the package that it begins: `from . import train`."""
    if not isinstance(node, ast.ImportFrom):
        return False
    is_package = other.path.name == "__init__.py"
    return node.module.rpartition(".")[2] == _stem(other) if node.module else is_package


def _stem(script: Script) -> str:
    return script.path.parent.name if script.path.name == "__init__.py" else script.path.stem
