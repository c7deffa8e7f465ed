"""Follows calls of modules, and backward passes."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from dataclasses import replace

from ..called_modules import called_model
from ..script import Script
from .bags import bags, is_in_one, of_each_sample
from .batches import passed_on
from .beginnings import Beginnings
from .conditional_layers import has_no_parameters
from .dimensions import of_dimensions
from .dropout import draws_masks
from .frames import Frame, Problem
from .held_values import local_entries
from .input_gradients import BENDS
from .late_layers import LateLayers
from .layout import axis
from .library_modules import of_library_module
from .losses import Losses
from .operation_names import DRAWN_AT_FIRST, LOSS_CLASSES, WEIGHTED
from .packed import PACKED, is_packed
from .reductions import likelihood, loss_of, reduction_of
from .remembered import Remembered
from .state import Context
from .training import leaves_outputs
from .transformers_models import (
    class_name,
    computes_loss,
    count_of_labels,
    inputs_are_labels,
    leaves_parameters,
    outputs,
    several_outputs,
    weighs,
)
from .untrained import Untrained
from .values import (
    ADDITIVE,
    DRAWN,
    IN_ONE,
    LOCAL_ROWS,
    OWN_BUFFER,
    OWN_SHAPE,
    SAME,
    Function,
    Items,
    Method,
    Module,
    Value,
    entries,
    join,
    least,
    made_of,
    of,
    root_of,
)

_CRF = "torchcrf.CRF"
_PARAMETERS = frozenset({"torch.nn.Parameter", "torch.nn.parameter.Parameter"})


class Modules(Losses, Beginnings, LateLayers, Remembered, Untrained):
    """What models and losses make of batches."""

    def forward(
        self, module: Module, node: ast.Call, args: list[Value], keywords: dict[str, Value], frame: Frame
    ) -> Value:
        """Call a module."""
        self.called_networks.add(module)
        given = [*args, *keywords.values()]
        local = [value for value in given if value.is_local or local_entries(value)]
        inside = bool(self.in_forward)
        alone = isinstance(frame.statement, ast.Expr) and frame.statement.value is node
        if alone and local and not inside and not module.cls and not module.name.startswith("torch.nn."):
            self.shown(node, frame, keeps=True)  # to a meter of a library, as a rule
        root = root_of(module)
        trained = root.made in self.trained and not inside
        self.calls_in_mode(root)
        if not inside and root.made not in self.trained and self.has_own_numbers(root):
            self.problem(frame, node, "the network that is called here begins with other numbers on each rank")
        last = module.name.rpartition(".")[2]
        self.scores |= scored(node, frame) if last in WEIGHTED else set()
        if last in LOSS_CLASSES:
            known = module.attributes.get("reduction", SAME).constant
            reduction = known if isinstance(known, str) else "?"
            given += module.made_of_batch
            if last in WEIGHTED and module.made_of_batch:
                return made_of("unknown", given, reason="its weights are made of the samples of a batch")
            if last in WEIGHTED and isinstance(module.made, ast.Call):
                if not module.attributes.keys().isdisjoint(("weight", "ignore_index")):  # criterion.weight = …
                    return loss_of(given, reduction, True)
                if self.is_weighted(module.made):
                    return self.weighed_loss(node, module.made, given, reduction, frame)
            return self.loss(last, node, of_each_sample(last, given), reduction, frame)
        if trained and any(value.whole for value in given):
            self.problem(frame, node, "a model is given the samples of all ranks, which each would compute with")
        elif trained and not (self.without_gradients or local):
            self.found.given_of_all |= {node} if any(value.loaders for value in entries(given)) else set()
        if local and any(value.reason == OWN_SHAPE and not value.is_local for value in entries(given)):
            self.gets_whole_size(node, local, frame)
        if inside and (module.cls or module.contents is not None):  # it is followed, whatever it is given
            args, keywords = [_relaxed(each) for each in args], {name: _relaxed(v) for name, v in keywords.items()}
            given = [*args, *keywords.values()]
            local = [value for value in given if value.is_local or local_entries(value)]
        if inside and given and is_packed(given[0]) and (states := of_library_module(module, given)) is not None:
            return states
        unknown = [value for value in local if value.kind == "unknown" or value.kind in ADDITIVE]
        if unknown and (module.networks or trained):
            self.computing |= {module.cls.node} if module.cls else set()  # what it makes of this stays unknown
            numbers = module.cls and not trained and all(value.kind in ADDITIVE for value in unknown)
            loss = self.own_loss(module, node, args, keywords, frame) if numbers else None
            result = loss or made_of("unknown", unknown)
            if trained and root is module:
                self.evaluated(module, node, frame)
            return self.tagged(result, (node, root.made)) if trained else result
        if module.cls or "forward" in module.attributes:
            own = self.once(
                module, args, keywords, lambda: self.own_forward(module, node, args, keywords, frame, trained)
            )
        elif module.name == _CRF and local:
            own = likelihood(given, keywords.get("reduction"))
        else:
            own = self.through(module, node, given, frame) if local or module.contents is not None else None
        drops = not (local or inside) and "torch" in self.began & self.drawn and draws_masks(root, root.evaluates)
        merged = bool(given) and given[0].front == "merged"  # steps and samples, each of which it takes for a sample
        result = made_of(("rows_moved" if merged else "batch") if local else "same", local or [SAME])
        if own is not None and (own.only(Items) or not self.is_vague(own, module, trained)):
            result = own
        if drops and not result.is_local:  # of samples that all ranks have
            result = made_of("unknown", [result], reason=DRAWN)
        apart = local and is_in_one(local[0]) and own is result and (module.cls or own.kind == "rows")
        if last not in ("Flatten", "Unflatten"):
            result = passed_on(result, given)
        in_one = trained or (bool(local) and local[0].reason in (PACKED, *IN_ONE))
        if local and local[0].kind == "picked" and (in_one or last not in ("LSTM", "GRU", "RNN")) and not apart:
            result = picked(result)
        if root is not module and (last in BENDS or is_layer(module)):
            self.last_layers[root.made] = module
        if self.in_forward and module.networks and not trained:
            if self.without_gradients > self.quiet_around:
                self.found.unused.add(root.made)
            self.always.add(module)
        if root.made in self.trained and not self.without_gradients and self.leaves_untrained(module, node, frame):
            self.found.unused.add(root.made)
        if trained and root is module:
            self.found.forwards[node] = (frame.script, module)
            if module in self.found.in_parallel:
                self.found.parallel_calls[node] = frame.script
            self.found.called_models.setdefault(node, set()).add(root.made)
            self.evaluated(module, node, frame)
            self.evaluates_apart(module, node, frame)
            if not self.without_gradients:
                self.calls_wrapper(root.made, node)
                self.trains_drawn(root.made)
                self.trains_late_layers(root.made)
                if len(self.trained) > 1 and leaves_outputs(frame.script, node, result):
                    self.found.unused.add(root.made)
                result = self.tagged(result, (node, root.made))
        elif trained:
            result = self.tagged(result, None, node)
        return self.of_transformers(module, node, result, frame) if local and not module.cls else result

    def has_own_numbers(self, root: Module) -> bool:
        """Whether a network that no wrapper makes alike was made after the ranks had drawn noise of their own."""
        return root not in self.loaded and any(root_of(each) is root for each in self.begins_apart)

    def stays_apart(self, module: Module) -> bool:
        """Whether no wrapper will ever make a network alike that begins with other numbers on each rank."""
        root = root_of(module)
        return self.has_own_numbers(root) and root.made not in self.optimizers_of

    def leaves_untrained(self, module: Module, node: ast.Call, frame: Frame) -> bool:
        """Whether a backward pass leaves out parameters of a model of transformers."""
        made = module.made
        script = next((each for each in self.scripts if made in each.parents), None)
        return script is not None and isinstance(made, ast.Call) and leaves_parameters(script, made, frame.script, node)

    def of_transformers(self, module: Module, node: ast.Call, result: Value, frame: Frame) -> Value:
        """What a model gives back, with its loss, if it is one of transformers."""
        made = module.made
        script = next((each for each in self.scripts if made in each.parents), None)
        name = class_name(script, made) if script is not None and isinstance(made, ast.Call) else ""
        if not computes_loss(name, node):
            return several_outputs(result) if name and result.kind == "batch" and not result.things else result
        trains = any(self.status.get(each) == "training" for each in result.loaders) and not self.without_gradients
        collated = any(word.arg == "collate_fn" for each in result.loaders for word in each.call.keywords)
        if trains and collated and inputs_are_labels(node):  # what pads a rank's batch has a loss, too
            return outputs(result, True)
        if not trains or not weighs(name, node, self.leaves_out()):
            return outputs(result, False)
        count = count_of_labels(name, frame.script, node)
        if count and not self.in_forward and not self.in_rows():
            self.found.labelled[node] = frame.script, count
        return outputs(result, node not in self.found.labelled)

    def gets_whole_size(self, node: ast.Call, local: list[Value], frame: Frame) -> None:
        """A module is given something of the batch size of all ranks, beside a batch: a state to begin with."""
        loaders = frozenset().union(*(value.loaders for value in local))
        if any(self.status.get(each) == "training" for each in loaders):
            self.problem(frame, node, f"what `{ast.unparse(node.func)}` is given is as long as a batch of all ranks")

    def through(self, module: Module, node: ast.Call, given: list[Value], frame: Frame) -> Value | None:
        """What a module of torch gives back, or one after the other of nn.Sequential; None where that is not known."""
        if module.contents is None:
            return bags(module.name, given) or of_library_module(module, given)
        value = self.in_turn(module, node, given, frame) if given else SAME
        if value.is_kept or (value.kind in ("rows_second", "rows_last", "rows_moved") and not value.things):
            return value
        seen = value.kind in LOCAL_ROWS and axis(value.kind) == 0 and not value.things and not is_packed(value)
        if not seen or not least(value) or not module.layers:  # which layers there are is not known otherwise
            return None
        made = made_of("batch", [each for each in given if each.is_local])
        return of_dimensions(made, value.dimensions, value.at_least)

    def is_vague(self, value: Value, module: Module, trained: bool) -> bool:
        """Whether nothing is known of what a network gives back, but that it is made of what it was given."""
        vague = (value.kind == "same" and not value.loaders) or (value.kind == "unknown" and not value.is_kept)
        return vague and (module.networks or trained)

    def evaluated(self, module: Module, node: ast.Call, frame: Frame) -> None:
        """Note a call of a trained module outside of loops over training batches, or in one over others that is within
        these, where it may have been trained."""
        if not self.may_have_begun:
            return
        trained = [at for at, each in enumerate(self.contexts) if each.how == "batches" and not self.uneven(each)]
        inner = self.contexts[trained[-1] + 1 :] if trained else self.contexts
        if trained and all(each.how == "rows" for each in inner):
            return
        called = called_model(node)
        named = [
            (each, ast.unparse(called) if is_set_before(each, called, frame) else self.named(module, each.frame))
            for each in inner
            if each.how != "rows"
        ]
        loop, name = next((each for each in named if each[1]), named[0] if named else (None, ""))
        self.found.forwards[node] = (frame.script, module)
        self.found.called_models.setdefault(node, set()).add(root_of(module).made)
        self.found.evaluations.setdefault(node, set()).add((loop.node, loop.frame.script, name) if loop else None)

    def tagged(self, value: Value, forward: tuple[ast.Call, ast.AST] | None, bypass: ast.AST | None = None) -> Value:
        """The value, and those in it, with what it was made by."""
        for thing in value.only(Items):
            assert isinstance(thing, Items)
            thing.known = {key: self.tagged(each, forward, bypass) for key, each in thing.known.items()}
            thing.rest = None if thing.rest is None else self.tagged(thing.rest, forward, bypass)
        forwards = value.forwards | ({forward} if forward is not None else set())
        bypasses = value.bypasses | ({bypass} if bypass is not None else set())
        return replace(value, forwards=forwards, bypasses=bypasses)

    def own_loss(
        self, module: Module, node: ast.Call, args: list[Value], keywords: dict[str, Value], frame: Frame
    ) -> Value | None:
        """What a module that is not trained makes of numbers of a batch, if that is seen to be a mean or a sum."""
        found = self.own_forward(module, node, args, keywords, frame, trained=False)
        return found if found is not None and found.kind in ADDITIVE else None

    def own_forward(
        self, module: Module, node: ast.Call, args: list[Value], keywords: dict[str, Value], frame: Frame, trained: bool
    ) -> Value | None:
        methods = self.forwards_of(module)
        if methods is None:
            self.problem(frame, node, "what this model does is replaced by something that is not followed")
        if not methods and module.name != "torch.nn.Sequential":
            return None
        if not self.in_forward:
            self.quiet_around = self.without_gradients
            self.set_now = set()
        if module.cls is not None:
            self.computing.add(module.cls.node)
        self.in_forward.append(module)
        undecided, self.undecided = self.undecided, self.undecided if len(self.in_forward) > 1 else 0
        around = self.always, self.at_times
        if len(self.in_forward) == 1:
            self.always, self.at_times = set(), set()
        try:
            if methods:
                result = self.enter(methods[0], node, args, keywords, frame)
            else:
                result = self.one_after_the_other(module, node, [*args, *keywords.values()], frame)
            for method in (methods or [])[1:]:
                result = join(result, self.enter(method, node, args, keywords, frame))
        finally:
            self.in_forward.pop()
            self.undecided = undecided
        if not self.in_forward:
            self.found.unused |= {root_of(each).made for each in self.at_times - self.always}
            self.always, self.at_times = around
        self.leaves_layers(module)
        return self.lenient(result) if module.networks or trained else result

    def leaves_layers(self, module: Module) -> None:
        """Note the layers of a network that no forward has used so far."""
        for name, value in module.attributes.items():
            inner = [each for each in value.things if isinstance(each, Module) and each.networks]
            if inner and (module, name) not in self.parts:
                trained = [each for each in inner if not has_no_parameters(each)] or inner  # fc = Identity()
                self.not_in_forward[module, name] = min(trained, key=lambda each: getattr(each.made, "lineno", 0))

    def forwards_of(self, module: Module) -> list[Function] | None:
        """The functions that a call of a module may run: its `__call__`, its `forward`, and what `forward` is set to;
        None where that is no function of the program."""
        found: list[Function] = []
        given = [module.attributes.get("forward")]
        if module.cls is not None:
            methods = (self.method_of(module.cls, name, of(module)) for name in ("__call__", "forward"))
            found = [each for each in methods if each is not None][:1]
            given.append(self.class_attributes.get(module.cls.node, {}).get("forward"))
        if found and getattr(found[0].node, "name", "") == "__call__":
            return found
        for value in given:
            for thing in value.things if value is not None else ():
                if not isinstance(thing, Function):
                    return None
                bound = replace(thing, owner=of(module)) if value is given[-1] and module.cls is not None else thing
                found += [bound] if thing.node not in [each.node for each in found] else []
            if value is not None and not value.things:
                return None
        return found

    def lenient(self, value: Value) -> Value:
        """What a network gives back: something for each sample, unless it is seen to be a mean or a sum."""
        for thing in value.only(Items):
            assert isinstance(thing, Items)
            thing.known = {key: self.lenient(each) for key, each in thing.known.items()}
            thing.rest = None if thing.rest is None else self.lenient(thing.rest)
        if value.is_kept:
            return value
        if value.kind in ("unknown", "rows", "rows_moved", "rows_last", "shape"):
            return replace(value, kind="batch", reason="")
        return value

    def end_parts(self) -> None:
        """Note what forwards do not use of their models: nothing does, or losses do, `torch.exp(-net.log_vars)`."""
        by_losses: dict[ast.AST, ast.AST] = {}
        for (module, name), part in self.not_in_forward.items():
            if (module, name) in self.read_in_training and self.is_parameter(part):
                by_losses[root_of(module).made] = part.made
            elif not has_no_parameters(part):
                self.found.unused.add(root_of(module).made)
        for made in self.found.unused & by_losses.keys():
            reason = "a loss uses these parameters of a model, which its forward does not use, nor others of it"
            part_made = by_losses[made]
            self.found.problems.append(Problem(script_of(self.scripts, part_made), part_made, reason))

    def is_parameter(self, part: Module) -> bool:
        """Whether it is a tensor that is trained by itself, `nn.Parameter(torch.zeros(2))`."""
        made = part.made
        return isinstance(made, ast.Call) and script_of(self.scripts, made).qualified(made.func) in _PARAMETERS

    def backward(self, node: ast.Call, frame: Frame) -> Value:
        assert isinstance(node.func, ast.Attribute)
        loss = self.value(node.func.value, frame)
        for thing in loss.only(Method):
            assert isinstance(thing, Method)
            loss = thing.owner
        self.backwards += 1
        self.nothing_may_follow(frame)
        for each in self.trying:
            each.in_batch |= self.loops_over_batches() <= each.loops
        self.found.scripts[node] = frame.script
        self.found.backwards.setdefault(node, set()).add(loss.kind)
        self.weighs(node, frame)
        self.reaches(node, loss, frame)
        evaluated = {each for each in loss.loaders if each.source in loss.loaders}  # kept by a model, of its last call
        self.found.training |= loss.loaders - evaluated
        of_all = loss.kind == "same" and loss.loaders and loss.forwards
        if not (of_all or loss.kind in ("mean", "sum")) or loss.reason == OWN_SHAPE:
            self.found.terms |= loss.terms
            self.found.calls |= loss.calls
            reason = loss.reason
            if not reason and loss.kind == "same":
                reason = "it is not made of the batches of a DataLoader"
            self.problem(
                frame, node, f"this loss cannot be divided over ranks: {reason or 'it is no mean or sum over samples'}"
            )
        self.found.differentiated |= loss.made_at
        if self.in_rows():
            self.problem(frame, node, "it is trained here on one sample of a batch after the other")
        if loss.made_at & self.of_all:
            self.problem(frame, node, "what it is made of is computed from the batches of all ranks")
        if any(loader.source is not None and not self.trains_by_next(loader) for loader in loss.loaders - evaluated):
            self.problem(frame, node, "it is trained here on what a loop without a backward pass has read")
        if self.trained and not loss.forwards and loss.kind in ("mean", "sum"):
            self.problem(frame, node, "no call of the trained model is seen that this loss is made by")
        if loss.forwards:
            self.trains_frozen()
            self.found.training_statements |= {*frame.statements}
        for bypass in loss.bypasses:
            there = next((each for each in self.scripts if bypass in each.parents), frame.script)
            reason = "the model is used here other than by calling it, which DistributedDataParallel does not see"
            self.found.problems.append(Problem(there, bypass, reason))
        return SAME

    def weighs(self, node: ast.Call, frame: Frame) -> None:
        """A backward pass is given a gradient to begin with: `loss.backward(torch.tensor(1 / len(x)))`."""
        for each in (*node.args, *(word.value for word in node.keywords)):
            if not isinstance(each, ast.Call) or not frame.script.qualified(each.func).endswith(".ones_like"):
                self.demand(each, self.value(each, frame), frame)

    def library_module(
        self, name: str, node: ast.Call, args: list[Value], keywords: dict[str, Value], frame: Frame
    ) -> Value:
        given = [*args, *keywords.values()]
        module = self.modules.setdefault((node, frame.makers), Module(node, name))
        for key, value in (dict[int | str, Value](enumerate(args)) | keywords).items():
            module.told[key] = join(module.told[key], value) if key in module.told else value
        module.is_one_of |= module.name != name
        self.new_modules.add(module)
        last = name.rpartition(".")[2]
        module.networks = last not in LOSS_CLASSES
        drawn = last in DRAWN_AT_FIRST and "torch" in self.began & self.drawn
        if drawn or any(value.reason == DRAWN for value in given):
            self.begins_apart.add(module)
            self.undecided_when_made[module] = self.undecided
        if last == "Buffer" and any(value.reason == DRAWN for value in given):
            self.found.drawn_buffers[module] = Problem(frame.script, node, OWN_BUFFER)
        if last in LOSS_CLASSES:
            reduction = Value(constant=reduction_of(last, node, lambda part: self.value(part, frame).constant))
            known = module.attributes.setdefault("reduction", reduction)
            module.attributes["reduction"] = join(known, reduction)
            module.made_of_batch = [value for value in given if value.is_local and value.kind not in ("size", "shape")]
        if given:
            module.attributes["layers"] = given[0]
        self.fill(module, given)
        for value in given:
            for inner in value.only(Module):
                assert isinstance(inner, Module)
                if inner is not module and inner.parent is not module:
                    self.belongs(inner, module)
        return of(module)


def _relaxed(value: Value) -> Value:
    """What a layer is given of which nothing is known: something for each sample, as what networks give back."""
    return replace(value, kind="batch", reason="") if value.kind == "unknown" and not value.is_kept else value


def script_of(scripts: Sequence[Script], node: ast.AST) -> Script:
    return next((each for each in scripts if node in each.parents), scripts[0])


def picked(value: Value) -> Value:
    """What a model makes of some of the samples of a batch: something for each of those."""
    for thing in value.only(Items):
        assert isinstance(thing, Items)
        thing.known = {key: picked(each) for key, each in thing.known.items()}
        thing.rest = None if thing.rest is None else picked(thing.rest)
    return replace(value, kind="picked") if value.kind in LOCAL_ROWS else value


def is_layer(module: Module) -> bool:
    """Whether it is a layer of torch's that has parameters."""
    of_torch = module.networks and module.name.startswith("torch.nn.") and module.contents is None
    return of_torch and not has_no_parameters(module)


def scored(node: ast.Call, frame: Frame) -> set[tuple[ast.AST, str]]:
    """The variable that a loss takes for scores: along its second dimension lie classes."""
    first = node.args[0] if node.args else None
    return {(frame.node, first.id)} if isinstance(first, ast.Name) else set()


def is_set_before(loop: Context, called: ast.expr, frame: Frame) -> bool:
    """Whether what is called in a loop has its name before it, in the same function."""
    if loop.frame is not frame or not isinstance(called, ast.Name | ast.Attribute):
        return False
    base: ast.expr = called
    while isinstance(base, ast.Attribute):
        base = base.value
    inner = ast.walk(loop.node)
    stored = {each.id for each in inner if isinstance(each, ast.Name) and not isinstance(each.ctx, ast.Load)}
    return isinstance(base, ast.Name) and base.id not in stored
