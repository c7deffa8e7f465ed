"""Where loops over training loaders give tensors the batch size by its name: `torch.ones(batch_size, 1)`."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping, Sequence

from ..bindings import Scope, arguments
from ..keyword_dictionaries import said
from ..script import Script
from .frames import FlowFacts
from .settled_entries import is_settled, key_of
from .values import Loader

# Every argument is a size, or the first one has them all.
_OF_SIZES = frozenset({"ones", "zeros", "rand", "randn", "empty", "new_zeros", "new_ones", "new_empty"})
_NOISE = frozenset({"rand", "randn"})
_CONSTANT = frozenset({"torch.ones", "torch.zeros", "torch.full"})
_KEPT = frozenset({"Variable", "cuda", "cpu", "to", "float", "type", "unsqueeze", "detach", "fill_"})
_VARIABLES = ast.Name | ast.Attribute | ast.Subscript
_LAYOUTS = frozenset({"view", "reshape", "expand", "repeat", "resize_"})


def batch_sizes(loader: Loader) -> list[ast.expr]:
    """The batch size that a loader is made with."""
    size = said(loader.script, loader.call).get("batch_size")
    return [*loader.call.args[1:2], *([size] if size is not None else [])]


def written_sizes(loader: Loader) -> list[tuple[ast.expr, Script]]:
    """The same, in a file; and what the function that makes the loader is given for it."""
    made = [(size, loader.script) for size in batch_sizes(loader)]
    return made if loader.given is None or loader.given in made else [*made, loader.given]


def own_sizes(
    scripts: Sequence[Script], found: FlowFacts, status: Mapping[Loader, str]
) -> dict[ast.expr, tuple[Loader, bool]]:
    """The expressions that may be a rank's part of the batch size where they stand, the loader whose, and whether they
    are: else they are an attribute of an object, `args.batch_size`, or an entry of a dict, `config["batch_size"]`, and
    it has to be the loader's.

    Args:
        scripts: the program. found: what is known of its loops. status: how each loader is divided.
    """
    sizes: dict[ast.expr, tuple[Loader, bool]] = {}
    loops = _training_loops(scripts, found, status)
    for loop, loaders in loops.items():
        script = next((each for each in scripts if loop in each.parents), None)
        if script is None:
            continue
        same_loops = {each for each, others in loops.items() if others == loaders}
        others = {each for each, loaders_there in found.loops.items() if not loaders_there <= loaders} - same_loops
        given = [*_given_sizes(loop), *_handed_on(loop, scripts), *_made_before(loop, script, same_loops)]
        own = [_multiplied(each) for each in given if others.isdisjoint(_between(script, each, loop))]
        for loader in loaders:
            for size, there in written_sizes(loader):
                if script is there and _has_one_meaning(script, size, scripts):
                    code = ast.unparse(size)
                    same = (node for node in own if ast.unparse(node) == code and _means(script, node, size))
                    sizes |= dict.fromkeys(same, (loader, True))
                if isinstance(size, ast.Constant):
                    same = (node for node in _drawn_sizes(script, loop) if node.value == size.value)
                    sizes |= dict.fromkeys(same, (loader, True))
                if isinstance(size, ast.Attribute) and not any(sets(each, size.attr) for each in scripts):
                    named = (each for each in own if _is_named(each, size.attr))
                    sizes |= {node: (loader, False) for node in named if node not in sizes}
                if isinstance(size, ast.Subscript) and key_of(size) and is_settled(scripts, there, size, None):
                    entries = (each for each in own if key_of(each) == key_of(size))
                    sizes |= {node: (loader, False) for node in entries if node not in sizes}
    return sizes


def _training_loops(
    scripts: Sequence[Script], found: FlowFacts, status: Mapping[Loader, str]
) -> dict[ast.AST, frozenset[Loader]]:
    """The loops over training loaders, those in which next() takes their batches, and those around the latter that
    train beside them: a generator after some steps of its critic."""
    over = {loop: frozenset(loaders) for loop, loaders in found.loops.items()}
    loops = {loop: each for loop, each in over.items() if {status.get(loader) for loader in each} == {"training"}}
    for loop, loaders in found.by_next.loops.items():
        script = next((each for each in scripts if loop in each.parents), None)
        if script is None or {status.get(each) for each in loaders} != {"training"}:
            continue
        inside, around = {*ast.walk(loop)}, [loop]
        for each in script.ancestors(loop):
            if isinstance(each, ast.FunctionDef | ast.AsyncFunctionDef):
                break
            if isinstance(each, ast.For | ast.While):
                trains = (part for part in ast.walk(each) if part in found.backwards and part not in inside)
                around += [each] if any(trains) else []
        for each in around:
            loops[each] = loops.get(each, frozenset()) | loaders
    return loops


def _between(script: Script, node: ast.AST, loop: ast.AST) -> Iterator[ast.AST]:
    """What a node in a loop stands in, as far as that loop; nothing for one that stands elsewhere."""
    around = [*script.ancestors(node)]
    return iter(around[: around.index(loop)] if loop in around else ())


def _multiplied(size: ast.expr) -> ast.expr:
    """What a whole number is multiplied with, `batch_size` of `2 * batch_size`; others themselves."""
    if isinstance(size, ast.BinOp) and isinstance(size.op, ast.Mult):
        for number, other in ((size.left, size.right), (size.right, size.left)):
            if isinstance(number, ast.Constant) and type(number.value) is int:
                return other
    return size


def multiplies(scripts: Sequence[Script], found: FlowFacts) -> bool:
    """Whether a loop over training batches gives tensors a multiple of the batch size: `torch.eye(2 * batch_size)`."""
    for loop, loaders in found.loops.items():
        script = next((each for each in scripts if loop in each.parents), None)
        sizes = {ast.unparse(size) for loader in loaders & found.training for size, _ in written_sizes(loader)}
        calls = [each for each in ast.walk(loop) if isinstance(each, ast.Call) and _last(each.func) == "eye"]
        given = [*_given_sizes(loop), *(each for call in calls for each in call.args)]
        for node in given if script is not None else ():
            sides = (node.left, node.right) if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mult) else ()
            if any(isinstance(each, _VARIABLES) and ast.unparse(each) in sizes for each in sides):
                return True
    return False


def _made_before(loop: ast.AST, script: Script, loops: set[ast.AST]) -> Iterator[ast.expr]:
    """What constant tensors are given as sizes that are made before a loop and used in loops like it alone:
    `real = torch.ones(batch_size, 1)`. What was drawn before would be the same on all ranks."""
    names = {node.id: node for node in ast.walk(loop) if isinstance(node, ast.Name) and is_load(node)}
    for statement in script.find(ast.Assign):
        targets = [each.id for each in statement.targets if isinstance(each, ast.Name) and each.id in names]
        if len(targets) != 1 or len(statement.targets) > 1 or loops & {*script.ancestors(statement)}:
            continue
        name, scope = targets[0], script.scope(statement)
        own = [each for each in script.find(ast.Name) if each.id == name and _scope(script, each) is scope]
        if not own or not _is_constant(script, statement.value) or _scope(script, names[name]) is not scope:
            continue
        if all(not is_load(each) or loops & {*script.ancestors(each)} or _is_moved(script, each) for each in own):
            yield from _given_sizes(statement.value)


def _is_constant(script: Script, node: ast.expr) -> bool:
    """Whether a tensor is made that holds one number, or nothing yet: `Variable(torch.ones(n, 1)).cuda()`."""
    functions = [each.func for each in ast.walk(node) if isinstance(each, ast.Call)]
    makes = [each for each in functions if script.qualified(each) in _CONSTANT or _last(each).endswith("Tensor")]
    return bool(makes) and all(each in makes or _last(each) in _KEPT for each in functions)


def _last(function: ast.expr) -> str:
    return function.attr if isinstance(function, ast.Attribute) else getattr(function, "id", "")


def _is_moved(script: Script, name: ast.Name) -> bool:
    """Whether a name is that of a tensor which is moved under its name: `real = real.cuda()`."""
    statement = script.statement(name)
    targets = [part for each in getattr(statement, "targets", ()) for part in ast.walk(each)]
    method = script.parents[name]
    return (
        isinstance(method, ast.Attribute)
        and method.attr in _KEPT
        and any(isinstance(each, ast.Name) and each.id == name.id for each in targets)
    )


def _handed_on(loop: ast.AST, scripts: Sequence[Script]) -> Iterator[ast.expr]:
    """What functions of the program are given that make tensors of such a size: `noise(args.batch_size, 8)`."""
    calls = [call for call in ast.walk(loop) if isinstance(call, ast.Call)]
    names = {_last(call.func) for call in calls}
    for script in scripts:
        for function in script.find(ast.FunctionDef):
            if function.name not in names:
                continue
            parameters = _parameters(function)
            used = {node.id for node in _given_sizes(function) if isinstance(node, ast.Name)}
            for call in calls:
                if _last(call.func) == function.name:
                    yield from (word.value for word in call.keywords if word.arg in used)
                    yield from (given for name, given in zip(parameters, call.args, strict=False) if name in used)


def _parameters(function: ast.FunctionDef) -> list[str]:
    """The parameters that a call gives by their place."""
    names = [each.arg for each in (*function.args.posonlyargs, *function.args.args)]
    return names[1:] if names[:1] in (["self"], ["cls"]) else names


def _is_named(node: ast.expr, attribute: str) -> bool:
    """Whether it is an attribute of that name, by whatever way to the object: `args.batch_size`,
    `self.args.batch_size`."""
    return isinstance(node, ast.Attribute) and node.attr == attribute


def sets(script: Script, attribute: str) -> bool:
    """Whether a file gives something an attribute of that name."""
    return any(node.attr == attribute and isinstance(node.ctx, ast.Store) for node in script.find(ast.Attribute))


def _given_sizes(loop: ast.AST) -> Iterator[ast.expr]:
    """What tensors are given as sizes in a loop."""
    for call in ast.walk(loop):
        if not isinstance(call, ast.Call):
            continue
        name = _last(call.func)
        given = [word.value for word in call.keywords if word.arg == "size"]
        if name in _OF_SIZES | _LAYOUTS:
            given += call.args
        elif name in ("full", "new_full"):
            given += call.args[:1]
        elif name in ("normal", "uniform", "randint"):  # behind two numbers
            given += call.args[2:3] or [each for each in call.args[1:] if isinstance(each, ast.Tuple)]
        elif name.endswith("Tensor"):
            yield from call.args  # a list would be what it holds
        for each in given:
            yield from each.elts if isinstance(each, ast.Tuple | ast.List) else [each]


def _drawn_sizes(script: Script, loop: ast.AST) -> Iterator[ast.Constant]:
    """How many rows of noise are drawn in a loop, where that is a number: 64 of `torch.randn(64, 100)`."""
    for call in ast.walk(loop):
        if not isinstance(call, ast.Call) or _last(call.func) not in _NOISE or not _goes_to_calls(script, loop, call):
            continue
        first = call.args[0] if call.args else None
        sizes = first.elts if isinstance(first, ast.Tuple | ast.List) else call.args
        if len(sizes) > 1 and isinstance(sizes[0], ast.Constant):
            yield sizes[0]


def _goes_to_calls(script: Script, loop: ast.AST, noise: ast.expr) -> bool:
    """Whether noise is given to calls alone, as to a generator: in `x + noise` it might be for what each sample has."""
    node, parent = _moved(script, noise)
    if isinstance(parent, ast.Assign) and len(parent.targets) == 1 and isinstance(parent.targets[0], ast.Name):
        name = parent.targets[0].id
        uses = [each for each in ast.walk(loop) if isinstance(each, ast.Name) and each.id == name and is_load(each)]
        return bool(uses) and all(_is_given(script, *_moved(script, each)) for each in uses)
    return _is_given(script, node, parent)


def _moved(script: Script, node: ast.expr) -> tuple[ast.expr, ast.AST]:
    """A tensor behind the methods that move it, and what it stands in: `torch.randn(64, 100).to(device)`."""
    while isinstance(method := script.parents[node], ast.Attribute) and method.attr in _KEPT:
        call = script.parents[method]
        if not isinstance(call, ast.Call) or call.func is not method:
            break
        node = call
    return node, script.parents[node]


def _is_given(script: Script, node: ast.expr, parent: ast.AST) -> bool:
    """Whether it is an argument of a call that is not one of torch's own functions."""
    if not isinstance(parent, ast.Call) or node not in parent.args:
        return False
    return not script.qualified(parent.func).startswith(("torch.", "numpy."))


def _has_one_meaning(script: Script, size: ast.expr, scripts: Sequence[Script] = ()) -> bool:
    """Whether a name, an attribute of one, or an entry of a dict is bound once where it is known; scripts: the program
    that a dict is asked about in, without which no entry is known to stay."""
    base = _base(size)
    if base is None or any(base.id in node.names for node in script.find(ast.Global, ast.Nonlocal)):
        return False
    scope = _scope(script, base)
    bound = [node for node in script.find(ast.Name) if node.id == base.id and not is_load(node)]
    here = [node for node in bound if script.scope(node) is scope]
    given = [each for each in arguments(scope) if each == base.id]
    imported = [each for at in script.imports for each in at.names if (each.asname or each.name) == base.id]
    entry = next((each for each in ast.walk(size) if isinstance(each, ast.Subscript)), None)
    if entry is not None and not (scripts and is_settled(scripts, script, entry, scope)):
        return False
    changed = (node for node in script.find(ast.Attribute) if isinstance(node.ctx, ast.Store))
    code = ast.unparse(size)
    return len([*here, *given, *imported]) == 1 and all(ast.unparse(each) != code for each in changed)


def means_same(script: Script, node: ast.expr, size: ast.expr) -> bool:
    """Whether two expressions of a file are the same variable, which is set once."""
    return ast.unparse(node) == ast.unparse(size) and _has_one_meaning(script, size) and _means(script, node, size)


def _means(script: Script, node: ast.expr, size: ast.expr) -> bool:
    """Whether an expression of the same words is about the same variable."""
    one, other = _base(node), _base(size)
    return one is not None and other is not None and _scope(script, one) is _scope(script, other)


def _base(size: ast.expr) -> ast.Name | None:
    while isinstance(size, ast.Attribute) or key_of(size):
        size = size.value  # type: ignore[attr-defined]
    return size if isinstance(size, ast.Name) else None


def _scope(script: Script, name: ast.Name) -> Scope:
    """Where a variable is bound: in the function that it stands in, or else in the file."""
    scope = script.scope(name)
    return scope if (scope, name.id) in script.stores or name.id in arguments(scope) else script.tree


def is_load(node: ast.Name) -> bool:
    return isinstance(node.ctx, ast.Load)
