"""nn.DataParallel, and the function that does once what it does in each call: `data_parallel(model, x, range(2))`."""

from __future__ import annotations

import ast

from .eager import is_move
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


def module_of(call: ast.Call) -> ast.expr | None:
    """The model that a call puts into nn.DataParallel: `nn.DataParallel(model)`, `nn.DataParallel(module=model)`."""
    return next(iter(call.args), None) or next((word.value for word in call.keywords if word.arg == "module"), None)


def is_put_in(script: Script, node: ast.AST, name: str) -> bool:
    """Whether a model goes into nn.DataParallel and keeps its name: `model = nn.DataParallel(model).cuda()`."""
    if not isinstance(node, ast.Call) or script.qualified(node.func) not in CLASSES:
        return False
    parent = script.parents[node]
    moved = script.parents[parent] if isinstance(parent, ast.Attribute) else None
    whole = script.parents[moved] if moved is not None and is_move(moved) else parent
    held = [*map(ast.unparse, whole.targets)] if isinstance(whole, ast.Assign) else []
    module = module_of(node)
    return module is not None and held == [name] == [ast.unparse(module)]


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
    if isinstance(node, ast.Call) and script.qualified(node.func) in ("isinstance", "type"):
        return _raises_without(script, node)
    if isinstance(node, ast.Call) and len(node.args) > 2:  # getattr(model, "device_ids", [])
        return False
    owner = node.value if isinstance(node, ast.Attribute) else node.args[0] if isinstance(node, ast.Call) else None
    around = script.scope(node)
    asks = [each for each in script.find(ast.Call) if script.scope(each) is around and each.args]
    same = (each for each in asks if owner is not None and ast.unparse(each.args[0]) == ast.unparse(owner))
    return not any(_is_asked(script, each) and not _raises_without(script, each) for each in same)


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
    """Whether a call asks what a model is, or whether it has what others do not."""
    if script.qualified(call.func) != "hasattr":
        return _test_of(script, call) is not None
    name = call.args[1] if len(call.args) == 2 else None
    return not isinstance(name, ast.Constant) or name.value in FACE | {"module"}


def _test_of(script: Script, call: ast.Call) -> tuple[ast.expr, bool] | None:
    """The test that a call asks for the class in, and whether that holds for an nn.DataParallel."""
    if _asks_for_class(script, call):
        return call, True
    test = script.parents[call]
    if script.qualified(call.func) != "type" or not isinstance(test, ast.Compare) or len(test.ops) != 1:
        return None
    of_class = any(script.qualified(each) in CLASSES for each in (test.left, *test.comparators))
    return (test, isinstance(test.ops[0], ast.Is | ast.Eq)) if of_class else None


def _asks_for_class(script: Script, node: ast.expr) -> bool:
    """Whether it is `isinstance(model, DataParallel)`, or asks for that or the distributed one."""
    if not isinstance(node, ast.Call) or script.qualified(node.func) != "isinstance" or len(node.args) != 2:
        return False
    asked = node.args[1]
    names = {script.qualified(each) for each in (asked.elts if isinstance(asked, ast.Tuple) else [asked])}
    return bool(names & CLASSES) and names <= CLASSES | _DISTRIBUTED


def _raises_without(script: Script, call: ast.Call) -> bool:
    """Whether an exception is raised where a model is no nn.DataParallel, by the test that a call asks in."""
    found = _test_of(script, call)
    if found is None:
        return False
    test, holds = found
    outer = script.parents[test]
    while isinstance(outer, ast.BoolOp | ast.UnaryOp):
        if isinstance(outer, ast.BoolOp):
            if isinstance(outer.op, ast.And) is not holds:  # something else decides
                return False
        else:
            holds = not holds
        test, outer = outer, script.parents[outer]
    if isinstance(outer, ast.Assert):
        return outer.test is test and holds
    return isinstance(outer, ast.If) and outer.test is test and _raises(script, outer, holds)


def _raises(script: Script, asks: ast.If, otherwise: bool) -> bool:
    """Whether an `if` raises where its test holds; otherwise: where it does not, in its `else` or right behind it."""
    block = asks.orelse if otherwise else asks.body
    if not block and isinstance(asks.body[-1], ast.Return | ast.Continue | ast.Break):
        block = _behind(script, asks)[:1]
    return bool(block) and isinstance(block[-1], ast.Raise)


def _behind(script: Script, node: ast.stmt) -> list[ast.stmt]:
    """The statements that follow one in its block."""
    for name in ("body", "orelse", "finalbody"):
        block = getattr(script.parents[node], name, None)
        if isinstance(block, list) and node in block:
            return block[block.index(node) + 1 :]
    return []
