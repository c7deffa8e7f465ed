"""Functions that training and an undivided evaluation measure with: those of training get the batch of all ranks.

So do the methods of an object that keeps batches for one that measures: `metric.update(out, y)`, `metric.compute()`.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable

from ..called_modules import last_name
from ..script import Script
from .extended import of_samples
from .frames import FlowFacts
from .held_values import local_entries, settled
from .values import ADDITIVE, LOCAL_ROWS, Function, Items, Value

_DEPTH = 4  # of the functions that are called in each other
_PLAIN = frozenset({"__init__", "__call__", "__len__", "__str__", "__repr__"})
_PUT_IN = frozenset({"add", "append", "appendleft", "extend", "insert", "put"})
_CUTS = frozenset({"detach", "data", "item", "tolist", "numpy", "argmax", "argmin", "size", "shape", "len"})
_OF_LISTS = frozenset({"append", "extend", "insert", "remove", "pop", "clear", "sort", "reverse", "shuffle"})


def measures(function: Value, given: list[Value], found: Value) -> Function | None:
    """The program's function that makes numbers of samples, or nothing; None for another one."""
    functions = [thing for thing in function.things if isinstance(thing, Function)]
    alone = len(functions) == len(function.things) == 1 and not isinstance(functions[0].node, ast.Lambda)
    has_rows = any(value.kind in LOCAL_ROWS or of_samples(value) for value in given)
    lists = all(isinstance(thing, Items) for thing in found.things)
    gives = found.kind in ("same", *ADDITIVE) and lists and not local_entries(found)
    return functions[0] if alone and has_rows and gives else None


def shows_each(function: Value, given: list[Value], found: Value) -> ast.AST | None:
    """The program's function that is given samples and gives back none, as one that draws each: `for series in batch`;
    None for another one."""
    functions = [thing for thing in function.things if isinstance(thing, Function)]
    alone = len(functions) == len(function.things) == 1 and not isinstance(functions[0].node, ast.Lambda)
    has_rows = any(value.kind in LOCAL_ROWS for value in given)
    return functions[0].node if alone and has_rows and not (found.is_local or local_entries(found)) else None


def passes_samples(given: Iterable[Value], found: Value) -> bool:
    """Whether a call gets samples, or gives back what is no number of them, or has gradients."""
    out = found.is_local and found.kind not in ADDITIVE
    held = out or local_entries(found) or bool(found.forwards or found.bypasses)
    return held or any(each.kind in LOCAL_ROWS or of_samples(each) or local_entries(each) for each in given)


def has_only_lists(given: Iterable[Value]) -> bool:
    """Whether samples of which numbers are made are those of whole epochs, in lists, and none of a batch."""
    return not any(value.kind in LOCAL_ROWS for value in given)


def given_whole(found: FlowFacts) -> set[ast.expr]:
    """The calls in training of functions in which samples are read, of training and of an evaluation that is not
    divided: what brings them together within would do so in the evaluation, too."""
    both = found.reductions.keys() & found.read_same
    of_rows = {node for node in both if any(each.kind == "rows" for each in found.reductions[node])}
    of_sums = {node for node in both if any(each.kind == "sum" for each in found.reductions[node])}
    measuring = {each for each in _functions(found, of_rows) if not _stores_gradients(each, found)}
    reading = _calls_of(measuring | _keeping(found, of_rows), found)
    return reading | (_calls_of(_functions(found, of_sums), found) - found.given_lists)


def _functions(found: FlowFacts, nodes: Iterable[ast.expr]) -> set[ast.AST]:
    return {found.scripts[node].scope(node) for node in nodes}


def _calls_of(functions: Iterable[ast.AST], found: FlowFacts) -> set[ast.expr]:
    return {call for function in functions for call in found.measuring.get(function, ())}


def _keeping(found: FlowFacts, nodes: Iterable[ast.expr]) -> set[ast.AST]:
    """The methods by which the objects get what they keep that read something in others, where nothing but numbers
    comes out of them: samples of all ranks would meet those of a rank there, and have no gradients."""
    read = {found.scripts[node].parents.get(found.scripts[node].scope(node)) for node in nodes}
    keeping: set[ast.AST] = set()
    for cls in read:
        family = _family(cls, found) if isinstance(cls, ast.ClassDef) else set()
        methods = {each for one in family for each in one.body if isinstance(each, ast.FunctionDef)}
        if methods and not _gives_samples(family, methods, found):
            keeping |= {each for each in methods & found.measuring.keys() if not _keeps_gradients(each, found)}
    return keeping


def _keeps_gradients(method: ast.FunctionDef, found: FlowFacts) -> bool:
    """Whether a method may keep something through which gradients would pass, of what it is given in training."""
    return _have_gradients(method, ast.walk(method), found)


def _stores_gradients(function: ast.AST, found: FlowFacts) -> bool:
    """Whether a function puts such a thing somewhere, as `self.kept.append(out)` does, whatever it gives back."""
    if not isinstance(function, ast.FunctionDef):
        return False
    own = {call for several in found.called_with.values() for call, _ in several}
    stored = [value for value in _stored(function) if value not in own]  # what that keeps is seen in it
    return _have_gradients(function, (part for value in stored for part in ast.walk(value)), found)


def _stored(function: ast.FunctionDef) -> Iterable[ast.expr]:
    """What a function gives attributes, and puts into lists and the like."""
    for part in ast.walk(function):
        if isinstance(part, ast.Assign | ast.AnnAssign) and part.value is not None:
            targets = part.targets if isinstance(part, ast.Assign) else [part.target]
            if any(isinstance(each, ast.Attribute) for target in targets for each in ast.walk(target)):
                yield part.value
        elif isinstance(part, ast.Call) and isinstance(part.func, ast.Attribute) and part.func.attr in _PUT_IN:
            yield from part.args


def _have_gradients(function: ast.FunctionDef, parts: Iterable[ast.AST], found: FlowFacts) -> bool:
    """Whether any of some parts of a function is what a model made, with its gradients: `out`, not `out.detach()`."""
    names = _made_by_models(function, found)
    own = {call for several in found.called_with.values() for call, _ in several}
    named = {call.func for call in own}
    around = [part for part in ast.walk(function) if isinstance(part, ast.Attribute | ast.Call)]
    cuts = [part for part in around if last_name(part.func if isinstance(part, ast.Call) else part) in _CUTS]
    cut = {part for each in cuts if each not in own and each not in named for part in ast.walk(each)}
    return any(isinstance(part, ast.Name) and part.id in names and part not in cut for part in parts)


def _made_by_models(function: ast.FunctionDef, found: FlowFacts) -> set[str]:
    """The parameters of a function that get what models have made, in training."""
    names = [each.arg for each in (*function.args.posonlyargs, *function.args.args)]
    if any(function in cls.body for cls in found.bases):
        names = names[1:]
    words = {each.arg for each in function.args.kwonlyargs} | {*names}
    given = {key for call in found.measuring.get(function, ()) for key in found.with_gradients.get(call, ())}
    known = {names[key] if isinstance(key, int) and key < len(names) else str(key) for key in given}
    return known if known <= words else words


def _family(cls: ast.ClassDef, found: FlowFacts) -> set[ast.ClassDef]:
    """A class, its base classes and those that are derived from one of them."""
    family, known = {cls}, set[ast.ClassDef]()
    while family != known:
        known = {*family}
        family = family.union(*(found.bases.get(each, ()) for each in known))
        family |= {each for each, bases in found.bases.items() if bases & known}
    return family


def _gives_samples(family: set[ast.ClassDef], methods: set[ast.FunctionDef], found: FlowFacts) -> bool:
    """Whether samples may come out of the objects of some classes, or into them by other calls than those that are
    given samples of all ranks."""
    inside = {part for cls in family for part in ast.walk(cls)}
    if any(each.decorator_list or (each.name.startswith("__") and each.name not in _PLAIN) for each in methods):
        return True
    reads = (sites for (cls, _), sites in found.attributes_read.items() if cls in family)
    if any(site is None or site.node not in inside for sites in reads for site in sites):
        return True
    calls = {call for each in methods for call, _ in found.called_with.get(each, ())}
    return bool(calls & found.with_samples - inside)


def of_all(value: Value) -> Value:
    """A batch of all ranks, or a list with a number for each sample, in the place of this rank's."""
    samples = of_samples(value)
    if samples is None and local_entries(value):
        return settled(value)
    value = value if samples is None else samples
    return Value(host=value.host, dimensions=value.dimensions, whole=True) if value.is_local else value


def changes_parameters(given: Function, found: FlowFacts, is_method: bool = False, lists: bool = False) -> bool:
    """Whether a function, or one that it calls, may change what it is given in place.

    lists: whether lists are among that. is_method: whether its first parameter is the object that it is called on,
    which is no copy: that may get other attributes, and add to those that are not given a value here, and so are none
    of what is given.
    """
    function = given.node
    inner = _with_inner(function, found, _DEPTH)
    given_here = _given_values(inner)
    changed = _added_to({function, *found.called_with}) | _set_by_methods(given.script)
    if is_method and not _kept_parameters(inner).isdisjoint(changed):
        return True
    if lists and any(map(_changes_list, inner)):
        return True
    return _changes(function, found, is_method, given_here, _DEPTH)


def _changes_list(function: ast.AST) -> bool:
    """Whether a function may change a list that it is given, or gives it another name by which it may be changed:
    `found.sort()`, `shuffle(found)`, `self.found = found`."""
    assert isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda)
    names = {each.arg for each in ast.walk(function.args) if isinstance(each, ast.arg)}
    for part in ast.walk(function):
        held: list[ast.expr] = []
        if isinstance(part, ast.Assign | ast.AnnAssign | ast.NamedExpr) and part.value is not None:
            held = part.value.elts if isinstance(part.value, ast.Tuple | ast.List) else [part.value]
        elif isinstance(part, ast.Call) and last_name(part.func) in _OF_LISTS:
            held = [*part.args, *([part.func.value] if isinstance(part.func, ast.Attribute) else [])]
        if any(isinstance(each, ast.Name) and each.id in names for each in held):
            return True
    return False


def _changes(function: ast.AST, found: FlowFacts, is_method: bool, given_here: set[str], depth: int) -> bool:
    assert isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda)
    names = {each.arg for each in ast.walk(function.args) if isinstance(each, ast.arg)}
    parts = [*ast.walk(function)]
    this = function.args.args[0].arg if is_method and function.args.args else ""
    own = {part for part in parts if isinstance(part, ast.Attribute) and ast.unparse(part.value) == this}
    for part in parts:
        changed: ast.expr | None = None
        if isinstance(part, ast.Subscript | ast.Attribute) and not isinstance(part.ctx, ast.Load):
            changed = None if part in own else part.value
        elif isinstance(part, ast.AugAssign):
            added = part.target.attr if isinstance(part.target, ast.Attribute) and part.target in own else ""
            changed = None if added and added not in given_here else part.target
        elif isinstance(part, ast.Call) and isinstance(part.func, ast.Attribute) and part.func.attr.endswith("_"):
            changed = part.func.value
        if changed is not None and any(isinstance(each, ast.Name) and each.id in names for each in ast.walk(changed)):
            return True
    if depth == 0:
        return True
    for inner, several in found.called_with.items():
        calls = [call for call, _ in several if call in parts] if inner is not function else []
        if calls and _changes(inner, found, _is_own(inner, calls, this), given_here, depth - 1):
            return True
    return False


def _with_inner(function: ast.AST, found: FlowFacts, depth: int) -> set[ast.AST]:
    """A function, and those that are called in it."""
    parts = {*ast.walk(function)}
    calls = found.called_with.items() if depth else ()
    inner = [other for other, several in calls if other is not function and any(call in parts for call, _ in several)]
    return {function}.union(*(_with_inner(each, found, depth - 1) for each in inner))


def _given_values(functions: Iterable[ast.AST]) -> set[str]:
    """The attributes that are given a value in some functions, but for those that something is added to."""
    parts = [part for function in functions for part in ast.walk(function)]
    added = {part.target for part in parts if isinstance(part, ast.AugAssign)}
    return {
        part.attr
        for part in parts
        if isinstance(part, ast.Attribute) and not isinstance(part.ctx, ast.Load) and part not in added
    }


def _kept_parameters(functions: Iterable[ast.AST]) -> set[str]:
    """The attributes that functions set to a parameter, or to what may be a view of one, or put that in:
    `self.kept = out.detach()`, `self.kept.append(out)`."""
    found: set[str] = set()
    for function in functions:
        assert isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda)
        names = {each.arg for each in ast.walk(function.args) if isinstance(each, ast.arg)}
        for part in ast.walk(function):
            targets: list[ast.expr] = []
            value = part.value if isinstance(part, ast.Assign | ast.AnnAssign) else None
            if isinstance(part, ast.Assign | ast.AnnAssign):
                targets = part.targets if isinstance(part, ast.Assign) else [part.target]
            elif isinstance(part, ast.Call) and isinstance(part.func, ast.Attribute) and part.func.attr in _PUT_IN:
                value, targets = (part.args[-1] if part.args else None), [part.func.value]
            if value is None or isinstance(value, ast.BinOp | ast.UnaryOp | ast.Compare):
                continue
            if any(isinstance(each, ast.Name) and each.id in names for each in ast.walk(value)):
                found |= {
                    each.attr for target in targets for each in ast.walk(target) if isinstance(each, ast.Attribute)
                }
    return found


def _set_by_methods(script: Script) -> set[str]:
    """The properties of a file's classes that can be set: `@last.setter`."""
    decorated = ((each, mark) for each in script.find(ast.FunctionDef) for mark in each.decorator_list)
    return {each.name for each, mark in decorated if isinstance(mark, ast.Attribute) and mark.attr == "setter"}


def _added_to(functions: Iterable[ast.AST]) -> set[str]:
    """The attributes that functions change in place: `self.kept *= 2`, `self.kept[0] = 0`, `self.kept.zero_()`."""
    found: set[str] = set()
    for part in (each for function in functions for each in ast.walk(function)):
        changed: ast.expr | None = None
        if isinstance(part, ast.AugAssign):
            changed = part.target
        elif isinstance(part, ast.Subscript) and not isinstance(part.ctx, ast.Load):
            changed = part.value
        elif isinstance(part, ast.Call) and isinstance(part.func, ast.Attribute) and part.func.attr.endswith("_"):
            changed = part.func.value
        if changed is not None:
            found |= {each.attr for each in ast.walk(changed) if isinstance(each, ast.Attribute)}
    return found


def _is_own(function: ast.AST, calls: Iterable[ast.Call], this: str) -> bool:
    """Whether a function is a method of the same object in some calls: `self.reset()`."""
    return not getattr(function, "decorator_list", [function]) and all(
        isinstance(call.func, ast.Attribute) and ast.unparse(call.func.value) == this for call in calls
    )
