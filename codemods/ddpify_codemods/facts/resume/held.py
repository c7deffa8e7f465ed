"""What a training loop changes without assigning it: models, optimizers, schedulers, lists, objects of the script."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator

from ..bindings import arguments, bindings
from ..called_modules import last_name, root
from ..effects import opened_for_writing, writes
from ..optimizers import optimizers
from ..origins import origins
from ..script import Script
from .iterators import makes_iterator
from .liveness import free_names, loaded, stored
from .training import CallGraph, Loop

_DISPLAYS = (ast.List, ast.Dict, ast.Set, ast.ListComp, ast.DictComp, ast.SetComp)
_BUILT = {"list", "dict", "set", "defaultdict", "deque", "Counter", "OrderedDict", "deepcopy", "copy"}
_TENSORS = {"zeros", "ones", "empty", "full", "tensor", "rand", "randn", "zeros_like", "ones_like", "clone", "array"}
_GENERATORS = {"torch.Generator", "numpy.random.default_rng", "numpy.random.RandomState", "random.Random"}
_ASKING = {
    "print",
    "len",
    "range",
    "enumerate",
    "isinstance",
    "zip",
    "sum",
    "min",
    "max",
    "sorted",
    "float",
    "int",
    "str",
}
_SAME = {"to", "cuda", "cpu", "double", "float", "half", "train", "eval", "requires_grad_", "apply", "xpu", "compile"}
_SAME |= {"manual_seed"}  # of a generator
# Classes of libraries whose objects the loop only asks, or that the runtime sees elsewhere.
_ASKED = ("torch.utils.data.", "torch.device", "argparse.", "pathlib.", "logging.", "torchvision.", "torch.nn.init")
_PURE = {"items", "keys", "values", "get", "format", "join", "size", "parameters", "index", "count", "copy", "to"}


def objects(training: CallGraph, loop: Loop) -> list[str]:
    """The names, visible where the outermost loop begins, of what it changes, in the order in which they are made."""
    script, scope = loop.script, loop.scope
    body = loop.parts
    touched = _touched(script, body) | _touched_elsewhere(training, loop)
    made = bindings(script, scope)
    common = {} if isinstance(scope, ast.Module) else bindings(script, script.tree)
    functions = [each.node for each in training.reached(script, body) if each.script is script]
    names = loaded(*body) | frozenset().union(*map(free_names, functions))
    inside = set(ast.walk(loop.node))
    assigned = stored(*body)
    found = {}
    for name in names & touched:
        values = [value for value in made.get(name) or common.get(name) or () if not _is_looped_over(script, value)]
        if not values and name not in arguments(scope):
            continue
        if values and all(value in inside for value in values):
            continue  # made in the loop
        if name in assigned and any(isinstance(each, ast.Call) and makes_iterator(script, each) for each in values):
            continue  # carried
        line = min((value.lineno for value in values or ()), default=0)
        if name == "self" or _may_change(script, ast.Name(name, ast.Load()), values or passed_in(script, loop, name)):
            found[name] = line
    return sorted(found, key=lambda name: (found[name], name))


def passed_in(script: Script, loop: Loop, name: str) -> list[ast.expr]:
    """What the callers of the loop's function hand over for a parameter."""
    from ..origins import passed

    return [] if isinstance(loop.scope, ast.Module) else passed(script, loop.scope, name)


def local_objects(script: Script, loop: Loop, names: Iterable[str]) -> Iterator[str]:
    """Those of some variables of the loop's function whose objects its body changes."""
    touched = _touched(script, loop.parts)
    for name in names:
        values = [value for value in bindings(script, loop.scope).get(name, []) if not _is_looped_over(script, value)]
        if name in touched and values and _may_change(script, ast.Name(name, ast.Load()), values):
            yield name


def _touched_elsewhere(training: CallGraph, loop: Loop) -> frozenset[str]:
    """What functions of the file that the loop calls change of its module's variables."""
    script = loop.script
    functions = [each.node for each in training.reached(script, loop.parts) if each.script is script]
    return frozenset(name for each in functions for name in _touched(script, each.body) & free_names(each))


def _touched(script: Script, body: Iterable[ast.AST]) -> frozenset[str]:
    """The names whose objects some statements may change: by a method, an entry, an attribute, a call of them or one
    that is given them.
    """
    assigned = {node.id for node in script.find(ast.Name) if isinstance(node.ctx, ast.Store)}
    return frozenset(_changed(script, body)) - (set(script.imported) - assigned)  # optim = optim.SGD(…)


def _changed(script: Script, body: Iterable[ast.AST]) -> Iterator[str]:
    pure = _PURE - {
        method.name for each in script.find(ast.ClassDef) for method in each.body if isinstance(method, ast.FunctionDef)
    }
    for node in (inner for statement in body for inner in ast.walk(statement)):
        if isinstance(node, (ast.Subscript, ast.Attribute)) and not isinstance(node.ctx, ast.Load):
            yield root(node)
        elif isinstance(node, ast.AugAssign) and isinstance(node.target, ast.Name):
            yield node.target.id
        elif isinstance(node, ast.Call):
            if isinstance(node.func, ast.Attribute) and node.func.attr not in pure:
                yield root(node.func)
            elif isinstance(node.func, ast.Name):
                yield node.func.id  # a module, or another object that can be called
            given = [*node.args, *(word.value for word in node.keywords)]
            inner = [each for value in given if isinstance(value, (ast.List, ast.Tuple)) for each in value.elts]
            if _may_change_what_it_is_given(script, node):
                yield from (value.id for value in (*given, *inner) if isinstance(value, ast.Name))
            drawn = (word.value for word in node.keywords if word.arg == "generator")
            yield from (value.id for value in drawn if isinstance(value, ast.Name))


def _may_change_what_it_is_given(script: Script, call: ast.Call) -> bool:
    name = script.qualified(call.func)
    if name.startswith(("torch.", "math.")):
        in_place = name.endswith("_") and not name.endswith("__")  # torch._foreach_mul_(averages, decay)
        return in_place or any(word.arg == "out" for word in call.keywords)
    return name not in _ASKING


def _may_change(script: Script, name: ast.Name, values: list[ast.expr]) -> bool:
    """Whether what a name is made of can change while it is the same object."""
    if not values:
        return True  # handed over from where it cannot be seen
    sources = [source for value in values for source in origins(script, value)]
    return name.id in _trained(script) or any(_is_changeable(script, source) for source in sources)


def _is_looped_over(script: Script, value: ast.expr) -> bool:
    """Whether a name is bound to the items of it."""
    parent = script.parents.get(value)
    return isinstance(parent, ast.For) and parent.iter is value


def _trained(script: Script) -> set[str]:
    """The names that modules are reached by, whose parameters are given to optimizers."""
    return {base.code.partition(".")[0].partition("[")[0] for each in optimizers(script) for base in each.bases}


def _is_changeable(script: Script, value: ast.expr, depth: int = 4) -> bool:
    if isinstance(value, _DISPLAYS):
        return True
    if not isinstance(value, ast.Call):
        return False
    if value in {each.call for each in optimizers(script)}:
        return True
    if makes_iterator(script, value):
        return True
    name, last = script.qualified(value.func), last_name(value.func)
    if isinstance(value.func, ast.Attribute) and last in _SAME:
        made = origins(script, value.func.value)
        return bool(depth) and any(_is_changeable(script, source, depth - 1) for source in made)
    if name in _GENERATORS or last in _BUILT or last in _TENSORS:
        return True
    if name.startswith(_ASKED) or writes(script, value) or opened_for_writing(script, value) is not None:
        return False
    if name.startswith("torch.nn.") and name.endswith("Loss"):
        return False
    if last in _classes(script):
        return not any(base.startswith("torch.utils.data") for base in _classes(script)[last])
    if last in script.defined:  # a function, or a class of another file
        return last[:1].isupper()
    return last[:1].isupper() or name.startswith(("torchvision.models", "torch.hub", "timm."))


def _classes(script: Script) -> dict[str, list[str]]:
    return {node.name: [script.qualified(base) for base in node.bases] for node in script.find(ast.ClassDef)}
