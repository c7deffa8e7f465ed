"""What a program does with the parameters of its model once torch's fully_shard has made them DTensors."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from .called_modules import last_name
from .optimizers import optimizers
from .origins import origins
from .script import Script

if TYPE_CHECKING:
    from .flow.program import Program

_READS = ("parameters", "named_parameters")
_METHODS = frozenset(
    {"train", "eval", "zero_grad", "parameters", "named_parameters", "state_dict", "load_state_dict", "training"}
)
_LOOPS = (ast.For, ast.While, ast.AsyncFor)
# Those of torch.optim that step each number by itself: a rank has a part of a parameter only.
BY_NUMBER = {"ASGD", "Adadelta", "Adagrad", "Adam", "AdamW", "Adamax", "NAdam", "RAdam", "RMSprop", "Rprop", "SGD"}


@dataclass(frozen=True)
class Sharded:
    """A use of the model or of its optimizer. kind: "state_dict" or "load_state_dict" of the model, which can be
    written otherwise; or why it cannot be left."""

    node: ast.expr
    kind: str


def sharded(script: Script, program: Program) -> Iterator[Sharded]:
    """The uses of a file that need another form, or are refused."""
    from .flow.wrapping import wrapping  # only plain code is followed

    found = wrapping(program)
    at = next((at for other, at in found.at if other.path == script.path), None)
    made = _made(script, program)
    trained = {each.call for each in optimizers(script)}
    allowed = {inner for each in trained for inner in ast.walk(each)}
    for node in script.find(ast.Attribute):
        owner = node.value
        while isinstance(owner, ast.Subscript):
            owner = owner.value
        if not isinstance(node.ctx, ast.Load) or node in allowed or is_before(script, node, at):
            continue
        makers = [each for each in origins(script, owner) if isinstance(each, ast.Call)]
        if not any(each in made for each in makers):
            if node.attr in ("state_dict", "load_state_dict") and (not makers or trained & set(makers)):
                what = "optimizer" if makers else "model or optimizer"
                yield Sharded(node, f"{node.attr} of an {what} whose keys or parts torch gives otherwise")
            continue
        if owner is node.value:
            yield from _of_model(script, node)
        else:
            yield Sharded(node, f"`{ast.unparse(node)}` is read, of which a rank may have a part")
    for call in script.find(ast.Call):
        for given in (*call.args, *(word.value for word in call.keywords)):
            is_model = isinstance(given, ast.Name | ast.Attribute) and any(
                each in made for each in origins(script, given)
            )
            if not is_model or is_before(script, call, at) or last_name(call.func) in script.defined:
                continue
            yield Sharded(given, f"{ast.unparse(call.func)} is given a model of which a rank has a part")


def _of_model(script: Script, node: ast.Attribute) -> Iterator[Sharded]:
    call = script.parents[node]
    if not isinstance(call, ast.Call) or call.func is not node:
        if node.attr not in _METHODS:
            yield Sharded(node, f"`{ast.unparse(node)}` is read, of which a rank may have a part")
    elif node.attr == "state_dict" and not call.args and not call.keywords:
        yield Sharded(call, "state_dict")
    elif node.attr == "load_state_dict" and len(call.args) == 1 and not call.keywords and _is_statement(script, call):
        yield Sharded(call, "load_state_dict")
    elif node.attr in _READS and not is_clipped(script, call) and not is_counted(script, call):
        yield Sharded(node, f"`{ast.unparse(call)}` is read, and a rank has a part of each")
    elif node.attr not in _METHODS or node.attr.endswith("state_dict"):
        yield Sharded(node, f"`{ast.unparse(node)}` is called, and a rank has a part of each parameter")


def _made(script: Script, program: Program) -> set[ast.Call]:
    """The calls that make the trained model."""
    for other in program.scripts:
        for optimizer in optimizers(other):
            if other.path == script.path and optimizer.bases:
                return {each for each in origins(script, optimizer.bases[0].node) if isinstance(each, ast.Call)}
    return set()


def is_before(script: Script, node: ast.AST, at: ast.stmt | None) -> bool:
    """Whether it is done before the model is sharded."""
    if at is None or script.scope(node) is not script.scope(at):
        return False
    return getattr(node, "lineno", 0) < at.lineno and not any(isinstance(each, _LOOPS) for each in script.ancestors(at))


def _is_statement(script: Script, call: ast.Call) -> bool:
    return isinstance(script.parents[call], ast.Expr)


def is_clipped(script: Script, call: ast.Call) -> bool:
    """Whether it is given to clip_grad_norm_ or the like, whose result goes unused."""
    parent = script.parents[call]
    name = script.qualified(parent.func) if isinstance(parent, ast.Call) else ""
    return name.startswith("torch.nn.utils.clip_grad") and isinstance(script.parents[parent], ast.Expr)


def is_counted(script: Script, call: ast.Call) -> bool:
    """`sum(p.numel() for p in model.parameters())`, which is the size of the whole."""
    parent = script.parents[call]
    if not isinstance(parent, ast.comprehension) or not isinstance(parent.target, ast.Name):
        return False
    around = script.parents[parent]
    uses = [each for each in ast.walk(around) if isinstance(each, ast.Name) and each.id == parent.target.id]
    asked = [script.parents[each] for each in uses if isinstance(each.ctx, ast.Load)]
    return all(isinstance(each, ast.Attribute) and each.attr in ("numel", "requires_grad") for each in asked)


def blocks(program: Program, script: Script) -> list[str]:
    """The attributes of the model that are lists of layers, each made for itself, which its forward goes through."""
    for maker in _made(script, program):
        for other in program.scripts:
            for kind in other.find(ast.ClassDef):
                if kind.name == last_name(maker.func):
                    return [name for name in _lists(other, kind) if _goes_through(kind, name)]
    return []


def _lists(script: Script, kind: ast.ClassDef) -> Iterator[str]:
    for assign in (each for each in ast.walk(kind) if isinstance(each, ast.Assign)):
        target, value = assign.targets[0], assign.value
        if not isinstance(value, ast.Call) or script.qualified(value.func) != "torch.nn.ModuleList" or not value.args:
            continue
        layers = value.args[0]
        is_own = isinstance(layers, ast.ListComp | ast.GeneratorExp) and isinstance(layers.elt, ast.Call)
        if is_own and isinstance(target, ast.Attribute) and ast.unparse(target.value) == "self":
            yield target.attr


def _goes_through(kind: ast.ClassDef, name: str) -> bool:
    """`for layer in self.layers: x = layer(x)`, and nothing else of them."""
    uses = [each for each in ast.walk(kind) if isinstance(each, ast.Attribute) and each.attr == name]
    read = [each for each in uses if isinstance(each.ctx, ast.Load)]
    loops = [each for each in ast.walk(kind) if isinstance(each, ast.For) and each.iter in read]
    if len(read) != 1 or len(loops) != 1 or not isinstance(loops[0].target, ast.Name):
        return False
    layer = loops[0].target.id
    named = [each for each in ast.walk(loops[0]) if isinstance(each, ast.Name) and each.id == layer]
    called = [each for each in ast.walk(loops[0]) if isinstance(each, ast.Call) and each.func in named]
    return len(called) == 1 and len(named) == 2
