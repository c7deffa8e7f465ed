"""nn.DataParallel, and the function that does once what it does in each call: `data_parallel(model, x, range(2))`."""

from __future__ import annotations

import ast

from .script import Script

CLASSES = frozenset(
    {"torch.nn.DataParallel", "torch.nn.parallel.DataParallel", "torch.nn.parallel.data_parallel.DataParallel"}
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
