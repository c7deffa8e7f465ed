"""Where code sees that a model is inside an nn.DataParallel: by the order of modules, or by `module.` in names."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from .called_modules import last_name
from .origins import origins
from .script import Script

# The methods of a model that show its parts, or the names of these.
SHOWS = frozenset(
    {"children", "named_children", "modules", "named_modules", "named_parameters", "named_buffers"}
    | {"state_dict", "load_state_dict", "get_submodule", "get_parameter", "get_buffer"}
)
_PREFIX = "module."
_PAIRS = frozenset({"named_modules", "named_parameters", "named_buffers", "items"})
_PASSED = frozenset({"list", "tuple", "dict", "OrderedDict", "sorted", "iter", "reversed", "enumerate", "tqdm", "copy"})
_OF_EACH = frozenset({"parameters", "train", "eval", "apply", "requires_grad_", "zero_grad"})
_SPLITS = frozenset({"split", "rsplit", "partition", "rpartition"})
_ANCHORED = frozenset({"re.match", "re.fullmatch", "fnmatch.fnmatch"})


def sees_wrapper(script: Script, node: ast.Call | ast.Attribute) -> bool:
    """Whether what a model shows of itself, as a method in `SHOWS` or `_modules`, is asked for what it is not without
    nn.DataParallel."""
    name = last_name(node.func if isinstance(node, ast.Call) else node)
    if not isinstance(node, ast.Call):
        return True
    if name in ("children", "named_children"):
        return not _only_of_each(script, node)
    if name == "modules":
        return not any(isinstance(each, ast.For | ast.comprehension) for each in _ends(script, node, plain=True))
    if name == "load_state_dict":
        return bool(node.args) and any(map(_adds_prefix, _keys(script, node.args[0])))
    if name.startswith("get_"):
        return any(_begins(each) for each in node.args)
    looked_up = (each for each in _ends(script, node) if isinstance(each, ast.Subscript | ast.Compare))
    keys = (each.slice if isinstance(each, ast.Subscript) else each.left for each in looked_up)
    return any(map(_begins, keys)) or any(_is_asked(script, each) for each in _names(script, node))


def _only_of_each(script: Script, call: ast.Call) -> bool:
    """Whether all that is done with the children of a model holds for the model, too: `child.parameters()`."""
    loop = script.parents[call]
    if not isinstance(loop, ast.For | ast.comprehension):
        return False
    *names, child = [each.id for each in ast.walk(loop.target) if isinstance(each, ast.Name)]
    uses = [script.parents[each] for each in _loads(script, child, loop)]
    asked = any(_loads(script, each, loop) for each in names)
    return not asked and all(isinstance(each, ast.Attribute) and each.attr in _OF_EACH for each in uses)


def _loads(script: Script, name: str, loop: ast.AST) -> list[ast.Name]:
    """Where a variable of a loop is read in it."""
    around = script.parents[loop] if isinstance(loop, ast.comprehension) else loop
    named = (each for each in ast.walk(around) if isinstance(each, ast.Name) and each.id == name)
    return [each for each in named if isinstance(each.ctx, ast.Load)]


def _ends(script: Script, call: ast.expr, plain: bool = False, depth: int = 4) -> Iterator[ast.AST]:
    """What takes the names or parts that a call gives: loops, subscripts, comparisons, functions.

    plain: only where those are taken as they come, not counted.
    """
    parent = script.parents[call]
    if isinstance(parent, ast.Attribute) and parent.attr in ("items", "keys", "copy"):
        yield from _ends(script, script.parents[parent], plain, depth)  # type: ignore[arg-type]
    elif isinstance(parent, ast.Call) and last_name(parent.func) in _PASSED and call in parent.args:
        yield from () if plain and last_name(parent.func) == "enumerate" else _ends(script, parent, plain, depth)
    elif isinstance(parent, ast.Assign) and isinstance(parent.targets[0], ast.Name) and depth:
        scope, name = script.scope(parent), parent.targets[0].id
        for each in script.find(ast.Name):
            if each.id == name and isinstance(each.ctx, ast.Load) and script.scope(each) is scope:
                yield from _ends(script, each, plain, depth - 1)
    else:
        yield parent


def _names(script: Script, call: ast.Call) -> Iterator[ast.expr]:
    """The expressions that are the names of the parts that a call gives."""
    for taker in _ends(script, call):
        if isinstance(taker, ast.For | ast.comprehension):
            target, above = taker.target, {*map(_called, ast.walk(taker.iter))}
            if "enumerate" in above and isinstance(target, ast.Tuple):
                target = target.elts[-1]
            pairs = bool(above & _PAIRS) or _called(call) in _PAIRS
            if isinstance(target, ast.Tuple) and pairs:
                target, pairs = target.elts[0], False
            if isinstance(target, ast.Name):
                yield from _of_variable(script, _loads(script, target.id, taker), pairs)
        elif isinstance(taker, ast.Call):  # filter(lambda pair: "fc" in pair[0], model.named_parameters())
            for each in (*taker.args, *(word.value for word in taker.keywords)):
                if isinstance(each, ast.Lambda) and each.args.args:
                    read = [part for part in ast.walk(each.body) if isinstance(part, ast.Name)]
                    read = [part for part in read if part.id == each.args.args[0].arg]
                    yield from _of_variable(script, read, _called(call) in _PAIRS)


def _of_variable(script: Script, read: list[ast.Name], pairs: bool) -> Iterator[ast.expr]:
    for each in read:
        parent = script.parents[each]
        if not pairs:
            yield each
        elif isinstance(parent, ast.Subscript) and isinstance(parent.slice, ast.Constant) and parent.slice.value == 0:
            yield parent


def _called(node: ast.AST) -> str:
    return last_name(node.func) if isinstance(node, ast.Call) else ""


def _is_asked(script: Script, name: ast.expr) -> bool:
    """Whether something else comes of a name that does not begin with `module.`"""
    parent = script.parents[name]
    if isinstance(parent, ast.Subscript):
        return parent.value is name and _from_front(parent.slice) and not _is_guarded(script, parent, name)
    if isinstance(parent, ast.Compare) and len(parent.ops) == 1:
        return _is_compared(script, parent, name)
    if isinstance(parent, ast.Call):
        anchored = script.qualified(parent.func) in _ANCHORED
        searched = script.qualified(parent.func) == "re.search" and any(map(_overlaps, _texts(script, parent.args[0])))
        return anchored or searched
    call = script.parents[parent]
    if not isinstance(parent, ast.Attribute) or not isinstance(call, ast.Call) or call.func is not parent:
        return False
    return _by_method(script, parent.attr, call, name)


def _is_compared(script: Script, test: ast.Compare, name: ast.expr) -> bool:
    """Whether a comparison with a text comes to something else: `"module.fc" in name`, `name == "fc.weight"`."""
    other = test.comparators[0] if test.left is name else test.left
    texts = _texts(script, other)
    if isinstance(test.ops[0], ast.In | ast.NotIn) and test.left is not name:
        return any(map(_overlaps, texts)) and not _guards(script, test, name)
    return bool(texts)


def _by_method(script: Script, method: str, call: ast.Call, name: ast.expr) -> bool:
    texts = [text for each in call.args[:1] for text in _texts(script, each)]
    if method == "startswith":
        return not _guards(script, call, name)
    if method == "endswith":
        return any(map(_reaches_into, texts))
    if method in ("find", "index", "count"):
        return True
    if method == "replace":
        removes = len(call.args) > 1 and isinstance(call.args[1], ast.Constant) and call.args[1].value == ""
        return not removes and any(map(_reaches_into, texts))
    return method in _SPLITS and any(
        isinstance(each, ast.Subscript) and _from_front(each.slice) for each in _ends(script, call)
    )


def _from_front(index: ast.expr) -> bool:
    """Whether an index or a slice counts from the beginning: `[7:]`, `[0]`, not `[-1]`."""
    bounds = [index.lower, index.upper] if isinstance(index, ast.Slice) else [index]
    return any(each is not None and not isinstance(each, ast.UnaryOp) for each in bounds)


def _is_guarded(script: Script, part: ast.Subscript, name: ast.expr) -> bool:
    """Whether `name[7:]` is taken of those names alone that begin with it: `if name.startswith("module.")`."""
    within = script.statement(part)
    tests = [each.test for each in script.ancestors(part) if isinstance(each, ast.If | ast.IfExp)]
    tests += [test for each in ast.walk(within) if isinstance(each, ast.comprehension) for test in each.ifs]
    return any(_asks_for_prefix(each, name) for test in tests for each in ast.walk(test))


def _guards(script: Script, test: ast.expr, name: ast.expr) -> bool:
    """Whether it is asked whether a name begins with `module.` in order to take that away."""
    if not _asks_for_prefix(test, name):
        return False
    around = next(
        (each for each in script.ancestors(test) if isinstance(each, ast.If | ast.IfExp | ast.DictComp)), None
    )
    same = ast.unparse(name)
    parts = [each for each in ast.walk(around) if isinstance(each, ast.Subscript | ast.Attribute)] if around else []
    taken = (each for each in parts if ast.unparse(each.value) == same)
    return any(isinstance(each, ast.Subscript) or each.attr in ("replace", "removeprefix") for each in taken)


def _asks_for_prefix(node: ast.AST, name: ast.expr) -> bool:
    same = ast.unparse(name)
    asked = {f"{same}.startswith('{text}')" for text in ("module", _PREFIX)}
    return isinstance(node, ast.expr) and ast.unparse(node) in asked | {f"'{t}' in {same}" for t in ("module", _PREFIX)}


def _texts(script: Script, node: ast.expr) -> list[str]:
    """The texts that an expression may be, or list: those of `no_decay` in `any(each in name for each in no_decay)`."""
    above = (part for around in script.ancestors(node) for part in getattr(around, "generators", ()))
    looped = [each.iter for each in above if isinstance(node, ast.Name) and ast.unparse(each.target) == node.id]
    ways = (way for each in (node, *looped) for way in origins(script, each))
    made = (part for each in ways for part in (getattr(each, "elts", None) or [each]))
    return [each.value for each in made if isinstance(each, ast.Constant) and isinstance(each.value, str)]


def _overlaps(text: str) -> bool:
    """Whether a text may be in `module.fc`, and not in `fc`."""
    return text in _PREFIX or any(text.startswith(_PREFIX[at:]) for at in range(len(_PREFIX)))


def _reaches_into(text: str) -> bool:
    return _overlaps(text) and not text.startswith(".")


def _begins(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and isinstance(node.value, str) and node.value.startswith(_PREFIX)


def _keys(script: Script, state: ast.expr) -> Iterator[ast.expr]:
    """The keys of the dict that a model is to load."""
    yield from (each.key for each in origins(script, state) if isinstance(each, ast.DictComp))
    for each in script.find(ast.Subscript) if isinstance(state, ast.Name) else ():
        named = isinstance(each.value, ast.Name) and each.value.id == state.id  # type: ignore[attr-defined]
        if named and isinstance(each.ctx, ast.Store) and script.scope(each) is script.scope(state):
            yield from origins(script, each.slice)


def _adds_prefix(key: ast.expr) -> bool:
    """Whether a key is made to begin with `module.`: `"module." + name`, `f"module.{name}"`."""
    first = key.left if isinstance(key, ast.BinOp) else key.values[0] if isinstance(key, ast.JoinedStr) else None
    return first is not None and _begins(first)
