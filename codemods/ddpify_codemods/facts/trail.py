"""Where the trail is lost: a program that computes gradients, of which it cannot be seen what they are used for."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache

from .reach import reaches_backward
from .script import KEPT, Script
from .updates import steps, takes_gradients, update_loops, updated_tensors

_EVALUATES = frozenset({"eval", "no_grad", "inference_mode"})


@dataclass(frozen=True)
class Lost:
    """A place, what cannot be followed there, what to do about it, and the rule that says why."""

    script: Script
    line: int
    message: str
    remedy: str
    rule: str = "DDP311"


def lost_trail(scripts: Sequence[Script]) -> Lost | None:
    """The place in a program without a known optimizer from which on its training cannot be followed.

    Args: its scripts, the one that is started first.
    Returns None for a program that trains nothing: its gradients, if it has any, are looked at, not stepped along.
    """
    return next(_lost(scripts), None)


def _lost(scripts: Sequence[Script]) -> Iterator[Lost]:
    if _computes_gradients(scripts) and reaches_backward(scripts):
        remedy = "build it from model.parameters(), with a class of torch.optim, in a file that the script imports"
        for script in scripts:
            for call in script.find(ast.Call):
                if isinstance(call.func, ast.Attribute) and call.func.attr == "step":
                    message = f"`{ast.unparse(call.func)}` takes a training step, of what cannot be seen in the source"
                    yield Lost(script, call.lineno, message, remedy)
        for script in scripts:
            for statement, tensor in updated_tensors(script):
                message = f"`{ast.unparse(tensor)}` is trained by hand and belongs to no module that can be seen"
                remedy = "put it into an nn.Module, and update that in a loop over its parameters()"
                yield Lost(script, statement.lineno, message, remedy, "DDP304")
        for script in scripts:
            for call in steps(script):
                message = (
                    f"`{ast.unparse(call.func)}` takes a training step by hand, of what cannot be seen in the source"
                )
                yield Lost(script, call.lineno, message, "step with a class of torch.optim")
    elif not _computes_gradients(scripts) and not any(map(_evaluates, scripts)):
        for call in scripts[0].find(ast.Call):
            if scripts[0].is_entry and _imports_in_the_run(scripts[0], call):
                message = f"`{ast.unparse(call)}` is only known in the run: whether it trains cannot be seen"
                yield Lost(scripts[0], call.lineno, message, "import it by its name, or convert the script that trains")


@lru_cache(maxsize=KEPT)
def computes_gradients(script: Script) -> bool:
    """Whether a script calls `.backward()`, or a function gives gradients back, which update parameters or become
    their `.grad`, by which an optimizer does."""
    if any(node.attr == "backward" and isinstance(node.ctx, ast.Load) for node in script.find(ast.Attribute)):
        return True
    if any(_looks_up_backward(script, call) for call in script.find(ast.Call)):
        return True
    taken = any(takes_gradients(script, call) for call in script.find(ast.Call))
    return taken and (any(update_loops(script)) or any(_is_assigned(node) for node in script.find(ast.Attribute)))


def _is_assigned(node: ast.Attribute) -> bool:
    return node.attr == "grad" and isinstance(node.ctx, ast.Store)


def _looks_up_backward(script: Script, call: ast.Call) -> bool:
    names = call.args[1:2] if script.qualified(call.func) == "getattr" else []
    return any(isinstance(name, ast.Constant) and name.value == "backward" for name in names)


def _computes_gradients(scripts: Sequence[Script]) -> bool:
    return any(map(computes_gradients, scripts))


def _evaluates(script: Script) -> bool:
    return any(node.attr in _EVALUATES for node in script.find(ast.Attribute))


def _imports_in_the_run(script: Script, call: ast.Call) -> bool:
    """Whether a module is imported by a name that is made in the run, and then used."""
    if script.qualified(call.func) not in ("importlib.import_module", "__import__"):
        return False
    is_known = bool(call.args) and isinstance(call.args[0], ast.Constant)
    return not is_known and not isinstance(script.parents[call], ast.Expr)
