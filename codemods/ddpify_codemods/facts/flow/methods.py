"""Follows methods of values that the program does not define."""

from __future__ import annotations

import ast
import re
from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache
from typing import TypeGuard

from ..bars import is_read
from ..script import KEPT, Script
from .arithmetic import combined, on_number
from .batch_layouts import BatchLayouts
from .chosen_lists import ChosenLists
from .dimensions import of_dimensions, of_sizes_given
from .draws import DRAWING
from .extended import lengthen, lengthening, zipped_rows
from .frames import Frame, Problem
from .given_parameters import is_put_in
from .held_values import local_entries
from .hooks import only_counts, only_keeps
from .in_place import InPlace, is_in_place
from .input_gradients import of_scaled
from .layout import axis, over_samples
from .looked_up import looked_up
from .modes import is_conditional, sets_modes, sets_reductions
from .noise import SAMPLING
from .one_for_each import one_for_each
from .operation_names import INTO, LAYOUTS, LOSSES, MOVE, NEW, PICTURES
from .operations import for_each_sample, of_numpy, of_sizes, on_rows, repeated_along
from .own_decisions import is_drawn
from .parameter_groups import OTHERS, is_put_into
from .reading import makes_numbers
from .records import Records
from .sizes import product
from .texts import of_text
from .values import (
    ADDITIVE,
    COUPLES,
    DRAWN,
    KEYED,
    LOCAL_ROWS,
    MIXED,
    NUMBERED,
    OWN_BUFFER,
    OWN_SHAPE,
    SAME,
    SEVERAL,
    SHUFFLED,
    UNEVEN,
    Bound,
    Class,
    Function,
    Instance,
    Items,
    Iteration,
    Loader,
    Logger,
    Method,
    Module,
    OptimizerValue,
    Parameters,
    Thing,
    Value,
    entries,
    join,
    made_of,
    of,
    root_of,
)
from .views import regroups, takes_apart

_KEEPS_ZERO = frozenset(
    {"to", "cuda", "cpu", "clone", "copy", "detach"} | {"double", "float", "half", "int", "long", "type", "astype"}
)
_MODULE_SELF = frozenset(
    {"to", "cuda", "cpu", "train", "eval", "float", "double", "half", "apply", "requires_grad_", "share_memory"}
)

_ADDS = frozenset({"add_module", "register_module", "append", "extend", "insert"})
_PARAMETERS = frozenset({"parameters", "named_parameters"})
_BAR_IS_READ = "what this bar has come to is read, which is a number of this rank"
_MADE_THERE = "what `setdefault` puts into a dict here is not followed"
_STEP_HOOKS = frozenset({"register_step_pre_hook", "register_step_post_hook"})

_IN_PLACE = {"mul_": ast.Mult(), "div_": ast.Div(), "add_": ast.Add(), "sub_": ast.Sub()}

_SHOWS_PICTURES = frozenset({"image", "images"})  # of Visdom

# They put samples together in a tensor of the script's own.
_INTO = frozenset(each + end for each in INTO - {"index_copy", "index_fill"} for end in ("", "_"))

# They make a tensor of sizes that they are given.
_SIZED = frozenset({"repeat", "expand", "new", *NEW})

# What they make of a list, a set or a Counter depends on the values in it.
_BY_VALUE = frozenset({"index", "count", "sort", "remove", "most_common", "union", "intersection", "difference"})

_LIST_METHODS = frozenset({"append", "add", "extend", "insert", "appendleft"})


class Methods(InPlace, ChosenLists, Records, BatchLayouts):
    """What methods of tensors, lists and modules make."""

    def method(
        self, method: Method, node: ast.Call, args: list[Value], keywords: dict[str, Value], frame: Frame, alone: bool
    ) -> Value:
        """Call a method; the names of a tensor that it changes in place hold another one afterwards."""
        self.redraws(method.name, method.owner, [*args, *keywords.values()], node, frame)
        self.changes_chosen(method.name, node, args, frame)
        if args or keywords:
            self.forgets([method.owner, *args, *keywords.values()])
        found = self.filled(method, node, args)
        if found is None and method.name == "detach_":
            found = self.detached(method, node, frame)
        if found is None:
            found = self.method_makes(method, node, args, keywords, frame, alone)
        owner = method.owner
        of_tensor = isinstance(node.func, ast.Attribute) and not owner.things and owner.kind not in ADDITIVE
        if of_tensor and is_in_place(method.name) and (owner.is_local or found.is_local):
            self.changed(node, owner, found, frame)
        return found

    def method_makes(
        self, method: Method, node: ast.Call, args: list[Value], keywords: dict[str, Value], frame: Frame, alone: bool
    ) -> Value:
        owner, name = method.owner, method.name
        self.counts_batches(name, node, frame)
        given = [*args, *keywords.values()]
        local = [value for value in given if value.is_local or local_entries(value)]
        self.steps(owner, name, node, frame)
        self.asks_for_keys(name, owner, node, frame)
        if name == "load_state_dict" and any(each.reason == DRAWN for each in given):
            self.drawn_anew(owner.only(Module), node, frame)
        elif name == "load_state_dict":
            self.loaded |= {
                root_of(each) for each in owner.only(Module) if isinstance(each, Module) and self.loads(each)
            }
        if name == "load_state_dict" and "assign" in keywords and keywords["assign"].constant is not False:
            loaded = {root_of(each).made for each in owner.only(Module) if isinstance(each, Module)}
            self.found.assigned.setdefault(node, set()).update(loaded)
            self.found.scripts[node] = frame.script
        if name == "requires_grad_" and isinstance(node.func, ast.Attribute):
            self.freezes(owner, node.func, given[0].constant if given else True, frame)
        if name in (*DRAWING, *SAMPLING) and owner.kind in LOCAL_ROWS and self.contexts:
            self.drawn.add("torch")
        if name in (*SAMPLING, "log_prob", "entropy", "cdf", "icdf") and (found := self.of_draws(owner, name, given)):
            return found
        if (number := product(name, [owner])) is not None:
            return number
        if (text := of_text(name, owner, args, bool(keywords))) is not None:
            return text
        if (
            name == "repeat_interleave"
            and isinstance(node.func, ast.Attribute)
            and (made := one_for_each(self.scripts, node.func.value, owner, args, keywords)) is not None
        ):
            return made
        for thing in owner.things:
            found = self.of_thing(thing, owner, name, node, args, given, frame, alone)
            if found is not None:
                return found
        if name in ("eval", "train") and not owner.things:
            self.sets_part(node, frame)
        if name in _PARAMETERS and not owner.things and isinstance(node.func, ast.Attribute):
            gives_on = frame.node in frame.script.generators or is_put_in(frame.script, node)
            parameters = self.of_layers(node.func, frame) if gives_on else None
            if parameters is not None:  # of `for layer in model.modules()`
                return parameters
        if name == "set_defaults" and not owner.things:
            for word, value in keywords.items():
                if value.only(Function):
                    self.commands[word] = join(self.commands.get(word, value), value)
        if name == "parse_args" and not owner.is_local and not owner.things:
            empty = ast.ClassDef("Namespace", [], [], [], [])
            settings = self.settings.setdefault(node, Instance(Class(empty, frame.script)))
            settings.attributes |= self.commands
            return of(settings)
        if name == "format":
            self.shown_fields(owner, node, args, keywords, frame)
        is_free = is_temporary(node.func) or is_last_use(node.func, frame)
        if name in _IN_PLACE and len(args) == 1 and not keywords and owner.kind in ADDITIVE and is_free:
            return combined(_IN_PLACE[name], owner, args[0])
        if owner.kind in ADDITIVE and name.endswith("_") and not name.endswith("__") and name != "requires_grad_":
            self.problem(frame, node, f".{name}() changes a number of this rank in place", owner.loaders)
        if owner.kind in LOCAL_ROWS:
            words = {word.arg or "" for word in node.keywords}
            if name == "item":
                return made_of("rows", [owner], host=True) if self.in_rows() else made_of("unknown", [owner])
            if name == "size":
                return self.size(owner, node, frame)
            if name in ("dim", "ndimension", "is_floating_point", "get_device", "stride"):
                return SAME
            if name in ("items", "values", "keys"):
                return of(Iteration("pairs" if name == "items" else "as_is", (owner,)))
            if name in ("mm", "matmul") and len(args) == 1 and not keywords:
                return combined(ast.MatMult(), owner, args[0])
            if name in ("addmm", "addmm_") and len(args) > 1 and not any(each.is_local for each in args[:-2]):
                return combined(ast.Add(), owner, combined(ast.MatMult(), *args[-2:]))
            if name == "repeat" and not owner.host and (made := repeated_along(owner, _unsqueezed(node), args)):
                return made
            laid_out = name in ("view", "reshape")
            if laid_out and not keywords:
                args = given = self.sizes_of_rows(node, owner, args, frame)
            found = on_rows(name, owner, self.dimension(node, 0, frame), given, words)
            if found is not None and laid_out and any(isinstance(each, ast.Starred) for each in node.args):
                found = of_dimensions(found, None)  # of how many sizes is not seen
            if found is not None and laid_out and takes_apart(owner, args, frame.script, node.args):
                found = replace(found, kind="rows_second")
            windows = name == "unfold" and over_samples(owner.kind, self.dimension(node, 0, frame), owner.dimensions)
            if windows or (laid_out and regroups(owner, args, frame.script, node.args)):
                found = made_of("unknown", [owner, *given], reason=COUPLES)
            if found is not None and (owner.host or name == "numpy"):
                found = of_numpy(found)
            if found is not None and name == "numpy" and found.kind == "batch":  # which only a tensor has
                found = replace(found, kind="rows")
            reason = f"what .{name}() makes of a batch depends on which samples are in it"
            unknown = made_of("unknown", [owner, *given], reason=reason)
            frames = self.in_forward and name in ("view", "reshape")  # of films: a part of them is a sample
            return found or (replace(unknown, couples=False) if frames else unknown)
        if owner.kind in ("mean", "sum", "size"):
            found = on_number(name, owner, given)
            return found or made_of("unknown", [owner, *given], reason=f".{name}() of it cannot be added up over ranks")
        if owner.kind == "scaled":
            return of_scaled(name, owner, given)
        if owner.reason == SHUFFLED and name in ("to", "cuda", "cpu", "long", "clone", "tolist"):
            return owner
        if owner.is_local and name in ("dim", "ndimension"):
            return SAME
        if owner.is_local:
            if name == "save":
                self.saved(owner, node, frame)
            moved = COUPLES if owner.reason == NUMBERED and name in MOVE else ""
            made = made_of("unknown", [owner, *(given if name not in LAYOUTS else [])])
            return replace(made, reason=moved or made.reason, host=name == "item" and made.reason == DRAWN)
        if owner.zero and name in _KEEPS_ZERO:
            return owner
        if local and name in ("scale",) and len(args) == 1:
            return args[0]
        if local and name in ("type_as", "to") and not owner.things:
            return replace(owner, constant=None)
        if local and name in (*PICTURES, "format"):
            self.pictured(node, frame) if name in PICTURES else self.shown(node, frame)
            return SAME
        rows = any(each.kind in LOCAL_ROWS for each in given)
        if name in _INTO and rows and not owner.things and self.dimension(node, 0, frame) in (0, "unknown"):
            return made_of("unknown", local, reason=COUPLES)
        if name in ("repeat", "expand") and not owner.things and (made := of_sizes(args)):
            return of_dimensions(made, of_sizes_given(args))
        if name == "expand_as" and len(given) == 1 and given[0].kind in LOCAL_ROWS and owner.reason != OWN_SHAPE:
            return made_of(given[0].kind, [given[0]])
        if name == "gather" and (found := looked_up(owner, self.dimension(node, 0, frame), given)):
            return found
        if local:
            return self.unknown_call(node, given, frame, alone)
        if not alone and not owner.things:
            own = owner.reason == OWN_SHAPE or (name in _SIZED and self.is_of_own_size(node))
            return replace(SAME, reason=OWN_SHAPE) if own else SAME
        return of(Module(node, "", networks=True)) if not alone and not owner.zero and not self.registers else SAME

    def counts_batches(self, name: str, node: ast.Call, frame: Frame) -> None:
        """A bar counts the batches of a part of an evaluation, `bar.update()`, and what it has come to is read."""
        bar = node.func.value if isinstance(node.func, ast.Attribute) else None
        if name != "update" or bar is None or self.in_forward or not is_read(frame.script, {ast.unparse(bar)}):
            return
        for context in filter(self.uneven, self.contexts):
            self.problem(frame, node, _BAR_IS_READ, context.loaders)

    def sets_part(self, node: ast.AST, frame: Frame) -> None:
        """Something of which nothing is known is set to training or evaluation, as a part of a network may be that a
        loop takes: `for part in model.modules(): part.eval()`."""
        for module in self.own_modules.values() if not is_conditional(node, frame) else ():
            module.trains_in = None

    def loads(self, module: Module) -> bool:
        """Whether a network gets numbers here in any case, once it is made: not if a checkpoint may be missing."""
        layers = (each for each in self.begins_apart if root_of(each) is root_of(module))
        return self.undecided <= min((self.undecided_when_made.get(each, 0) for each in layers), default=self.undecided)

    def of_draws(self, owner: Value, name: str, args: list[Value]) -> Value | None:
        """What a method of a distribution makes, or one of a distribution for each sample."""
        fixed = any(isinstance(each, Module) and each.name.startswith("torch.distributions.") for each in owner.things)
        if fixed and name in SAMPLING:
            apart = self.draws_apart("torch", args)
            if any(value.is_local for value in entries(args)):
                return of_sizes(args) or for_each_sample(args)
            return Value("unknown", reason=DRAWN) if apart else SAME
        rows = [each for each in (owner, *args) if each.kind in LOCAL_ROWS]
        if (
            not rows
            or not (fixed or owner.kind in LOCAL_ROWS)
            or any(each.is_local and each not in rows for each in args)
        ):
            return None
        in_front = bool(args) and not any(each.kind in LOCAL_ROWS for each in args)  # of a shape that is drawn
        return made_of("rows_moved" if in_front or any(axis(each.kind) != 0 for each in rows) else "rows", rows)

    def shown_fields(
        self, text: Value, node: ast.Call, args: list[Value], keywords: dict[str, Value], frame: Frame
    ) -> None:
        """A text shows objects, `"{}".format(meters)`, or attributes: `"{loss.avg}".format(loss=losses)`,
        `text.format(**self.__dict__)`."""
        known = text.constant if isinstance(text.constant, str) else None
        parts: dict[object, ast.expr] = {word.arg: word.value for word in node.keywords}
        if not any(isinstance(each, ast.Starred) for each in node.args):
            parts |= dict(enumerate(node.args))
        self.found.texts.add(node)
        for key, value in [*enumerate(args), *keywords.items()]:
            if known is None or re.search(rf"\{{({re.escape(str(key))})?[:!}}]", known):
                self.strings(value, parts.get(key, node), frame)
            for thing in value.only(Instance):
                assert isinstance(thing, Instance)
                self.shown_attributes(thing, fields_of(known, str(key)), node, parts.get(key, node), frame)
        for word in node.keywords:
            of_all = word.value.value if isinstance(word.value, ast.Attribute) else None
            if word.arg is None and of_all is not None and word.value.attr == "__dict__":  # type: ignore[attr-defined]
                for thing in self.value(of_all, frame).only(Instance):
                    assert isinstance(thing, Instance)
                    texts = " ".join(str(each.value) for each in ast.walk(thing.cls.node) if is_text(each))
                    self.shown_attributes(thing, set(re.findall(r"\w+", texts)), node, of_all, frame)

    def shown_attributes(
        self, thing: Instance, names: set[str] | None, node: ast.Call, part: ast.expr, frame: Frame
    ) -> None:
        shows = isinstance(frame.script.statement(node), ast.Expr)  # `print(…)`, `file.write(…)`
        for name in sorted((names or set()) - thing.attributes.keys()):
            method = self.method_of(thing.cls, name, of(thing))
            if method is not None and self.is_property(method) and self.enter(method, node, [], {}, frame).is_local:
                self.problem(frame, node, f"`{name}` of what is shown here is a number of this rank")
        for name, value in thing.attributes.items():
            if names is None or name in names:
                self.reads_attribute(thing, name, part, frame)
            own = shows and is_drawn(value) and not value.couples  # of a whole evaluation: rank 0 shows its own
            if value.is_local and not own and (names is None or name in names):
                self.found.wanted |= self.sources.get((thing, name), set())
                reason = f"`{name}` of what is shown here is a number of this rank"
                self.problem(frame, node, reason, value.loaders)

    def of_thing(
        self,
        thing: object,
        owner: Value,
        name: str,
        node: ast.Call,
        args: list[Value],
        given: list[Value],
        frame: Frame,
        alone: bool,
    ) -> Value | None:
        """A method of something that is known; None for others."""
        if isinstance(thing, Module):
            if name in _ADDS:
                self.gets_layers(of(thing), args, node, frame)
            if name in ("add_module", "register_module") and thing.cls is not None and len(node.args) == 2:
                self.of_container(thing, name, args[1:])
                return self.sets_attribute(node, [owner, *args], frame)
            if (layers := self.of_container(thing, name, given)) is not None:
                return layers
            if name in ("train", "eval"):
                on = args[0].constant if args else name == "train"
                for module in owner.only(Module):
                    assert isinstance(module, Module)
                    root_of(module).evaluates = on is False
                    whole = on is True and len(owner.things) == 1 and root_of(module) is module
                    root_of(module).trains_in = frame if whole and not is_conditional(node, frame) else None
            if name == "register_buffer" and any(each.reason == DRAWN for each in entries(given)):
                self.found.drawn_buffers[thing] = Problem(frame.script, node, OWN_BUFFER)
            if name == "apply" and any(map(sets_modes, given)):
                root_of(thing).trains_in = None
            if name == "apply" and any(map(sets_reductions, given)):
                self.reduces_otherwise(self.modules.values())
            if name in _MODULE_SELF:
                return owner
            hooks = [each for value in given for each in value.only(Function) if isinstance(each, Function)]
            seen = all(only_counts(each.script, each.node) or only_keeps(self.scripts, each.node) for each in hooks)
            if name.startswith("register_forward") and not (seen and not any(each.only(Bound) for each in given)):
                self.problem(frame, node, "what a hook does with the batches that a model gets is not followed")
            if name == "state_dict" and self.stays_apart(thing):
                return Value("unknown", reason=DRAWN)
            if name in _PARAMETERS:
                modules = tuple(each for each in owner.things if isinstance(each, Module))
                if isinstance(node.func, ast.Attribute):
                    self.found.parameters_of.setdefault(node.func.value, set()).update(modules)
                return of(Parameters(modules))
            in_turn = name in ("children", "named_children") and self.in_forward and _is_gone_through(node, frame)
            if in_turn and (layers := self.layers_in(thing)) is not None:
                return of(Iteration("pairs", (layers,))) if name == "named_children" else layers
            if name in ("children", "modules", "named_children", "named_modules"):
                self.layers_given[node, frame] = [each for each in owner.things if isinstance(each, Module)]
                return SAME
            if not any(value.is_local or local_entries(value) for value in given):
                own = name in _SIZED and self.is_of_own_size(node)
                return replace(SAME, reason=OWN_SHAPE) if own else SAME
            if name in _SIZED and (made := of_sizes(args)):  # of a parameter or a buffer, not told from a module
                return of_dimensions(made, of_sizes_given(args))
        if isinstance(thing, Logger):
            self.pictured(node, frame) if name in (*PICTURES, *_SHOWS_PICTURES) else self.shown(node, frame)
            self.logs(thing, node, frame, alone)
            if any(value.only(Function) for value in given):
                self.problem(frame, node, "a logger, which only rank 0 has, is given a function to call")
            return SAME
        if isinstance(thing, Items):
            if name in ("update", "setdefault", "__setitem__") and thing in self.groups_given:
                self.is_told(node, given, frame)
                return SAME
            if name in _LIST_METHODS and args:
                value = args[-1]
                if name == "extend":
                    self.extend(owner, value, node.args[-1])
                    return SAME
                if makes_numbers(node.args[-1]):
                    value = replace(value, part=False)
                value = self.of_sample(node, value, frame) if name == "append" else value
                taken = node.args[-1]
                value = self.recorded(taken, self.tensor_of_layer(taken, value, frame), frame)
                self.append(owner, self.one_of_several(value, name))
                return SAME
            if name in ("items", "values", "keys"):
                return of(
                    Iteration("pairs" if name == "items" else "entries" if name == "values" else "keys", (owner,))
                )
            thing.in_order &= name not in ("pop", "reverse", "clear", "rotate", "popleft")
            if name == "setdefault" and args and args[0].is_local:
                self.append(owner, made_of("unknown", args, reason=KEYED))
            if name == "setdefault" and len(args) > 1 and thing.rest is None and _is_new(thing, *args[:2]):
                thing.known[args[0].constant] = args[1]
            if name == "setdefault" and self.contexts and args[1:] and not self.in_forward:
                loaders = frozenset().union(*(each.loaders for each in self.contexts))
                held = self.part(owner, args[0].constant).only(Items)
                if loaders and not held and any(map(_has_places, args[1].only(Items))):
                    self.problem(frame, node, _MADE_THERE, loaders)
            if name in ("get", "setdefault", "pop"):
                return self.part(owner, args[0].constant if args else None)
            if name == "update":
                self.updated(thing, node, args, frame)
            if name == "update" and any(value.is_local or local_entries(value) for value in given):
                self.append(owner, made_of("unknown", [v for v in given if v.is_local] or [SAME], reason=KEYED))
                return SAME
            if name == "copy":
                return replace(owner, things=frozenset({replace(thing, known=dict(thing.known))}))
            if name in _BY_VALUE and local_entries(owner):
                return self.by_value(node, owner, args, frame)
        if isinstance(thing, Parameters) and name.endswith("_") and name != "requires_grad_":
            for argument, value in zip(node.args, args, strict=False):
                self.demand(argument, value, frame)
        if isinstance(thing, Parameters) and name in ("update", "setdefault"):  # of a group
            self.is_told(node, given, frame)
        if isinstance(thing, Parameters):
            self.put_into(thing, name, node, args, frame)
        if is_put_into(name, node, owner):
            self.problem(frame, node, OTHERS)
        if isinstance(thing, OptimizerValue) and name in _STEP_HOOKS:
            self.keeps_functions(node, given, (owner, SAME, SAME), frame)
        if isinstance(thing, OptimizerValue) and name == "add_param_group":
            self.is_told(node, given, frame)
            self.keeps_groups(given)
            known = {root_of(each) for each in self.found.trained}
            if any(root_of(each) not in known for each in self.trained_by(given)):
                self.problem(frame, node, "an optimizer gets parameters of another model here, which is not wrapped")
            elif reason := self.not_averaged(node, (), frame):
                self.problem(frame, node, reason)
        if isinstance(thing, Loader) and name == "__len__" and self.status.get(thing) in UNEVEN:
            self.problem(frame, node, "the number of a rank's batches is not that of all", frozenset({thing}))
        if isinstance(thing, Loader | Parameters | OptimizerValue):
            return SAME if isinstance(thing, Loader) else owner if isinstance(thing, Parameters) else SAME
        if isinstance(thing, Iteration) and name in ("next", "__next__") and self.loaders_in(owner):
            return self.next_batch(owner, node, frame)
        if isinstance(thing, Iteration) and thing.how == "bar":
            self.shown_on_bar(node, frame)
            return SAME
        return None

    def by_value(self, node: ast.Call, owner: Value, args: list[Value], frame: Frame) -> Value:
        """What depends on numbers of this rank in a list: `losses.index(best)`, `losses.sort()`."""
        assert isinstance(node.func, ast.Attribute)
        if node.func.attr in ("index", "count"):
            for each, value in zip((node.func.value, *node.args), (owner, *args), strict=False):
                self.demand(each, value, frame)
        else:
            reason = f"`{ast.unparse(node)}` depends on numbers of this rank"
            self.problem(frame, node, reason, made_of("same", [owner]).loaders)
        return replace(SAME, host=True)

    def updated(self, items: Items, node: ast.Call, args: list[Value], frame: Frame) -> None:
        """`settings.update(other, name=value)`: the entries may be others."""
        given: dict[object, Value] = {word.arg: self.value(word.value, frame) for word in node.keywords}
        for thing in (each for value in args for each in value.things):
            given |= thing.known if isinstance(thing, Items) else {}
        complete = None not in given and all(value.only(Items) for value in args)
        for key, value in items.known.items():
            if key in given and not given[key].is_local:
                items.known[key] = join(value, given[key])
            elif not complete:
                items.known[key] = replace(value, constant=None)
        others = [thing.rest for value in args for thing in value.things if isinstance(thing, Items)]
        for rest in (each for each in others if each is not None and (each.is_local or local_entries(each))):
            items.known = {key: join(each, rest) for key, each in items.known.items()}

    def one_of_several(self, value: Value, name: str) -> Value:
        """What a method puts into a list or set."""
        if value.kind in LOCAL_ROWS and not self.in_rows():
            return replace(value, host=False)  # an entry for each batch
        return self.keyed(value) if name == "add" else value

    def keyed(self, value: Value) -> Value:
        """What a set gets: other entries on each rank, some of which several ranks have."""
        return made_of("unknown", [value], reason=KEYED) if value.is_local else value

    def append(self, owner: Value, value: Value, on_every_rank: bool = False) -> None:
        """Put a value into a list, dict or set; on_every_rank: as in `Items`."""
        if self.may_be_of_several(value):
            value = made_of("unknown", [value], reason=SEVERAL)
        by_sample = self.in_rows() and value.kind in ("mean", "sum", *LOCAL_ROWS)
        if by_sample and value.kind in ("mean", "sum"):
            value = replace(value, kind="rows")
        uneven = [context for context in self.contexts if self.uneven(context)]
        if uneven and not value.is_local and not local_entries(value):
            value = self.counted(uneven[0])
        one_each = by_sample or (value.kind in LOCAL_ROWS and value.host)
        on_every_rank |= not value.is_local and any(context.how == "whole" for context in self.contexts)
        for thing in owner.only(Items):
            assert isinstance(thing, Items)
            thing.on_every_rank |= on_every_rank
            thing.in_order &= not thing.all() or one_each is (thing.by_sample or thing.extended)
            thing.lengthened |= self.lengthening_here()
            thing.rest = value if thing.rest is None else join(thing.rest, value)
            rows = self.rows_in(thing.rest)  # also of what it runs over, as zip(labels, guesses)
            if thing.on_every_rank and (rows is not None or local_entries(thing.rest)):
                thing.rest = made_of("unknown", [thing.rest if rows is None else rows], reason=MIXED)
            thing.grows = True
            thing.extended |= value.kind in LOCAL_ROWS and value.host
            thing.by_sample = thing.by_sample or by_sample

    def extend(self, owner: Value, value: Value, node: ast.expr) -> None:
        """Put what a value runs over into a list, one by one."""
        lengthen(owner, lengthening(value))
        if any(isinstance(thing, Items) and thing.mixed for thing in value.things):
            for each in owner.only(Items):
                each.mixed = True  # type: ignore[union-attr]
        value = zipped_rows([value]) or value
        lists = [thing for thing in value.things if isinstance(thing, Items)]
        for thing in lists:
            for entry in thing.all():
                one_each = entry.kind in LOCAL_ROWS and (thing.by_sample or thing.extended)
                entry = replace(entry, host=True, part=False) if one_each else entry
                self.append(owner, entry, thing.on_every_rank)
        if not lists:
            numbers = value.kind in LOCAL_ROWS
            part = value.part and not makes_numbers(node)
            self.append(owner, replace(value, host=True, part=part) if numbers else value)

    def listed(self, parts: Sequence[ast.expr], values: Sequence[Value]) -> Value:
        """`[*seen, *labels.tolist(), 0]`: parts, and what each is, or is made of where it has a star."""
        made = of(Items("list", in_order=isinstance(parts[0], ast.Starred)))
        for part, value in zip(parts, values, strict=True):
            if isinstance(part, ast.Starred):
                self.extend(made, value, part.value)
            else:
                self.append(made, value)
        return made

    def with_samples(self, left: Value, right: Value) -> Value | None:
        """`seen + labels.tolist()`: another list, with an entry for each sample, too; None for others."""
        old, rows = (left, right) if left.only(Items) else (right, left)
        lists = [thing for thing in old.things if isinstance(thing, Items) and thing.shape == "list"]
        if len(lists) < len(old.things) or old.is_local or rows.things or rows.kind not in LOCAL_ROWS:
            return None
        made = replace(lists[0], known=dict(lists[0].known))
        for other in lists[1:]:  # what it held in another turn of the loop
            made.known |= {key: join(made.known.get(key, entry), entry) for key, entry in other.known.items()}
            if other.rest is not None:
                made.rest = other.rest if made.rest is None else join(made.rest, other.rest)
            made.extended |= other.extended
            made.by_sample |= other.by_sample
            made.may_be_by_sample |= other.may_be_by_sample
            made.on_every_rank |= other.on_every_rank
            made.lengthened |= other.lengthened
            made.in_order &= other.in_order
        made.in_order &= old is left
        made.lengthened |= rows.loaders
        self.append(of(made), replace(rows, part=False, host=True))
        return of(made)

    def size(self, owner: Value, node: ast.Call, frame: Frame) -> Value:
        dimension = self.dimension(node, 0, frame)
        if not node.args and not node.keywords:
            return self.shape_of(owner)
        if owner.kind == "picked":
            return made_of("sum", [owner], host=True) if dimension == 0 else SAME
        return self.size_in(self.shape_of(owner), dimension)


def fields_of(text: str | None, key: str) -> set[str] | None:
    """The attributes of an argument that a text shows; None where that is not known."""
    if text is None:
        return None
    return set(re.findall(rf"{{{re.escape(key)}\.(\w+)", text))


def is_text(node: ast.AST) -> TypeGuard[ast.Constant]:
    """Whether it is a string that is written down."""
    return isinstance(node, ast.Constant) and isinstance(node.value, str)


def is_temporary(func: ast.expr) -> bool:
    """Whether what a method is called of was made for it by an operation, so that it has no other name."""
    made = func.value if isinstance(func, ast.Attribute) else func
    if not isinstance(made, ast.Call):
        return isinstance(made, ast.BinOp)
    called = made.func.attr if isinstance(made.func, ast.Attribute) else getattr(made.func, "id", "")
    return called in ("sum", "mean", *LOSSES) or (called in _IN_PLACE and is_temporary(made.func))


def is_last_use(func: ast.expr, frame: Frame) -> bool:
    """Whether nothing else reads the variable whose method is called."""
    if not isinstance(func, ast.Attribute) or not isinstance(func.value, ast.Name):
        return False
    return _reads(frame.script)[frame.script.scope(func), func.value.id] == [func.value]


@lru_cache(maxsize=KEPT)
def _reads(script: Script) -> dict[tuple[ast.AST, str], list[ast.Name]]:
    """Where the functions of a file read their variables."""
    found: dict[tuple[ast.AST, str], list[ast.Name]] = {}
    for node in script.find(ast.Name):
        if isinstance(node.ctx, ast.Load):
            found.setdefault((script.scope(node), node.id), []).append(node)
    return found


def _unsqueezed(call: ast.Call) -> int:
    """How many dimensions a tensor, `x.unsqueeze(2)`, has at least that a method is called of; 0 for others."""
    made = call.func.value if isinstance(call.func, ast.Attribute) else call
    named = isinstance(made, ast.Call) and isinstance(made.func, ast.Attribute) and made.func.attr == "unsqueeze"
    at = made.args[0] if isinstance(made, ast.Call) and named and len(made.args) == 1 else None
    return at.value + 1 if isinstance(at, ast.Constant) and isinstance(at.value, int) else 0


def _is_gone_through(node: ast.Call, frame: Frame) -> bool:
    """Whether a loop runs over all of what a call gives."""
    loop = frame.script.parents.get(node)
    return isinstance(loop, ast.For) and loop.iter is node


def _has_places(thing: Thing) -> bool:
    """Whether numbers may be added to what stands in a container: a dict, or a list that is not empty."""
    return isinstance(thing, Items) and (thing.shape == "dict" or bool(thing.all()))


def _is_new(items: Items, key: Value, value: Value) -> bool:
    """Whether a dict may get an entry that differs between the ranks, under a name that it does not have."""
    return isinstance(key.constant, str | int) and key.constant not in items.known and value.is_local
