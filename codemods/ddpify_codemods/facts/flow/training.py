"""Follows gradients: which backward passes leave them where, and which steps are made with them."""

from __future__ import annotations

import ast
import itertools
from collections.abc import Iterable, Iterator, Mapping, Sequence

from ..all_ways import in_other_branch
from ..bindings import names_in
from ..eager import is_move
from ..origins import sources
from ..script import Script
from .expressions import Expressions
from .frames import Frame, Freeze, Problem
from .held_values import may_differ
from .input_gradients import BENDS
from .late_moves import LateMoves
from .values import (
    SAME,
    Bound,
    Function,
    Instance,
    Items,
    Module,
    OptimizerValue,
    Parameters,
    Thing,
    Value,
    entries,
    made_of,
    of,
    root_of,
)

_LAYERS = frozenset({"children", "modules", "named_children", "named_modules", "parameters", "named_parameters"})
_AT_REST = frozenset({"load_state_dict", "state_dict", "zero_grad"})  # methods of an optimizer that takes no step
TWICE = "two backward passes go through one forward, which DistributedDataParallel counts as one"
_SLOPES = (
    "a loss of gradients alone leaves no gradient in the bias of a last layer that nothing bends, and "
    "DistributedDataParallel waits for one: it raises in the next step"
)
_UNFED = "no backward pass is seen that leaves gradients in a model which this steps"
FROZEN_LATE = "parameters are frozen or unfrozen after the model was wrapped, which the wrapper does not see"
_WITH_PARAMETERS = "parameters are given to an optimizer here together with numbers that each rank has others of"
_IN_STEP = "what this gives back for each step is made of a rank's own samples, and another number on each rank"
_FROZEN = "whether a model has frozen parameters here cannot be told"


class Training(Expressions, LateMoves):
    """What backward passes and steps do to the gradients of the trained models."""

    def reaches(self, node: ast.Call, loss: Value, frame: Frame) -> None:
        """A backward pass goes through calls of trained models."""
        models: dict[ast.AST, set[ast.Call]] = {}
        for forward, model in loss.forwards:
            if model in self.found.called_models.get(forward, ()):
                models.setdefault(model, set()).add(forward)
        wanted = self.wanted_by(node, frame)
        for model, forwards in models.items():
            if (node, model) in self.aside or (wanted is not None and model not in wanted):
                continue
            frozen = self.gradients.frozen.get(model, False)
            self.found.reached.setdefault((node, model), set()).update(forwards)
            if frozen:
                self.may_be_frozen(node, model, frame)
                continue
            self.trains_moved(model)
            self.not_frozen.add((node, model))
            if frozen is None:
                self.problem(frame, node, _FROZEN)
            if model not in self.gradients.awaited:
                self.found.not_averaged[node, model] = Problem(frame.script, node, TWICE)
            elif {pair for pair in loss.forwards if pair[1] is model} <= loss.slopes and self.may_add_last(model):
                self.found.of_slopes[node, model] = Problem(frame.script, node, _SLOPES)
            self.gradients = self.gradients.passed(model, node)

    def may_add_last(self, model: ast.AST) -> bool:
        """Whether the last layer that a model has called may have a bias, which the gradients of its inputs lack."""
        last = self.last_layers.get(model)
        if last is not None and last.name.rpartition(".")[2] in BENDS:
            return False
        bias = last.told.get("bias") if last is not None else None
        return bias is None or bias.constant is not False

    def wanted_by(self, node: ast.Call, frame: Frame) -> set[ast.AST] | None:
        """The models in which `loss.backward(inputs=…)` leaves gradients; None where all are."""
        inputs = next((word.value for word in node.keywords if word.arg == "inputs"), None)
        modules = self.parameters_in([self.value(inputs, frame)]) if inputs is not None else ()
        return {root_of(each).made for each in modules} if modules else None

    def may_be_frozen(self, node: ast.Call, model: ast.AST, frame: Frame) -> None:
        """A backward pass goes through a model that seems frozen: all of it is, unless a step is made with what it
        leaves. Then parts are trained: `for p in model.parameters(): p.requires_grad = False; model.fc = Linear(8, 3)`.
        """
        if model not in self.frozen_when_wrapped:
            self.found.not_averaged[node, model] = Problem(frame.script, node, _FROZEN)
        elif model not in self.gradients.awaited:
            self.found.not_averaged[node, model] = Problem(frame.script, node, TWICE)
        self.gradients = self.gradients.passed(model, node)

    def calls_wrapper(self, model: ast.AST, node: ast.Call) -> None:
        """A trained model is called, by its wrapper if steps are made with the gradients that follow."""
        if node in self.wrapped_calls:
            if model in self.gradients.awaited:
                self.found.repeated.add(model)
            self.gradients = self.gradients.awaits([model])

    def steps(self, owner: Value, name: str, node: ast.Call, frame: Frame) -> None:
        """A method of an optimizer, or of a model, that may take its gradients, set them to zero, or move it."""
        self.may_move(owner, node, frame)
        if is_move(node):
            self.moved |= {each.made for each in owner.things if isinstance(each, Module) and root_of(each) is each}
        optimizers = [thing for thing in owner.things if isinstance(thing, OptimizerValue)]
        if name == "step":
            self.calls_in_step(owner, node, frame)
        if name == "get_lr" and self.asks_in_step():  # rank 0 alone may write it
            self.problem(frame, node, f"`{ast.unparse(node)}` calls a function that reads numbers of all ranks")
        if name not in _AT_REST:
            self.found.in_use |= {each.call for each in optimizers}
        if name == "step" and optimizers:
            models = {root_of(module).made for each in optimizers for module in each.modules} & self.trained
            if len(self.trained) > 1 and any(not self.gradients.left.get(model) for model in models):
                self.problem(frame, node, _UNFED)
            self.takes(models)
        if name == "zero_grad" and len(owner.things) == 1:
            thing = next(iter(owner.things))
            whole = [thing] if isinstance(thing, Module) and root_of(thing) is thing else []
            models = {root_of(module).made for each in optimizers for module in each.modules}
            alone = {model for model in models if len(self.optimizers_of.get(model, ())) == 1}
            self.gradients = self.gradients.zeroed(alone | {each.made for each in whole})

    def takes(self, models: Iterable[ast.AST]) -> None:
        """Something is made with the gradients of models."""
        for model in models:
            self.found.stepped |= {(each, model) for each in self.gradients.left.get(model, ())}

    def may_take(self, given: Iterable[Value]) -> None:
        """A library gets optimizers or parameters: a GradScaler, what clips gradients."""
        for value in entries(given):
            for thing in value.things:
                if isinstance(thing, OptimizerValue):
                    self.found.in_use.add(thing.call)
                if isinstance(thing, OptimizerValue | Parameters):
                    self.takes({root_of(module).made for module in thing.modules})

    def is_told(self, node: ast.Call, given: Sequence[Value], frame: Frame) -> None:
        """An optimizer, or what changes its learning rate, is told numbers beside parameters: those of all ranks."""
        waiting = [*node.args, *(word.value for word in node.keywords)] if any(map(may_differ, given)) else []
        while waiting:
            part = waiting.pop(0)
            if isinstance(part, ast.Tuple | ast.List):
                waiting += part.elts
            elif isinstance(part, ast.Dict):  # a group of parameters
                waiting += part.values
            elif isinstance(part, ast.Starred):
                waiting.append(part.value)
            elif may_differ(value := self.value(part, frame)):
                if self.parameters_in([value]):
                    self.problem(frame, part, _WITH_PARAMETERS)
                else:
                    self.demand(part, value, frame)
        for name, value in (each for function in given for each in read_by(function)):
            if value.is_local:
                reason = f"what is called in each step reads `{name}`, of which each rank has another one"
                self.problem(frame, node, reason, value.loaders)

    def keeps_groups(self, given: Iterable[Value]) -> None:
        """An optimizer is given groups of parameters, whose dicts are its param_groups: the script may change them."""
        for value in entries(given):
            self.groups_given |= {
                each for each in value.only(Items) if isinstance(each, Items) and each.shape == "dict"
            }

    def is_group(self, owner: Value) -> bool:
        """Whether something may be a group of parameters that an optimizer was given."""
        return not self.groups_given.isdisjoint(owner.things)

    def keeps_functions(self, node: ast.Call, given: Iterable[Value], args: Sequence[Value], frame: Frame) -> None:
        """Functions are given to an optimizer, `register_step_pre_hook(f)`, or to what sets its learning rate,
        `LambdaLR(optimizer, f)`: each step calls them.

        Args: where; what is given there; what they are called with; the frame.
        """
        kept = self.called_by_steps(given, args)
        for thing in () if args else kept:  # a scheduler asks for the first learning rate at once
            self.call_in_step(thing, (SAME,), {}, node, frame)

    def called_by_steps(self, given: Iterable[Value], args: Sequence[Value]) -> list[Thing]:
        """Note the functions among values, also in lists: each step calls them from now on."""
        things = [thing for value in entries(given) for thing in value.things]
        kept: list[Thing] = [thing for thing in things if isinstance(thing, Function | Bound | Instance)]
        self.in_steps |= {thing: tuple(args) for thing in kept}
        return kept

    def calls_in_step(self, owner: Value, node: ast.Call, frame: Frame) -> None:
        """A step of an optimizer, or of what sets its learning rate: it calls what these were given, and the `get_lr()`
        of a class of the program."""
        if self.in_step:
            return
        self.in_step = True
        for thing, args in [*self.in_steps.items()]:
            self.call_in_step(thing, args or (SAME,), {}, node, frame)
        for scheduler in owner.only(Instance):
            self.call_in_step(scheduler, (), {}, node, frame)
        self.in_step = False

    def asks_in_step(self) -> bool:
        """Whether what each step calls reads numbers that are told to all ranks there."""
        parts = (part for each in self.in_steps if isinstance(each, Function) for part in ast.walk(each.node))
        return any(part in self.found.reductions for part in parts)

    def call_in_step(
        self, thing: Thing, args: Sequence[Value], keywords: Mapping[str, Value], node: ast.Call, frame: Frame
    ) -> None:
        """Follow what a step calls: what it gives back has to be the same on all ranks."""
        if isinstance(thing, Bound):
            self.call_in_step(thing.thing, (*thing.args, *args), dict(thing.keywords) | dict(keywords), node, frame)
        if isinstance(thing, Instance):
            for name in ("get_lr", "__call__") if args else ("get_lr",):
                if (method := self.method_of(thing.cls, name, of(thing))) is not None:
                    self.call_in_step(method, args if name == "__call__" else (), keywords, node, frame)
        if not isinstance(thing, Function):
            return
        made = self.enter(thing, node.func, [*args], dict(keywords), frame)
        if may_differ(made):
            where = self.module_frame(thing.script)
            self.problem(where, thing.node, _IN_STEP, made_of("same", [made]).loaders)

    def makes_optimizer(self, node: ast.Call, modules: Iterable[Module]) -> None:
        """An optimizer is made; models are wrapped before."""
        self.wrapped = True
        models = {root_of(module).made for module in modules}
        self.gradients = self.gradients.without_moves(models)
        for frozen in (self.frozen_behind, self.frozen_since):
            for at, each in [*frozen.items()]:
                frozen[at] = each.behind(models, self.undecided)
                if not frozen[at].models:
                    del frozen[at]
        for model in models:
            if not self.undecided:
                self.redrawn.pop(model, None)
            self.has_wrapper(model)
            self.found.moved_first |= {model} & self.moved
            self.optimizers_of.setdefault(model, set()).add(node)
            self.found.optimizers_of.setdefault(model, set()).add(node)
            if self.gradients.frozen.get(model, False) is not False or model in self.partly_frozen:
                self.frozen_when_wrapped.add(model)
            self.once_frozen_when_wrapped |= {model} & self.once_frozen
            alone = self.trained == {model} or (self.trained == models and self.are_alternatives(models))
            if self.gradients.frozen.get(model, False) is None and alone:
                # If all of it were, no gradient would come to anything, and the backward pass would raise
                self.has_trained_parts(model)

    def are_alternatives(self, models: Iterable[ast.AST]) -> bool:
        """Whether a run makes only one of some models: `if deep: model = resnet18() else: model = Net()`."""
        scripts = {each: script for each in models for script in self.scripts if each in script.parents}
        apart = all(
            one in scripts and in_other_branch(scripts[one], one, other)
            for one, other in itertools.combinations(models, 2)
        )
        return apart and all(self.is_made_once(script, each) for each, script in scripts.items())

    def is_made_once(self, script: Script, node: ast.AST) -> bool:
        """Whether a program comes to some code once, by calls of functions that it calls at one place each."""
        for around in script.ancestors(node):
            if isinstance(around, ast.For | ast.While | ast.comprehension | ast.Lambda | ast.ClassDef):
                return False
            if isinstance(around, ast.FunctionDef | ast.AsyncFunctionDef):
                calls = [*self.found.called_with.get(around, ())]
                return len(calls) == 1 and self.is_made_once(calls[0][1], calls[0][0])
        return True

    def belongs(self, part: Module, module: Module) -> None:
        """A module is a part of another one."""
        if part in self.taken and not self.may_be_frozen_in(root_of(part)):
            part.parent = None
        self.taken.discard(part)
        if part in self.new_modules:
            self.new_modules.discard(part)
        elif part.parent is not None and not isinstance(part.made, ast.Attribute):
            self.found.shared.add((part, module))
        if part.parent is None and root_of(module) is not part:  # two may name each other
            part.parent = module
        self.has_trained_parts(root_of(module).made)

    def may_be_frozen_in(self, model: Module) -> bool:
        """Whether parameters of a model were frozen."""
        return model.made in self.once_frozen | self.partly_frozen | self.gradients.frozen.keys()

    def has_trained_parts(self, *models: ast.AST) -> None:
        """Frozen models get parameters that are not: `model.fc = Linear(8, 3)`."""
        self.gradients = self.gradients.froze(self.gradients.frozen.keys() & set(models), False)

    def freezes(self, owner: Value, node: ast.Attribute, requires: object, frame: Frame) -> None:
        """Parameters are frozen or unfrozen; requires: what requires_grad is set to, if that is known."""
        modules = [thing for thing in owner.things if isinstance(thing, Module)] + list(self.parameters_in([owner]))
        loop = loop_over(frame.script, node.value)
        if not modules and (owner != SAME or not (loop or isinstance(node.value, ast.Attribute))):
            return
        models = {each.made for each in modules if root_of(each) is each}
        whole = len(owner.things) == 1 and len(models) == len(modules) and not (loop and chooses(loop))
        reached = {root_of(each).made for each in modules or self.layers_of(node.value, frame)} or self.trained
        self.found.freezing |= {*frame.statements} if reached & self.trained else set()
        late = True
        if whole and isinstance(requires, bool):
            self.gradients = self.gradients.froze(models, not requires)
            late = requires and bool(models & self.frozen_when_wrapped)
        elif requires is True:
            self.has_trained_parts(*reached)
        if not self.wrapped and requires is not True:
            self.partly_frozen |= reached
        self.once_frozen |= reached if requires is not True else set()
        if requires is not False:
            self.unfreezes_late_layers(reached)
        wrapped = reached & self.trained & self.optimizers_of.keys()
        if late and wrapped and (self.backwards or self.contexts or self.in_forward):
            self.frozen_since[node] = self.freeze(wrapped, requires, frame)
        elif late and wrapped:
            self.frozen_behind[node] = self.freeze(wrapped, requires, frame)

    def freeze(self, models: set[ast.AST], requires: object, frame: Frame) -> Freeze:
        statements = frozenset(frame.statements)
        return Freeze(frame.script, statements, frozenset(models), requires is not False, self.undecided)

    def trains_frozen(self) -> None:
        """A backward pass is made where parameters have been frozen or unfrozen since the optimizer was made."""
        self.found.late_freezes |= self.frozen_behind
        for each in self.frozen_behind.values():
            self.found.thawed_first |= each.models & self.once_frozen_when_wrapped if each.thaws else set()
        for node, each in self.frozen_since.items():
            if each.thaws and each.models & self.once_frozen_when_wrapped:
                self.found.problems.append(Problem(each.script, node, FROZEN_LATE))
                continue
            # The wrapper knows the parameters, and is told to look which of them are used
            self.found.frozen_at_times |= each.models
            self.found.thawed |= each.models if each.thaws else set()
            self.found.unused |= each.models

    def layers_of(self, node: ast.expr, frame: Frame, depth: int = 8) -> list[Module]:
        """The networks of whose layers or parameters something is one: `for m in list(net.children())[:5]`."""
        found = [thing for thing in self.value(node, frame).things if isinstance(thing, Module)]
        found = found or self.layers_given.get((node, frame), [])
        if found or not depth:
            return found
        inner = [self.layers_of(part, frame, depth - 1) for part in given_by(frame.script, node)]
        return [each for several in inner for each in several] if all(inner) else []

    def end_gradients(self) -> None:
        """Decide which calls have to go through wrappers: those by whose gradients steps are made."""
        found = self.found
        known = set() if self.reads_gradients() else {model for _, model in found.stepped}
        partly = {model for _, model in found.reached} - {model for _, model in self.not_frozen}
        unseen = {pair for pair in found.reached if pair[1] not in known}
        found.stepped |= {pair for pair in unseen if pair in self.not_frozen or pair[1] in partly}
        for pair in found.reached.keys() - found.stepped - self.not_frozen:
            del found.reached[pair]
        found.training_forwards = {call for pair in found.stepped for call in found.reached.get(pair, ())}
        found.problems += [problem for pair, problem in found.not_averaged.items() if pair in found.stepped]
        found.of_slopes = {pair: problem for pair, problem in found.of_slopes.items() if pair in found.stepped}

    def reads_gradients(self) -> bool:
        """Whether the program reads `.grad` of anything."""
        return any(
            node.attr == "grad" and not script.qualified(node).startswith(("torch.", "autograd."))
            for script in self.scripts
            for node in script.find(ast.Attribute)
        )


def loop_over(script: Script, node: ast.expr) -> ast.For | None:
    """The loop that gives what a name stands for: `for p in model.parameters()`."""
    for parent in script.ancestors(node):
        if isinstance(parent, ast.For) and isinstance(node, ast.Name) and node.id in names_in(parent.target):
            return parent
    return None


def given_by(script: Script, node: ast.expr) -> list[ast.expr]:
    """What something is one of, or a part of: a loop, what a list holds, the network of `net.children()`."""
    if isinstance(node, ast.Attribute | ast.Subscript | ast.Starred):
        return [node.value]
    if isinstance(node, ast.Call):
        if isinstance(node.func, ast.Attribute) and node.func.attr in _LAYERS:
            return [node.func.value]
        return node.args[:1] if ast.unparse(node.func) in ("list", "enumerate", "reversed", "iter") else []
    if isinstance(node, ast.List):
        return node.elts
    if (loop := loop_over(script, node)) is not None:
        return [loop.iter]
    made = sources(script, node)
    appended = (
        call.args[0]
        for call in script.find(ast.Call)
        if ast.unparse(call.func) == f"{ast.unparse(node)}.append" and call.args
    )
    lists = any(isinstance(each, ast.List) for each in made)
    return [each for each in made if not isinstance(each, ast.List) or each.elts] + (list(appended) if lists else [])


def chooses(loop: ast.For) -> bool:
    """Whether a loop chooses from what it runs over: `if "fc" not in name: p.requires_grad = False`."""
    given = names_in(loop.target)
    return any(isinstance(part, ast.If) and given & names_in(part.test) for part in ast.walk(loop))


def leaves_outputs(script: Script, call: ast.Call, result: Value) -> bool:
    """Whether a model gives back several tensors, of which some may not be differentiated: `validity, _ = model(x)`."""
    if not any(isinstance(thing, Items) and len(thing.known) > 1 for thing in result.things):
        return False
    parent = script.parents[call]
    target = parent.targets[0] if isinstance(parent, ast.Assign) else None
    if not isinstance(target, ast.Tuple | ast.List):
        return True
    names = [part.id for part in target.elts if isinstance(part, ast.Name)]
    read = {node.id for node in script.find(ast.Name) if isinstance(node.ctx, ast.Load)}
    return len(names) < len(target.elts) or any(name.startswith("_") or name not in read for name in names)


def read_by(value: Value) -> Iterator[tuple[str, Value]]:
    """What functions read by a name that is not their own: `lambda epoch: 1 / (n + epoch)`."""
    for thing in value.things:
        if not isinstance(thing, Function) or not isinstance(thing.closure, Frame):
            continue
        names = [each for each in ast.walk(thing.node) if isinstance(each, ast.Name)]
        own = {each.arg for each in ast.walk(thing.node.args) if isinstance(each, ast.arg)}
        own |= {each.id for each in names if not isinstance(each.ctx, ast.Load)}
        for name in sorted({each.id for each in names} - own):
            if (owner := thing.closure.owner(name)) is not None:
                yield name, owner.names[name]
