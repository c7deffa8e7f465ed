"""nn.DataParallel, and the function that does once what it does in each call: `data_parallel(model, x, range(2))`."""

from __future__ import annotations

import ast

from .script import Script

CLASSES = frozenset(
    {"torch.nn.DataParallel", "torch.nn.parallel.DataParallel", "torch.nn.parallel.data_parallel.DataParallel"}
)
# What it has, and other modules do not.
FACE = frozenset({"replicate", "scatter", "gather", "parallel_apply", "device_ids", "output_device", "src_device_obj"})
_DISTRIBUTED = frozenset(
    {"torch.nn.parallel.DistributedDataParallel", "torch.nn.parallel.distributed.DistributedDataParallel"}
)
_FUNCTIONS = frozenset({"torch.nn.parallel.data_parallel", "torch.nn.parallel.data_parallel.data_parallel"})
# They do its parts, step by step.
COPIES = frozenset({"torch.nn.parallel.replicate", "torch.nn.parallel.replicate.replicate"})


def called_in_parallel(script: Script, call: ast.Call) -> tuple[ast.expr, ast.expr] | None:
    """The module that the function calls, and what with; None for other calls, and for one that gives it more."""
    if script.qualified(call.func) not in _FUNCTIONS or any(isinstance(each, ast.Starred) for each in call.args):
        return None
    given = dict(
        zip(("module", "inputs", "device_ids", "output_device", "dim", "module_kwargs"), call.args, strict=False)
    )
    given |= {word.arg: word.value for word in call.keywords if word.arg}
    if any(word.arg is None for word in call.keywords) or not {"module", "inputs"} <= given.keys():
        return None
    return None if "module_kwargs" in given else (given["module"], given["inputs"])


def with_inputs(script: Script, module: ast.expr, inputs: ast.expr) -> tuple[str, tuple[ast.expr, ...]]:
    """The source that calls a module with inputs, of which the function takes several as a tuple; and its parts."""
    if isinstance(inputs, ast.Tuple):
        return f"{{}}({', '.join('{}' for each in inputs.elts)})", (module, *inputs.elts)
    around = script.scope(inputs)
    several = getattr(getattr(around, "args", None), "vararg", None)
    starred = isinstance(inputs, ast.Name) and several is not None and several.arg == inputs.id
    return "{}(*{})" if starred else "{}({})", (module, inputs)


def needs_it(script: Script, node: ast.AST) -> bool:
    """Whether a program cannot do without nn.DataParallel where it asks for it: `assert isinstance(net, DataParallel)`,
    and `model.device_ids` in a function that does not ask before."""
    if isinstance(node, ast.Call) and script.qualified(node.func) == "isinstance":
        return _asks_for_class(script, node) and _raises_without(script, node)
    around = script.scope(node)
    asks = (each for each in script.find(ast.Call) if script.scope(each) is around)
    return not any(_is_asked(script, each) and not _raises_without(script, each) for each in asks)


def serves_it_alone(script: Script, function: ast.FunctionDef) -> bool:
    """Whether all that a function of one argument does is to look at an nn.DataParallel, and to put functions of its
    own into it, as `patch_replication_callback(model)` does."""
    named = function.args
    if len(named.args) != 1 or named.posonlyargs or named.kwonlyargs or named.vararg or named.kwarg:
        return False
    return not function.decorator_list and all(_serves_it(script, each, named.args[0].arg) for each in function.body)


def _serves_it(script: Script, node: ast.stmt, model: str) -> bool:
    if isinstance(node, ast.Assert):
        asked = node.test
        of_model = isinstance(asked, ast.Call) and asked.args and ast.unparse(asked.args[0]) == model
        return bool(of_model) and _asks_for_class(script, asked)
    if isinstance(node, ast.Assign):
        value, (target, *others) = node.value, node.targets
        own = isinstance(target, ast.Name) and target.id != model
        own = own or (_is_of(target, model) and target.attr in FACE)  # type: ignore[attr-defined]
        return own and not others and (isinstance(value, ast.Name) or _is_of(value, model))
    if isinstance(node, ast.FunctionDef):
        return all(isinstance(each, ast.Call) and _wraps(script, each) for each in node.decorator_list)
    return isinstance(node, ast.Pass) or (isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant))


def _wraps(script: Script, decorator: ast.Call) -> bool:
    return script.qualified(decorator.func) == "functools.wraps"


def _is_of(node: ast.expr, model: str) -> bool:
    return isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == model


def _is_asked(script: Script, call: ast.Call) -> bool:
    """Whether a call asks what a model is, or whether it has something."""
    return _asks_for_class(script, call) or script.qualified(call.func) == "hasattr"


def _asks_for_class(script: Script, node: ast.expr) -> bool:
    """Whether it is `isinstance(model, DataParallel)`, or asks for that or the distributed one."""
    if not isinstance(node, ast.Call) or script.qualified(node.func) != "isinstance" or len(node.args) != 2:
        return False
    asked = node.args[1]
    names = {script.qualified(each) for each in (asked.elts if isinstance(asked, ast.Tuple) else [asked])}
    return bool(names & CLASSES) and names <= CLASSES | _DISTRIBUTED


def _raises_without(script: Script, call: ast.Call) -> bool:
    """Whether an exception is raised where a test does not hold."""
    parent = script.parents[call]
    if isinstance(parent, ast.Assert):
        return parent.test is call
    denied = isinstance(parent, ast.UnaryOp) and isinstance(parent.op, ast.Not)
    tested = script.parents[parent] if denied else None
    return isinstance(tested, ast.If) and tested.test is parent and isinstance(tested.body[-1], ast.Raise)
