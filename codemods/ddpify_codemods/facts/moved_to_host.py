"""Where a program moves a model back to the CPU: `model.cpu()`, `model.eval().to("cpu")`."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator

from .named_devices import is_cpu
from .script import Script

# Methods by which a model is known, whatever its name: tensors have none of them.
_OF_MODELS = frozenset({"parameters", "named_parameters", "state_dict", "load_state_dict", "eval", "train", "modules"})
_GIVES_ITSELF = frozenset({"eval", "train", "float", "half", "double", "requires_grad_", "to", "cuda", "cpu"})


def moves_models_to_host(scripts: Iterable[Script]) -> bool:
    """Whether something is put on the CPU that has the name of a model somewhere in the program."""
    scripts = tuple(scripts)
    models = {name for script in scripts for name in _models(script)}
    return any(_itself(each) in models for script in scripts for each in _moved(script))


def _models(script: Script) -> Iterator[str]:
    for call in script.find(ast.Call):
        if isinstance(call.func, ast.Attribute) and call.func.attr in _OF_MODELS:
            yield _itself(call.func.value)


def _moved(script: Script) -> Iterator[ast.expr]:
    """What is moved to the CPU."""
    for call in script.find(ast.Call):
        if isinstance(call.func, ast.Attribute) and call.func.attr in ("cpu", "to"):
            given = [*call.args[:1], *(word.value for word in call.keywords if word.arg == "device")]
            if (not given and call.func.attr == "cpu") or any(is_cpu(script, each) for each in given):
                yield call.func.value


def _itself(node: ast.expr) -> str:
    """The code of a model, be it behind methods that give it back, or in a wrapper: `net` of `net.module.eval()`."""
    while True:
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in _GIVES_ITSELF:
            node = node.func.value
        elif isinstance(node, ast.Attribute) and node.attr == "module":
            node = node.value
        else:
            return ast.unparse(node)
