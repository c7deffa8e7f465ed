"""The models whose parameters optimizers are given: as a function names them, its callers, or an object."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import Any, TypeAlias

from ..called_modules import called_model, last_name
from ..eager import is_move
from ..optimizers import Optimizer, optimizers
from ..script import Script
from ..trained_modules import Base
from .given_back import is_given_back
from .held_attributes import held_attribute, is_above, is_of_another
from .other_names import by_other_name
from .program import Program
from .scopes import FUNCTIONS, binder_of, class_around, parameters_of
from .signatures import argument
from .values import root_of

# Methods of a model that leave its parameters what they are.
_KEEPS_PARAMETERS = frozenset(
    {
        "apply",  # of what it has, to begin with other numbers
        "to",
        "cuda",
        "cpu",
        "float",
        "train",
        "eval",
        "parameters",
        "named_parameters",
        "modules",
        "named_modules",
        "children",
    }
    | {"state_dict", "load_state_dict", "zero_grad", "buffers", "compile", "requires_grad_", "share_memory"}
)

Bases: TypeAlias = list[tuple[Script, Optimizer, Base]]


def given_models(program: Program) -> Iterator[tuple[Script, Optimizer, Base]]:
    """The models as each call names them that makes an optimizer of the program, or lets one be made."""
    calls = _making(program)
    for script in program.scripts:
        for optimizer in optimizers(script):
            if optimizer.call in calls:
                for base in optimizer.bases:
                    yield script, optimizer, base


def _making(program: Program) -> set[ast.AST]:
    """The calls that make the optimizers, and those of the functions around them: one may hand over the parameters."""
    found = program.followed.found
    calls: set[ast.AST] = set()
    waiting = [*found.optimizer_calls.items()]
    while waiting:
        call, script = waiting.pop()
        if call not in calls:
            calls.add(call)
            waiting += found.called_with.get(script.scope(call), ())
    return calls


def given_by_callers(program: Program, bases: Bases) -> Bases:
    """The models as the calls know them that give them to the function which makes their optimizers; none where one of
    these cannot be seen, or gives nothing."""
    found: Bases = []
    waiting = bases[::-1]
    seen: set[tuple[ast.AST, str]] = set()
    while waiting:
        script, optimizer, base = waiting.pop()
        function = binder_of(script, base.node) if isinstance(base.node, ast.Name) else None
        if not isinstance(function, FUNCTIONS) or base.code not in parameters_of(function) or base.code != base.node.id:  # type: ignore[attr-defined]
            if (script, base.code, optimizer.call) not in [(other, one.code, each.call) for other, each, one in found]:
                found.append((script, optimizer, base))
            continue
        calls = program.followed.found.called_with.get(function, set())
        if not calls:
            return []
        for call, caller in () if (function, base.code) in seen else sorted(calls, key=lambda each: -each[0].lineno):
            given = argument(function, base.code, call)
            if given is None:
                return []
            waiting.append(
                (caller, Optimizer(call, (Base(ast.unparse(given), given),), False), Base(ast.unparse(given), given))
            )
        seen.add((function, base.code))
    return found if found != bases else []


def given_by_themselves(program: Program, bases: Bases) -> Bases:
    """The models as the callers know them that make their optimizers by a method of their own,
    `model.get_optimizer(lr)`; none where one of these cannot be seen."""
    found: Bases = []
    for script, optimizer, base in bases:
        function, this = script.scope(optimizer.call), base.node
        while isinstance(this, ast.Attribute):
            this = this.value
        if not isinstance(function, FUNCTIONS) or not isinstance(script.parents[function], ast.ClassDef):
            return []
        if not isinstance(this, ast.Name) or [this.id] != [each.arg for each in function.args.args[:1]]:
            return []
        calls = program.followed.found.called_with.get(function, ())
        for call, caller in sorted(calls, key=lambda each: each[0].lineno):
            owner = call.func.value if isinstance(call.func, ast.Attribute) else None
            if not isinstance(owner, ast.Name) or owner.id == this.id:
                return []
            one = Base(owner.id, owner)
            found.append((caller, Optimizer(call, (one,), False), one))
    return found


def by_other_names(program: Program, bases: Bases) -> Bases:
    """The models by their other names, as far as they have any."""
    whole = {root_of(module).made for module in program.followed.found.trained}
    found = [
        (script, by_other_name(script, optimizer, base, whole), optimizer, base) for script, optimizer, base in bases
    ]
    if all(other is None for _, other, _, _ in found):
        return []
    return [(script, *(other or (optimizer, base))) for script, other, optimizer, base in found]


def kept_by_object(program: Program) -> Bases:
    """The models as objects keep them that call them in training, `self.model`, each of which is given its own once;
    none where one of them is called otherwise."""
    found = program.followed.found
    calls: dict[tuple[Script, ast.AST | None, str], list[ast.expr]] = {}
    for call in sorted(found.training_forwards, key=lambda call: call.lineno):
        for script, model in _given(program, found.forwards[call][0], called_model(call)):
            held = held_attribute(program, script, model) or model
            calls.setdefault((script, class_around(script, model), ast.unparse(held)), []).append(model)
    kept = [_kept(program, script, owner, model) for (script, owner, _), of_ in calls.items() for model in of_]
    if program.fully_sharded or not all(kept):
        return []
    return [each for each in kept if each is not None]


def _given(program: Program, script: Script, model: ast.expr) -> Iterator[tuple[Script, ast.expr]]:
    """What a training calls, as those know it that give it to the functions which call it: `step(self.model, x)`."""
    waiting, seen = [(script, model)], {model}
    while waiting:
        there, node = waiting.pop()
        function = binder_of(there, node) if isinstance(node, ast.Name) else None
        given: list[tuple[Script, ast.expr | None]] = []
        if isinstance(node, ast.Name) and isinstance(function, FUNCTIONS) and node.id in parameters_of(function):
            calls = sorted(program.followed.found.called_with.get(function, ()), key=lambda each: each[0].lineno)
            given = [(other, argument(function, node.id, call)) for call, other in calls]
        if not given or any(each is None for _, each in given):
            yield there, node
        for other, each in given:
            if each is not None and each not in seen:
                seen.add(each)
                waiting.append((other, each))


def _kept(
    program: Program, script: Script, owner: ast.AST | None, called: ast.expr
) -> tuple[Script, Optimizer, Base] | None:
    """A model as an object of a class knows it, and the statement behind the one that gives it to the object."""
    model = held_attribute(program, script, called) or called
    if not isinstance(model, ast.Attribute):
        return None
    name, code = model.attr, ast.unparse(model)
    stored = [
        (other, node)
        for other in program.scripts
        for node in other.find(ast.Attribute)
        if node.attr == name
        and not isinstance(node.ctx, ast.Load)
        and not is_of_another(program, other, node, owner)
        and not is_given_back(program, other, node, code)
    ]
    files, nodes = {other for other, _ in stored}, sorted((node for _, node in stored), key=lambda node: node.lineno)
    if code != f"self.{name}" or len(files) != 1:
        return None
    there = files.pop()
    function, made = _initial_of(there, nodes[0]), there.statement(nodes[0])
    if function is None or any(_initial_of(there, each) is not function for each in nodes):
        return None
    if made not in function.body or not all(_is_moved(there.statement(each), made, code) for each in nodes[1:]):
        return None
    kept = next(each for each in reversed(function.body) if not {*nodes}.isdisjoint(ast.walk(each)))
    keeper = class_around(there, kept)
    inherits = keeper is not owner and is_above(program.followed.found.bases, keeper, owner)
    if not (keeper is owner or inherits) or not _is_called_once(program, function):
        return None
    base = Base(code, nodes[0] if inherits else model)
    behind = function.body[function.body.index(kept) + 1 :]
    later = [(there, behind), *(_behind_calls(program, function) if inherits else ())]
    if any(_adapts(program, script, each, code) for script, statements in later for each in statements):
        return None
    at: Any = behind[0] if behind else kept
    given = made.value if isinstance(made, ast.Assign) else None
    names = (given.id,) if isinstance(given, ast.Name) else ()
    if model is not called and any(
        _adapts(program, *each) for name in names for each in _by_name(program, there, function, behind, name)
    ):
        return None
    return there, Optimizer(at, (base,), False, moved_as=names), base


def _by_name(
    program: Program, script: Script, function: ast.FunctionDef, behind: list[ast.stmt], name: str
) -> Iterator[tuple[Script, ast.stmt, str]]:
    """The statements behind one by which an `__init__` keeps a model, with the name that it has there, and those of the
    caller before the optimizer is made, if that is not in this `__init__`, or above."""
    yield from ((script, each, name) for each in behind)
    made = program.followed.found.optimizer_calls
    if name not in parameters_of(function) or any(each.scope(call) is function for call, each in made.items()):
        return
    for call, caller in program.followed.found.called_with.get(function, ()):
        given, scope, first = argument(function, name, call), caller.scope(call), caller.statement(call)
        lines = [one.lineno for one, each in made.items() if each is caller and caller.scope(one) is scope]
        last = min((line for line in lines if line > first.lineno), default=0 if lines else None)
        for each in caller.find(ast.stmt) if isinstance(given, ast.Name) else ():
            between = each.lineno > first.lineno and (last is None or each.lineno < last)
            if between and caller.scope(each) is scope and isinstance(given, ast.Name):
                yield caller, each, given.id


def _behind_calls(program: Program, function: ast.AST) -> Iterator[tuple[Script, list[ast.stmt]]]:
    """What those do behind it that call an `__init__` as that of their base class."""
    for call, script in program.followed.found.called_with.get(function, ()):
        around, statement = script.scope(call), script.statement(call)
        if last_name(call.func) == "__init__" and around is not function and isinstance(around, ast.FunctionDef):
            body = around.body
            yield script, body[body.index(statement) + 1 :] if statement in body else body
            yield from _behind_calls(program, around)


def _adapts(program: Program, script: Script, statement: ast.stmt, code: str) -> bool:
    """Whether a statement may give a model other parameters than its wrapper has seen: `self.model.fc = Linear(8, 3)`,
    `self.model.head.append(layer)`, `grow(self.model)`; or freezes some."""
    own = {call for calls in program.followed.found.called_with.values() for call, _ in calls}
    for part in ast.walk(statement):
        changed: ast.expr | None = None
        if isinstance(part, ast.Attribute) and not isinstance(part.ctx, ast.Load):
            changed = part.value
        elif isinstance(part, ast.Call) and isinstance(part.func, ast.Attribute):
            changed = part.func.value if part.func.attr not in _KEEPS_PARAMETERS else None
        given = part.args if isinstance(part, ast.Call) and part in own else []
        if isinstance(part, ast.Call) and _only_loads(program, script, part, code):
            given = []
        if (changed is not None and f"{ast.unparse(changed)}.".startswith(f"{code}.")) or code in map(
            ast.unparse, given
        ):
            return True
        if part in program.followed.found.freezing:
            return True
    return False


def _only_loads(program: Program, script: Script, call: ast.Call, code: str) -> bool:
    """Whether a call gives back the model that it is given, of the same parameters: `self.model, start =
    load(self.model)`."""
    statement = script.parents[call]
    targets = statement.targets if isinstance(statement, ast.Assign) else []
    stored = [part for each in targets for part in (each.elts if isinstance(each, ast.Tuple) else [each])]
    return any(is_given_back(program, script, each, code) for each in stored)


def _is_called_once(program: Program, function: ast.AST) -> bool:
    """Whether one call makes all objects of an `__init__`, or of those that call it: `super().__init__()`."""
    calls = [*program.followed.found.called_with.get(function, ())]
    if len(calls) != 1:
        return False
    call, script = calls[0]
    around = script.scope(call)
    is_next = last_name(call.func) == "__init__"
    return not is_next or (around is not function and _is_called_once(program, around))


def _initial_of(script: Script, node: ast.AST) -> ast.FunctionDef | None:
    """The `__init__` in which an attribute is assigned; None where it is not by `=`, or elsewhere."""
    function = script.scope(node)
    assigned = isinstance(script.statement(node), ast.Assign)
    return function if assigned and isinstance(function, ast.FunctionDef) and function.name == "__init__" else None


def _is_moved(again: ast.stmt, first: ast.stmt, code: str) -> bool:
    """Whether an attribute is given again what it holds, moved to another device, `self.model = model.to(device)`, or
    in the wrapper for several GPUs that DDP613 leaves out."""
    assert isinstance(again, ast.Assign) and isinstance(first, ast.Assign)
    before = _unmoved(first.value)
    names = [code, ast.unparse(first.value), *([before.id] if isinstance(before, ast.Name) else [])]
    return ast.unparse(_unmoved(again.value)) in names


def _unmoved(value: ast.expr) -> ast.expr:
    """A model without what moves it, or puts it on several GPUs."""
    while is_move(value) or _is_data_parallel(value):
        assert isinstance(value, ast.Call)
        value = value.args[0] if _is_data_parallel(value) else value.func.value  # type: ignore[attr-defined]
    return value


def _is_data_parallel(node: ast.expr) -> bool:
    return isinstance(node, ast.Call) and bool(node.args) and ast.unparse(node.func).endswith("nn.DataParallel")
