"""Which methods and functions are the program's own, where one of its classes has a method of the same name."""

from __future__ import annotations

import ast

from .called_modules import last_name
from .origins import origins_beyond
from .script import Script

# What comes of these may be an object of the program.
_GIVE_BACK = ("torch.load", "torch.compile", "torch.nn.DataParallel", "torch.optim.swa_utils.", "copy.", "pickle.",
              "joblib.", "dill.", "cloudpickle.", "functools.", "importlib.", "hydra.", "mmcv.", "mmengine.", "gin.",
              "fvcore.", "accelerate.", "lightning_fabric.")  # fmt: skip


def is_own_module(script: Script, name: str) -> bool:
    """Whether a full name is one of a file of the program, `wandb.init` of its `wandb.py`."""
    return name.partition(".")[0] in script.modules


def is_own_function(script: Script, name: str) -> bool:
    """Whether a file defines a function itself that Python has, too: `open`."""
    return any(isinstance(node, ast.FunctionDef) and node.name == name for node in script.tree.body)


def may_be_own(script: Script, method: ast.expr) -> bool:
    """Whether a method may be one of the program's classes: it has the name of one, and it is not seen that a library
    made the object.

    Args: the file; what is called, `image.save`.
    """
    if not isinstance(method, ast.Attribute) or method.attr not in script.defined:
        return False
    calls = [each for each in origins_beyond(script, method.value, _made_of) if isinstance(each, ast.Call)]
    made_here = any(last_name(call.func) in script.defined for call in calls)
    return made_here or not any(_is_of_library(script, call) for call in calls)


def _made_of(node: ast.expr) -> list[ast.expr]:
    """What an object is made of: `Image.new(…)` of `Image.new(…).convert("L")`, `folder` of `folder / "a"`."""
    if isinstance(node, ast.Call):
        return [node.func.value] if isinstance(node.func, ast.Attribute) else []
    return [node.left, node.right] if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Div) else []


def _is_of_library(script: Script, call: ast.Call) -> bool:
    """Whether a call is one of a library, and gives what that has made."""
    name, owner = script.qualified(call.func), call.func
    while isinstance(owner, ast.Attribute):
        owner = owner.value
    is_imported = isinstance(owner, ast.Name) and owner.id in script.imported
    return is_imported and not is_own_module(script, name) and not name.startswith(_GIVE_BACK)
