"""What gets trained: every expression that builds an optimizer, and the modules whose parameters it is given."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

from .called_modules import last_name, root
from .optimizer_classes import hands_over_torch_optim, in_optimizer_class, is_optimizer_class
from .origins import origins, sources
from .script import KEPT, Script
from .trained_modules import Base, Sources, names_with_methods
from .updates import update_loops

# Where the result of a call is kept or handed on.
_KEEPS = (ast.Return, ast.keyword, ast.Call, ast.Dict, ast.List, ast.Tuple, ast.AnnAssign)
# What the standard library makes of parameters are parameters.
_STANDARD = frozenset({"itertools.chain", "itertools.chain.from_iterable", "copy.copy", "copy.deepcopy"})
_OPTIMIZER_NAME = re.compile(r"optim|^opt", re.IGNORECASE)


@dataclass(frozen=True)
class Optimizer:
    """An expression that builds an optimizer, or a loop that updates parameters by hand.

    bases: the modules that it trains. passed_in: whether its parameters come (also) from outside of the function or
    file, so that they cannot be followed here. given_by: the functions that give such a model to their callers; the
    call is the statement then that takes it. moved_as: other names by which the model may be moved.
    """

    call: ast.Call | ast.stmt
    bases: tuple[Base, ...]
    passed_in: bool
    given_by: tuple[ast.AST, ...] = ()
    moved_as: tuple[str, ...] = ()

    @property
    def only_tensors(self) -> bool:
        """Whether it is given tensors that belong to no module (L16)."""
        return not self.bases and not self.passed_in


@lru_cache(maxsize=KEPT)
def optimizers(script: Script) -> tuple[Optimizer, ...]:
    """Every optimizer that a script builds, in the order of its source; without any, the loops that do their work."""
    found = list(_optimizers(script)) or list(_update_loops(script))
    return tuple(sorted(found, key=lambda found: (found.call.lineno, found.call.col_offset)))


def _update_loops(script: Script) -> Iterator[Optimizer]:
    for loop in update_loops(script):
        trained = Sources(script, loop)
        trained.follow_all([loop.iter])
        handed = [value for value in origins(script, loop.iter) if not _comes_from_elsewhere(script, value)]
        if not trained.bases:
            trained.passed_in = trained.passed_in and not handed
            trained.follow_all(handed)
        passed_in = trained.passed_in or in_optimizer_class(script, loop)
        yield Optimizer(loop, tuple(dict.fromkeys(trained.bases)), passed_in)


def _comes_from_elsewhere(script: Script, value: ast.expr) -> bool:
    """Whether it is an argument, or what an optimizer was given: `for p in group["params"]` in its `step`."""
    if isinstance(value, ast.Subscript):
        made = origins(script, value.value)
        return any(isinstance(each, ast.Attribute) and each.attr == "param_groups" for each in made)
    return isinstance(value, ast.Name)


def _optimizers(script: Script) -> Iterator[Optimizer]:
    stepped = _stepped_names(script)
    for call in script.find(ast.Call):
        certain = is_optimizer_class(script, call.func)
        if certain:
            given = _parameter_arguments(call)
        elif hands_over_torch_optim(script, call) or _may_build_optimizer(script, call, stepped):
            given = [*call.args, *(keyword.value for keyword in call.keywords)]
        else:
            continue
        trained = Sources(script, call)
        trained.follow_all(given)
        if certain or trained.bases:
            yield Optimizer(call, tuple(dict.fromkeys(trained.bases)), trained.passed_in or not given)
    for assign in script.find(ast.Assign):
        if isinstance(assign.value, ast.Call) and _configures(script, assign):
            trained = Sources(script, assign.value)
            trained.follow_all([assign.value])
            yield Optimizer(assign.value, tuple(dict.fromkeys(trained.bases)), True)


def _configures(script: Script, assign: ast.Assign) -> bool:
    """Whether another object is given the parameters of a module: `settings.parameters = model.parameters()`."""
    target, given = assign.targets[0], assign.value
    is_other = isinstance(target, ast.Attribute) and root(target) != "self" and "param" in target.attr
    is_all = isinstance(given, ast.Call) and isinstance(given.func, ast.Attribute) and given.func.attr == "parameters"
    return is_other and is_all


def _parameter_arguments(call: ast.Call) -> list[ast.expr]:
    named = [keyword.value for keyword in call.keywords if keyword.arg in ("params", "parameters", None)]
    return call.args[:1] or named


def _may_build_optimizer(script: Script, call: ast.Call, stepped: set[str]) -> bool:
    """Whether the result of a call is kept under a name on which `.step()` or `.zero_grad()` is called, or is what a
    library makes of parameters."""
    if script.qualified(call.func).startswith("torch."):
        return False
    given = _names_parameters(script, call)
    own = script.qualified(call.func).rpartition(".")[2] in script.defined
    of_library = not own and root(call.func) in script.imported and script.qualified(call.func) not in _STANDARD
    parent = script.parents[call]
    if not isinstance(parent, ast.Assign):
        return given and of_library and isinstance(parent, _KEEPS)
    targets = [part for each in parent.targets for part in (each.elts if isinstance(each, ast.Tuple) else [each])]
    names = {last_name(target) for target in targets}
    is_stepped = bool(names & stepped)
    if not is_stepped and not any(_OPTIMIZER_NAME.search(name) for name in names):
        return given and of_library and _is_handed_on(script, names)
    return given or of_library or (is_stepped and (not own or any(_holds_parameters(script, it) for it in call.args)))


def _is_handed_on(script: Script, names: set[str]) -> bool:
    """Whether a variable is an argument of some call, or is returned: what becomes of it is seen elsewhere."""
    kinds = (ast.Call, ast.keyword, ast.Return)
    uses = (node for node in script.nodes if isinstance(node, (ast.Name, ast.Attribute)) and last_name(node) in names)
    return any(
        isinstance(parent, kinds) and not (isinstance(parent, ast.Call) and parent.func is use)
        for use in uses
        for parent in (script.parents[use],)
    )


def _holds_parameters(script: Script, node: ast.expr) -> bool:
    return isinstance(node, ast.Name) and any(_names_parameters(script, value) for value in sources(script, node))


def _names_parameters(script: Script, node: ast.expr) -> bool:
    return node in _naming_parameters(script)


@lru_cache(maxsize=KEPT)
def _naming_parameters(script: Script) -> frozenset[ast.AST]:
    """The nodes in which `.parameters` or `.named_parameters` occurs."""
    named = [node for node in script.find(ast.Attribute) if node.attr in ("parameters", "named_parameters")]
    return frozenset(around for node in named for around in (node, *script.ancestors(node)))


def _stepped_names(script: Script) -> set[str]:
    return {
        last_name(call.func.value)
        for call in script.find(ast.Call)
        if isinstance(call.func, ast.Attribute) and call.func.attr in ("zero_grad", "step")
    } - names_with_methods(script, {"parameters", "train", "eval"})
